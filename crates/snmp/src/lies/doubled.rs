//! Each frame counted twice: as it comes and as it goes, or by the port and by the bundle that it belongs to.

use super::{Count, Lie, grouped};

pub(super) const LIE: Lie = Lie { id: "doubled", tells };

fn tells(count: &Count) -> Option<String> {
    let beside = count.beside_is(0.5, 1.0).filter(|_| count.too_many())?;
    Some(format!(
        "counts twice the frames that the hops beside it count ({} of {}): it counts both directions, or a port and its bundle",
        grouped(count.frames),
        grouped(beside)
    ))
}
