//! The forwarding bench: frames pass the device under test and are counted at each port, faults of the device take effect,
//! and an idle bench is silent. Needs root, and fails without.

#![allow(clippy::disallowed_methods)] // Plain sockets: the test must not depend on the product's engines.

use narrows_lab::{Error, Host, Lab, LabSpec, PortStatus, Site, Topology, faults};
use narrows_model::{Direction, Flow};
use narrows_sys::ethtool::Device;
use narrows_sys::netlink::{self, Family, Socket};
use narrows_sys::rtnl::Links;
use narrows_sys::{clock, nftables};
use std::net::UdpSocket;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);
/// Payload of a datagram whose frame has 64 bytes with its FCS.
const SMALLEST: usize = 18;

fn lab(topology: Topology, mtu: u32) -> Lab {
    let spec = LabSpec { name: "dut".to_owned(), topology, mtu, ..LabSpec::default() };
    Lab::up(&spec).expect("this test builds networks: it needs root")
}

fn host<'a>(lab: &'a Lab, name: &str) -> &'a Host {
    lab.host(name).expect("it is there")
}

fn port(lab: &Lab, name: &str, device: &str) -> PortStatus {
    let ports = host(lab, name).ports().expect("its devices");
    ports.into_iter().find(|port| port.device == device).expect("it is there")
}

/// Waits until no frame is under way any more, as far as that port counts.
fn settled(lab: &Lab, wanted: u64) -> u64 {
    let deadline = clock::now() + PATIENCE;
    loop {
        let got = port(lab, "tester", "rcv0").rx_packets;
        if got >= wanted || clock::now() > deadline {
            return got;
        }
        clock::sleep(Duration::from_millis(1));
    }
}

fn socket(lab: &Lab, address: &str) -> UdpSocket {
    host(lab, "tester").run(|| UdpSocket::bind(address)).expect("entered").expect("bound")
}

/// Sends so many of that size to each destination.
fn send(socket: &UdpSocket, destinations: &[String], each: usize, bytes: usize) {
    for destination in destinations {
        for _ in 0..each {
            socket.send_to(&vec![0; bytes], destination.as_str()).expect("there is a route");
        }
    }
}

fn networks(side: u16) -> Vec<String> {
    let v4 = (0..256).map(|number| format!("198.{}.{number}.77:9", 17 + side));
    let v6 = (0..256).map(|number| format!("[2001:2:0:{:x}::77]:9", side * 256 + number));
    v4.chain(v6).collect()
}

#[test]
fn frames_to_every_network_pass_the_device_and_are_counted_at_each_port() {
    for topology in [Topology::Dut, Topology::DutSwitch] {
        let lab = lab(topology, 9000);
        let hops: &[(&str, &str)] = match topology {
            Topology::DutSwitch => &[("switch", "port1"), ("switch", "port2"), ("router", "in0"), ("router", "out0")],
            _ => &[("router", "in0"), ("router", "out0")],
        };
        let counts = |at: &[(&str, &str)]| {
            at.iter().map(|(name, device)| port(&lab, name, device)).map(|it| (it.rx_packets, it.tx_packets)).collect()
        };
        let before: Vec<(u64, u64)> = counts(hops);
        let (all, received) = (networks(2), port(&lab, "tester", "rcv0").rx_packets);
        for (from, family) in [("198.18.0.2:0", 4), ("[2001:2:0:100::2]:0", 6)] {
            let socket = socket(&lab, from);
            let (own, bytes): (Vec<_>, _) =
                (all.iter().filter(|it| it.starts_with('[') == (family == 6)).cloned().collect(), [SMALLEST, 8900]);
            for bytes in bytes {
                send(&socket, &own, 1, bytes);
            }
        }
        let frames = 2 * all.len() as u64;
        assert_eq!(settled(&lab, received + frames) - received, frames, "{topology:?}");
        let after: Vec<(u64, u64)> = counts(hops);
        for ((before, after), (name, device)) in before.iter().zip(&after).zip(hops) {
            // The odd ones receive frames, the others forward them.
            let towards = ["port1", "in0"].contains(device);
            let grown = (after.0 - before.0, after.1 - before.1);
            assert_eq!(grown, if towards { (frames, 0) } else { (0, frames) }, "{topology:?}: {name} {device}");
        }
        // And back.
        let (before, back) = (port(&lab, "tester", "gen0").rx_packets, networks(1));
        for from in ["198.19.0.2:0", "[2001:2:0:200::2]:0"] {
            let own: Vec<_> = back.iter().filter(|it| it.starts_with('[') == from.starts_with('[')).cloned().collect();
            send(&socket(&lab, from), &own, 1, SMALLEST);
        }
        let wanted = before + back.len() as u64;
        let deadline = clock::now() + PATIENCE;
        while port(&lab, "tester", "gen0").rx_packets < wanted && clock::now() < deadline {
            clock::sleep(Duration::from_millis(1));
        }
        assert_eq!(port(&lab, "tester", "gen0").rx_packets, wanted, "{topology:?}: back");
    }
}

#[test]
fn a_bench_at_rest_is_silent_and_its_device_takes_frames_of_xdp() {
    for topology in [Topology::Dut, Topology::DutSwitch] {
        let lab = lab(topology, 1500);
        let all = || lab.hosts().iter().flat_map(|host| host.ports().expect("its devices")).collect::<Vec<_>>();
        let before = all();
        // Longer than the kernel's own start-up packets take (1 s of MLD, of duplicate address detection).
        clock::sleep(Duration::from_millis(2500));
        assert_eq!(all(), before, "{topology:?}");
        let names: &[(&str, &str)] = match topology {
            Topology::DutSwitch => &[("switch", "port1"), ("switch", "port2"), ("router", "in0"), ("router", "out0")],
            _ => &[("router", "in0"), ("router", "out0")],
        };
        for (name, device) in names {
            let gro =
                host(&lab, name).run(|| Device::open(device)?.feature("gro")).expect("entered").expect("features");
            assert_eq!(gro, Some(true), "{name} {device}");
        }
        assert_eq!(lab.hosts().iter().flat_map(Host::cautions).collect::<Vec<_>>(), [""; 0]);
    }
}

/// What a fault may change on the device, as text.
fn portrait(lab: &Lab) -> Vec<String> {
    let words = || {
        let mut socket = Socket::open(Family::Netfilter).expect("netlink");
        // NFT_MSG_GETTABLE: the names of all tables.
        let tables = socket.request(10 << 8 | 1, netlink::DUMP, &[0; 4]).unwrap_or_default();
        let name = |table: &netlink::Message| netlink::find(table.payload.get(4..)?, 1)?.text();
        let mut words: Vec<_> = tables.iter().filter_map(name).collect();
        let root = Links::open().and_then(|mut links| links.root_qdisc("out0")).expect("netlink");
        words.push(root.map_or_else(|| "no discipline".to_owned(), |root| root.kind));
        words
    };
    host(lab, "router").run(words).expect("entered")
}

#[test]
fn every_fault_of_the_device_takes_effect_and_leaves_no_trace() {
    let lab = lab(Topology::Dut, 1500);
    let before = portrait(&lab);
    for fault in faults::ALL.iter().filter(|fault| fault.places.contains(&Site::Router)) {
        match lab.fault(fault.id, Site::Router, None, Direction::Both) {
            Ok(brought) => {
                assert_ne!(portrait(&lab), before, "{} does something", fault.id);
                assert_eq!(lab.unfault(fault.id, Some(Site::Router)).expect(fault.id), [brought]);
            }
            // Only that may be missing.
            Err(error) => {
                assert_eq!(fault.id, "flowtable", "{error}");
                assert!(error.to_string().contains("CONFIG_NF_FLOW_TABLE"), "{error}");
            }
        }
        assert_eq!(portrait(&lab), before, "{} left something", fault.id);
    }
    for (id, value, words) in [
        ("forward-shape", "1000x63x10", "a frame has 64 to 9216 bytes"),
        ("forward-shape", "1000x64x1", "at least 2 frames"),
        ("forward-rules", "100001", "more than 100000 rules"),
        ("forward-police", "1000", "write 2 whole numbers"),
    ] {
        let error = lab.fault(id, Site::Router, Some(value), Direction::Both).expect_err("it cannot be").to_string();
        assert!(error.contains(words), "{error}");
    }
    let elsewhere = lab.fault("sack-off", Site::Client, None, Direction::Both).expect_err("no such host");
    assert!(elsewhere.to_string().contains("it has tester, router"), "{elsewhere}");
    for error in [
        lab.fault("random-loss", Site::Path, None, Direction::Both).expect_err("no path"),
        lab.set(Flow::Up, lab.impairment(Flow::Up)).expect_err("no path"),
    ] {
        assert!(matches!(error, Error::NoPath { .. }), "{error}");
    }
    assert_eq!(portrait(&lab), before);
}

#[test]
fn every_nth_forwarded_frame_is_dropped_and_counted() {
    let lab = lab(Topology::Dut, 1500);
    lab.fault("forward-drop-nth", Site::Router, Some("100"), Direction::Both).expect("a fault");
    lab.fault("forward-rules", Site::Router, Some("1000"), Direction::Both).expect("another");
    let before = port(&lab, "tester", "rcv0").rx_packets;
    send(&socket(&lab, "198.18.0.2:0"), &["198.19.7.7:9".to_owned()], 5_000, SMALLEST);
    send(&socket(&lab, "[2001:2:0:100::2]:0"), &["[2001:2:0:200::7]:9".to_owned()], 5_000, SMALLEST);
    assert_eq!(settled(&lab, before + 9_900) - before, 9_900);
    let counters = host(&lab, "router").counters().expect("counters");
    assert_eq!(counters.filter_forward_drops, Some(100));
    let missed = host(&lab, "router").run(|| nftables::counted("narrows-lab-forward-rules")).expect("entered");
    assert_eq!(missed.expect("nf_tables").expect("rules").packets, 0, "no rule matches");
    lab.unfault("all", None).expect("they go");
    send(&socket(&lab, "198.18.0.2:0"), &["198.19.7.7:9".to_owned()], 1_000, SMALLEST);
    assert_eq!(settled(&lab, before + 10_900) - before, 10_900);
    assert_eq!(host(&lab, "router").counters().expect("counters").filter_forward_drops, None);
}

/// Loads the device for some time with all that one socket sends: frames sent, frames received, seconds.
fn load(lab: &Lab, time: Duration) -> (u64, u64, f64) {
    let socket = socket(lab, "198.18.0.2:0");
    socket.connect("198.19.7.7:9").expect("there is a route");
    let before = port(lab, "tester", "rcv0").rx_packets;
    let (began, mut sent) = (clock::now(), 0);
    while began.elapsed() < time {
        for _ in 0..16 {
            socket.send(&[0; SMALLEST]).expect("sent");
            sent += 1;
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let received = port(lab, "tester", "rcv0").rx_packets - before;
    (sent, received, seconds)
}

#[test]
fn traffic_above_a_rate_is_dropped_or_queued() {
    let lab = lab(Topology::Dut, 1500);
    // Slow enough that any machine sends more.
    lab.fault("forward-police", Site::Router, Some("20000x50"), Direction::Both).expect("a fault");
    let (sent, received, seconds) = load(&lab, Duration::from_millis(500));
    let most = 20_000.0 * seconds + 50.0 + 1.0;
    assert!(sent > received && received as f64 <= most, "{received} of {sent} in {seconds} s");
    // How much of its rate is used depends on how evenly the machine sends: more than a bucket must pass.
    assert!(received > 100, "{received} of {sent} in {seconds} s");
    lab.unfault("all", None).expect("it goes");

    // So slow that a burst is over before much of it has left.
    lab.fault("forward-shape", Site::Router, Some("100x64x300"), Direction::Both).expect("a fault");
    let before = port(&lab, "tester", "rcv0").rx_packets;
    let began = clock::now();
    send(&socket(&lab, "198.18.0.2:0"), &["198.19.7.7:9".to_owned()], 1_000, SMALLEST);
    let left = began.elapsed().as_secs_f64() * 100.0;
    let dropped = port(&lab, "router", "out0").qdisc_drops as f64;
    assert!((700.0 - left - 1.0..=700.0).contains(&dropped), "{dropped} were dropped while {left} left the queue");
    let arrived = port(&lab, "tester", "rcv0").rx_packets - before;
    assert!(arrived as f64 <= began.elapsed().as_secs_f64() * 100.0 + 2.0, "{arrived} arrived");
    // Undoing the fault does not drop what waits: it goes with the queue, and is not counted.
    lab.unfault("all", None).expect("it goes");
    assert_eq!(port(&lab, "router", "out0").qdisc_drops, 0);
}
