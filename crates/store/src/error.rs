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
    #[error("{path} is not a narrows run file: {1}", path = .0.display())]
    NoRun(PathBuf, String),
    /// The file's format is newer than this program.
    #[error(
        "cannot read {}: written by a newer narrows ({made_by}) in format {format}, this version reads up to {known}; \
        upgrade narrows",
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
    #[error("cannot read {path}: unknown format {1}; the file is damaged", path = .0.display())]
    NeverExisted(PathBuf, u64),
    /// The run of this id could not be serialised: why.
    #[error("cannot write run {0}: {1}")]
    Encode(String, String),
    /// Neither of the environment variables for the state directory is set.
    #[error("cannot place the run: neither XDG_STATE_HOME nor HOME is an absolute path; give --output FILE")]
    NoPlace,
}
