//! Captures of this host, for tests and bug reports.

use narrows_collect::{CaptureError, Keep, Live};
use narrows_sys::files;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why a capture failed.
#[derive(Debug, Error)]
pub enum RecordError {
    /// The directory is not empty; its files would mix with the capture.
    #[error("cannot write a capture to {}: the directory is not empty; name a new one", .0.display())]
    NotEmpty(PathBuf),
    /// A file cannot be written, or a directory cannot be read.
    #[error(transparent)]
    File(#[from] narrows_sys::Error),
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// Writes a capture of this host into a directory that is new or empty.
pub fn record(directory: &Path, peer: Option<IpAddr>, addresses: bool, host_name: bool) -> Result<(), RecordError> {
    if files::exists(directory) && !files::list(directory)?.is_empty() {
        return Err(RecordError::NotEmpty(directory.to_owned()));
    }
    narrows_collect::record(&Live::new(), peer, directory, Keep { addresses, host_name })?;
    Ok(())
}
