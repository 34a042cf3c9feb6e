//! The ledger on built trials: it always balances, consistent counters leave nothing unexplained, and what makes counting hard is
//! booked once and in the right place.

use super::*;
use crate::testing::udp::{Died, UdpScene, udp_end};
use narrows_model::load::udp::record::Unsent;
use proptest::prelude::*;

fn of(scene: &UdpScene) -> Ledger {
    ledger(scene.trial().of().expect("UDP"), scene.flow)
}

fn dropped(ledger: &Ledger, id: &str) -> u64 {
    ledger.stages.iter().find(|stage| stage.id == id).expect("a stage").dropped
}

#[track_caller]
fn assert_booked(ledger: &Ledger, expected: &[(&str, u64)]) {
    assert_balanced(ledger);
    for stage in &ledger.stages {
        let n = expected.iter().find(|(id, _)| stage.id == *id).map_or(0, |(_, n)| *n);
        assert_eq!(stage.dropped, n, "{}: {ledger:#?}", stage.id);
    }
    assert_eq!((ledger.unexplained, ledger.uncertainty), (0, 0), "{ledger:#?}");
}

#[track_caller]
fn assert_balanced(ledger: &Ledger) {
    let booked: i128 = ledger.stages.iter().map(|stage| i128::from(stage.dropped)).sum();
    let sum = booked + i128::from(ledger.delivered) + i128::from(ledger.unexplained);
    assert_eq!(i128::from(ledger.offered), sum, "{ledger:#?}");
    let ids: Vec<&str> = ledger.stages.iter().map(|stage| stage.id.as_str()).collect();
    assert_eq!(ids, STAGES);
    let mut entered = ledger.offered;
    for stage in &ledger.stages {
        assert_eq!(stage.entered, entered);
        entered = entered.saturating_sub(stage.dropped);
    }
}

fn lost(died: Died) -> UdpScene {
    UdpScene { died, ..UdpScene::default() }
}

#[test]
fn nothing_lost_is_nothing_booked() {
    assert_booked(&of(&UdpScene::default()), &[]);
    assert_booked(&of(&UdpScene { flow: Flow::Down, others: 300, ..UdpScene::default() }), &[]);
}

#[test]
fn packets_of_others_at_a_device_are_none_that_the_path_lost() {
    let foreign = vec![("nic.counter.tx_packets", 67_935 + 17_000)];
    let ledger = of(&UdpScene { sender_counts: foreign, ..lost(Died { path: 85, ..Died::default() }) });
    assert_booked(&ledger, &[("path", 85)]);
    let path = ledger.stages.iter().find(|stage| stage.id == "path").expect("a stage");
    assert!(!path.counted && path.source.contains("carried other packets"), "{path:?}");
}

#[test]
fn what_a_filter_drops_of_others_is_not_known_to_be_of_these() {
    let uncertain = |filtered: u64, others: i64| {
        let died = Died { path: 85 - filtered, filter: filtered, ..Died::default() };
        let all = filtered as i64 + others;
        let arrived = 67_935 - 85 + filtered as i64 + others;
        let counts =
            [("filter.drop.packets", all), ("drop.reason.NETFILTER_DROP", all), ("nic.counter.rx_packets", arrived)];
        let ledger = of(&UdpScene { receiver_counts: counts.to_vec(), ..lost(died) });
        let filter = ledger.stages.iter().find(|stage| stage.id == "receive-filter").expect("a stage").clone();
        (filter.dropped, filter.uncertainty)
    };
    assert_eq!(uncertain(85, 0), (85, 0));
    assert_eq!(uncertain(85, 20), (105, 20));
    assert_eq!(uncertain(0, 200), (200, 115), "more than half of it is another's");
}

#[test]
fn what_other_sockets_drop_is_not_this_ones() {
    let others = vec![("snmp.Udp.RcvbufErrors", 300), ("snmp.Udp.InDatagrams", 67_935 + 5_000)];
    let ledger = of(&UdpScene { receiver_counts: others, ..lost(Died { path: 85, ..Died::default() }) });
    assert_eq!((dropped(&ledger, "receive-buffer"), dropped(&ledger, "path")), (0, 85), "{ledger:#?}");
}

#[test]
fn each_place_is_booked_where_it_counts() {
    let refused = Unsent { would_block: 3, too_big: 4, not_permitted: 5, other: 6, ..Unsent::default() };
    let died = Died {
        refused,
        qdisc: 7,
        device: 8,
        path: 900,
        ring: 10,
        softnet: 11,
        filter: 12,
        corrupt: 13,
        buffer: 1400,
        memory: 15,
        ..Died::default()
    };
    let expected = [
        ("unsent", 10),
        ("send-buffer", 3),
        ("send-filter", 5),
        ("qdisc", 7),
        ("nic-tx", 8),
        ("path", 900),
        ("nic-rx", 10),
        ("softnet", 11),
        ("receive-filter", 12),
        ("checksum", 13),
        ("receive-buffer", 1415),
    ];
    // The path is what is left of the devices' difference once the ring has its part.
    assert_booked(
        &of(&lost(Died { ring: 0, ..died })),
        &expected.map(|(id, n)| (id, if id == "nic-rx" { 0 } else { n })),
    );
    let with_ring = of(&lost(died));
    assert_balanced(&with_ring);
    assert_eq!((dropped(&with_ring, "nic-rx"), dropped(&with_ring, "path")), (10, 900), "{with_ring:#?}");
}

#[test]
fn a_local_drop_that_came_back_is_booked_once_and_where_it_happened() {
    assert_booked(&of(&lost(Died { qdisc_told: 500, qdisc: 40, ..Died::default() })), &[("qdisc", 540)]);
    // No counter knows of it: refused.
    let refused = Unsent { no_buffers: 30, ..Unsent::default() };
    assert_booked(&of(&lost(Died { refused, ..Died::default() })), &[("unsent", 30)]);
}

#[test]
fn the_backlog_of_one_kernel_is_the_receivers_whoever_counts_it() {
    // A virtual pair: the sender's device counts what the peer's backlog refused, and neither device has carried it.
    let scene = UdpScene {
        one_kernel: true,
        died: Died { softnet: 700, ..Died::default() },
        sender_counts: vec![("nic.counter.tx_dropped", 700), ("nic.counter.tx_packets", 67_235)],
        receiver_counts: vec![("nic.counter.rx_packets", 67_235)],
        ..UdpScene::default()
    };
    assert_booked(&of(&scene), &[("softnet", 700)]);
    // Told to the application as well.
    let refused = Unsent { no_buffers: 700, ..Unsent::default() };
    let scene = UdpScene {
        died: Died { refused, ..Died::default() },
        receiver_counts: vec![
            ("nic.counter.rx_packets", 67_235),
            ("nic.counter.rx_dropped", 700),
            ("softnet.dropped", 700),
        ],
        ..scene
    };
    assert_booked(&of(&scene), &[("softnet", 700)]);
    // Two kernels: the sender's own backlog is about what it receives.
    let scene = UdpScene { sender_counts: vec![("softnet.dropped", 700)], ..UdpScene::default() };
    assert_booked(&of(&scene), &[]);
}

#[test]
fn what_tcp_sent_again_was_dropped_at_the_same_counter() {
    let scene = UdpScene {
        died: Died { softnet: 700, ..Died::default() },
        others: 900,
        sender_counts: vec![("snmp.Tcp.RetransSegs", 3)],
        receiver_counts: vec![("softnet.dropped", 702), ("nic.counter.rx_dropped", 702)],
        ..UdpScene::default()
    };
    let ledger = of(&scene);
    assert_balanced(&ledger);
    assert_eq!((ledger.unexplained, dropped(&ledger, "softnet")), (0, 700), "{ledger:#?}");
    assert!(ledger.remarks.iter().any(|r| r.starts_with("2 of the drops counted at softnet were")), "{ledger:#?}");
    // A pure acknowledgement is never sent again, but it left one end and did not reach the other.
    let mut received = scene.receiver_counts.clone();
    received.push(("snmp.Tcp.InSegs", 8));
    let counted =
        UdpScene { sender_counts: vec![("snmp.Tcp.OutSegs", 10)], receiver_counts: received, ..scene.clone() };
    let ledger = of(&counted);
    assert_eq!((ledger.unexplained, dropped(&ledger, "softnet")), (0, 700), "{ledger:#?}");
    // Neither: nobody knows whose they were.
    let ledger = of(&UdpScene { sender_counts: Vec::new(), ..scene });
    assert_eq!((ledger.unexplained, dropped(&ledger, "softnet")), (-2, 702), "{ledger:#?}");
}

#[test]
fn what_no_counter_has_is_unexplained() {
    let ledger = of(&UdpScene { died: Died { nowhere: 5_000, ..Died::default() }, ..UdpScene::default() });
    assert_balanced(&ledger);
    assert_eq!((ledger.unexplained, dropped(&ledger, "path")), (5_000, 0), "{ledger:#?}");
    assert_eq!(ledger.uncertainty, 16, "what neighbours' discovery may add");
}

#[test]
fn the_backlog_of_another_host_of_the_machine_is_not_the_receivers() {
    // softnet_stat is the machine's; the device whose packets were refused counts them, too.
    let receiver_counts = vec![("softnet.dropped", 5_000)];
    let scene = UdpScene { died: Died { path: 5_000, ..Died::default() }, receiver_counts, ..UdpScene::default() };
    assert_booked(&of(&scene), &[("path", 5_000)]);
}

#[test]
fn counters_that_claim_too_much_say_so() {
    let receiver_counts = vec![("softnet.dropped", 800), ("nic.counter.rx_dropped", 800)];
    let ledger = of(&UdpScene { receiver_counts, ..UdpScene::default() });
    assert_balanced(&ledger);
    assert_eq!(ledger.unexplained, -800);
    assert!(
        ledger.remarks.iter().any(|remark| remark.contains("more drops were counted than packets are missing")),
        "{ledger:#?}"
    );
}

#[test]
fn without_the_devices_the_path_is_what_is_left_and_says_so() {
    let scene =
        UdpScene { died: Died { path: 50, buffer: 60, ..Died::default() }, hidden: &["nic."], ..UdpScene::default() };
    let ledger = of(&scene);
    assert_balanced(&ledger);
    let path = ledger.stages.iter().find(|stage| stage.id == "path").expect("a stage");
    assert_eq!((path.dropped, path.counted, ledger.unexplained), (50, false, 0));
    assert!(path.source.contains("gave no counters"), "{}", path.source);
}

#[test]
fn the_control_connection_blurs_nothing() {
    for others in [4, 60, 2_000] {
        let scene = UdpScene { others, died: Died { path: 40, buffer: 200, ..Died::default() }, ..UdpScene::default() };
        let ledger = of(&scene);
        assert_eq!((dropped(&ledger, "path"), dropped(&ledger, "receive-buffer"), ledger.unexplained), (40, 200, 0));
    }
    // Twelve of its packets fell between two snapshots: the path keeps what is missing, and says by how much it may be wrong.
    let scene = UdpScene {
        others: 60,
        died: Died { path: 40, ..Died::default() },
        receiver_counts: vec![("nic.counter.rx_packets", 67_895 + 48)],
        ..UdpScene::default()
    };
    let ledger = of(&scene);
    assert_eq!((dropped(&ledger, "path"), ledger.unexplained, ledger.uncertainty), (40, 0, 12), "{ledger:#?}");
}

#[test]
fn a_socket_whose_last_drops_were_not_told_is_helped_out_by_the_host() {
    let mut scene = lost(Died { buffer: 500, ..Died::default() });
    scene.socket_tells = false;
    assert_booked(&of(&scene), &[("receive-buffer", 500)]);
    // Other sockets of the host took as many datagrams: half of its count may be theirs.
    scene.receiver_counts = vec![("snmp.Udp.InDatagrams", 67_435 * 2)];
    let ledger = of(&scene);
    assert_eq!((dropped(&ledger, "receive-buffer"), ledger.uncertainty), (500, 250), "{ledger:#?}");
}

/// Batches of ten on a virtual pair: devices, the filter, the queue and a socket with `UDP_GRO` count them once.
fn batched(scene: &UdpScene, sender: &[(&'static str, i64)], receiver: &[(&'static str, i64)]) -> Ledger {
    let mut scene = UdpScene { sender_counts: sender.to_vec(), receiver_counts: receiver.to_vec(), ..scene.clone() };
    scene.socket_tells = true;
    let mut trial = scene.trial();
    udp_end(&mut trial.client).streams[0].method = "sendmmsg+segment".to_owned();
    udp_end(&mut trial.server).streams[0].method = "recvmmsg+gro".to_owned();
    if let Some(got) = &mut udp_end(&mut trial.server).streams[0].received {
        got.socket_drops = got.socket_drops.map(|drops| drops / 10);
    }
    for sample in &mut udp_end(&mut trial.server).streams[0].samples {
        sample.memory = None;
    }
    ledger(trial.of().expect("UDP"), Flow::Up)
}

#[test]
fn batches_dropped_by_a_socket_are_counted_by_the_marks_of_ip() {
    let scene = UdpScene {
        offered: 60_000,
        size: 1000,
        died: Died { buffer: 3_000, ..Died::default() },
        ..UdpScene::default()
    };
    let (sender, receiver) =
        ([("nic.counter.tx_packets", 6_000)], [("nic.counter.rx_packets", 6_000), ("snmp.Udp.RcvbufErrors", 300)]);
    assert_booked(&batched(&scene, &sender, &receiver), &[("receive-buffer", 3_000)]);
}

#[test]
fn batches_of_a_tun_device_are_counted_by_the_bytes_of_both_devices() {
    // Its batches do not know their number of segments: the marks of ECN count each once, too.
    let died = |path, buffer| UdpScene {
        offered: 60_000,
        size: 1000,
        died: Died { path, buffer, ..Died::default() },
        ..UdpScene::default()
    };
    let sender = [("nic.counter.tx_packets", 6_000), ("nic.counter.tx_bytes", 6_000 * 10_028)];
    let marks = ("netstat.IpExt.InNoECTPkts", 6_000);
    let receiver = [
        ("nic.counter.rx_packets", 6_000),
        ("nic.counter.rx_bytes", 6_000 * 10_028),
        ("snmp.Udp.RcvbufErrors", 300),
        marks,
    ];
    assert_booked(&batched(&died(0, 3_000), &sender, &receiver), &[("receive-buffer", 3_000)]);
    let receiver =
        [("nic.counter.rx_packets", 5_999), ("nic.counter.rx_bytes", 6_000 * 10_028 - 700 * 1_000 - 28), marks];
    assert_booked(&batched(&died(700, 0), &sender, &receiver), &[("path", 700)]);
    // Devices of Ethernet count its header of each batch, too.
    let sender = [("nic.counter.tx_packets", 6_000), ("nic.counter.tx_bytes", 6_000 * 10_042)];
    let receiver = [("nic.counter.rx_packets", 5_300), ("nic.counter.rx_bytes", 5_300 * 10_042)];
    assert_booked(&batched(&died(7_000, 0), &sender, &receiver), &[("path", 7_000)]);
}

#[test]
fn batches_dropped_by_a_rule_are_counted_by_its_bytes() {
    let scene = UdpScene {
        offered: 60_000,
        size: 1000,
        died: Died { filter: 2_000, ..Died::default() },
        ..UdpScene::default()
    };
    let sender = [("nic.counter.tx_packets", 6_000)];
    let receiver = [
        ("nic.counter.rx_packets", 6_000),
        ("filter.drop.packets", 200),
        ("filter.drop.bytes", 200 * 10_028),
        ("drop.reason.NETFILTER_DROP", 200),
    ];
    assert_booked(&batched(&scene, &sender, &receiver), &[("receive-filter", 2_000)]);
}

#[test]
fn batches_dropped_by_the_queue_are_counted_by_the_segments_that_it_sent() {
    let scene =
        UdpScene { offered: 60_000, size: 1000, died: Died { qdisc: 4_000, ..Died::default() }, ..UdpScene::default() };
    let sender = [("nic.counter.tx_packets", 5_600), ("qdisc.drops", 400)];
    let receiver = [("nic.counter.rx_packets", 5_600)];
    assert_booked(&batched(&scene, &sender, &receiver), &[("qdisc", 4_000)]);
}

#[test]
fn a_handshake_among_the_arrivals_is_no_loss_of_this_flow() {
    // As seen on a veth pair: the two datagrams that open the stream are in the counters of ECN marks as well.
    let scene = UdpScene {
        offered: 60_000,
        size: 1000,
        died: Died { buffer: 3_000, ..Died::default() },
        ..UdpScene::default()
    };
    let sender = [("nic.counter.tx_packets", 6_002)];
    let receiver =
        [("nic.counter.rx_packets", 6_002), ("snmp.Udp.RcvbufErrors", 300), ("netstat.IpExt.InNoECTPkts", 60_002)];
    let ledger = batched(&scene, &sender, &receiver);
    assert_balanced(&ledger);
    let found = (dropped(&ledger, "receive-buffer"), ledger.unexplained, ledger.uncertainty);
    assert_eq!(found, (3_000, 0, 2), "{ledger:#?}");
    assert!(ledger.remarks.is_empty(), "{ledger:#?}");
}

#[test]
fn fragments_cost_whole_datagrams() {
    let scene = UdpScene {
        offered: 10_000,
        size: 8_000,
        died: Died { path: 600, ..Died::default() },
        sender_counts: vec![
            ("snmp.Ip.FragOKs", 10_000),
            ("snmp.Ip.FragCreates", 60_000),
            ("nic.counter.tx_packets", 60_000),
        ],
        receiver_counts: vec![
            ("snmp.Ip.ReasmReqds", 59_390),
            ("snmp.Ip.ReasmOKs", 9_400),
            ("nic.counter.rx_packets", 59_390),
        ],
        ..UdpScene::default()
    };
    let ledger = of(&scene);
    assert_booked(&ledger, &[("reassembly", 600)]);
    assert!(ledger.remarks.iter().any(|remark| remark.contains("610 fragments never arrived")), "{ledger:#?}");
}

#[test]
fn a_flow_that_there_was_not_has_an_empty_ledger() {
    let ledger = ledger(UdpScene::default().trial().of().expect("UDP"), Flow::Down);
    assert_eq!((ledger.offered, ledger.stages.len()), (0, 0));
    assert!(ledger.remarks[0].contains("sent nothing down"));
}

fn any_death() -> impl Strategy<Value = Died> {
    let n = 0_u64..500;
    let refused =
        (n.clone(), n.clone(), n.clone(), n.clone()).prop_map(|(would_block, too_big, not_permitted, other)| Unsent {
            would_block,
            too_big,
            not_permitted,
            other,
            ..Unsent::default()
        });
    (refused, [n.clone(), n.clone(), n.clone(), n.clone(), n.clone(), n.clone(), n.clone(), n.clone(), n]).prop_map(
        |(refused, [qdisc, qdisc_told, device, path, softnet, filter, corrupt, buffer, memory])| Died {
            refused,
            qdisc,
            qdisc_told,
            device,
            path,
            softnet,
            filter,
            corrupt,
            buffer,
            memory,
            ring: 0,
            nowhere: 0,
        },
    )
}

proptest! {
    #[test]
    fn consistent_counters_leave_nothing_unexplained(died in any_death(), copies in 0_u64..50, others in 0_u64..500) {
        let ledger = of(&UdpScene { died, copies, others, ..UdpScene::default() });
        assert_balanced(&ledger);
        prop_assert_eq!(ledger.unexplained, 0, "{:#?}", ledger);
        prop_assert_eq!(dropped(&ledger, "path"), died.path);
        prop_assert_eq!(dropped(&ledger, "receive-buffer"), died.buffer + died.memory);
        prop_assert_eq!(dropped(&ledger, "qdisc"), died.qdisc + died.qdisc_told);
        prop_assert_eq!(ledger.duplicated, copies);
    }

    #[test]
    fn any_counters_balance(
        died in any_death(),
        counts in proptest::collection::vec((0..NEEDS.len(), any::<i64>()), 0..12),
        method in 0..4_usize,
        one_kernel: bool,
    ) {
        let replaced: Vec<(&'static str, i64)> = counts.iter().map(|(nth, n)| (NEEDS[*nth].name, *n)).filter(|(key, _)| *key != "host.boot").collect();
        let scene = UdpScene { died, one_kernel, sender_counts: replaced.clone(), receiver_counts: replaced, ..UdpScene::default() };
        let mut trial = scene.trial();
        udp_end(&mut trial.client).streams[0].method = if method & 1 == 0 { "sendmmsg" } else { "sendmmsg+segment" }.to_owned();
        udp_end(&mut trial.server).streams[0].method = if method & 2 == 0 { "recvmmsg" } else { "recvmmsg+gro" }.to_owned();
        let ledger = ledger(trial.of().expect("UDP"), Flow::Up);
        let booked: i128 = ledger.stages.iter().map(|stage| i128::from(stage.dropped)).sum();
        let exact = i128::from(ledger.offered) - booked - i128::from(ledger.delivered);
        let held = exact.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
        prop_assert_eq!(held, i128::from(ledger.unexplained));
        prop_assert!(ledger.stages.iter().all(|stage| stage.uncertainty <= stage.dropped));
    }
}
