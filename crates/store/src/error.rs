//! Errors of stored runs. Each names the file.

use crate::database::sql::Fault;
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
        path: PathBuf,
        /// The program that wrote it.
        made_by: String,
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
    /// More than one run has an id that begins so.
    #[error("`{0}` is the beginning of the ids of several runs; give more of it (`narrows history` lists them)")]
    Ambiguous(String),
    /// Neither of the environment variables for the state directory is set.
    #[error("cannot place the run: neither XDG_STATE_HOME nor HOME is an absolute path; give --output FILE")]
    NoPlace,
    /// The store itself: the operation, its file, and the cause with the remedy.
    #[error("cannot {operation} the store {}: {cause}", path.display())]
    Store {
        /// A verb in the infinitive.
        operation: &'static str,
        /// The file of the store, or its address without the password.
        path: PathBuf,
        /// Why not, and what to do.
        cause: String,
    },
    /// The store was written by a newer narrows.
    #[error(
        "cannot open the store {}: written by a newer narrows in version {version}, this one knows up to {known}; upgrade \
        narrows",
        path.display()
    )]
    StoreTooNew {
        /// The file of the store, or its address without the password.
        path: PathBuf,
        version: i64,
        /// The newest version that this program knows.
        known: i64,
    },
    /// A stored run is damaged: its id and what is wrong.
    #[error("cannot read run {0} of the store: {1}; `narrows store check` lists damaged runs")]
    Damaged(String, String),
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as C;
        // Extended codes of `SQLITE_IOERR`: a lock, or the shared memory beside the file, failed.
        const LOCKS: [i32; 8] = [2_058, 2_314, 2_570, 3_594, 3_850, 4_618, 5_130, 5_386];
        // `SQLITE_IOERR_SHMSIZE`: the shared memory cannot grow.
        const NO_ROOM: i32 = 4_874;
        let code = error.sqlite_error();
        let extended = |wanted: &[i32]| code.is_some_and(|it| wanted.contains(&it.extended_code));
        let remedy = match code.map(|it| it.code) {
            _ if extended(&[NO_ROOM]) => {
                "no space left; free some, or set NARROWS_STATE to a directory on another disk"
            }
            _ if extended(&LOCKS) => {
                "the file system does not support its locks; set NARROWS_STATE to a directory on a local disk"
            }
            Some(C::FileLockingProtocolFailed) => {
                "the file system does not support its locks; set NARROWS_STATE to a directory on a local disk"
            }
            Some(C::DiskFull) => "no space left; free some, or set NARROWS_STATE to a directory on another disk",
            Some(C::ReadOnly | C::PermissionDenied) => {
                "it is read-only; set NARROWS_STATE to a directory that you may write"
            }
            Some(C::CannotOpen) => "its directory is missing, closed or read-only; set NARROWS_STATE to another one",
            Some(C::DatabaseBusy | C::DatabaseLocked) => "another narrows holds it; try again",
            Some(C::NotADatabase | C::DatabaseCorrupt) => {
                "it is damaged; move it away, and take back what was exported with `narrows store import`"
            }
            _ => "see the cause",
        };
        if remedy == "see the cause" { Self(error.to_string()) } else { Self(format!("{error}; {remedy}")) }
    }
}
