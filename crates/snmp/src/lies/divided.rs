//! Counts in KiB, so to say: each 1024 frames count as one.

use super::{Count, Lie, grouped};

pub(super) const LIE: Lie = Lie { id: "divided", tells };

/// Below that the last digit alone is more than a part in a hundred.
const LEAST: u64 = 100;

fn tells(count: &Count) -> Option<String> {
    let beside = count.beside_is(1024.0, 1024.0).filter(|_| count.frames >= LEAST)?;
    Some(format!(
        "counts 1/1024 of the frames that the hops beside it count ({} of {}): the agent divides by 1024",
        grouped(count.frames),
        grouped(beside)
    ))
}
