//! Counts that were divided by 1024 and then called thousands: 564,842 frames became 551.6 thousand in the tool of a router
//! lab (FreeBSD's `netstat -h` before r287593), and ten thousand a second seemed lost.

use super::{Count, Lie, grouped};

pub(super) const LIE: Lie = Lie { id: "thousands", tells };

/// Below that 1000 frames, which such a count is rounded to, are more than a part in a hundred.
const LEAST: u64 = 100_000;

fn tells(count: &Count) -> Option<String> {
    let beside = count.beside_is(1.024, 1024.0).filter(|_| count.frames >= LEAST)?;
    Some(format!(
        "counts 1000/1024 of the frames that the hops beside it count ({} of {}): its source divides by 1024 and calls the \
         result thousands",
        grouped(count.frames),
        grouped(beside)
    ))
}
