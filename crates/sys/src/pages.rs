//! Pages of a file in memory that are sent by reference.

use crate::error::{Error, Result, check};
use crate::raw::owned;
use crate::shared::{READ_WRITE, Shared};
use crate::tcp::moved;
use std::fs::File;
use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd as _, BorrowedFd};

// include/uapi/asm-generic/mman-common.h, Linux 6.1
const MADV_COLLAPSE: libc::c_int = 25;
const HUGE_PAGE: usize = 2 << 20;
/// What a pipe may hold of every user's (`fs.pipe-max-size`, pipe(7)).
const PIPE_BYTES: libc::c_int = 1 << 20;
/// Through less, copying is faster.
const LEAST_BYTES: usize = 64 << 10;
/// What passes at a time on a slow path: the kernel waits as long as a call may wait for each 16 pages.
const SLOW_BYTES: usize = 64 << 10;

/// A sealed file in memory (`memfd_create`).
///
/// Nothing can change the pages after they were filled, so a packet that still refers to them holds what was sent.
#[derive(Debug)]
pub struct Pages {
    file: File,
    bytes: usize,
}

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
        Ok(Self { file, bytes })
    }

    /// What sends the first of these pages, again and again, to one socket. Errors: the kernel's error: usually too many files.
    pub fn passing(&self) -> io::Result<Passing> {
        let (from, to) = (wide_pipe()?, wide_pipe()?);
        let room = room(&from.1)?.min(room(&to.1)?);
        let (file, pipe, mut offset, mut held) = (self.file.as_raw_fd(), from.1.as_raw_fd(), 0, 0);
        while held < room.min(self.bytes) {
            // SAFETY: both descriptors are open; `offset` is ours, and a pipe has none.
            match moved(unsafe { libc::splice(file, &raw mut offset, pipe, std::ptr::null_mut(), room - held, 0) })? {
                0 => break,
                some => held += some,
            }
        }
        if held < LEAST_BYTES {
            return Err(io::Error::other("this user has too many pipes (fs.pipe-user-pages-soft)"));
        }
        Ok(Passing { from, to, held, left: 0, is_slow: true })
    }
}

/// The bytes that a pipe holds.
fn room(pipe: &PipeWriter) -> io::Result<usize> {
    // SAFETY: F_GETPIPE_SZ takes nothing.
    moved(unsafe { libc::fcntl(pipe.as_raw_fd(), libc::F_GETPIPE_SZ) } as libc::ssize_t)
}

/// A pipe that holds as much as this user's may.
fn wide_pipe() -> io::Result<(PipeReader, PipeWriter)> {
    let pipe = io::pipe()?;
    // A user of many pipes gets narrow ones.
    // SAFETY: F_SETPIPE_SZ takes a plain number.
    unsafe { libc::fcntl(pipe.1.as_raw_fd(), libc::F_SETPIPE_SZ, PIPE_BYTES) };
    Ok(pipe)
}

/// Pages on their way to a socket: one pipe keeps referring to them, a second one takes copies of these references (tee(2)), which go on
/// to the socket (splice(2)). `sendfile` passes 16 pages at a time, this 256: measured on veth with Linux 6.18 on one core, 86 Gbit/s
/// instead of 44.
#[derive(Debug)]
pub struct Passing {
    from: (PipeReader, PipeWriter),
    to: (PipeReader, PipeWriter),
    held: usize,
    /// What the second pipe still has.
    left: usize,
    /// Whether the socket did not take all of the last call.
    is_slow: bool,
}

impl Passing {
    /// Sends at most `count` bytes. Returns how many the socket accepted: what it did not accept is the beginning of the next call.
    /// Errors: the kernel's error; `WouldBlock` after the socket's call limit. A lost peer also raises `SIGPIPE`, which
    /// Rust's runtime ignores.
    #[inline]
    pub fn send(&mut self, socket: BorrowedFd<'_>, count: usize) -> io::Result<usize> {
        if self.left == 0 {
            self.refer(count)?;
        }
        let (from, to) = (self.to.0.as_raw_fd(), socket.as_raw_fd());
        let most = if self.is_slow { SLOW_BYTES } else { usize::MAX };
        let (no_offset, count) = (std::ptr::null_mut(), self.left.min(count).min(most));
        self.is_slow = true;
        // SAFETY: both descriptors are open; offsets are of files alone.
        let sent = moved(unsafe { libc::splice(from, no_offset, to, no_offset, count, 0) })?;
        self.is_slow = sent < count;
        self.left -= sent;
        Ok(sent)
    }

    /// The second pipe, which is empty, refers to the first `count` bytes as well.
    fn refer(&mut self, count: usize) -> io::Result<()> {
        // SAFETY: both pipes are open, and a call from a full one to an empty one does not wait.
        self.left =
            moved(unsafe { libc::tee(self.from.0.as_raw_fd(), self.to.1.as_raw_fd(), count.min(self.held), 0) })?;
        Ok(())
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
        assert_eq!(pages.bytes, HUGE_PAGE);

        let listener = crate::net::listen(0).unwrap();
        let port = listener.local_addr().unwrap().port();
        let stream = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let mut passing = pages.passing().unwrap();
        assert_eq!(
            [passing.send(stream.as_fd(), 4090).unwrap(), passing.send(stream.as_fd(), 10).unwrap()],
            [4090, 10]
        );
        // What a call before this one left comes first.
        passing.refer(300).unwrap();
        assert_eq!(passing.send(stream.as_fd(), 100).unwrap(), 100);
        assert_eq!((passing.left, passing.send(stream.as_fd(), 5000).unwrap(), passing.left), (200, 200, 0));
        let mut got = [0; 4400];
        let mut filled = 0;
        while filled < got.len() {
            filled += crate::tcp::receive(accepted.as_fd(), &mut got[filled..]).unwrap();
        }
        let sent: Vec<u8> =
            [4090, 10, 300].iter().flat_map(|count| (0..*count).map(|index| (index % 251) as u8)).collect();
        assert_eq!(got[..], sent);
    }

    #[test]
    fn the_pages_are_sealed() {
        let pages = Pages::new(1, |bytes| bytes.fill(7)).unwrap();
        let error = (&pages.file).write(b"x").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::EPERM));
    }
}
