//! What cannot be sent, and how it ends.

use crate::wire::{has_xdp, plan, receive_plan, wire};
use narrows_model::load::frames::{GeneratePlan, ReceiveMode, ReceivePlan, SendMode};
use narrows_sys::clock;
use narrows_sys::rtnl::Links;
use narrows_traffic::Stop;
use narrows_traffic::frames::{FrameError, Receiver, generate};
use std::time::Duration;

#[test]
fn what_cannot_be_sent_is_said() {
    let wire = wire();
    wire.run(|| {
        let refused = |change: fn(&mut GeneratePlan)| {
            let mut plan = plan();
            change(&mut plan);
            generate(&plan, &Stop::new(), |_| {}).unwrap_err().to_string()
        };
        assert!(refused(|plan| plan.device = "none0".to_owned()).contains("cannot use device none0"));
        assert!(
            refused(|plan| plan.format.sizes = vec![1519]).contains("MTU 1500 allows frames of at most 1518 bytes")
        );
        assert!(refused(|plan| plan.format.sizes = vec![60]).contains("needs 64 bytes"));
        if has_xdp() {
            // No program and no GRO at the other end: a virtual pair takes no live frames.
            let why = refused(|plan| plan.mode = Some(SendMode::LiveFrames));
            assert!(why.contains("ndo_xdp_xmit"), "{why}");
        }
        let mut links = Links::open().unwrap();
        links.set_up("gen0", false).unwrap();
        assert!(refused(|_| {}).contains("it is down"));
    })
    .unwrap();
}

/// A program in the kernel sends on without the device that its frames go to, and nothing says so: it is looked after.
#[test]
fn a_device_that_goes_ends_both_ends() {
    let mut modes = vec![(SendMode::AfPacket, ReceiveMode::AfPacket)];
    if has_xdp() {
        modes.push((SendMode::LiveFrames, ReceiveMode::XdpNative));
        modes.push((SendMode::AfXdp, ReceiveMode::XdpGeneric));
    }
    for (send, receive) in modes {
        for (gone, word) in [(true, "interface gen0 was removed"), (false, "interface gen0 was set down")] {
            let wire = wire();
            let (sent, got) = wire
                .run(|| {
                    let watch = ReceivePlan { mode: Some(receive), ..receive_plan() };
                    let mut receiver = Receiver::start(&watch).unwrap();
                    let plan = GeneratePlan { mode: Some(send), count: None, ..plan() };
                    // By another: a device is not gone before its last user lets go of it.
                    let sent = std::thread::scope(|scope| {
                        let mut cut = None;
                        let sent = generate(&plan, &Stop::new(), |look| {
                            if look.frames > 0 && cut.is_none() {
                                let mut links = Links::open().unwrap();
                                cut = Some(scope.spawn(move || match gone {
                                    true => links.delete("gen0").unwrap(),
                                    false => links.set_up("gen0", false).unwrap(),
                                }));
                            }
                        });
                        cut.unwrap().join().unwrap();
                        sent.unwrap()
                    });
                    if gone {
                        receiver.wait(&Stop::new(), |_| {}).unwrap();
                    }
                    (sent, receiver.finish().unwrap())
                })
                .unwrap();
            let why = sent.ended.as_deref().unwrap();
            // On its way to be gone it is down.
            assert!(why.starts_with(word) || why.contains("was set down"), "{send:?}: {why}");
            assert!(sent.due() < 400_000, "{send:?}: it did not end early");
            assert!(got.distinct() > 0, "{receive:?}: what came before is kept");
            assert_eq!(got.ended.as_deref(), gone.then_some("interface rcv0 was removed"), "{receive:?}");
        }
    }
}

#[test]
fn a_generator_that_runs_again_is_noticed() {
    let mut modes = vec![ReceiveMode::AfPacket];
    if has_xdp() {
        modes.extend([ReceiveMode::XdpNative, ReceiveMode::XdpGeneric]);
    }
    for mode in modes {
        let wire = wire();
        let got = wire
            .run(|| {
                let mut receiver = Receiver::start(&ReceivePlan { mode: Some(mode), ..receive_plan() }).unwrap();
                let plan = GeneratePlan { mode: Some(SendMode::AfPacket), count: Some(50), ..plan() };
                for run in 1..=3 {
                    generate(&plan, &Stop::new(), |_| {}).unwrap();
                    while receiver.frames().unwrap() < run * 50 {
                        clock::sleep(Duration::from_millis(1));
                    }
                }
                receiver.finish().unwrap()
            })
            .unwrap();
        let stream = got.streams[0];
        assert_eq!((stream.received, stream.highest, stream.restarts), (150, 49, 2), "{mode:?}");
        if mode == ReceiveMode::AfPacket {
            assert_eq!(stream.duplicates, 100, "an XDP program knows copies on the same CPU");
        }
    }
}

#[test]
fn frames_without_room_at_a_packet_socket_are_told() {
    let wire = wire();
    wire.run(|| {
        let receiver = Receiver::start(&ReceivePlan { mode: Some(ReceiveMode::AfPacket), ..receive_plan() }).unwrap();
        let plan = GeneratePlan { mode: Some(SendMode::AfPacket), ..plan() };
        let sent = generate(&plan, &Stop::new(), |_| {}).unwrap();
        let got = receiver.finish().unwrap();
        let missed = got.missed.unwrap();
        assert!(got.distinct() + missed <= sent.sent(), "{} and {missed} of {}", got.distinct(), sent.sent());
        assert_eq!(got.intervals.last().unwrap().got.unwrap().missed, Some(missed));
    })
    .unwrap();
}

#[test]
fn a_stop_keeps_what_was_sent() {
    let wire = wire();
    wire.run(|| {
        let receiver = Receiver::start(&receive_plan()).unwrap();
        let (stop, plan) = (Stop::new(), GeneratePlan { count: None, ..plan() });
        let raised = stop.clone();
        let record: Result<_, FrameError> = generate(&plan, &stop, |seen| {
            if seen.frames > 0 {
                raised.stop();
            }
        });
        let record = record.unwrap();
        assert_eq!(record.ended.as_deref(), Some("it was stopped"));
        assert!(record.sent() > 0 && record.sent() < 400_000, "{record:?}");
        let got = receiver.finish().unwrap();
        assert!(got.distinct() <= record.sent(), "{} of {}", got.distinct(), record.sent());
    })
    .unwrap();
}
