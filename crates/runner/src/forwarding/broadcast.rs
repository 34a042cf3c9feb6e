//! Frames to the hardware broadcast address, set aside from the frames whose loss counts (RFC 2544, 11.1).

use narrows_model::forwarding::modifiers::{BroadcastSeen, Modifier, ModifierSeen};
use narrows_model::load::frames::{BROADCAST_STREAM, FrameTrial, GenerateRecord};

/// Every so-manyth frame of a traffic goes to all; 0: none does.
pub(super) const fn every(modifier: Option<&Modifier>) -> u32 {
    match modifier {
        Some(Modifier::Broadcast { every }) => *every,
        _ => 0,
    }
}

/// Frames that left and are to come out, so far as the device does not drop them.
pub(super) fn expected(sent: &GenerateRecord) -> u64 {
    let to_all: u64 = sent.streams.iter().filter(|it| it.stream == BROADCAST_STREAM).map(|it| it.handed).sum();
    sent.sent().saturating_sub(to_all)
}

/// Takes them out of what both ends counted. Frames that the port refused are of both kinds by their parts.
pub(super) fn set_aside(frames: &mut FrameTrial) -> BroadcastSeen {
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

/// The same for all directions of a trial whose load held some.
pub(super) fn set_all_aside(modifier: Option<&Modifier>, directions: &mut [FrameTrial]) -> Option<ModifierSeen> {
    (every(modifier) > 0)
        .then(|| ModifierSeen::Broadcast { directions: directions.iter_mut().map(set_aside).collect() })
}
