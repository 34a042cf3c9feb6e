//! Two fresh network namespaces with a veth pair between them. Each namespace is held by a process that reads its standard
//! input: when this program ends, however it ends, the input closes, the holder exits, and the kernel removes the rest.

use narrows_sys::packet_ring::PacketRing;
use narrows_sys::rtnl::{Links, VethEnd};
use narrows_sys::{ethtool, netns, sysctl};
use std::io::{BufRead as _, BufReader};
use std::os::fd::AsFd as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The address of the serving end (RFC 2544's test network).
pub(crate) const SERVER: &str = "198.18.0.2";

/// The name of the interface on both ends.
pub(crate) const DEVICE: &str = "bench0";

/// The two ends; removed when dropped.
pub(crate) struct Network {
    client: Child,
    server: Child,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Received {
    pub(crate) packets: u64,
    /// With Ethernet headers and without FCS.
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Listens {
    Tcp,
    Udp,
}

#[derive(Clone, Copy)]
pub(crate) enum End {
    Client,
    Server,
}

impl Network {
    pub(crate) fn up() -> Result<Self, String> {
        let network = Self { client: holder()?, server: holder()? };
        let peer = network.server.id().to_string();
        network.ip(End::Client, &["link", "add", DEVICE, "type", "veth", "peer", "name", DEVICE, "netns", &peer])?;
        for (end, address) in [(End::Client, "198.18.0.1/24"), (End::Server, "198.18.0.2/24")] {
            network.ip(end, &["address", "add", address, "dev", DEVICE])?;
            network.ip(end, &["link", "set", "lo", "up"])?;
            network.ip(end, &["link", "set", DEVICE, "up"])?;
        }
        Ok(network)
    }

    /// Has the routes of both ends set the congestion control of every connection.
    pub(crate) fn control_congestion(&self, name: &str) -> Result<(), String> {
        for end in [End::Client, End::Server] {
            let route = ["route", "change", "198.18.0.0/24", "dev", DEVICE, "proto", "kernel", "scope", "link"];
            self.ip(end, &[&route[..], &["congctl", name]].concat())?;
        }
        Ok(())
    }

    /// Creates both namespaces and a pair with the given number of queues per direction and no addresses, for raw
    /// frames. No other traffic uses it.
    pub(crate) fn up_for_frames(queues: u32) -> Result<Self, String> {
        let network = Self { client: holder()?, server: holder()? };
        let path = format!("/proc/{}/ns/net", network.server.id());
        let far = std::fs::File::open(&path).map_err(|error| format!("cannot open {path}: {error}"))?;
        let end = VethEnd { name: DEVICE, mac: None, queues };
        network.links(End::Client)?.add_veth_pair(end, end, far.as_fd()).map_err(|error| error.to_string())?;
        for end in [End::Client, End::Server] {
            // Nothing to disable if the kernel has no IPv6.
            let quiet = || -> narrows_sys::Result<()> {
                let _ = sysctl::write(&format!("net.ipv6.conf.{DEVICE}.disable_ipv6"), "1");
                Ok(())
            };
            network.inside(end, quiet)?;
            network.links(end)?.set_up(DEVICE, true).map_err(|error| error.to_string())?;
        }
        Ok(network)
    }

    /// Runs `work` on a thread inside an end's namespace.
    pub(crate) fn inside<T: Send>(
        &self,
        end: End,
        work: impl FnOnce() -> narrows_sys::Result<T> + Send,
    ) -> Result<T, String> {
        netns::in_network_of(self.holder(end).id(), work).map_err(|error| error.to_string())
    }

    fn links(&self, end: End) -> Result<Links, String> {
        // A netlink socket stays in the namespace in which it was created.
        self.inside(end, || Ok(Links::open()))?.map_err(|error| error.to_string())
    }

    /// The Ethernet address of an end's device.
    pub(crate) fn mac(&self, end: End) -> Result<String, String> {
        let link = self.links(end)?.get(DEVICE).map_err(|error| error.to_string())?;
        let address = link.address.ok_or_else(|| format!("{DEVICE} has no Ethernet address"))?;
        Ok(address.map(|byte| format!("{byte:02x}")).join(":"))
    }

    /// The receive counters of an end's interface.
    pub(crate) fn received(&self, end: End) -> Result<Received, String> {
        let path = format!("/proc/{}/net/dev", self.holder(end).id());
        let text = std::fs::read_to_string(&path).map_err(|error| format!("cannot read {path}: {error}"))?;
        received(&text).ok_or_else(|| format!("{path} does not tell what {DEVICE} received"))
    }

    pub(crate) fn command(&self, end: End) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.holder(end).id()));
        command
    }

    /// Makes both ends split UDP batches (`UDP_SEGMENT`) into datagrams before the interface: each is a packet on
    /// the pair.
    pub(crate) fn segment_udp_in_software(&self) -> Result<(), String> {
        for end in [End::Client, End::Server] {
            let work = || ethtool::Device::open(DEVICE)?.set_feature("tx-udp-segmentation", false);
            netns::in_network_of(self.holder(end).id(), work).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Observes what an end receives, with room for `packets` packets.
    pub(crate) fn observe(&self, end: End, packets: usize) -> Result<PacketRing, String> {
        netns::in_network_of(self.holder(end).id(), || PacketRing::open(DEVICE, packets))
            .map_err(|error| error.to_string())
    }

    /// Waits until something listens on a port of an end.
    pub(crate) fn await_listener(&self, end: End, listens: Listens, port: u16) -> Result<(), String> {
        let deadline = Instant::now() + Duration::from_secs(10);
        let holder = self.holder(end).id();
        let tables = match listens {
            Listens::Tcp => ["tcp", "tcp6"],
            Listens::Udp => ["udp", "udp6"],
        };
        while Instant::now() < deadline {
            let found = tables.iter().any(|table| {
                std::fs::read_to_string(format!("/proc/{holder}/net/{table}"))
                    .is_ok_and(|text| listens_on(&text, listens, port))
            });
            if found {
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(format!("nothing listens on port {port} after 10 s"))
    }

    const fn holder(&self, end: End) -> &Child {
        match end {
            End::Client => &self.client,
            End::Server => &self.server,
        }
    }

    fn ip(&self, end: End, words: &[&str]) -> Result<(), String> {
        let output = self.command(end).arg("ip").args(words).output().map_err(|error| missing("nsenter", &error))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(format!(
            "`ip {}` failed: {}; the bench needs `ip` (Debian: apt-get install iproute2)",
            words.join(" "),
            said.trim()
        ))
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        for child in [&mut self.client, &mut self.server] {
            drop(child.stdin.take());
            let _ = child.wait();
        }
    }
}

fn missing(program: &str, error: &std::io::Error) -> String {
    format!("cannot start {program}: {error}; it is part of util-linux")
}

/// A process in a separate network namespace; it prints `ready` when it is set up and ends with its input.
fn holder() -> Result<Child, String> {
    let mut child = Command::new("unshare")
        .args(["--net", "sh", "-c", "echo ready; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| missing("unshare", &error))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    if line == "ready\n" {
        Ok(child)
    } else {
        let _ = child.wait();
        Err("cannot make a network namespace: run the bench as root (sudo make bench)".to_owned())
    }
}

/// Whether `/proc/net/tcp` has a socket in the state LISTEN (0A), or `/proc/net/udp` one in the state UNCONN (07), on that port.
fn listens_on(table: &str, listens: Listens, port: u16) -> bool {
    let ending = format!(":{port:04X}");
    let state = match listens {
        Listens::Tcp => "0A",
        Listens::Udp => "07",
    };
    table.lines().skip(1).any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next().is_some_and(|local| local.ends_with(&ending)) && words.nth(1) == Some(state)
    })
}

/// The line of the device in `/proc/net/dev`.
fn received(table: &str) -> Option<Received> {
    let of_device = |line: &str| line.trim().strip_prefix(DEVICE)?.strip_prefix(':').map(str::to_owned);
    let line = table.lines().find_map(of_device)?;
    let mut words = line.split_whitespace().map_while(|word| word.parse().ok());
    let (bytes, packets) = (words.next()?, words.next()?);
    Some(Received { packets, bytes })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_its_name() {
        let table =
            "Inter-|   Receive\n face |bytes    packets errs\n    lo: 1 2 0 0\nbench0: 6000     100    0    0\n";
        assert_eq!(received(table), Some(Received { packets: 100, bytes: 6000 }));
        assert_eq!(received("    lo: 1 2 0\n"), None);
    }

    #[test]
    fn a_listener_is_found_by_its_port_and_state() {
        let table = "  sl  local_address rem_address   st\n   0: 00000000:1464 00000000:0000 0A 0:0\n   1: 0100007F:1465 0100007F:9999 01 0:0\n   2: 00000000:1466 00000000:0000 07 0:0\n";
        assert!(listens_on(table, Listens::Tcp, 5220));
        assert!(!listens_on(table, Listens::Tcp, 5221));
        assert!(listens_on(table, Listens::Udp, 5222));
        assert!(!listens_on(table, Listens::Udp, 5220));
    }
}
