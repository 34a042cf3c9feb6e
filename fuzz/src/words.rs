//! A user's words for rates, sizes, durations, dates, for frames, and for a server.

use narrows_model::{
    load::frame_words,
    words::{date, units},
};
use narrows_runner::remote::TargetSpec;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(word) = std::str::from_utf8(bytes) else { return };
    let _ = (date::parse(word), units::parse_rate(word), units::parse_size(word), units::parse_duration(word));
    let _ = (frame_words::parse_sizes(word), frame_words::parse_load(word, Some(1_000_000_000), 64.0));
    if let Ok(range) = frame_words::parse_endpoints(word, 2000) {
        assert_eq!(frame_words::parse_endpoints(&frame_words::endpoints_word(&range), 1), Ok(range));
    }
    let target = TargetSpec { asked: word.to_owned(), family: None, port: 5220, token: None };
    if let Ok((host, port, ssh)) = target.server() {
        assert!(port > 0 && !host.is_empty() && !host.starts_with('-') && !host.contains(char::is_whitespace));
        assert!(ssh.is_none_or(|ssh| !ssh.destination.starts_with('-')));
    }
}
