//! A count that cannot be true and looks like nothing that is known.

use super::{Count, Lie, grouped};

pub(super) const LIE: Lie = Lie { id: "impossible", tells };

fn tells(count: &Count) -> Option<String> {
    let [received, sent] = count.between.map(grouped);
    let frames = grouped(count.frames);
    if count.too_few() {
        Some(format!("counts {frames} frames, fewer than the {received} that arrived behind it"))
    } else if count.too_many() {
        Some(format!("counts {frames} frames, more than the {sent} that were sent to it"))
    } else {
        None
    }
}
