//! Trials on the way through a switch, a router and a switch again.

use crate::data::{ForwardingTrial, Test};
use crate::testing::frame_trial;
use narrows_model::host::hop::{DropCount, HopCount};

const SECOND_NS: u64 = 1_000_000_000;

/// A hop that counted so many frames in and out.
pub(super) fn hop(name: &str, input: u64, output: u64) -> HopCount {
    HopCount {
        hop: name.to_owned(),
        input: Some(input),
        output: Some(output),
        drops: Vec::new(),
        uncertainty: 0,
        source: "test".to_owned(),
        silent: None,
        anomaly: None,
    }
}

/// The same with drops by reason.
pub(super) fn dropping(name: &str, input: u64, output: u64, drops: &[(&str, u64)]) -> HopCount {
    let drop = |(reason, frames): &(&str, u64)| DropCount { reason: (*reason).to_owned(), frames: *frames };
    HopCount { drops: drops.iter().map(drop).collect(), ..hop(name, input, output) }
}

/// The same with an error of its own.
pub(super) fn blurred(of: HopCount, uncertainty: u64) -> HopCount {
    HopCount { uncertainty, ..of }
}

/// A hop that gave no counters.
pub(super) fn silent(name: &str, why: &str) -> HopCount {
    HopCount { input: None, output: None, silent: Some(why.to_owned()), ..hop(name, 0, 0) }
}

/// A trial of a second in one direction.
pub(super) fn trial(sent: u64, received: u64, hops: Vec<HopCount>) -> ForwardingTrial {
    ForwardingTrial {
        test: Test::Throughput,
        traffic: 0,
        size: Some(64),
        repetition: 0,
        at_ms: 0,
        directions: vec![frame_trial(sent, received, SECOND_NS)],
        hops,
        modifier: None,
        devices: Vec::new(),
        incomplete: None,
    }
}

/// A trial forth and back.
pub(super) fn both_ways(forth: [u64; 2], back: [u64; 2], hops: Vec<HopCount>) -> ForwardingTrial {
    let mut both = trial(forth[0], forth[1], hops);
    both.directions.push(frame_trial(back[0], back[1], SECOND_NS));
    both
}
