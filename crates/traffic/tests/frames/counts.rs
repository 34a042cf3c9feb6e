//! What is told of intervals and of flows.

use crate::wire::{has_xdp, plan, receive_plan, wire};
use narrows_model::load::frames::{
    Endpoints, FlowGot, FrameFormat, GeneratePlan, OVERHEAD_BYTES, ReceiveMode, ReceivePlan, SendMode,
};
use narrows_sys::clock;
use narrows_sys::packet_io::PacketSender;
use narrows_sys::rtnl::Links;
use narrows_traffic::Stop;
use narrows_traffic::frames::{Receiver, generate};
use narrows_wire::frame::{Flows, Signature, Template};
use std::time::Duration;

/// Looks at both ends: what is told of each interval adds up to what is told of the whole.
#[test]
fn looks_add_up_to_the_whole() {
    let xdp = has_xdp();
    for (send, receive) in [
        (SendMode::LiveFrames, ReceiveMode::XdpNative),
        (SendMode::AfXdp, ReceiveMode::XdpGeneric),
        (SendMode::AfPacket, ReceiveMode::AfPacket),
    ] {
        if !xdp && send != SendMode::AfPacket {
            continue;
        }
        // A virtual pair has one queue for AF_XDP.
        let workers = if send == SendMode::AfXdp { 1 } else { 2 };
        let wire = wire();
        let (sent, got, told) = wire
            .run(|| {
                let plan = GeneratePlan {
                    mode: Some(send),
                    workers,
                    format: FrameFormat { sizes: vec![64, 128, 200], ..plan().format },
                    ..plan()
                };
                let receive =
                    ReceivePlan { mode: Some(receive), idle_ms: Some(300), duration_ms: 30_000, ..receive_plan() };
                let mut receiver = Receiver::start(&receive).unwrap();
                let (mut told, mut seen) = (Vec::new(), Vec::new());
                let sent = generate(&plan, &Stop::new(), |look| told.push(look)).unwrap();
                receiver.wait(&Stop::new(), |look| seen.push(look)).unwrap();
                let got = receiver.finish().unwrap();
                assert_eq!(seen, got.intervals);
                (sent, got, told)
            })
            .unwrap();
        assert_eq!(told, sent.intervals, "{send:?}: each look is told as it is made");
        let last = sent.intervals.last().unwrap();
        let so_far = last.sent.unwrap();
        assert_eq!((last.frames, so_far.due, last.unsent()), (4_000, sent.due(), Some(sent.unsent())), "{send:?}");
        // Each worker begins with the first size: 2,000 are 666 turns and two more frames, 4,000 are 1,333 turns and one more.
        let turn = 64 + 128 + 200 + 3 * OVERHEAD_BYTES;
        let two = 2 * (666 * turn + 64 + 128 + 2 * OVERHEAD_BYTES);
        let one = 1_333 * turn + 64 + OVERHEAD_BYTES;
        assert_eq!(so_far.wire_bytes, u64::from(if workers == 2 { two } else { one }), "{send:?}");
        assert_eq!(so_far.refused, sent.refused);
        let end = got.intervals.last().unwrap();
        assert_eq!((end.frames, end.lost(), got.lost()), (4_000, Some(0), 0), "{receive:?}: {got:?}");
        assert_eq!(end.got.unwrap().bytes, got.bytes);
        for looks in [&sent.intervals, &got.intervals] {
            assert!(looks.windows(2).all(|pair| pair[0].at_us < pair[1].at_us && pair[0].frames <= pair[1].frames));
        }
        assert!(got.intervals.iter().all(|look| look.lost() == Some(0)), "{receive:?}: none was lost: {got:?}");
        assert_eq!(got.stamp_clock.unwrap().of_others, 0);
        assert!(got.latency_ns.is_some(), "{receive:?}");
    }
}

/// Frames that are not in turn, twice there and missing, by flow: through both kinds of counters.
#[test]
fn each_flow_has_its_own_losses() {
    let mut modes = vec![ReceiveMode::AfPacket];
    if has_xdp() {
        modes.extend([ReceiveMode::XdpNative, ReceiveMode::XdpGeneric]);
    }
    for mode in modes {
        let wire = wire();
        let got = wire
            .run(|| {
                let receive = ReceivePlan { mode: Some(mode), ..receive_plan() };
                let mut receiver = Receiver::start(&receive).unwrap();
                let format = FrameFormat { source: ports(2000, 2009), ..plan().format };
                let (template, flows) = (Template::build(&format, 64), Flows::of(&format));
                let mut numbers: Vec<u64> = (0..400)
                    .filter(|n| ![7, 107, 207].contains(n) && n % 10 != 4)
                    .flat_map(|n| if n == 55 { vec![n, n] } else { vec![n] })
                    .collect();
                // 93 comes after 103, the next of its flow.
                let (early, late) = (place(&numbers, 93), place(&numbers, 103));
                numbers.swap(early, late);
                let sender = PacketSender::open(Links::open().unwrap().get("gen0").unwrap().index).unwrap();
                for number in &numbers {
                    let signature = Signature { stream: 63, clock: 0, sequence: *number, time: number % 2 };
                    let frame = template.frame(&flows.nth(number % 10), &signature);
                    while sender.send(std::iter::once(&frame[..])).unwrap().taken == 0 {}
                }
                while receiver.frames().unwrap() < numbers.len() as u64 {
                    clock::sleep(Duration::from_millis(1));
                }
                receiver.finish().unwrap()
            })
            .unwrap();
        let stream = got.streams[0];
        assert_eq!((got.streams.len(), stream.stream, stream.received), (1, 63, 400 - 3 - 40 + 1), "{mode:?}");
        assert_eq!((stream.duplicates, stream.highest, stream.lost()), (1, 399, 43), "{mode:?}");
        let port = |flow: &FlowGot| flow.source.rsplit_once(':').unwrap().1.parse::<u64>().unwrap() - 2000;
        let mut flows: Vec<_> =
            got.flows.iter().map(|it| (port(it), it.received, it.duplicates, it.reordered, it.lost)).collect();
        flows.sort_unstable();
        let whole = |flow| (flow, 40, 0, 0, Some(0));
        assert_eq!(
            flows,
            [
                whole(0),
                whole(1),
                whole(2),
                (3, 40, 0, 1, Some(0)),
                (5, 41, 1, 0, Some(0)),
                whole(6),
                (7, 37, 0, 0, Some(3)),
                whole(8),
                whole(9)
            ],
            "{mode:?}"
        );
        assert_eq!((got.flows_silent, got.flows_left_out), (Some(1), 0), "{mode:?}");
        // Clock 0 is nobody's.
        assert!(got.latency_ns.is_none(), "{mode:?}");
        assert!(got.stamp_clock.unwrap().of_others > 100, "{mode:?}: {:?}", got.stamp_clock);
    }
}

fn place(numbers: &[u64], number: u64) -> usize {
    numbers.iter().position(|it| *it == number).unwrap()
}

fn ports(first: u16, last: u16) -> Endpoints {
    Endpoints::one([198, 18, 0, 2].into(), [first, last])
}
