//! Received and lost frames per flow. The flow of a lost frame is not visible; but flows that take turns have sequence numbers at
//! equal distances, so that the numbers of received frames show which flow's frames are missing.

use narrows_model::load::frames::FlowGot;
use std::collections::{BTreeMap, HashSet};
use std::net::SocketAddr;

/// The counts of one stream at the receiver.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StreamSeen {
    pub(super) stream: u16,
    pub(super) received: u64,
    pub(super) duplicates: u64,
    pub(super) reordered: u64,
    /// How often its numbers restarted.
    pub(super) restarts: u64,
    /// One above the highest sequence number.
    pub(super) next: u64,
}

/// The counts of one flow in one stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FlowSeen {
    pub(super) stream: u16,
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) received: u64,
    pub(super) duplicates: u64,
    pub(super) reordered: u64,
    /// One above its highest sequence number.
    pub(super) next: u64,
    /// The smallest distance of two of its sequence numbers that arrived in order; 0: there are none.
    pub(super) gap: u64,
}

impl FlowSeen {
    /// Before its first frame.
    pub(super) const fn new(stream: u16, source: SocketAddr, destination: SocketAddr) -> Self {
        Self { stream, source, destination, received: 0, duplicates: 0, reordered: 0, next: 0, gap: 0 }
    }

    /// As `count_flow` of `receive.c`.
    pub(super) const fn arrive(&mut self, sequence: u64, copy: bool) {
        self.received += 1;
        if copy {
            self.duplicates += 1;
        } else if sequence >= self.next {
            let gap = sequence + 1 - self.next;
            if self.next > 0 && (self.gap == 0 || gap < self.gap) {
                self.gap = gap;
            }
            self.next = sequence + 1;
        } else {
            self.reordered += 1;
        }
    }

    /// Together with what another CPU saw of it.
    #[cfg(feature = "xdp")]
    pub(super) fn add(&mut self, other: &Self) {
        self.received += other.received;
        self.duplicates += other.duplicates;
        self.reordered += other.reordered;
        self.next = self.next.max(other.next);
        self.gap = [self.gap, other.gap].into_iter().filter(|gap| *gap > 0).min().unwrap_or(0);
    }
}

/// The flows of all streams, busiest first, and how many never arrived, where that is known. A flow that several streams send
/// is one flow. `left_out`: whether some found no room.
pub(super) fn settle(seen: &[FlowSeen], streams: &[StreamSeen], left_out: bool) -> (Vec<FlowGot>, Option<u64>) {
    let mut all: BTreeMap<(SocketAddr, SocketAddr), FlowGot> = BTreeMap::new();
    let mut silent = (!left_out && !seen.is_empty()).then_some(0_u64);
    for stream in streams {
        let of: Vec<&FlowSeen> = seen.iter().filter(|flow| flow.stream == stream.stream).collect();
        let turn = turn(&of);
        let unseen = turn.map(|turn| turn.min(stream.next).saturating_sub(of.len() as u64));
        silent = silent.zip(unseen).map(|(sum, unseen)| sum + unseen);
        for flow in of {
            let due = turn.map(|turn| {
                let place = flow.next.saturating_sub(1) % turn;
                stream.next / turn + u64::from(place < stream.next % turn)
            });
            let lost = due.map(|due| due.saturating_sub(flow.received.saturating_sub(flow.duplicates)));
            let known = all.entry((flow.source, flow.destination));
            let got = known.or_insert_with(|| FlowGot {
                source: flow.source.to_string(),
                destination: flow.destination.to_string(),
                lost: Some(0),
                ..FlowGot::default()
            });
            got.received += flow.received;
            got.duplicates += flow.duplicates;
            got.reordered += flow.reordered;
            got.lost = got.lost.zip(lost).map(|(sum, lost)| sum + lost);
        }
    }
    let mut flows: Vec<FlowGot> = all.into_values().collect();
    // In the order of their addresses where equally many arrived.
    flows.sort_by_key(|flow| std::cmp::Reverse(flow.received));
    (flows, silent)
}

/// Number of flows that take turns in a stream: the GCD of all distances. `None` if they do not take turns, because
/// two flows share a position, or if no flow has two frames.
fn turn(flows: &[&FlowSeen]) -> Option<u64> {
    let turn = flows.iter().map(|flow| flow.gap).fold(0, divisor);
    let places: HashSet<u64> = flows.iter().filter_map(|flow| flow.next.checked_sub(1)?.checked_rem(turn)).collect();
    (turn > 0 && places.len() == flows.len()).then_some(turn)
}

/// The greatest that divides both.
const fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a receiver counts for these sequence numbers of one stream; `flow` maps each to its flow.
    fn seen(numbers: impl IntoIterator<Item = u64>, flow: impl Fn(u64) -> u16) -> (Vec<FlowSeen>, StreamSeen) {
        let mut flows: BTreeMap<u16, FlowSeen> = BTreeMap::new();
        let (mut stream, mut before) = (StreamSeen { stream: 3, ..StreamSeen::default() }, HashSet::new());
        for number in numbers {
            let copy = !before.insert(number);
            let side = |port| SocketAddr::from(([198, 18, 0, 1], port));
            let new = || FlowSeen::new(3, side(flow(number)), side(9));
            flows.entry(flow(number)).or_insert_with(new).arrive(number, copy);
            stream.received += 1;
            stream.duplicates += u64::from(copy);
            stream.next = stream.next.max(number + 1);
        }
        (flows.into_values().collect(), stream)
    }

    fn settled(numbers: impl IntoIterator<Item = u64>, flow: impl Fn(u64) -> u16) -> (Vec<FlowGot>, Option<u64>) {
        let (flows, stream) = seen(numbers, flow);
        settle(&flows, &[stream], false)
    }

    #[test]
    fn in_turns_each_loss_has_its_flow() {
        // Ten flows: the fourth loses three frames, and one flow loses all of its frames.
        let came = (0..1_000).filter(|n| ![3, 503, 993].contains(n) && n % 10 != 9);
        let (flows, silent) = settled(came, |n| (n % 10) as u16);
        assert_eq!((flows.len(), silent), (9, Some(1)));
        let lost: Vec<_> = flows.iter().map(|flow| (flow.source.as_str(), flow.received, flow.lost)).collect();
        assert_eq!(lost[0], ("198.18.0.1:0", 100, Some(0)));
        assert_eq!(lost[8], ("198.18.0.1:3", 97, Some(3)));
        assert!(lost[1..8].iter().all(|(_, received, lost)| (*received, *lost) == (100, Some(0))));
    }

    #[test]
    fn copies_and_late_frames_are_of_their_flow() {
        let (flows, _) = settled([0, 1, 2, 3, 7, 6, 5, 4, 4, 8, 9, 10, 11], |n| (n % 4) as u16);
        let of = |flow: &FlowGot| (flow.received, flow.duplicates, flow.reordered, flow.lost);
        assert_eq!(
            flows.iter().map(of).collect::<Vec<_>>(),
            [(4, 1, 0, Some(0)), (3, 0, 0, Some(0)), (3, 0, 0, Some(0)), (3, 0, 0, Some(0))]
        );
        let (flows, _) = settled([0, 2, 4, 1, 3, 5], |n| (n % 2) as u16);
        assert_eq!(flows.iter().map(|flow| flow.reordered).sum::<u64>(), 0, "in order within each flow");
        let (flows, silent) = settled([0, 4, 2, 6], |n| (n % 2) as u16);
        assert_eq!((flows[0].reordered, flows[0].lost, silent), (1, Some(0), Some(1)), "one of two flows came");
    }

    #[test]
    fn at_random_nobody_knows_whose_frame_is_missing() {
        // Some mixture of 50 flows.
        let (flows, silent) =
            settled((0..5_000).filter(|n| n % 7 > 0), |n| (n.wrapping_mul(0x9e37_79b9) >> 7) as u16 % 50);
        assert_eq!((flows.len(), silent), (50, None));
        assert!(flows.iter().all(|flow| flow.lost.is_none() && flow.received > 0));
        assert_eq!(settled([0, 1, 2], |n| n as u16).0[0].lost, None, "of no flow a second frame came");
        assert_eq!(settle(&[], &[], false), (vec![], None));
    }

    #[test]
    fn a_flow_of_two_streams_is_one() {
        let (mut flows, stream) = seen(0..100, |_| 7);
        let other = FlowSeen { stream: 4, received: 40, duplicates: 0, reordered: 0, next: 50, gap: 1, ..flows[0] };
        flows.push(other);
        let streams = [stream, StreamSeen { stream: 4, next: 50, ..stream }];
        let (got, silent) = settle(&flows, &streams, false);
        assert_eq!((got.len(), silent), (1, Some(0)));
        assert_eq!((got[0].received, got[0].lost), (140, Some(10)));
        assert_eq!(settle(&flows, &streams, true).1, None, "one that found no room may be one that is missed here");
    }

    proptest! {
        #[test]
        fn losses_of_flows_are_those_of_the_stream(
            flows in 1_u64..40, total in 1_u64..2_000, lost in prop::collection::hash_set(0_u64..2_000, 0..200)
        ) {
            let came: Vec<u64> = (0..total).filter(|n| !lost.contains(n)).collect();
            let (seen, stream) = seen(came.iter().copied(), |n| (n % flows) as u16);
            let (got, silent) = settle(&seen, &[stream], false);
            prop_assert_eq!(got.iter().map(|flow| flow.received).sum::<u64>(), came.len() as u64);
            if silent == Some(0) && got.iter().all(|flow| flow.lost.is_some()) {
                let all: u64 = got.iter().filter_map(|flow| flow.lost).sum();
                prop_assert_eq!(all, stream.next - came.len() as u64);
            }
        }
    }
}
