//! Each mode of sending against each of counting, sizes and tags.

use crate::wire::{assert_all_came, has_xdp, trial};
use narrows_model::Family;
use narrows_model::load::frames::{Endpoints, ReceiveMode, SendMode, Transport, Walk};

#[test]
fn every_frame_of_the_best_mode_comes_once_and_in_order() {
    let trial = trial(|_, _| {});
    assert_all_came(&trial, 4_000);
    let (sent, got) = (&trial.sent, &trial.got);
    if has_xdp() {
        // The receiver's program is what lets a virtual pair take live frames.
        assert_eq!((sent.mode, got.mode), (SendMode::LiveFrames, ReceiveMode::XdpNative), "{:?}", sent.not_better);
    }
    assert_eq!(got.bytes, 4_000 * 64);
    assert_eq!(got.flows.len(), 100);
    assert!(
        got.flows.iter().all(|flow| flow.received == 40 && flow.destination == "198.19.0.2:2000"),
        "{:?}",
        got.flows
    );
    assert_eq!(got.latency_ns.as_ref().unwrap().count, 400);
    assert!(got.gaps_ns.as_ref().unwrap().count > 100);
}

#[test]
fn each_mode_of_sending_reaches_each_of_counting() {
    let xdp = has_xdp();
    for send in [SendMode::AfXdp, SendMode::AfPacket] {
        for receive in [ReceiveMode::XdpNative, ReceiveMode::XdpGeneric, ReceiveMode::AfPacket] {
            // AF_XDP takes more locked memory than an ordinary user has.
            if !xdp && (send, receive) != (SendMode::AfPacket, ReceiveMode::AfPacket) {
                continue;
            }
            let trial = trial(|plan, counting| {
                plan.mode = Some(send);
                counting.mode = Some(receive);
            });
            assert_eq!((trial.sent.mode, trial.got.mode), (send, receive));
            assert_all_came(&trial, 4_000);
            assert_eq!(trial.got.flows.len(), 100, "{send:?} {receive:?}");
        }
    }
}

#[test]
fn sizes_take_turns_in_both_families_and_with_a_tag() {
    let range = |address: &str| Endpoints::one(address.parse().unwrap(), [2000, 2009]);
    for (family, vlan, transport) in [
        (Family::Ipv4, Some(7), Transport::Udp),
        (Family::Ipv6, None, Transport::Udp),
        (Family::Ipv6, None, Transport::TcpSyn),
    ] {
        let trial = trial(|plan, _| {
            plan.format.family = family;
            plan.format.vlan = vlan;
            plan.format.transport = transport;
            plan.format.walk = Walk::Random { seed: 5 };
            plan.format.sizes = vec![100, 128, 1000];
            if family == Family::Ipv6 {
                plan.format.source = range("2001:2:0:100::2");
                plan.format.destination = range("2001:2:0:200::2");
            }
            plan.count = Some(3_000);
        });
        assert_all_came(&trial, 3_000);
        assert_eq!(trial.got.bytes, 1_000 * (100 + 128 + 1000), "{family:?} {vlan:?}");
        assert!(trial.got.flows.len() > 9, "{:?}", trial.got.flows);
    }
}

/// The kernel takes a tag off before a packet socket sees the frame, and says so beside it.
#[test]
fn a_tag_counts_in_every_mode_of_counting() {
    let mut modes = vec![ReceiveMode::AfPacket];
    if has_xdp() {
        modes.extend([ReceiveMode::XdpNative, ReceiveMode::XdpGeneric]);
    }
    for mode in modes {
        for (vlan, size) in [(None, 64), (Some(0), 66), (Some(4095), 1522)] {
            let trial = trial(|plan, counting| {
                (plan.mode, counting.mode) = (Some(SendMode::AfPacket), Some(mode));
                (plan.format.vlan, plan.format.sizes, plan.count) = (vlan, vec![size], Some(100));
            });
            assert_all_came(&trial, 100);
            assert_eq!(trial.got.bytes, 100 * u64::from(size), "{mode:?} {vlan:?}");
        }
    }
}
