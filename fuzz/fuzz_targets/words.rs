//! A user's words for rates, sizes, durations, and for frames.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_model::{load::frame_words, words::units};

fuzz_target!(|word: &str| {
    let _ = (units::parse_rate(word), units::parse_size(word), units::parse_duration(word));
    let _ = (frame_words::parse_sizes(word), frame_words::parse_load(word, Some(1_000_000_000), 64.0));
    if let Ok(range) = frame_words::parse_endpoints(word, 2000) {
        assert_eq!(frame_words::parse_endpoints(&frame_words::endpoints_word(&range), 1), Ok(range));
    }
});
