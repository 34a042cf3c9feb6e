//! Captures of this host, for the tests and for colleagues.

use narrows_collect::{CaptureError, Keep, Live};
use std::net::IpAddr;
use std::path::Path;

/// Writes a capture of this host into a new directory.
///
/// # Errors
/// A file that cannot be written.
pub fn record(directory: &Path, peer: Option<IpAddr>, addresses: bool, host_name: bool) -> Result<(), CaptureError> {
    narrows_collect::record(&Live::new(), peer, directory, Keep { addresses, host_name }).map(drop)
}
