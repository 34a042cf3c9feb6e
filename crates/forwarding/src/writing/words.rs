//! The words for times and sizes.

use crate::data::report::SizeView;
use narrows_model::load::frame_traffic::Traffic;
use narrows_model::load::frame_words::sizes;
use narrows_render::words::plural;

pub(super) use crate::data::plan::size_word as size;
pub(super) use narrows_render::words::millis as time;

pub(super) fn times(n: u32) -> String {
    plural(n.into(), "time")
}

/// A size below an axis: `64`, or `mix`.
pub(super) fn short_size(size: &SizeView) -> String {
    size.size.map_or_else(|| "mix".to_owned(), |size| size.to_string())
}

/// What the sizes of a mix are.
pub(super) fn mix(of: &Traffic) -> String {
    sizes(&of.mix)
}

/// `2007-09-19 20:14 UTC`.
pub(super) fn moment(unix_us: u64) -> String {
    narrows_model::words::date::minute(unix_us) + " UTC"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments() {
        assert_eq!(moment(0), "1970-01-01 00:00 UTC");
        assert_eq!(moment(1_190_232_884_000_000), "2007-09-19 20:14 UTC");
        assert_eq!(moment(1_709_251_199_000_000), "2024-02-29 23:59 UTC");
        assert!(moment(u64::MAX).ends_with("UTC"));
    }
}
