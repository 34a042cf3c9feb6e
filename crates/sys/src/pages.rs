//! Pages of a file in memory that can be sent by reference, and the same bytes for copying.

use crate::error::{Error, Result, check};
use crate::raw::owned;
use crate::shared::{READ_WRITE, Shared};
use crate::tcp::moved;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

// include/uapi/asm-generic/mman-common.h, Linux 6.1
const MADV_COLLAPSE: libc::c_int = 25;
const HUGE_PAGE: usize = 2 << 20;

/// A sealed file in memory (`memfd_create`), also mapped for reading.
///
/// Nothing can change the pages after they were filled, so a packet that still refers to them holds what was sent.
#[derive(Debug)]
pub struct Pages {
    file: File,
    map: Shared,
}

// SAFETY: the mapping is sealed against writing and lives as long as the value: sharing it is sharing a constant.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// `bytes` of memory (rounded up to whole huge pages of 2 MiB), filled by `fill` and sealed.
    /// Errors: the kernel's error: usually no memory.
    pub fn new(bytes: usize, fill: impl FnOnce(&mut [u8])) -> Result<Self> {
        let bytes = bytes.max(1).next_multiple_of(HUGE_PAGE);
        let object = || format!("{bytes} bytes of memory");
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name is a NUL-terminated string.
        let raw = unsafe { libc::memfd_create(c"narrows".as_ptr(), flags) };
        let file = File::from(owned(raw, "make a file of", object())?);
        file.set_len(bytes as u64).map_err(|error| Error::new("make a file of", object(), error))?;

        let writable = Shared::of_fd(&file, bytes, READ_WRITE, 0, 0)?;
        let start = writable.at(0);
        // Huge pages make one fragment of what would be sixteen; a kernel without them for files in memory refuses, which only costs speed.
        // SAFETY: the range is the mapping just made; advice changes no content.
        unsafe { libc::madvise(start.cast(), bytes, libc::MADV_HUGEPAGE) };
        // SAFETY: the mapping has `bytes` bytes, is writable, and nobody else refers to it yet.
        fill(unsafe { std::slice::from_raw_parts_mut(start, bytes) });
        // SAFETY: as for the advice above.
        unsafe { libc::madvise(start.cast(), bytes, MADV_COLLAPSE) };
        drop(writable);

        let seals = libc::F_SEAL_WRITE | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
        // SAFETY: F_ADD_SEALS takes plain numbers.
        check(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) }, "seal", object())?;
        let map = Shared::of_fd(&file, bytes, libc::PROT_READ, 0, 0)?;
        Ok(Self { file, map })
    }

    /// The bytes themselves.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping has `bytes` bytes, lives as long as `self`, and its file is sealed against writing and shrinking.
        unsafe { std::slice::from_raw_parts(self.map.at(0), self.map.bytes()) }
    }

    /// Sends `count` bytes from `offset` on by reference (`sendfile`). Returns how many the socket accepted.
    /// Errors: the kernel's error; `WouldBlock` after the socket's call limit. A lost peer also raises `SIGPIPE`, which
    /// Rust's runtime ignores.
    #[inline]
    pub fn send(&self, socket: BorrowedFd<'_>, offset: usize, count: usize) -> io::Result<usize> {
        let mut position = offset as libc::off_t;
        // SAFETY: both descriptors are open; `position` is ours.
        moved(unsafe { libc::sendfile(socket.as_raw_fd(), self.file.as_raw_fd(), &raw mut position, count) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::os::fd::AsFd as _;

    #[test]
    fn sent_bytes_are_the_filled_ones() {
        let pages = Pages::new(5000, |bytes| {
            for (index, byte) in bytes.iter_mut().enumerate() {
                *byte = (index % 251) as u8;
            }
        })
        .unwrap();
        assert_eq!(pages.bytes().len(), HUGE_PAGE);

        let listener = crate::net::listen(0).unwrap();
        let port = listener.local_addr().unwrap().port();
        let stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        assert_eq!(pages.send(stream.as_fd(), 4090, 300).unwrap(), 300);
        let mut got = [0; 300];
        let mut filled = 0;
        while filled < got.len() {
            filled += crate::tcp::receive(accepted.as_fd(), &mut got[filled..]).unwrap();
        }
        assert_eq!(got, pages.bytes()[4090..4390]);
    }

    #[test]
    fn the_pages_are_sealed() {
        let pages = Pages::new(1, |bytes| bytes.fill(7)).unwrap();
        let error = (&pages.file).write(b"x").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
        assert!(pages.bytes().iter().all(|&byte| byte == 7));
    }
}
