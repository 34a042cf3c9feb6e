//! The kernel's counters when packets are dropped or handled in batches, on two live hosts: the facts that the packet ledger
//! is built on. A kernel that counts differently fails here, before a ledger is wrong.

use narrows_collect::{DropWatch, Live, counters, drop_watch};
use narrows_model::Snapshot;
use narrows_sys::netlink::{self, Builder, Family, Outgoing, Socket};
use narrows_sys::netns::{Namespaces, become_root_of_user_namespace};
use narrows_sys::rtnl::{Links, Qdisc};
use narrows_sys::{Error, process, sysctl, udp};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, UdpSocket};

const NEAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 71, 94, 1));
const FAR: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 71, 94, 2));

fn main() {
    if !process::is_root()
        && let Err(error) = become_root_of_user_namespace()
    {
        println!("NOT CHECKED: what the kernel counts of drops, since {error}");
        return;
    }
    let tests: [(&str, Test); 5] = [
        ("a_full_socket_is_counted_three_times_alike", a_full_socket_is_counted_three_times_alike),
        ("a_rule_counts_what_it_drops", a_rule_counts_what_it_drops),
        ("a_batch_is_one_packet_to_some_counters_and_many_to_others", batches),
        ("a_queue_drops_batches_and_sends_segments", a_queue_drops_batches_and_sends_segments),
        ("a_watch_that_is_let_go_ends", a_watch_that_is_let_go_ends),
    ];
    for (name, test) in tests {
        test(&Pair::new());
        println!("test {name} ... ok");
    }
}

type Test = fn(&Pair);

/// Two hosts with a veth pair between them.
struct Pair {
    near: Namespaces,
    far: Namespaces,
}

/// The growth of the counters at both ends.
struct Grown {
    near: BTreeMap<String, u64>,
    far: BTreeMap<String, u64>,
}

impl Grown {
    #[track_caller]
    fn assert(&self, expected: &[(&str, &str, u64)]) {
        for (host, key, n) in expected {
            let counts = if *host == "near" { &self.near } else { &self.far };
            assert_eq!(counts.get(*key), Some(n), "{host} {key}");
        }
    }
}

impl Pair {
    fn new() -> Self {
        let nothing = || Ok::<_, Error>(());
        let (near, ()) = Namespaces::create("near", nothing).expect("namespaces");
        let (far, ()) = Namespaces::create("far", nothing).expect("namespaces");
        let set_up = |name: &str, address: IpAddr| {
            // No packets that nobody sent: no IPv6 neighbour discovery.
            let _ = sysctl::write(&format!("net.ipv6.conf.{name}.disable_ipv6"), "1");
            let mut links = Links::open().expect("netlink");
            links.add_address(name, address, 24).expect("an address");
            links.set_up("lo", true).expect("up");
            links.set_up(name, true).expect("up");
        };
        near.run(|| {
            Links::open().expect("netlink").add_veth("left", "right", far.network()).expect("a veth pair");
            set_up("left", NEAR);
        })
        .expect("entered");
        far.run(|| set_up("right", FAR)).expect("entered");
        let pair = Self { near, far };
        // Neighbours are resolved before anything is counted.
        let (sender, receiver) = pair.sockets();
        sender.send_to(b"x", receiver.local_addr().expect("bound")).expect("sent");
        receiver.recv(&mut [0; 8]).expect("received");
        pair
    }

    #[allow(clippy::disallowed_methods)] // the ban is for the program; a test needs plain sockets
    fn sockets(&self) -> (UdpSocket, UdpSocket) {
        let bind = |host: &Namespaces, address| {
            host.run(|| UdpSocket::bind((address, 0)).expect("a socket")).expect("entered")
        };
        (bind(&self.near, NEAR), bind(&self.far, FAR))
    }

    fn counters(&self) -> [Snapshot; 2] {
        let of = |host: &Namespaces, peer| host.run(|| counters(&Live::new(), Some(peer))).expect("entered");
        [of(&self.near, FAR), of(&self.far, NEAR)]
    }

    /// The counters that `load` increases, with drop reasons if they can be watched.
    fn grown(&self, load: impl FnOnce()) -> Grown {
        let [mut near, mut far] = self.counters();
        let watches = [&self.near, &self.far].map(|host| host.run(DropWatch::start).expect("entered"));
        load();
        let drops = watches.map(|watch| watch.map(DropWatch::finish));
        let [mut near_after, mut far_after] = self.counters();
        for (drops, before, after) in drops
            .into_iter()
            .zip([&mut near, &mut far])
            .zip([&mut near_after, &mut far_after])
            .map(|((a, b), c)| (a, b, c))
        {
            match drops {
                Ok(facts) => drop_watch::put(facts, before, after),
                Err(why) => println!("NOT CHECKED: reasons of drops, since {why}"),
            }
        }
        Grown { near: near_after.counts_since(&near), far: far_after.counts_since(&far) }
    }
}

/// A reason of the far host's watch, if it could run. By BPF it is of that host alone, and the near host's watch says that it was elsewhere;
/// otherwise other processes of this machine may have added to it.
#[track_caller]
fn assert_reason(grown: &Grown, reason: &str, n: u64) {
    if !grown.far.contains_key("drop.lost_records") {
        return;
    }
    let [near, far] =
        [&grown.near, &grown.far].map(|host| host.get(&format!("drop.reason.{reason}")).copied().unwrap_or(0));
    match grown.near.get("drop.elsewhere") {
        Some(elsewhere) => {
            assert!((near, far) == (0, n) && *elsewhere >= n, "{reason}: {near} and {far}: {:?}", grown.far);
        }
        None => {
            println!("NOT CHECKED: whose drops these were, since no BPF program counted them");
            assert!(far >= n, "{far} {reason}: {:?}", grown.far);
        }
    }
}

fn a_full_socket_is_counted_three_times_alike(pair: &Pair) {
    let (sender, receiver) = pair.sockets();
    udp::set_receive_buffer(&receiver, 4096).expect("a small buffer");
    let to = receiver.local_addr().expect("bound");
    let grown = pair.grown(|| {
        for _ in 0..100 {
            sender.send_to(&[7; 1000], to).expect("sent");
        }
    });
    receiver.set_nonblocking(true).expect("a socket");
    let kept = std::iter::from_fn(|| receiver.recv(&mut [0; 2000]).ok()).count() as u64;
    let dropped = 100 - kept;
    assert!(dropped >= 80, "{kept} fit into 8 KiB");
    grown.assert(&[
        ("near", "snmp.Udp.OutDatagrams", 100),
        ("near", "nic.counter.tx_packets", 100),
        ("far", "nic.counter.rx_packets", 100),
        ("far", "snmp.Ip.InReceives", 100),
        ("far", "netstat.IpExt.InNoECTPkts", 100),
        // Counted when the application reads.
        ("far", "snmp.Udp.InDatagrams", 0),
        ("far", "snmp.Udp.RcvbufErrors", dropped),
        ("far", "snmp.Udp.InErrors", dropped),
        ("far", "snmp.Udp.MemErrors", 0),
    ]);
    assert_reason(&grown, "SOCKET_RCVBUFF", dropped);
}

const NEW_TABLE: u16 = 10 << 8;
const NEW_CHAIN: u16 = 10 << 8 | 3;
const NEW_RULE: u16 = 10 << 8 | 6;

/// `table ip t { chain c { type filter hook input priority 0; counter drop } }`
fn drop_all_input() -> netlink::Result<()> {
    let family = [2, 0, 0, 0];
    let subsystem = [0, 0, 0, 10];
    let mut table = Builder::with_header(&family);
    table.text(1, "t");
    let mut chain = Builder::with_header(&family);
    chain.text(1, "t").text(3, "c").text(7, "filter").nest(4, |hook| {
        hook.be32(1, 1).be32(2, 0);
    });
    let mut rule = Builder::with_header(&family);
    rule.text(1, "t").text(2, "c").nest(4, |list| {
        list.nest(1, |counter| {
            counter.text(1, "counter").nest(2, |data| {
                data.be64(1, 0).be64(2, 0);
            });
        });
        list.nest(1, |verdict| {
            verdict.text(1, "immediate").nest(2, |data| {
                data.be32(1, 0).nest(2, |value| {
                    value.nest(2, |verdict| {
                        verdict.be32(1, 0);
                    });
                });
            });
        });
    });
    let (table, chain, rule) = (table.finish()?, chain.finish()?, rule.finish()?);
    let message = |kind, flags, payload| Outgoing { kind, flags, payload };
    let new = netlink::CREATE | netlink::ACK;
    Socket::open(Family::Netfilter)?.batch(&[
        message(16, 0, &subsystem), // NFNL_MSG_BATCH_BEGIN
        message(NEW_TABLE, new, &table),
        message(NEW_CHAIN, new, &chain),
        message(NEW_RULE, new, &rule),
        message(17, 0, &subsystem), // NFNL_MSG_BATCH_END
    ])?;
    Ok(())
}

fn a_rule_counts_what_it_drops(pair: &Pair) {
    if let Err(error) = pair.far.run(drop_all_input).expect("entered") {
        println!("NOT CHECKED: counters of rules, since {error}");
        return;
    }
    let (sender, receiver) = pair.sockets();
    let to = receiver.local_addr().expect("bound");
    let grown = pair.grown(|| {
        for _ in 0..70 {
            sender.send_to(&[7; 500], to).expect("sent");
        }
    });
    grown.assert(&[
        ("far", "filter.drop.packets", 70),
        ("far", "filter.drop.bytes", 70 * 528),
        ("far", "snmp.Ip.InReceives", 70),
        ("far", "snmp.Udp.InDatagrams", 0),
        ("near", "filter.drop.packets", 0),
    ]);
    assert_reason(&grown, "NETFILTER_DROP", 70);
}

/// Ten batches of ten datagrams over a veth pair, which accepts a batch as a whole.
fn batches(pair: &Pair) {
    let limit_packets = 1000;
    let near = || Links::open().expect("netlink").replace_qdisc("left", &Qdisc::PacketFifo { limit_packets });
    pair.near.run(near).expect("entered").expect("a queue");
    let (sender, receiver) = pair.sockets();
    udp::set_segment_bytes(&sender, 1000).expect("Linux 4.18");
    udp::set_receive_buffer(&receiver, 1 << 20).expect("a buffer");
    let to = receiver.local_addr().expect("bound");
    let grown = pair.grown(|| {
        for _ in 0..10 {
            sender.send_to(&[7; 10_000], to).expect("sent");
        }
    });
    grown.assert(&[
        // Once per batch.
        ("near", "snmp.Udp.OutDatagrams", 10),
        ("near", "nic.counter.tx_packets", 10),
        ("far", "nic.counter.rx_packets", 10),
        ("far", "snmp.Ip.InReceives", 10),
        // Once per datagram.
        ("near", "qdisc.sent.packets", 100),
        ("far", "netstat.IpExt.InNoECTPkts", 100),
        // A batch on a veth has one header: 14 of Ethernet, 28 of IP and UDP.
        ("near", "nic.counter.tx_bytes", 10 * (42 + 10_000)),
    ]);
}

/// A shaper that is too slow: the excess is dropped by the batch.
fn a_queue_drops_batches_and_sends_segments(pair: &Pair) {
    let shaper = Qdisc::TokenBucket { rate_bps: 100_000_000, burst_bytes: 20_000, limit_bytes: 30_000 };
    let near = || Links::open().expect("netlink").replace_qdisc("left", &shaper);
    if let Err(error) = pair.near.run(near).expect("entered") {
        println!("NOT CHECKED: drops of a queueing discipline, since {error}");
        return;
    }
    let (sender, receiver) = pair.sockets();
    udp::set_segment_bytes(&sender, 1000).expect("Linux 4.18");
    udp::set_receive_buffer(&receiver, 1 << 20).expect("a buffer");
    let to = receiver.local_addr().expect("bound");
    receiver.set_read_timeout(Some(std::time::Duration::from_millis(300))).expect("a socket");
    let mut arrived = 0;
    let grown = pair.grown(|| {
        for _ in 0..30 {
            // Without IP_RECVERR the socket does not report a local drop (net/ipv4/udp.c, udp_send_skb).
            sender.send_to(&[7; 10_000], to).expect("sent, or so it says");
        }
        arrived = std::iter::from_fn(|| receiver.recv(&mut [0; 2000]).ok()).count() as u64;
    });
    let drops = grown.near.get("qdisc.drops").copied().unwrap_or(0);
    assert!(drops > 0 && arrived < 300, "{drops} drops, {arrived} of 300 arrived");
    grown.assert(&[
        ("near", "qdisc.sent.packets", arrived),
        ("near", "snmp.Udp.SndbufErrors", drops),
        ("near", "snmp.Udp.OutDatagrams", 30 - drops),
        ("near", "snmp.Ip.OutDiscards", drops),
    ]);
    assert_eq!(arrived, 10 * (30 - drops), "each drop was a whole batch");
}

fn a_watch_that_is_let_go_ends(_: &Pair) {
    for _ in 0..3 {
        match DropWatch::start() {
            Ok(watch) => drop(watch),
            Err(why) => println!("NOT CHECKED: a watch, since {why}"),
        }
    }
    let names = narrows_sys::files::list(std::path::Path::new("/proc/self/task")).expect("a directory");
    let watching = names.iter().filter(|thread| {
        narrows_sys::files::read_text(std::path::Path::new(&format!("/proc/self/task/{thread}/comm")))
            .is_ok_and(|name| name.trim() == "drop-watch")
    });
    assert_eq!(watching.count(), 0, "no thread is left");
}
