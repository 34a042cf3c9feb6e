//! Runs on disk, by the user's word for them: a file, or the id of a run in the default directory.

use narrows_model::Run;
use narrows_store::Error;
use std::path::{Path, PathBuf};

/// Loads a run.
///
/// # Errors
/// The file, and what is wrong with it.
pub fn load(word: &Path) -> Result<Run, Error> {
    if !narrows_sys::files::exists(word) && word.components().count() == 1 {
        let by_id = narrows_store::default_directory()?.join(narrows_store::file_name(&word.to_string_lossy()));
        if narrows_sys::files::exists(&by_id) {
            return narrows_store::load(&by_id);
        }
    }
    narrows_store::load(word)
}

/// Where a run goes: the user's file, or its place in the default directory.
///
/// # Errors
/// Where there is no default directory.
pub fn place(output: Option<PathBuf>, id: &str) -> Result<PathBuf, Error> {
    match output {
        Some(path) => Ok(path),
        None => Ok(narrows_store::default_directory()?.join(narrows_store::file_name(id))),
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
