//! What each station of the way counted, in the order in which frames pass: the raw material of the accounting.

use super::broadcast;
use crate::data::modifiers::{BroadcastSeen, ModifierSeen};
use crate::data::{ForwardingPlan, ForwardingTrial};
use narrows_model::host::hop::{DropCount, HopCount};
use narrows_model::load::frames::FrameTrial;

/// What one hop says of one direction.
#[derive(Debug, Clone, Default)]
pub(super) struct Hop {
    pub(super) name: String,
    pub(super) input: Option<u64>,
    pub(super) output: Option<u64>,
    /// Drops before its input counts: of the ring of its receiving device.
    pub(super) before: Vec<DropCount>,
    /// Drops between its input and its output.
    pub(super) inside: Vec<DropCount>,
    /// Frames to the hardware broadcast address that it rightly did not forward.
    pub(super) not_forwarded: u64,
    pub(super) uncertainty: u64,
    /// Why it says nothing, if so.
    pub(super) silent: Option<String>,
}

/// All that was counted of one direction.
#[derive(Debug, Clone)]
pub(super) struct Counts {
    /// Test frames, and frames to the hardware broadcast address.
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Frames to the hardware broadcast address.
    pub(super) broadcast: BroadcastSeen,
    pub(super) hops: Vec<Hop>,
}

/// Counters of frames that a device takes from the wire and loses before it counts them as received (`struct
/// rtnl_link_stats64`; `ifInDiscards` is after the input's count on some agents and before it on others, so it is not here).
const BEFORE_INPUT: [&str; 6] = ["rx_missed", "rx_fifo", "rx_over", "rx_no_buffer", "rx_crc", "rx_frame"];

fn is_before_input(drop: &DropCount) -> bool {
    BEFORE_INPUT.iter().any(|name| drop.reason.starts_with(name))
}

/// Frames of a list of drops.
pub(super) fn sum(drops: &[DropCount]) -> i128 {
    drops.iter().map(|drop| i128::from(drop.frames)).sum()
}

impl Hop {
    /// `others`: frames of a modifier that it may have counted, too.
    fn of(name: &str, count: Option<&HopCount>, others: u64) -> Self {
        let empty = |why: &str| Self { name: name.to_owned(), silent: Some(why.to_owned()), ..Self::default() };
        let Some(count) = count else { return empty("its counters were not read for this direction") };
        if let Some(why) = &count.silent {
            return empty(why);
        }
        let named = count.drops.iter().filter(|drop| drop.frames > 0).cloned();
        let (before, inside) = named.partition(is_before_input);
        let nothing = count.input.is_none() && count.output.is_none();
        Self {
            name: name.to_owned(),
            input: count.input,
            output: count.output,
            before,
            inside,
            not_forwarded: 0,
            uncertainty: count.uncertainty.saturating_add(others),
            silent: nothing.then(|| format!("{} gave neither its input nor its output", count.source)),
        }
    }
}

impl Counts {
    /// Of a direction: 0 forth, 1 back. Hops come in the order of the way, which is the plan's forth and the reverse back. A
    /// hop that was read for both directions has two entries in the trial, the second for the way back.
    pub(super) fn of(plan: &ForwardingPlan, trial: &ForwardingTrial, direction: usize) -> Option<Self> {
        let frames: &FrameTrial = trial.directions.get(direction)?;
        let count = |name: &str| trial.hops.iter().filter(|count| count.hop == name).nth(direction);
        let others = trial.modifier.as_ref().map_or(0, ModifierSeen::other_frames);
        let mut hops: Vec<Hop> = plan.hops.iter().map(|hop| Hop::of(&hop.name, count(&hop.name), others)).collect();
        if direction > 0 {
            hops.reverse();
        }
        let to_all = trial.broadcast(direction);
        let mut counts = Self {
            sent: frames.sent.sent().saturating_add(to_all.sent),
            received: frames.got.distinct().saturating_add(to_all.received),
            broadcast: to_all,
            hops,
        };
        counts.place_ring_drops();
        let under_test = plan.hops.iter().find(|hop| hop.under_test).map(|hop| hop.name.as_str());
        broadcast::place(&mut counts, under_test);
        Some(counts)
    }

    /// Test frames sent and not received.
    pub(super) fn lost(&self) -> i128 {
        i128::from(self.sent) - i128::from(self.received) - self.not_forwarded()
    }

    /// Frames to the hardware broadcast address that did not come out, and were not to.
    pub(super) fn not_forwarded(&self) -> i128 {
        self.broadcast.not_forwarded().into()
    }

    /// Some devices count what their ring lost as received. Where the input misses none and the output does, it is so here.
    fn place_ring_drops(&mut self) {
        let mut before = Some((self.sent, 0));
        for hop in &mut self.hops {
            let gap = |from: Option<(u64, u64)>, to: Option<u64>| {
                let (from, error) = from?;
                let error = i128::from(error) + i128::from(hop.uncertainty);
                Some((i128::from(from) - i128::from(to?), error))
            };
            let claimed = sum(&hop.before);
            let at_input = gap(before, hop.input);
            let inside = gap(hop.input.map(|input| (input, hop.uncertainty)), hop.output);
            if claimed > 0
                && at_input.is_some_and(|(gap, error)| claimed > gap + error)
                && inside.is_some_and(|(gap, error)| claimed + sum(&hop.inside) <= gap + error)
            {
                hop.inside.splice(0..0, hop.before.drain(..));
            }
            before = hop.output.map(|output| (output, hop.uncertainty));
        }
    }
}
