//! Which hop did not forward the broadcast frames, and how many of its drops they account for.
//!
//! A router must not forward them (RFC 1812, section 5.3.4): what came in and did not go out is no loss. Linux drops them
//! without a count in IPv4 (`ip_forward`) and counts them as discarded in IPv6 (`ip6_forward`); others may count them in a
//! register of their own. So what a hop's drops cannot account for is taken first, and then what they count beyond all that
//! was lost.

use super::counts::{Counts, Hop, sum};

/// Gives the frames that did not come out to the hop that kept them: the one under test; where none is named, the one that
/// misses the most.
pub(super) fn place(counts: &mut Counts, under_test: Option<&str>) {
    let all = counts.not_forwarded();
    if all <= 0 {
        return;
    }
    let claimed: i128 = counts.hops.iter().map(|hop| sum(&hop.before) + sum(&hop.inside)).sum();
    let excess = (claimed - counts.lost().max(0)).max(0);
    let named = under_test.and_then(|name| counts.hops.iter().position(|hop| hop.name == name));
    let missing = |hop: &Hop| Some(i128::from(hop.input?) - i128::from(hop.output?) - sum(&hop.inside));
    let most = || {
        let all = counts.hops.iter().enumerate().filter_map(|(at, hop)| Some((missing(hop)?, at)));
        all.max_by_key(|(missing, at)| (*missing, std::cmp::Reverse(*at))).map(|(_, at)| at)
    };
    let Some(at) = named.or_else(most) else { return };
    let hop = &mut counts.hops[at];
    // A hop that does not count both ways kept all that is missing, as far as anybody knows.
    let uncounted = missing(hop).map_or(all, |missing| missing.clamp(0, all));
    let counted = if missing(hop).is_some() { take(hop, (all - uncounted).min(excess)) } else { 0 };
    hop.not_forwarded = u64::try_from(uncounted + counted).unwrap_or(0);
}

/// Takes so many frames out of the drop that fits best: the smallest that holds them all, else the largest. How many there were.
fn take(hop: &mut Hop, frames: i128) -> i128 {
    let frames = u64::try_from(frames).unwrap_or(0);
    if frames == 0 {
        return 0;
    }
    let holds = hop.inside.iter_mut().filter(|drop| drop.frames >= frames).min_by_key(|drop| drop.frames);
    let taken = match holds {
        Some(drop) => {
            drop.frames -= frames;
            frames
        }
        None => hop.inside.iter_mut().max_by_key(|drop| drop.frames).map_or(0, |drop| std::mem::take(&mut drop.frames)),
    };
    hop.inside.retain(|drop| drop.frames > 0);
    taken.into()
}
