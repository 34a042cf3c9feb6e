//! Errors of stored runs. Each names the file.

use std::path::PathBuf;
use thiserror::Error;

/// A run could not be stored, found or parsed.
#[derive(Debug, Error)]
pub enum Error {
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] narrows_sys::Error),
    /// The file is not a stored run: what is wrong, with line and column if known.
    #[error("{path} is no run of narrows: {1}", path = .0.display())]
    NoRun(PathBuf, String),
    /// The file's format is newer than this program.
    #[error(
        "{} was written by a newer narrows ({made_by}): its form is {format}, this program reads forms up to {known}; \
         update narrows to read it",
        path.display()
    )]
    TooNew {
        /// The file.
        path: PathBuf,
        /// The program that wrote it.
        made_by: String,
        /// Its format.
        format: u64,
        /// The newest format that this program reads.
        known: u32,
    },
    /// The file names a format that never existed.
    #[error("{path} says that its form is {1}, which never existed; the file is damaged", path = .0.display())]
    NeverExisted(PathBuf, u64),
    /// The run of this id could not be serialised: why.
    #[error("cannot write run {0}: {1}")]
    Encode(String, String),
    /// Neither of the environment variables for the state directory is set.
    #[error("no place for runs: neither XDG_STATE_HOME nor HOME is set to an absolute path; give --output FILE")]
    NoPlace,
}
