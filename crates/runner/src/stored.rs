//! Runs on disk, named by a file or by the id of a run in the state directory.

use crate::state;
use narrows_model::Run;
use narrows_store::Error;
pub use narrows_store::Error as StoreError;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a run cannot be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The user's word is neither a file nor an id in the directory of runs.
    #[error("cannot find run `{}`: neither a file nor a run id in {}", .0.display(), .1.display())]
    Unknown(PathBuf, PathBuf),
    /// The file cannot be read.
    #[error(transparent)]
    Stored(#[from] Error),
}

/// The directory of runs: `runs/` in the state directory.
fn directory() -> Result<PathBuf, Error> {
    state::directory().map(|state| state.join("runs")).ok_or(Error::NoPlace)
}

/// The file of a stored run.
pub fn file(word: &Path) -> Result<PathBuf, LoadError> {
    if narrows_sys::files::exists(word) || word.components().count() != 1 {
        return Ok(word.to_owned());
    }
    let directory = directory()?;
    let by_id = directory.join(narrows_store::file_name(&word.to_string_lossy()));
    if narrows_sys::files::exists(&by_id) { Ok(by_id) } else { Err(LoadError::Unknown(word.to_owned(), directory)) }
}

/// Loads a run.
pub fn load(word: &Path) -> Result<Run, LoadError> {
    Ok(narrows_store::load(&file(word)?)?)
}

/// A kept run: what its id and the first fields of its file say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its id.
    pub id: String,
    /// The host that it measured, in the user's words.
    pub host: String,
}

/// The newest runs of the state directory, newest first; those that cannot be read are left out.
#[must_use]
pub fn newest(limit: usize) -> Vec<Kept> {
    let Ok(directory) = directory() else { return Vec::new() };
    let names = narrows_sys::files::list(&directory).unwrap_or_default();
    let kept = |name: &String| {
        let id = name.strip_suffix(narrows_store::id::ENDING)?.to_owned();
        Some(Kept { id, host: narrows_store::host(&directory.join(name)).ok()? })
    };
    // The names are sorted, and an id begins with its date.
    names.iter().rev().filter_map(kept).take(limit).collect()
}

/// Writes text to a file.
pub fn write(path: &Path, text: &str) -> Result<(), narrows_sys::Error> {
    narrows_sys::files::write_whole(path, text.as_bytes(), 0o600)
}

/// Checks that [`write()`] can write the file, before anything is measured.
pub fn check(path: &Path) -> Result<(), narrows_sys::Error> {
    narrows_sys::files::check_writable(path)
}

/// The file of a new run: the one given, which must be writable, or its file in the state directory, which is made.
pub fn place(output: Option<PathBuf>, id: &str) -> Result<PathBuf, Error> {
    match output {
        Some(path) => {
            check(&path)?;
            Ok(path)
        }
        None => {
            let directory = directory()?;
            // A directory that cannot be made is told when the run is saved: what is measured until then is shown in any case.
            let _ = narrows_sys::files::make_directory(&directory);
            Ok(directory.join(narrows_store::file_name(id)))
        }
    }
}

/// Saves a run and replaces the file atomically.
pub fn save(run: &Run, file: &Path) -> Result<(), Error> {
    narrows_store::save(run, file)
}

/// The id of a new run, and the name and version of this program.
pub fn new_name() -> Result<(String, String), Error> {
    let id = narrows_store::new_id(narrows_sys::clock::unix_us())?;
    Ok((id, concat!("narrows ", env!("CARGO_PKG_VERSION")).to_owned()))
}
