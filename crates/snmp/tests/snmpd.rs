//! A real agent, net-snmp's `snmpd`, in its own network namespaces: its v2c and v3 counters are the kernel's.

use narrows_model::host::snmp::{Secret, SnmpAccess, SnmpAgent};
use narrows_snmp::{Agent, Growth, Settling, SnmpError, hop_count};
use narrows_sys::netns::{Namespaces, become_root_of_user_namespace};
use narrows_sys::rtnl::Links;
use narrows_sys::{Error, clock, files, process};
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 71, 94, 1));
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 71, 94, 2));
const AT: &str = "127.0.0.1:1161";

const CONFIG: &str = "\
agentaddress udp:127.0.0.1:1161
rocommunity narrows 127.0.0.1
createUser alice SHA alice-signs AES alice-hides
rouser alice priv
createUser carol SHA carol-signs
rouser carol auth
createUser bob
rouser bob noauth
";

fn main() {
    if !process::is_root()
        && let Err(error) = become_root_of_user_namespace()
    {
        println!("NOT CHECKED: reading a real agent, since {error}");
        return;
    }
    let nothing = || Ok::<_, Error>(());
    let (near, ()) = Namespaces::create("near", nothing).expect("namespaces");
    let (far, ()) = Namespaces::create("far", nothing).expect("namespaces");
    wire(&near, &far);
    // The agent ends with the thread that starts it.
    let checked = near.run(|| against_snmpd(&far)).expect("the namespaces can be entered");
    match checked {
        Ok(()) => println!("test a real agent is read by v2c and v3 ... ok"),
        Err(why) => println!("NOT CHECKED: reading a real agent, since {why}"),
    }
}

/// A veth pair between the two, `left` with 10.71.94.1 and `right` with 10.71.94.2.
fn wire(near: &Namespaces, far: &Namespaces) {
    let set_up = |name: &str, address: IpAddr| {
        let mut links = Links::open().expect("netlink");
        links.add_address(name, address, 24).expect("an address");
        links.set_up(name, true).expect("up");
        links.set_up("lo", true).expect("up");
    };
    near.run(|| {
        Links::open().expect("netlink").add_veth("left", "right", far.network()).expect("a veth pair");
        set_up("left", NEAR);
    })
    .expect("entered");
    far.run(|| set_up("right", FAR)).expect("entered");
}

struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(folder: &Path) -> Result<Daemon, String> {
    let config = folder.join("snmpd.conf");
    files::write_whole(&config, CONFIG.as_bytes(), 0o600).expect("a temporary folder");
    let mut command = process::bound_command("snmpd");
    command.args(["-f", "-Ln", "-C", "-c"]).arg(&config).env("SNMP_PERSISTENT_DIR", folder).env("SNMPCONFPATH", folder);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map(Daemon).map_err(|error| format!("snmpd does not start: {error}; on Debian install snmpd"))
}

fn target(access: SnmpAccess) -> SnmpAgent {
    SnmpAgent { agent: AT.to_owned(), access }
}

fn user(name: &str, password: Option<&str>) -> Result<Agent, SnmpError> {
    let access = SnmpAccess::V3 { user: name.to_owned(), password: password.map(Secret::new) };
    Agent::open(&target(access), Duration::from_secs(9))
}

fn against_snmpd(far: &Namespaces) -> Result<(), String> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut daemon = start(folder.path())?;
    let begun = clock::now();
    let narrows = target(SnmpAccess::V2c { community: Secret::new("narrows") });
    let agent = loop {
        match Agent::open(&narrows, Duration::from_millis(600)) {
            Ok(agent) => break agent,
            Err(error) => {
                if let Some(status) = daemon.0.try_wait().expect("a child") {
                    return Err(format!("snmpd ended at once ({status})"));
                }
                assert!(begun.elapsed() < Duration::from_secs(60), "{error}");
            }
        }
    };
    counters_are_the_kernel_s(&agent, far);
    users();
    Ok(())
}

fn kernel_s() -> (u64, u64) {
    let link = Links::open().expect("netlink").get("left").expect("a link");
    (link.rx_packets, link.tx_packets)
}

fn counters_are_the_kernel_s(agent: &Agent, far: &Namespaces) {
    let left = agent.interface("left").expect("the veth");
    assert_eq!(left.index, Links::open().expect("netlink").get("left").expect("a link").index);
    // The agent reads the kernel every few seconds only: both readings are of an idle link.
    let before = agent.counters(&left).expect("counters");
    let wait = |before, min_in| Settling {
        before,
        min_in,
        min_out: 0,
        every: Duration::from_millis(250),
        wait: Duration::from_secs(60),
    };
    let sent = far.run(|| {
        let socket = narrows_sys::udp::socket::connect((NEAR, 9).into()).expect("a route");
        (0..3000).filter(|_| socket.send(&[0; 18]).is_ok()).count() as u64
    });
    let sent = sent.expect("entered");
    assert!(sent >= 1000, "{sent} frames left");
    let (came, _) = kernel_s();
    let settled =
        agent.settle(&left, &wait(before.clone(), came - before.input.frames().expect("counted"))).expect("counters");
    let growth = Growth::between(&before, &settled);
    assert_eq!(growth.trouble, Vec::<String>::new());
    let hop = hop_count("near", agent.address(), &growth, &growth);
    assert_eq!(hop.silent, None);
    assert!(hop.input.expect("counted") >= 1000, "{hop:?}");
    // The agent's totals equal the kernel's, once no frame has arrived since the agent read them. Neighbour
    // solicitations interfere, so this waits up to a time limit, not for a number of attempts.
    let begun = clock::now();
    let agrees = loop {
        let first = kernel_s();
        let told = agent.settle(&left, &wait(settled.clone(), 0)).expect("counters");
        let quiet = kernel_s() == first;
        if quiet && told.input.frames().zip(told.output.frames()) == Some(first) {
            break true;
        }
        if begun.elapsed() > Duration::from_secs(120) {
            break false;
        }
        clock::sleep(Duration::from_millis(200));
    };
    assert!(agrees, "kernel {:?}, agent {:?}", kernel_s(), agent.counters(&left));
}

fn users() {
    for (name, password) in [("carol", Some("carol-signs")), ("bob", None)] {
        let agent = user(name, password).expect(name);
        let lo = agent.interface("lo").expect("the loopback");
        let counters = agent.counters(&lo).expect("counters");
        assert!(counters.input.unicast.value().is_some_and(|frames| frames > 0), "{name}: {counters:?}");
    }
    let refused = |name: &str, password: Option<&str>| {
        let error = user(name, password).expect_err(name);
        assert!(matches!(error, SnmpError::Refused { .. }), "{error}");
        error.to_string()
    };
    let says = refused("carol", Some("carol-erred"));
    assert!(says.contains("check the authentication password"), "{says}");
    let says = refused("mallory", None);
    assert!(says.contains("create the user on the device"), "{says}");
    // She may read only what is encrypted.
    let says = refused("alice", Some("alice-signs"));
    assert!(says.contains("give the community or user read access to IF-MIB"), "{says}");
}
