//! Memory that the kernel and this process both use.

use crate::error::{Error, Result};
use std::os::fd::{AsFd, AsRawFd as _};

/// For reading and writing.
pub(crate) const READ_WRITE: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;

/// A mapping, unmapped when it is dropped.
#[derive(Debug)]
pub(crate) struct Shared {
    start: *mut u8,
    bytes: usize,
}

impl Shared {
    pub(crate) fn anonymous(bytes: usize) -> Result<Self> {
        Self::map(-1, bytes, READ_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, 0)
    }

    /// Maps a descriptor from that offset on. `flags`: beside `MAP_SHARED`.
    pub(crate) fn of_fd(
        fd: impl AsFd,
        bytes: usize,
        access: libc::c_int,
        flags: libc::c_int,
        offset: i64,
    ) -> Result<Self> {
        Self::map(fd.as_fd().as_raw_fd(), bytes, access, libc::MAP_SHARED | flags, offset)
    }

    fn map(fd: libc::c_int, bytes: usize, access: libc::c_int, flags: libc::c_int, offset: i64) -> Result<Self> {
        // SAFETY: a new mapping at an address of the kernel's choice touches no other memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), bytes, access, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(Error::last("map", format!("{bytes} bytes of memory")));
        }
        Ok(Self { start: start.cast(), bytes })
    }

    /// The number of bytes.
    pub(crate) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address of an offset.
    ///
    /// # Panics
    /// The offset is outside the mapping: a caller's mistake, which must not access other memory.
    pub(crate) fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset < self.bytes, "offset {offset} is beyond a mapping of {} bytes", self.bytes);
        // SAFETY: the offset lies inside the mapping.
        unsafe { self.start.add(offset) }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours, and nothing that it gave out outlives the value.
        unsafe { libc::munmap(self.start.cast(), self.bytes) };
    }
}
