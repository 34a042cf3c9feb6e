//! A client, six routers in a row and a server, each a network namespace; hop `n` has 10.0.`n`.2 and fd00:`n`::2.

use crate::world::soon;
use narrows_sys::netns::Namespaces;
use narrows_sys::rtnl::Links;
use narrows_sys::{process, sysctl};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::time::Duration;

pub(crate) const ROUTERS: u8 = 6;
pub(crate) const TARGET: &str = "10.0.7.2";
pub(crate) const TARGET6: &str = "fd00:7::2";
/// The user of NFS and of daemons without files.
const NOBODY: u32 = 65_534;

/// The hosts, client first. They go with it.
pub(crate) struct Chain {
    hosts: Vec<Namespaces>,
}

type Failed = Box<dyn std::error::Error + Send + Sync>;

fn v4(net: u8, host: u8) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, 0, net, host))
}

fn v6(net: u8, host: u8) -> IpAddr {
    IpAddr::V6(Ipv6Addr::new(0xfd00, net.into(), 0, 0, 0, 0, 0, host.into()))
}

impl Chain {
    pub(crate) fn new() -> Self {
        let hosts: Vec<Namespaces> = (0..=ROUTERS + 1).map(|at| host(&format!("host{at}"))).collect();
        for at in 0..=ROUTERS {
            let (near, far) = (&hosts[usize::from(at)], &hosts[usize::from(at) + 1]);
            link(near, "right", far, "left", at + 1);
        }
        for (at, host) in (0..).zip(&hosts) {
            inside(host, |links| {
                if at <= ROUTERS {
                    let (net, any4, any6) = (at + 1, Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into());
                    links.add_route("right", any4, 0, Some(v4(net, 2)))?;
                    links.add_route("right", any6, 0, Some(v6(net, 2)))?;
                }
                for net in 1..at {
                    links.add_route("left", v4(net, 0), 24, Some(v4(at, 1)))?;
                    links.add_route("left", v6(net, 0), 64, Some(v6(at, 1)))?;
                }
                Ok(())
            });
        }
        Self { hosts }
    }

    /// IPv6 addresses are usable when the kernel has noticed the carrier of all links, up to some seconds later.
    pub(crate) fn await_ipv6(&self) {
        let connect = || {
            let address = SocketAddr::from((Ipv6Addr::new(0xfd00, 7, 0, 0, 0, 0, 0, 2), 1));
            TcpStream::connect_timeout(&address, Duration::from_millis(500)).map(drop).map_err(|error| error.kind())
        };
        let refused = || self.client().run(connect).expect("entered") == Err(ErrorKind::ConnectionRefused);
        assert!(soon(Duration::from_millis(50), refused), "no path by IPv6");
    }

    /// With that many more routers beside the third, in equal-cost paths from the second to the fourth. `None`: not possible here.
    pub(crate) fn with_paths(count: u8) -> Option<Self> {
        let mut chain = Self::new();
        let mut hops = vec!["nexthop".to_owned(), "via".to_owned(), "10.0.3.2".to_owned()];
        for extra in 1..count {
            let net = 100 + extra * 2;
            let beside = host(&format!("beside{extra}"));
            link(&chain.hosts[2], &format!("b{extra}"), &beside, "left", net);
            link(&beside, "right", &chain.hosts[4], &format!("b{extra}"), net + 1);
            inside(&beside, |links| {
                links.add_route("right", v4(7, 0), 24, Some(v4(net + 1, 2)))?;
                links.add_route("left", v4(1, 0), 24, Some(v4(net, 1)))
            });
            hops.extend(["nexthop".to_owned(), "via".to_owned(), v4(net, 2).to_string()]);
            chain.hosts.push(beside);
        }
        let mut words = vec!["route", "replace", "10.0.7.0/24"];
        words.extend(hops.iter().map(String::as_str));
        if let Err(why) = ip(&chain.hosts[2], &words) {
            println!("NOT CHECKED: equal-cost paths, since {why}");
            return None;
        }
        chain.set(2, "net.ipv4.fib_multipath_hash_policy", "1");
        Some(chain)
    }

    pub(crate) fn client(&self) -> &Namespaces {
        &self.hosts[0]
    }

    pub(crate) fn host(&self, at: usize) -> &Namespaces {
        &self.hosts[at]
    }

    fn set(&self, at: usize, key: &str, value: &str) {
        self.hosts[at].run(|| sysctl::write(key, value)).expect("entered").expect("set");
    }

    pub(crate) fn set_mtu(&self, at: usize, device: &str, mtu: u32) {
        inside(&self.hosts[at], |links| links.set_mtu(device, mtu));
    }

    /// One ICMP error each second after the first few, as Linux does by default.
    pub(crate) fn limit_answers(&self, at: usize) {
        self.set(at, "net.ipv4.icmp_ratelimit", "1000");
    }

    /// What the host sends has come a longer way, as it seems.
    pub(crate) fn default_ttl(&self, at: usize, ttl: u8) {
        self.set(at, "net.ipv4.ip_default_ttl", &ttl.to_string());
    }

    /// What narrows prints as an ordinary user of the client.
    pub(crate) fn as_nobody(&self, words: &[&str]) -> Result<String, String> {
        if !process::is_root_of_machine() {
            return Err("this is a user namespace".to_owned());
        }
        let program = std::path::Path::new(env!("CARGO_BIN_EXE_narrows"));
        let copy = std::env::temp_dir().join(format!("narrows-trace-{}", std::process::id()));
        std::fs::copy(program, &copy).map_err(|error| format!("the program cannot be copied: {error}"))?;
        let mut command_as = process::bound_command(copy.to_str().expect("text"));
        command_as.args(words).env_clear().current_dir("/").uid(NOBODY).gid(NOBODY);
        let output = self.client().run(|| command_as.output());
        let _ = std::fs::remove_file(&copy);
        let output = output.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(output.status.code(), Some(0), "{}{}", text(&output.stdout), text(&output.stderr));
        Ok(text(&output.stdout))
    }
}

/// A host that forwards, and answers each probe.
fn host(name: &str) -> Namespaces {
    let keys = [
        ("net.ipv4.ip_forward", "1"),
        ("net.ipv6.conf.all.forwarding", "1"),
        ("net.ipv4.icmp_ratelimit", "0"),
        ("net.ipv6.icmp.ratelimit", "0"),
        ("net.ipv4.conf.all.rp_filter", "0"),
        ("net.ipv4.conf.default.rp_filter", "0"),
        ("net.ipv4.ping_group_range", "0 65535"),
    ];
    let prepare = || {
        keys.iter().try_for_each(|(key, value)| sysctl::write(key, value))?;
        Links::open()?.set_up("lo", true)?;
        Ok::<_, Failed>(())
    };
    struct Wrapped(Failed);
    impl From<narrows_sys::Error> for Wrapped {
        fn from(error: narrows_sys::Error) -> Self {
            Self(error.into())
        }
    }
    let made = Namespaces::create(name, || prepare().map_err(Wrapped));
    made.map_err(|error| error.0).expect("root, of a user namespace at least").0
}

fn inside(host: &Namespaces, work: impl FnOnce(&mut Links) -> narrows_sys::rtnl::Result<()> + Send) {
    host.run(|| Links::open().and_then(|mut links| work(&mut links))).expect("entered").expect("configured");
}

/// A cable with the networks 10.0.`net`.0/24 and fd00:`net`::/64.
fn link(near: &Namespaces, name: &str, far: &Namespaces, peer: &str, net: u8) {
    inside(near, |links| {
        links.add_veth(name, peer, far.network())?;
        links.add_address(name, v4(net, 1), 24)?;
        links.add_address(name, v6(net, 1), 64)?;
        links.set_up(name, true)
    });
    inside(far, |links| {
        links.add_address(peer, v4(net, 2), 24)?;
        links.add_address(peer, v6(net, 2), 64)?;
        links.set_up(peer, true)
    });
}

/// Runs `ip` on a host; an error says why it is not possible.
pub(crate) fn ip(host: &Namespaces, words: &[&str]) -> Result<(), String> {
    run(host, "ip", words).map(drop)
}

/// What a program prints on a host; an error says why it is not possible.
pub(crate) fn run(host: &Namespaces, program: &str, words: &[&str]) -> Result<String, String> {
    let command = || {
        let mut command = process::free_command(program);
        command.args(words).env("TERM", "xterm").output()
    };
    let output = host.run(command).map_err(|error| error.to_string())?;
    let output = output.map_err(|error| format!("`{program}` cannot be run: {error}"))?;
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    if output.status.success() {
        return Ok(text(output.stdout));
    }
    Err(format!("`{program} {}` says: {}", words.join(" "), text(output.stderr).trim()))
}
