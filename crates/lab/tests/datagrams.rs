//! Each fault that affects UDP, with real datagrams: as many are lost as the fault's truth says, and none after its removal.
//! Needs root, of a user namespace at least.

#![allow(clippy::disallowed_methods)] // Plain sockets: the test must not depend on the product's engines.

use narrows_lab::{Error, Host, Lab, LabSpec};
use narrows_model::{Direction, Family, Flow, Place};
use narrows_sys::{clock, files, process, udp};
use std::cell::Cell;
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

/// A sending socket on the client and a receiving one on the server, whose buffer holds everything that a test sends.
struct Wire {
    source: UdpSocket,
    sink: UdpSocket,
    /// Number of the next mark.
    mark: Cell<u32>,
}

/// The result of a load.
#[derive(Debug, PartialEq, Eq)]
struct Arrived {
    datagrams: u64,
    /// Marks that were sent after the load and lost as well.
    marks_lost: u64,
}

impl Wire {
    fn new(lab: &Lab, family: Family) -> Self {
        let bind = |place| host(lab, place).run(|| UdpSocket::bind(any(family))).expect("entered").expect("bound");
        let (source, sink) = (bind(Place::Client), bind(Place::Server));
        udp::set_receive_buffer(&sink, 256 << 20).expect("a buffer");
        sink.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
        let port = sink.local_addr().expect("bound").port();
        let address = host(lab, Place::Server).address(family).expect("it has one");
        source.connect((address, port)).expect("connected");
        Self { source, sink, mark: Cell::new(0) }
    }

    /// What arrived since the last call. The path keeps the order, so after a mark nothing of the load is under
    /// way; marks are sent until one gets through.
    fn arrived(&self) -> Arrived {
        let deadline = clock::now() + PATIENCE;
        let first = self.mark.get();
        let mut buffer = vec![0; 65_536];
        let (mut datagrams, mut marks) = (0, 0);
        let marked = |bytes: &[u8]| bytes.try_into().ok().map(u64::from_be_bytes);
        self.unbatched();
        loop {
            let last = self.mark.get();
            self.mark.set(last + 1);
            // A rule may refuse it, too.
            let _ = self.source.send(&u64::from(last).to_be_bytes());
            while let Ok(length) = self.sink.recv(&mut buffer) {
                match marked(&buffer[..length]) {
                    Some(mark) if mark == u64::from(last) => {
                        return Arrived { datagrams, marks_lost: u64::from(last - first) - marks };
                    }
                    Some(mark) if mark >= u64::from(first) => marks += 1,
                    Some(_) => {}
                    None => datagrams += 1,
                }
            }
            assert!(clock::now() < deadline, "no mark comes through; {datagrams} datagrams did");
        }
    }

    /// The same if no mark can be lost.
    fn count(&self) -> u64 {
        let arrived = self.arrived();
        assert_eq!(arrived.marks_lost, 0);
        arrived.datagrams
    }

    /// Sends `count` datagrams of `bytes`, `per_call` in each call.
    fn send(&self, datagrams: usize, bytes: usize, per_call: usize) {
        let segment = if per_call > 1 { u32::try_from(bytes).expect("small") } else { 0 };
        udp::set_segment_bytes(&self.source, segment).expect("Linux 4.18");
        for _ in 0..datagrams / per_call {
            self.source.send(&vec![0; bytes * per_call]).expect("the sender is not told");
        }
    }

    fn unbatched(&self) {
        udp::set_segment_bytes(&self.source, 0).expect("Linux 4.18");
    }
}

/// Waits until the path has published its counters, which happens a moment after the packets.
fn until(condition: impl Fn() -> bool) {
    let deadline = clock::now() + PATIENCE;
    while !condition() && clock::now() < deadline {
        clock::sleep(Duration::from_millis(1));
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
fn a_rule_drops_incoming_packets_and_counts_them() {
    let lab = lab();
    lab.fault("filter-drop", Place::Server, Some("10"), Direction::Both).expect("a fault");
    let dropped = || host(&lab, Place::Server).counters().expect("counters").filter_input_drops;
    for family in FAMILIES {
        let wire = Wire::new(&lab, family);
        let before = dropped().expect("a rule");
        wire.send(500, 1000, 1);
        // Batches too: each datagram meets the rule by itself.
        wire.send(500, 1000, 20);
        let arrived = wire.arrived();
        let lost = dropped().expect("a rule") - before;
        assert_eq!(arrived.datagrams + lost, 1000 + arrived.marks_lost);
        assert!((100..=102).contains(&lost), "{lost} of a thousand and the marks");
    }
    lab.unfault("filter-drop", None).expect("it goes");
    assert_eq!(dropped(), None);
    let wire = Wire::new(&lab, Family::Ipv4);
    wire.send(200, 1000, 1);
    assert_eq!(wire.count(), 200);
}

#[test]
fn a_rule_refuses_outgoing_packets_with_an_error() {
    let lab = lab();
    lab.fault("send-filter", Place::Client, Some("4"), Direction::Both).expect("a fault");
    let wire = Wire::new(&lab, Family::Ipv6);
    let refused = || (0..400).filter(|_| wire.source.send(&[0; 500]).is_err()).count();
    assert_eq!(refused(), 100);
    assert_eq!(host(&lab, Place::Client).counters().expect("counters").filter_output_drops, Some(100));
    assert_eq!(wire.arrived().datagrams, 300);
    lab.unfault("all", None).expect("it goes");
    assert_eq!((refused(), wire.count()), (0, 400));
}

#[test]
fn a_short_queue_drops_bursts_in_the_host_and_counts_each_datagram() {
    let lab = lab();
    let client = host(&lab, Place::Client);
    for id in ["qdisc-drop", "udp-send-queue"] {
        lab.fault(id, Place::Client, None, Direction::Both).expect("a fault");
        for family in FAMILIES {
            let wire = Wire::new(&lab, family);
            let counts =
                || (client.counters().expect("counters").qdisc_drops, mib(client, udp_group(family), "SndbufErrors"));
            let before = counts();
            wire.send(2000, 1400, 1);
            let after = counts();
            let lost = after.0 - before.0;
            // Whether any is lost depends on how fast this machine sends one by one.
            assert_eq!(after.1 - before.1, lost, "{id}: each call is one datagram");
            assert_eq!(wire.arrived().datagrams + lost, 2000, "{id}, {family:?}, one by one");

            let before = counts().0;
            wire.send(2000, 1400, 40);
            let lost = counts().0 - before;
            assert_eq!(wire.arrived().datagrams + lost, 2000, "{id}, {family:?}, in batches");
            assert!(lost > 0, "{id}: a batch is more than the queue");

            let before = counts().0;
            for _ in 0..50 {
                wire.send(1, 1400, 1);
                clock::sleep(Duration::from_micros(200));
            }
            assert_eq!((wire.count(), counts().0 - before), (50, 0), "{id}: paced, nothing is lost");
        }
        lab.unfault(id, None).expect("it goes");
    }
}

#[test]
fn fragments_without_memory_are_not_reassembled() {
    let lab = lab();
    let (client, server) = (host(&lab, Place::Client), host(&lab, Place::Server));
    for (family, group) in [(Family::Ipv4, "Ip"), (Family::Ipv6, "Ip6")] {
        let wire = Wire::new(&lab, family);
        let send = |bytes: usize| {
            wire.send(20, bytes, 1);
            wire.count()
        };
        let created = mib(client, group, "FragCreates");
        assert_eq!(send(8000), 20, "{family:?}: without the fault");
        assert_eq!(mib(client, group, "FragCreates") - created, 20 * 6);
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
fn a_flipped_bit_is_detected_by_the_receiver() {
    let lab = lab();
    let server = host(&lab, Place::Server);
    lab.fault("checksum-errors", Place::Path, Some("5%"), Direction::Up).expect("a fault");
    for family in FAMILIES {
        let wire = Wire::new(&lab, family);
        // Small ones are verified on arrival, large ones when they are read.
        for (bytes, per_call) in [(40, 1), (1400, 1), (1400, 40)] {
            let counts = || (lab.counters(Flow::Up).corrupted, mib(server, udp_group(family), "InCsumErrors"));
            let before = counts();
            wire.send(2000, bytes, per_call);
            let arrived = wire.arrived();
            let lost = 2000 - arrived.datagrams + arrived.marks_lost;
            until(|| counts().0 - before.0 >= lost);
            let after = counts();
            let what = format!("{family:?}, {bytes} bytes, {per_call} a call: {arrived:?}");
            assert_eq!((after.0 - before.0, after.1 - before.1), (lost, lost), "{what}");
            assert!((50..150).contains(&lost), "{what}: four standard deviations around 100 are 39");
        }
    }
    lab.unfault("all", None).expect("it goes");
    let wire = Wire::new(&lab, Family::Ipv4);
    wire.send(500, 1400, 1);
    assert_eq!(wire.count(), 500);
}

#[test]
fn a_burst_overflows_the_backlog_and_the_device_counts_it() {
    let lab = lab();
    let server = host(&lab, Place::Server);
    match lab.fault("softnet-backlog", Place::Server, None, Direction::Up) {
        Err(error @ Error::NeedsRoot { .. }) => {
            println!("NOT CHECKED: a backlog that overflows, since {error}");
            return;
        }
        brought => brought.expect("a fault"),
    };
    let counts = || (server.counters().expect("counters"), lab.counters(Flow::Up).delivered_packets);
    for family in FAMILIES {
        let wire = Wire::new(&lab, family);
        let (before, delivered_before) = counts();
        // In far less than the holding time; in batches, which count per datagram all the same.
        wire.send(4000, 100, 40);
        let arrived = wire.arrived();
        until(|| counts().1 - delivered_before == counts().0.rx_packets - before.rx_packets);
        let (after, delivered) = counts();
        let dropped = after.rx_dropped - before.rx_dropped;
        assert_eq!(after.rx_packets - before.rx_packets, delivered - delivered_before, "each packet by itself");
        assert_eq!(arrived.datagrams + dropped, 4000 + arrived.marks_lost, "{family:?}");
        // A machine with one core cannot deliver packets faster than it processes them.
        assert!(dropped > 500 || process::cores() < 2, "4000 at once are more than 1000: {dropped}");
    }
    lab.unfault("all", None).expect("it goes");
    let before = counts().0.rx_dropped;
    let wire = Wire::new(&lab, Family::Ipv4);
    wire.send(100, 400, 1);
    assert_eq!((wire.count(), counts().0.rx_dropped - before), (100, 0));
}

#[test]
fn a_black_hole_drops_large_packets_silently() {
    let lab = lab();
    lab.fault("mtu-black-hole", Place::Path, None, Direction::Both).expect("a fault");
    for family in FAMILIES {
        let wire = Wire::new(&lab, family);
        let before = lab.counters(Flow::Up).dropped_mtu;
        let swallowed = || lab.counters(Flow::Up).dropped_mtu - before;
        wire.send(30, 1440, 1);
        assert_eq!(wire.count(), 0, "{family:?}");
        until(|| swallowed() >= 30);
        assert_eq!(swallowed(), 30, "{family:?}");
        wire.send(30, 1340, 1);
        assert_eq!((wire.count(), swallowed()), (30, 30));
    }
    lab.unfault("all", None).expect("it goes");
    let wire = Wire::new(&lab, Family::Ipv6);
    wire.send(1, 1440, 1);
    assert_eq!(wire.count(), 1);
}
