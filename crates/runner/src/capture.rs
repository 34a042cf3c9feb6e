//! Captures of this host, for the tests and for colleagues.

use narrows_collect::{CaptureError, Keep, Live};
use narrows_sys::files;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Why there is no capture.
#[derive(Debug, Error)]
pub enum RecordError {
    /// What is there would be mixed up with the capture.
    #[error("{} is there already and holds something; name a new directory", .0.display())]
    NotEmpty(PathBuf),
    /// A file that cannot be written, or a directory that cannot be looked into.
    #[error(transparent)]
    File(#[from] narrows_sys::Error),
    /// What the recorder says.
    #[error(transparent)]
    Capture(#[from] CaptureError),
}

/// Writes a capture of this host into a directory that is new or empty.
///
/// # Errors
/// The directory or a file in it, and what is wrong.
pub fn record(directory: &Path, peer: Option<IpAddr>, addresses: bool, host_name: bool) -> Result<(), RecordError> {
    if files::exists(directory) && !files::list(directory)?.is_empty() {
        return Err(RecordError::NotEmpty(directory.to_owned()));
    }
    narrows_collect::record(&Live::new(), peer, directory, Keep { addresses, host_name })?;
    Ok(())
}
