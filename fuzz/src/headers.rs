//! The headers of a request.

use narrows_wire::token::Secret;
use narrows_wire::{pack, version};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if version::check_header(Some(text), "0.1.0").is_ok() {
        assert!(text.starts_with(|c: char| c.is_ascii_digit() || c == '+'), "{text:?}");
    }
    if let Some(secret) = Secret::from_bearer(text) {
        let again = Secret::from_bearer(&format!("bearer {}", secret.reveal())).expect("its own form");
        assert_eq!(again.bytes(), secret.bytes());
    }
    let _ = pack::is_taken(text);
}
