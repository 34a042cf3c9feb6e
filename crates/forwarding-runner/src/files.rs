//! The files of a forwarding benchmark: plans, records, pages.

use narrows_forwarding::data::ForwardingRecord;
use narrows_forwarding::data::ab::AbRecord;
use narrows_sys::files;
use serde::Serialize;
use std::path::Path;
use thiserror::Error;

/// The largest record that is read.
const RECORD_BYTES: u64 = 256 << 20;

/// A file that cannot be read or written.
#[derive(Debug, Error)]
pub enum FileError {
    #[error(transparent)]
    System(#[from] narrows_sys::Error),
    /// The file holds something else: why.
    #[error("{0} is not a forwarding benchmark record: {1}")]
    Content(String, String),
}

/// Whether something is there.
pub fn is_there(path: &Path) -> bool {
    files::exists(path)
}

/// Makes a directory for pictures, and checks that files can be written there.
pub fn check_directory(path: &Path) -> Result<(), FileError> {
    files::make_public_directory(path)?;
    Ok(files::check_writable(&path.join("books.svg"))?)
}

/// The text of a plan.
pub fn read_plan(path: &Path) -> Result<String, FileError> {
    // One byte above the limit, so that a plan that is too long is detected.
    let bytes = files::read(path, narrows_forwarding::plan_file::MAX_BYTES as u64 + 1)?;
    let no_text = |_| FileError::Content(path.display().to_string(), "it is not UTF-8 text".to_owned());
    String::from_utf8(bytes).map_err(no_text)
}

/// What a kept file holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Kept {
    Plain(Box<ForwardingRecord>),
    /// One with two configurations of the device.
    Pair(Box<AbRecord>),
}

impl Kept {
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        match self {
            Self::Plain(record) => write_record(path, record),
            Self::Pair(record) => write_record(path, record),
        }
    }
}

/// A record as it was kept.
pub fn read_record(path: &Path) -> Result<Kept, FileError> {
    let bytes = files::read(path, RECORD_BYTES)?;
    let content = |error: serde_json::Error| FileError::Content(path.display().to_string(), error.to_string());
    if is_pair(&bytes) {
        return serde_json::from_slice(&bytes).map(Kept::Pair).map_err(content);
    }
    serde_json::from_slice(&bytes).map(Kept::Plain).map_err(content)
}

/// Whether a record begins as one of two configurations does: with its field `ab`.
fn is_pair(bytes: &[u8]) -> bool {
    let mut words = bytes.split(u8::is_ascii_whitespace).flatten();
    words.next() == Some(&b'{') && words.take(4).eq(b"\"ab\"")
}

pub fn write_record(path: &Path, record: &impl Serialize) -> Result<(), FileError> {
    let text = serde_json::to_string(record)
        .map_err(|error| FileError::Content(path.display().to_string(), error.to_string()))?;
    Ok(files::write_whole(path, text.as_bytes(), 0o600)?)
}

/// Writes pictures, each into a file of its name.
pub fn write_all(directory: &Path, pictures: &[(String, String)]) -> Result<(), narrows_sys::Error> {
    files::make_public_directory(directory)?;
    pictures
        .iter()
        .try_for_each(|(name, svg)| narrows_runner::stored::write(&directory.join(format!("{name}.svg")), svg))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_field_tells_which_record_it_is() {
        assert!(is_pair(b"{\"ab\":{}}") && is_pair(b" {\n  \"ab\" : 1"));
        assert!(!is_pair(b"{\"plan\":{}}") && !is_pair(b"{\"about\":1}") && !is_pair(b"[\"ab\"]") && !is_pair(b""));
    }
}
