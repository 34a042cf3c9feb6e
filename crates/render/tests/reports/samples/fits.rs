//! Checks of every text and document.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// The narrowest terminal for which a text is made.
pub(crate) const NARROWEST: usize = 40;

/// Fails where a line of the text is wider than the narrowest terminal; a command, which a reader copies, may be.
pub(crate) fn fits(what: &str, text: &str) {
    assert!(!text.trim().is_empty(), "{what}: no text");
    for line in text.lines().filter(|line| !["$ ", "    sysctl ", "    ethtool "].iter().any(|of| line.contains(of))) {
        let wide = line.chars().count();
        assert!(wide <= NARROWEST, "{what}: {wide} columns: {line}\n{text}");
    }
}

/// A text without its colours.
pub(crate) fn unpainted(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.map(|part| part.split_once('m').expect("a whole sequence").1).fold(first, |text, part| text + part)
}

/// Fails where what is read from the JSON of a report is another one.
pub(crate) fn reads_back<T: Serialize + DeserializeOwned + PartialEq + Debug>(report: &T) {
    let text = narrows_render::json::pretty(report).expect("JSON");
    assert_eq!(serde_json::from_str::<T>(&text).expect("it reads back"), *report);
}
