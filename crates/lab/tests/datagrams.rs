//! Each fault that UDP meets, with real datagrams: as many die as the truth of the fault says, and afterwards none. Needs root.

#![allow(clippy::disallowed_methods)] // Plain sockets: what is tested must not depend on the product's engines.

use narrows_lab::{Host, Lab, LabSpec};
use narrows_model::{Direction, Family, Flow, Place};
use narrows_sys::{clock, files, process, udp};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(20);
const FAMILIES: [Family; 2] = [Family::Ipv4, Family::Ipv6];

fn lab() -> Lab {
    let spec = LabSpec { name: "datagrams".to_owned(), ..LabSpec::default() };
    Lab::up(&spec).expect("this test builds networks: it needs root and /dev/net/tun")
}

fn host(lab: &Lab, place: Place) -> &Host {
    lab.host(place.word()).expect("it is there")
}

fn any(family: Family) -> SocketAddr {
    match family {
        Family::Ipv4 => "0.0.0.0:0",
        Family::Ipv6 => "[::]:0",
    }
    .parse()
    .expect("an address")
}

/// A sending socket on the client and a receiving one on the server, whose buffer holds all that a test sends.
struct Wire<'a> {
    lab: &'a Lab,
    source: UdpSocket,
    sink: UdpSocket,
}

impl<'a> Wire<'a> {
    fn new(lab: &'a Lab, family: Family) -> Self {
        let bind = |place| host(lab, place).run(|| UdpSocket::bind(any(family))).expect("entered").expect("bound");
        let (source, sink) = (bind(Place::Client), bind(Place::Server));
        udp::set_receive_buffer(&sink, 256 << 20).expect("as root");
        let port = sink.local_addr().expect("bound").port();
        let address = host(lab, Place::Server).address(family).expect("it has one");
        source.connect((address, port)).expect("connected");
        Self { lab, source, sink }
    }

    /// How many datagrams arrived since the last call. A last one, sent again until it gets through, says that all are in.
    fn arrived(&self) -> u64 {
        const LAST: [u8; 3] = *b"end";
        settle(self.lab);
        let deadline = clock::now() + PATIENCE;
        let mut buffer = vec![0; 65_536];
        let mut count = 0;
        self.sink.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
        loop {
            let _ = self.source.send(&LAST);
            loop {
                match self.sink.recv(&mut buffer) {
                    Ok(3) if buffer[..3] == LAST => return count,
                    Ok(_) => count += 1,
                    Err(_) => break,
                }
            }
            assert!(clock::now() < deadline, "the last datagram does not come; {count} did");
        }
    }

    /// Forgets the copies of last datagrams that came late.
    fn calm(&self) {
        settle(self.lab);
        self.sink.set_read_timeout(Some(Duration::from_millis(1))).expect("set");
        while self.sink.recv(&mut [0; 10]).is_ok() {}
    }
}

/// Waits until nothing is under way.
fn settle(lab: &Lab) {
    let deadline = clock::now() + PATIENCE;
    while [Flow::Up, Flow::Down].iter().any(|flow| lab.counters(*flow).waiting_packets > 0)
        || lab.counters(Flow::Up).taken_packets < host(lab, Place::Client).counters().expect("counters").tx_packets
    {
        assert!(clock::now() < deadline, "{:?}", lab.counters(Flow::Up));
        clock::sleep(Duration::from_millis(5));
    }
}

/// A counter of the server's or the client's `/proc/net/snmp` or `snmp6`.
fn mib(host: &Host, group: &str, name: &str) -> u64 {
    let read = |file: &str| files::read_text(Path::new(&format!("/proc/thread-self/net/{file}"))).expect("proc");
    let (v4, v6) = host.run(|| (read("snmp"), read("snmp6"))).expect("entered");
    let key = format!("{group}{name}");
    if let Some(line) = v6.lines().find(|line| line.split_whitespace().next() == Some(&key)) {
        return line.split_whitespace().nth(1).and_then(|word| word.parse().ok()).expect("a number");
    }
    let mut lines = v4.lines().filter_map(|line| line.strip_prefix(&format!("{group}: ")));
    let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
    let at = names.split(' ').position(|word| word == name).expect("the counter");
    values.split(' ').nth(at).and_then(|word| word.parse().ok()).expect("a number")
}

fn udp_group(family: Family) -> &'static str {
    if family == Family::Ipv4 { "Udp" } else { "Udp6" }
}

#[test]
fn a_rule_drops_what_comes_in_and_counts_it() {
    let lab = lab();
    lab.fault("filter-drop", Place::Server, Some("10"), Direction::Both).expect("a fault");
    let dropped = || host(&lab, Place::Server).counters().expect("counters").filter_input_drops.expect("a rule");
    for family in FAMILIES {
        let wire = Wire::new(&lab, family);
        let before = dropped();
        for _ in 0..500 {
            wire.source.send(&[0; 1000]).expect("the sender is not told");
        }
        // Batches too: each datagram meets the rule by itself.
        udp::set_segment_bytes(&wire.source, 1000).expect("Linux 4.18");
        for _ in 0..25 {
            wire.source.send(&[0; 20_000]).expect("the sender is not told");
        }
        let arrived = wire.arrived();
        assert_eq!(lab.counters(Flow::Up).dropped_queue, 0);
        let lost = dropped() - before;
        assert!(arrived + lost == 1000 || arrived + lost == 1001, "{arrived} + {lost}: the last may be among the lost");
        assert!((99..=102).contains(&lost), "{lost}");
    }
    lab.unfault("filter-drop", None).expect("it goes");
    assert_eq!(host(&lab, Place::Server).counters().expect("counters").filter_input_drops, None);
    let wire = Wire::new(&lab, Family::Ipv4);
    for _ in 0..200 {
        wire.source.send(&[0; 1000]).expect("sent");
    }
    assert_eq!(wire.arrived(), 200);
}

#[test]
fn a_rule_refuses_what_goes_out_and_the_sender_knows() {
    let lab = lab();
    lab.fault("send-filter", Place::Client, Some("4"), Direction::Both).expect("a fault");
    let wire = Wire::new(&lab, Family::Ipv6);
    let refused = (0..400).filter(|_| wire.source.send(&[0; 500]).is_err()).count();
    assert_eq!(refused, 100);
    assert_eq!(host(&lab, Place::Client).counters().expect("counters").filter_output_drops, Some(100));
    assert_eq!(wire.arrived(), 300);
    lab.unfault("all", None).expect("it goes");
    assert_eq!((0..400).filter(|_| wire.source.send(&[0; 500]).is_err()).count(), 0);
}

#[test]
fn a_short_queue_drops_bursts_in_the_host_and_counts_each_datagram() {
    let lab = lab();
    for id in ["qdisc-drop", "udp-send-queue"] {
        lab.fault(id, Place::Client, None, Direction::Both).expect("a fault");
        let client = host(&lab, Place::Client);
        let dropped = || client.counters().expect("counters").qdisc_drops;
        for family in FAMILIES {
            let wire = Wire::new(&lab, family);
            let (before, told_before) = (dropped(), mib(client, udp_group(family), "SndbufErrors"));
            for _ in 0..2000 {
                wire.source.send(&[0; 1400]).expect("without IP_RECVERR nobody is told");
            }
            let (lost, told) = (dropped() - before, mib(client, udp_group(family), "SndbufErrors") - told_before);
            assert_eq!(wire.arrived() + lost, 2000, "{id}, {family:?}, one by one");
            // Whether any is lost depends on how fast this machine sends one by one.
            assert_eq!(told, lost, "{id}: each call is one datagram");

            let before = dropped();
            udp::set_segment_bytes(&wire.source, 1400).expect("Linux 4.18");
            for _ in 0..50 {
                wire.source.send(&[0; 40 * 1400]).expect("some of it is taken");
            }
            let lost = dropped() - before;
            assert_eq!(wire.arrived() + lost, 2000, "{id}, {family:?}, in batches");
            assert!(lost > 0, "{id}: a batch is more than the queue");

            let before = dropped();
            for _ in 0..50 {
                wire.source.send(&[0; 1400]).expect("sent");
                clock::sleep(Duration::from_micros(200));
            }
            assert_eq!((wire.arrived(), dropped() - before), (50, 0), "{id}: paced, nothing is lost");
        }
        lab.unfault(id, None).expect("it goes");
    }
}

#[test]
fn fragments_without_memory_are_not_reassembled() {
    let lab = lab();
    let server = host(&lab, Place::Server);
    for family in FAMILIES {
        let wire = Wire::new(&lab, family);
        let group = if family == Family::Ipv4 { "Ip" } else { "Ip6" };
        let send = |bytes: usize| {
            for _ in 0..20 {
                wire.source.send(&vec![0; bytes]).expect("sent");
            }
            wire.arrived()
        };
        let created = mib(host(&lab, Place::Client), group, "FragCreates");
        assert_eq!(send(8000), 20, "{family:?}: without the fault");
        assert_eq!(mib(host(&lab, Place::Client), group, "FragCreates") - created, 20 * 6);
        lab.fault("ip-fragmentation", Place::Server, None, Direction::Both).expect("a fault");
        let failed = mib(server, group, "ReasmFails");
        assert_eq!(send(8000), 0, "{family:?}: none is whole");
        assert!(mib(server, group, "ReasmFails") > failed);
        assert_eq!(send(1400), 20, "{family:?}: what fits into a packet passes");
        lab.unfault("ip-fragmentation", None).expect("it goes");
        assert_eq!(send(8000), 20, "{family:?}: after it");
    }
}

#[test]
fn a_flipped_bit_is_found_by_the_receiver() {
    let lab = lab();
    let server = host(&lab, Place::Server);
    lab.fault("checksum-errors", Place::Path, Some("5%"), Direction::Up).expect("a fault");
    for family in FAMILIES {
        let wire = Wire::new(&lab, family);
        // Small ones are verified when they come, large ones when they are read.
        for (bytes, batch) in [(40, 1), (1400, 1), (1400, 40)] {
            wire.calm();
            let before = (lab.counters(Flow::Up).corrupted, mib(server, udp_group(family), "InCsumErrors"));
            udp::set_segment_bytes(&wire.source, if batch > 1 { bytes } else { 0 }).expect("Linux 4.18");
            for _ in 0..2000 / batch {
                wire.source.send(&vec![0; (bytes * batch) as usize]).expect("sent");
            }
            settle(&lab);
            let corrupted = lab.counters(Flow::Up).corrupted - before.0;
            let arrived = wire.arrived();
            assert_eq!(arrived + corrupted, 2000, "{family:?}, {bytes} bytes, {batch} at once");
            assert!((50..150).contains(&corrupted), "{corrupted} of 2000 at 5 %: four standard deviations are 39");
            let found = mib(server, udp_group(family), "InCsumErrors") - before.1;
            let last = lab.counters(Flow::Up).corrupted - before.0 - corrupted;
            assert_eq!(found, corrupted + last, "the kernel counts each, and those at the end of the test");
        }
    }
    lab.unfault("all", None).expect("it goes");
    let wire = Wire::new(&lab, Family::Ipv4);
    for _ in 0..500 {
        wire.source.send(&[0; 1400]).expect("sent");
    }
    assert_eq!(wire.arrived(), 500);
}

#[test]
fn a_burst_overflows_the_backlog_and_the_device_counts_it() {
    let lab = lab();
    let server = host(&lab, Place::Server);
    lab.fault("softnet-backlog", Place::Server, None, Direction::Up).expect("a fault");
    for family in FAMILIES {
        let wire = Wire::new(&lab, family);
        let (before, delivered_before) =
            (server.counters().expect("counters"), lab.counters(Flow::Up).delivered_packets);
        // Far less than the time that is gathered; in batches, which count datagram by datagram all the same.
        udp::set_segment_bytes(&wire.source, 100).expect("Linux 4.18");
        for _ in 0..100 {
            wire.source.send(&[0; 4000]).expect("sent");
        }
        let arrived = wire.arrived();
        let after = server.counters().expect("counters");
        let dropped = after.rx_dropped - before.rx_dropped;
        let delivered = lab.counters(Flow::Up).delivered_packets - delivered_before;
        assert_eq!(after.rx_packets - before.rx_packets, delivered, "each packet by itself");
        assert!(arrived + dropped >= 4000 && arrived + dropped <= delivered, "{arrived} + {dropped} of {delivered}");
        // A machine of one core cannot bring packets faster than it takes them.
        assert!(dropped > 500 || process::cores() < 2, "4000 at once are more than 1000: {dropped}");
    }
    lab.unfault("all", None).expect("it goes");
    let before = server.counters().expect("counters").rx_dropped;
    let wire = Wire::new(&lab, Family::Ipv4);
    for _ in 0..100 {
        wire.source.send(&[0; 400]).expect("sent");
    }
    assert_eq!((wire.arrived(), server.counters().expect("counters").rx_dropped - before), (100, 0));
}

#[test]
fn a_black_hole_swallows_what_is_too_big_and_says_nothing() {
    let lab = lab();
    lab.fault("mtu-black-hole", Place::Path, None, Direction::Both).expect("a fault");
    for family in FAMILIES {
        let wire = Wire::new(&lab, family);
        let before = lab.counters(Flow::Up).dropped_mtu;
        for _ in 0..30 {
            wire.source.send(&[0; 1440]).expect("no answer comes");
        }
        assert_eq!((wire.arrived(), lab.counters(Flow::Up).dropped_mtu - before), (0, 30), "{family:?}");
        for _ in 0..30 {
            wire.source.send(&[0; 1340]).expect("sent");
        }
        assert_eq!(wire.arrived(), 30);
    }
    lab.unfault("all", None).expect("it goes");
    let wire = Wire::new(&lab, Family::Ipv6);
    wire.source.send(&[0; 1440]).expect("sent");
    assert_eq!(wire.arrived(), 1);
}
