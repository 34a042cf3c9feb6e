//! The Linux part of the advice on a tester, a router and a switch in network namespaces: looked at, set, set back; and killed in
//! between.

use crate::bench::{PORTS, with_router};
use crate::world::{World, alone, on_loopback, soon};
use narrows_sys::netns::network_of_this_thread;
use narrows_sys::rtnl::{BridgeOption, Links};
use narrows_sys::{neighbour, sysctl};
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::time::Duration;

fn permanent(device: &str, address: [u8; 4]) -> Option<[u8; 6]> {
    let index = Links::open().and_then(|mut links| links.get(device)).expect("a device").index;
    neighbour::permanent(IpAddr::from(address), index).expect("the table")
}

/// All that the advice for the tester sets here.
fn state() -> (Vec<Option<[u8; 6]>>, Vec<String>) {
    let neighbours = [permanent("gen0", [198, 18, 0, 1]), permanent("rcv0", [198, 19, 0, 1])];
    let keys = ["accept_ra", "router_solicitations", "dad_transmits"];
    let values = ["gen0", "rcv0"].iter().flat_map(|device| {
        keys.map(|key| sysctl::read(&format!("net.ipv6.conf.{device}.{key}")).expect("a parameter"))
    });
    (neighbours.to_vec(), values.collect())
}

/// Runs the program to its end without a word on standard error; what it said.
fn told(world: &World, words: &[&str]) -> String {
    world.run(&[&["rfc2544", "advise"], words].concat()).quiet(0).out
}

fn journal(world: &World) -> usize {
    let names = narrows_sys::files::list(&world.state().join("changes")).unwrap_or_default();
    names.iter().filter(|name| name.ends_with(".json")).count()
}

#[test]
fn a_tester_is_looked_at_set_and_set_back() {
    with_router(|world, _| {
        world.file("plan.toml", PORTS);
        let before = state();
        assert_eq!(before.0, [None, None]);
        let dry = told(world, &["plan.toml"]);
        assert!(dry.starts_with("What narrows would set on this tester  gen0, rcv0\n"), "{dry}");
        assert!(dry.contains("to set    ip neighbour replace 198.18.0.1 lladdr "), "{dry}");
        assert!(dry.contains("  (before: learned)\n"), "{dry}");
        assert!(
            dry.contains("not here  ethtool -A gen0 autoneg off rx off tx off: not supported by the driver\n"),
            "{dry}"
        );
        assert!(dry.contains("Nothing was changed. --apply sets what is marked `to set`"), "{dry}");
        assert!(dry.contains("Left to you: ") && dry.contains("interrupt-balance"), "{dry}");
        assert_eq!((state(), journal(world)), (before.clone(), 0), "looking changes nothing");

        let set = told(world, &["plan.toml", "--apply"]);
        assert!(set.contains("sets them back"), "{set}");
        let (neighbours, values) = state();
        let mac = |device: &str| Links::open().and_then(|mut links| links.get(device)).expect("a device").address;
        assert!(neighbours.iter().all(Option::is_some) && neighbours[0] != mac("gen0"), "{neighbours:?}");
        assert_eq!(values, ["0"; 6]);
        let again = told(world, &["plan.toml"]);
        assert!(again.contains("is so     ip neighbour replace 198.18.0.1"), "{again}");
        assert!(again.contains("Nothing is left to set here."), "{again}");
        let list = world.run(&["tune", "list"]).out;
        assert_eq!(list.lines().count(), journal(world), "{list}");

        let undone = told(world, &["--undo"]);
        assert!(undone.contains("dev gen0 nud permanent: rolled back\n"), "{undone}");
        assert_eq!((state(), journal(world)), (before.clone(), 0));
        assert_eq!(told(world, &["--undo"]), "no setting of `rfc2544 advise` is in force on this host\n");

        told(world, &["plan.toml", "--apply"]);
        let said = world.run(&["tune", "undo", "all"]);
        assert_eq!((said.code, state(), journal(world)), (Some(0), before, 0), "{said:?}");
    });
}

#[test]
fn an_apply_that_is_killed_is_undone_from_the_journal() {
    with_router(|world, _| {
        world.file("plan.toml", PORTS);
        let before = state();
        // Each time at another place: after so many entries of the journal.
        for entries in [1, 2, 4] {
            let running = world.start(&["rfc2544", "advise", "plan.toml", "--apply"]);
            let begun = soon(Duration::from_micros(500), || journal(world) >= entries);
            running.signal(9);
            running.end();
            assert!(begun, "it was killed before it began");
            assert!(entries == 1 || state() != before, "nothing was set");
            told(world, &["--undo"]);
            assert_eq!((state(), journal(world)), (before.clone(), 0), "killed after {entries}");
        }
    });
}

#[test]
fn a_router_forwards_and_knows_the_tester_until_it_is_undone() {
    with_router(|world, router| {
        world.file("plan.toml", PORTS);
        let ran = router.run(|| {
            let key = "net.ipv4.conf.in0.forwarding";
            let read = || sysctl::read(key).expect("a parameter");
            assert_eq!(read(), "0");
            // Frames of XDP reach a virtual pair only where it polls.
            let device = narrows_sys::ethtool::Device::open("in0").expect("a device");
            device.set_feature("gro", true).expect("set");
            let words = ["plan.toml", "--role", "router", "--device", "in0", "--device", "out0"];
            let dry = told(world, &words);
            assert!(dry.starts_with("What narrows would set on this router  in0, out0\n"), "{dry}");
            assert!(dry.contains("ethtool -K in0 gro off: required for XDP transmit on a veth pair\n"), "{dry}");
            assert!(dry.contains("not here  sysctl -w net.core.netdev_budget=600: "), "{dry}");
            told(world, &[&words[..], &["--apply"]].concat());
            assert_eq!(read(), "1");
            assert_eq!(sysctl::read("net.ipv4.conf.lo.forwarding").expect("a parameter"), "0", "named devices alone");
            assert!(permanent("in0", [198, 18, 0, 2]).is_some() && permanent("out0", [198, 19, 0, 2]).is_some());
            told(world, &["--undo"]);
            assert_eq!((read(), permanent("in0", [198, 18, 0, 2]), journal(world)), ("0".to_owned(), None, 0));

            // Of one port alone the other's neighbour is nowhere.
            let one = told(world, &words[..5]);
            assert!(
                one.contains("not here  the neighbour 198.19.0.2: it is not on the link of a named interface\n"),
                "{one}"
            );
        });
        ran.expect("the router's network");
    });
}

#[test]
fn a_bridge_is_quiet_until_it_is_undone() {
    on_loopback(|world| {
        let here = network_of_this_thread().expect("a network");
        let mut links = Links::open().expect("links");
        links.add_bridge("br0").and_then(|()| links.add_veth("p0", "p1", here.as_fd())).expect("devices");
        links.set_bridge_option("br0", BridgeOption::StpState, 1).expect("a spanning tree");
        let mut read = || BridgeOption::ALL.map(|option| links.bridge_option("br0", option).expect("an option"));
        let before = read();
        let words = ["--role", "switch", "--bridge", "br0", "--device", "p0"];
        let dry = told(world, &words);
        assert!(dry.contains("to set    ip link set dev br0 type bridge stp_state 0  (before: 1)\n"), "{dry}");
        assert_eq!(read(), before);
        told(world, &[&words[..], &["--apply"]].concat());
        assert_eq!(read(), [8_640_000, 0, 0, 0]);
        told(world, &["--undo"]);
        assert_eq!((read(), journal(world)), (before, 0));
        assert_eq!(
            world.sentence(1, &["rfc2544", "advise", "--role", "switch", "--bridge", "p0"]),
            "cannot use bridge p0: it is another kind of device"
        );
    });
}

#[test]
fn what_cannot_be_looked_at_is_told() {
    on_loopback(|world| {
        assert_eq!(
            world.sentence(2, &["rfc2544", "advise", "--apply"]),
            "the role of this host is missing: give --role tester, --role router or --role switch"
        );
        assert_eq!(
            world.sentence(2, &["rfc2544", "advise", "--apply", "--role", "router"]),
            "the interfaces that carry test frames are missing: give --device DEVICE for each, or --bridge BRIDGE"
        );
        assert_eq!(
            world.sentence(2, &["rfc2544", "advise", "cisco", "--role", "switch", "--apply"]),
            "cannot apply settings on Cisco IOS: only Linux is supported; drop --apply, --device and --bridge"
        );
        assert_eq!(
            world.sentence(1, &["rfc2544", "advise", "--role", "router", "--device", "none0"]),
            "cannot find link none0: No such device (os error 19)"
        );
        world.file("plan.toml", PORTS);
        assert_eq!(
            world.sentence(1, &["rfc2544", "advise", "plan.toml"]),
            "cannot find link gen0: No such device (os error 19)"
        );
        assert_eq!(
            world.sentence(2, &["rfc2544", "advise", "plan9"]),
            "`plan9` is neither a system (linux, freebsd, cisco, juniper) nor a plan file"
        );
    });
    alone().run(&["rfc2544", "advise", "plan.toml", "--undo"]).with_code(2);
}
