//! What a report must be equal to in another form.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

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
