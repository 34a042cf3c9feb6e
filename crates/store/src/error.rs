//! Errors of stored runs. Each names the file.

use std::path::PathBuf;
use thiserror::Error;

/// A run could not be stored, found or parsed.
#[derive(Debug, Error)]
pub enum Error {
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] narrows_sys::Error),
    /// The file is not a stored run.
    #[error("{} is no run of narrows: {why}", path.display())]
    NoRun {
        /// The file.
        path: PathBuf,
        /// What is wrong, with line and column if known.
        why: String,
    },
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
    #[error("{} says that its form is {format}, which never existed; the file is damaged", path.display())]
    NeverExisted {
        /// The file.
        path: PathBuf,
        /// The format it names.
        format: u64,
    },
    /// A run could not be serialised.
    #[error("cannot write run {id}: {why}")]
    Encode {
        /// The run's id.
        id: String,
        /// What is wrong.
        why: String,
    },
    /// Neither of the environment variables for the state directory is set.
    #[error("no place for runs: neither XDG_STATE_HOME nor HOME is set to an absolute path; give --output FILE")]
    NoPlace,
}
