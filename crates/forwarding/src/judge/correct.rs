//! A trial as its counts are meant, from a trial as they were read. Records hold the latter, so that better corrections reach old
//! records, too.

use crate::data::modifiers::{BroadcastSeen, ModifierSeen};
use crate::data::{ForwardingPlan, ForwardingTrial};
use narrows_model::host::hop::{DropCount, HopCount};
use narrows_model::load::frame_traffic::Modifier;
use narrows_model::load::frames::{BROADCAST_STREAM, FrameTrial, GenerateRecord};

/// The trial, its counts corrected.
pub fn correct(plan: &ForwardingPlan, trial: &ForwardingTrial) -> ForwardingTrial {
    let mut trial = trial.clone();
    if let (Some(ModifierSeen::Routes(routes)), Some(forth)) = (&trial.modifier, trial.directions.first_mut()) {
        // Counted by the port as dropped, and no frames of the load.
        forth.sent.refused = forth.sent.refused.map(|refused| refused.saturating_sub(routes.refused));
    }
    if let (Some(first), Some(forth)) = (plan.hops.first(), trial.directions.first_mut()) {
        let hop = trial.hops.iter_mut().find(|count| count.hop == first.name);
        rings_of_a_pair(&mut forth.sent, &first.input, hop);
    }
    let modifier = plan.traffic.get(trial.traffic).and_then(|traffic| traffic.modifier.as_ref());
    if let Some(Modifier::Broadcast { .. }) = modifier {
        let directions = trial.directions.iter_mut().map(set_broadcast_aside).collect();
        trial.modifier.get_or_insert(ModifierSeen::Broadcast { directions });
    }
    trial
}

/// The ends of a virtual pair share one ring: what finds no room in the device's receive ring is counted as dropped by the
/// sending end too (`peer_tq_xdp_xmit_err` in drivers/net/veth.c). Where the first hop's own input counts the drops, they are
/// the hop's: the frames were sent.
fn rings_of_a_pair(sent: &mut GenerateRecord, input: &str, hop: Option<&mut HopCount>) {
    let Some(refused) = sent.refused.filter(|refused| *refused > 0) else { return };
    let Some(hop) = hop else { return };
    let reason = format!("rx_dropped {input}");
    let Some(drop) = hop.drops.iter_mut().find(|drop| drop.reason == reason) else { return };
    let ring = refused.min(drop.frames);
    drop.frames -= ring;
    hop.drops.retain(|drop| drop.frames > 0);
    hop.input = hop.input.map(|taken| taken.saturating_add(ring));
    hop.drops.push(DropCount { reason: format!("the receive ring of {input} was full"), frames: ring });
    sent.refused = Some(refused - ring);
}

/// Takes frames to the hardware broadcast address out of what both ends counted (RFC 2544, 11.1). Frames that the port refused are of
/// both kinds by their parts.
fn set_broadcast_aside(frames: &mut FrameTrial) -> BroadcastSeen {
    let sent = &mut frames.sent;
    let handed: u64 = sent.streams.iter().map(|it| it.handed).sum();
    let mut seen = BroadcastSeen::default();
    sent.streams.retain(|it| {
        let own = it.stream == BROADCAST_STREAM;
        if own {
            (seen.due, seen.handed) = (seen.due + it.due, seen.handed + it.handed);
        }
        !own
    });
    let refused = sent.refused.unwrap_or(0);
    let part = u128::from(refused) * u128::from(seen.handed) / u128::from(handed.max(1));
    let part = u64::try_from(part).unwrap_or(u64::MAX).min(seen.handed);
    sent.refused = sent.refused.map(|refused| refused - part);
    seen.sent = seen.handed - part;
    frames.got.streams.retain(|it| {
        let own = it.stream == BROADCAST_STREAM;
        if own {
            // Of several workers their numbers are mixed: a copy cannot be told from another's frame.
            seen.received += it.received;
        }
        !own
    });
    seen
}

#[cfg(test)]
mod tests {
    use super::super::testing::{dropping, trial};
    use super::*;
    use crate::data::modifiers::RoutesSeen;
    use crate::testing::plan;
    use narrows_model::load::frames::{StreamGot, StreamSent};

    #[test]
    fn a_ring_that_both_ends_of_a_pair_count_is_the_hops() {
        let plan = plan();
        let first = dropping("switch", 900, 900, &[("rx_dropped in0", 100), ("no route", 1)]);
        let mut trial = trial(1_000, 900, vec![first]);
        trial.directions[0].sent.refused = Some(130);
        let right = correct(&plan, &trial);
        assert_eq!((right.directions[0].sent.refused, right.hops[0].input), (Some(30), Some(1_000)));
        assert_eq!(right.hops[0].drops[1].reason, "the receive ring of in0 was full");
        assert_eq!(right.hops[0].drops[1].frames, 100);
    }

    #[test]
    fn broadcasts_and_updates_are_no_test_frames() {
        let mut plan = plan();
        plan.traffic[0].modifier = Some(Modifier::Broadcast { every: 10 });
        let mut trial = trial(900, 900, Vec::new());
        let frames = &mut trial.directions[0];
        frames.sent.streams.push(StreamSent { stream: BROADCAST_STREAM, due: 100, handed: 100 });
        frames.sent.refused = Some(10);
        frames.got.streams.push(StreamGot { stream: BROADCAST_STREAM, received: 2, ..StreamGot::default() });
        let right = correct(&plan, &trial);
        assert_eq!(right.broadcast(0), BroadcastSeen { due: 100, handed: 100, sent: 99, received: 2 });
        assert_eq!((right.directions[0].sent.sent(), right.directions[0].got.distinct()), (891, 900));
        trial.modifier = Some(ModifierSeen::Routes(RoutesSeen { refused: 4, ..RoutesSeen::default() }));
        plan.traffic.clear();
        assert_eq!(correct(&plan, &trial).directions[0].sent.refused, Some(6));
    }
}
