//! Locks on files (`flock(2)`), which end with their process.

use crate::{Error, Result};
use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// A lock on a file, released on drop and by the end of the process, however it ends.
#[derive(Debug)]
pub struct Locked(#[allow(dead_code)] fs::File);

/// Locks a file against other processes and waits for it (`flock(2)`); creates it if it is absent.
/// Errors: the path and the kernel's error.
pub fn lock(path: &Path) -> Result<Locked> {
    let locked = lock_file(path).and_then(|file| file.lock().map(|()| Locked(file)));
    locked.map_err(|error| Error::new("lock", path.display().to_string(), error))
}

fn lock_file(path: &Path) -> std::io::Result<fs::File> {
    fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// As [`lock`], without waiting; `None`: another process has it.
/// Errors: the path and the kernel's error.
pub fn try_lock(path: &Path) -> Result<Option<Locked>> {
    let locked = lock_file(path).and_then(|file| match file.try_lock() {
        Ok(()) => Ok(Some(Locked(file))),
        Err(fs::TryLockError::WouldBlock) => Ok(None),
        Err(fs::TryLockError::Error(error)) => Err(error),
    });
    locked.map_err(|error| Error::new("lock", path.display().to_string(), error))
}
