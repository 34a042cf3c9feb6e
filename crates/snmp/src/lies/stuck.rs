//! A counter that did not move though frames passed.

use super::{Count, Lie, grouped};

pub(super) const LIE: Lie = Lie { id: "stuck", tells };

fn tells(count: &Count) -> Option<String> {
    (count.frames <= count.uncertainty && count.too_few()).then(|| {
        format!(
            "counts {} frames though at least {} passed: the agent answers from memory, or this is another interface",
            grouped(count.frames),
            grouped(count.between[0])
        )
    })
}
