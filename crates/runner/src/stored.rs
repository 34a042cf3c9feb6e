//! Runs on disk, by the user's word for them: a file, or the id of a run in the state directory.

use crate::state;
use narrows_model::Run;
use narrows_store::Error;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a run cannot be had.
#[derive(Debug, Error)]
pub enum LoadError {
    /// Neither a file nor an id.
    #[error("there is no run `{}`: it is no file, and no id of a run in {}", word.display(), directory.display())]
    Unknown {
        /// The user's word.
        word: PathBuf,
        /// Where runs are kept.
        directory: PathBuf,
    },
    /// The file, and what is wrong with it.
    #[error(transparent)]
    Stored(#[from] Error),
}

/// Where runs are kept: `runs/` of the state directory.
fn directory() -> Result<PathBuf, Error> {
    state::directory().map(|state| state.join("runs")).ok_or(Error::NoPlace)
}

/// The file of a stored run.
///
/// # Errors
/// The word where it means nothing.
pub fn file(word: &Path) -> Result<PathBuf, LoadError> {
    if narrows_sys::files::exists(word) || word.components().count() != 1 {
        return Ok(word.to_owned());
    }
    let directory = directory()?;
    let by_id = directory.join(narrows_store::file_name(&word.to_string_lossy()));
    if narrows_sys::files::exists(&by_id) {
        Ok(by_id)
    } else {
        Err(LoadError::Unknown { word: word.to_owned(), directory })
    }
}

/// Loads a run.
///
/// # Errors
/// The word where it means nothing; the file, and what is wrong with it.
pub fn load(word: &Path) -> Result<Run, LoadError> {
    Ok(narrows_store::load(&file(word)?)?)
}

/// Writes what a user asked for into a file.
///
/// # Errors
/// The file, and why it could not be written.
pub fn write(path: &Path, text: &str) -> Result<(), narrows_sys::Error> {
    narrows_sys::files::write_whole(path, text.as_bytes(), 0o644)
}

/// Whether [`write()`] will be able to, as far as can be told before anything is measured.
///
/// # Errors
/// The file, and why it cannot be written.
pub fn check(path: &Path) -> Result<(), narrows_sys::Error> {
    narrows_sys::files::check_writable(path)
}

/// Where a run goes: the user's file, or its place in the state directory.
///
/// # Errors
/// Where there is no state directory.
pub fn place(output: Option<PathBuf>, id: &str) -> Result<PathBuf, Error> {
    match output {
        Some(path) => Ok(path),
        None => Ok(directory()?.join(narrows_store::file_name(id))),
    }
}

/// Keeps a run: whole, in place of what is there.
///
/// # Errors
/// The file, and why it could not be written.
pub fn save(run: &Run, file: &Path) -> Result<(), Error> {
    narrows_store::save(run, file)
}

/// A name for a new run, and the words for the program that makes it.
///
/// # Errors
/// The kernel has no random bytes.
pub fn new_name() -> Result<(String, String), Error> {
    let id = narrows_store::new_id(narrows_sys::clock::unix_us())?;
    Ok((id, concat!("narrows ", env!("CARGO_PKG_VERSION")).to_owned()))
}
