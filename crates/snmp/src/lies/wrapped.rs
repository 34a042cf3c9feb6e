//! A counter that begins again at 2^32 though it is called one of 64 bits: at 10 Gbit/s of the smallest frames every 289 s.

use super::{Count, Lie, grouped};
use crate::growth::WRAP;

pub(super) const LIE: Lie = Lie { id: "wrapped", tells };

fn tells(count: &Count) -> Option<String> {
    if !count.too_few() {
        return None;
    }
    // The fewest turns that make it possible; then it must not be too many.
    let missing = count.between[0].saturating_sub(count.frames).saturating_sub(count.uncertainty);
    let turns = missing.div_ceil(WRAP);
    let whole = turns.checked_mul(WRAP)?.checked_add(count.frames)?;
    (whole <= count.between[1].saturating_add(count.uncertainty)).then(|| {
        let often = if turns == 1 { String::new() } else { format!("{turns} times ") };
        format!(
            "counts {} frames, {often}4,294,967,296 fewer than passed: it is a 32-bit counter that wraps at 4,294,967,296",
            grouped(count.frames)
        )
    })
}
