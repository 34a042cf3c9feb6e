//! A user's words for rates, sizes, durations, and for frames.

use narrows_model::{
    load::frame_words,
    words::{date, units},
};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(word) = std::str::from_utf8(bytes) else { return };
    let _ = (date::parse(word), units::parse_rate(word), units::parse_size(word), units::parse_duration(word));
    let _ = (frame_words::parse_sizes(word), frame_words::parse_load(word, Some(1_000_000_000), 64.0));
    if let Ok(range) = frame_words::parse_endpoints(word, 2000) {
        assert_eq!(frame_words::parse_endpoints(&frame_words::endpoints_word(&range), 1), Ok(range));
    }
}
