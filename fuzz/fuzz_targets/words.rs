//! A user's words for rates, sizes and durations.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_model::units;

fuzz_target!(|word: &str| {
    let _ = (units::parse_rate(word), units::parse_size(word), units::parse_duration(word));
});
