//! The error of this crate: the operation, the object, and the kernel's error.

use std::io;
use thiserror::Error;

/// A system call failed.
#[derive(Debug, Error)]
#[error("cannot {operation} {object}: {source}")]
pub struct Error {
    /// A verb in the infinitive: `open`, `bind`, `set SO_RCVBUF of`.
    pub operation: &'static str,
    /// The path, address, device or option.
    pub object: String,
    #[source]
    pub source: io::Error,
}

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// From the calling thread's `errno`.
    pub fn last(operation: &'static str, object: impl Into<String>) -> Self {
        Self::new(operation, object, io::Error::last_os_error())
    }

    /// From a given error.
    pub fn new(operation: &'static str, object: impl Into<String>, source: io::Error) -> Self {
        Self { operation, object: object.into(), source }
    }

    /// The kernel's error number, if it is a kernel error.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }
}

/// Turns `-1` into an error: the return convention of system calls.
/// Errors: the thread's `errno`, with the operation and the object.
pub fn check(result: libc::c_int, operation: &'static str, object: impl Into<String>) -> Result<libc::c_int> {
    if result < 0 { Err(Error::last(operation, object)) } else { Ok(result) }
}
