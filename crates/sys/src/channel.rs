//! A pair of connected Unix sockets between two processes of narrows: whole messages, each with at most one descriptor.
//!
//! A message is its length (4 bytes, little endian) and its bytes; the descriptor comes with the length (`SCM_RIGHTS`, unix(7)).

use crate::raw::{control_bytes, set_control};
use crate::{Error, Result, raw};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::Shutdown;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// One end of the pair.
#[derive(Debug)]
pub struct Channel(UnixStream);

/// Room for the control message of one descriptor; the kernel may put two into it.
const CONTROL_BYTES: usize = 24;

fn failed(operation: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| Error::new(operation, "another process of narrows", error)
}

impl Channel {
    /// Both ends.
    pub fn pair() -> Result<(Self, Self)> {
        let (one, other) = UnixStream::pair().map_err(failed("make a channel to"))?;
        Ok((Self(one), Self(other)))
    }

    /// The end that this process got as its standard input.
    /// Errors: the standard input is no Unix socket.
    pub fn of_standard_input() -> Result<Self> {
        let own = io::stdin().as_fd().try_clone_to_owned().map_err(failed("take the channel to"))?;
        let channel = Self::from(own);
        channel.0.peer_addr().map_err(failed("take the channel to"))?;
        Ok(channel)
    }

    /// Limits the time of each wait for a part of a message; `None`: no limit.
    /// Errors: the kernel's error; a limit of zero.
    pub fn set_limit(&self, limit: Option<Duration>) -> Result<()> {
        let set = || self.0.set_read_timeout(limit).and_then(|()| self.0.set_write_timeout(limit));
        set().map_err(failed("limit the wait for"))
    }

    /// Sends a message.
    /// Errors: the other end is closed, or reads nothing within the limit.
    pub fn send(&self, message: &[u8], descriptor: Option<BorrowedFd<'_>>) -> Result<()> {
        let send = || {
            let length = u32::try_from(message.len()).map_err(|_| io::Error::from(ErrorKind::InvalidInput))?;
            self.send_head(length.to_le_bytes(), descriptor)?;
            (&self.0).write_all(message)
        };
        send().map_err(failed("write to"))
    }

    fn send_head(&self, mut head: [u8; 4], descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        let mut part = libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: head.len() };
        // SAFETY: zeroes are a valid empty message.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        // Words, for the alignment of a header.
        let mut control = [0_u64; CONTROL_BYTES / 8];
        if let Some(descriptor) = descriptor {
            set_control(&mut message, control.as_mut_ptr().cast(), CONTROL_BYTES);
            // SAFETY: the buffer has room for a header and one descriptor, and is aligned for it.
            unsafe {
                let header = libc::CMSG_FIRSTHDR(&raw const message);
                (*header).cmsg_level = libc::SOL_SOCKET;
                (*header).cmsg_type = libc::SCM_RIGHTS;
                (*header).cmsg_len = libc::CMSG_LEN(4) as _;
                libc::CMSG_DATA(header).cast::<libc::c_int>().write_unaligned(descriptor.as_raw_fd());
            }
        }
        // SAFETY: everything that the message points to lives through the call.
        match unsafe { libc::sendmsg(self.0.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) } {
            4 => Ok(()),
            0.. => Err(ErrorKind::WriteZero.into()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Receives a message of at most `limit` bytes; `None`: the other end is closed.
    /// Errors: a longer message, one that is cut off, or nothing within the limit of time.
    pub fn receive(&self, limit: usize) -> Result<Option<(Vec<u8>, Option<OwnedFd>)>> {
        self.receive_any(limit).map_err(failed("read from"))
    }

    fn receive_any(&self, limit: usize) -> io::Result<Option<(Vec<u8>, Option<OwnedFd>)>> {
        let mut head = [0; 4];
        let (first, descriptor) = self.receive_head(&mut head)?;
        if first == 0 {
            return Ok(None);
        }
        (&self.0).read_exact(head.get_mut(first..).unwrap_or_default())?;
        let length = u32::from_le_bytes(head) as usize;
        if length > limit {
            return Err(io::Error::other(format!("a message of {length} bytes; the maximum is {limit}")));
        }
        let mut message = Vec::new();
        (&self.0).take(length as u64).read_to_end(&mut message)?;
        if message.len() < length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(Some((message, descriptor)))
    }

    /// Reads what has come of a length, with the first descriptor; further ones are closed.
    fn receive_head(&self, head: &mut [u8; 4]) -> io::Result<(usize, Option<OwnedFd>)> {
        let mut part = libc::iovec { iov_base: head.as_mut_ptr().cast(), iov_len: head.len() };
        let mut control = [0_u64; CONTROL_BYTES / 8];
        // SAFETY: zeroes are a valid empty message.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        set_control(&mut message, control.as_mut_ptr().cast(), CONTROL_BYTES);
        let got = loop {
            // SAFETY: everything that the message points to lives through the call, and has the lengths that it says.
            let got = unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut message, libc::MSG_CMSG_CLOEXEC) };
            match usize::try_from(got) {
                Ok(got) => break got,
                Err(_) => match io::Error::last_os_error() {
                    error if error.kind() == ErrorKind::Interrupted => {}
                    error => return Err(error),
                },
            }
        };
        let mut descriptors = Vec::new();
        if control_bytes(&message) >= size_of::<libc::cmsghdr>() {
            // SAFETY: the kernel wrote a whole header into the buffer, which is long enough for it and aligned; the descriptors behind
            // it lie within the buffer, are new, and nobody else owns them.
            unsafe {
                let header = libc::CMSG_FIRSTHDR(&raw const message);
                if (*header).cmsg_level == libc::SOL_SOCKET && (*header).cmsg_type == libc::SCM_RIGHTS {
                    let bytes = ((*header).cmsg_len as usize).min(CONTROL_BYTES) - libc::CMSG_LEN(0) as usize;
                    for index in 0..bytes / 4 {
                        let fd = libc::CMSG_DATA(header).cast::<libc::c_int>().add(index).read_unaligned();
                        descriptors.push(OwnedFd::from_raw_fd(fd));
                    }
                }
            }
        }
        Ok((got, descriptors.into_iter().next()))
    }

    /// Whether something can be read, or the other end is closed, within the time.
    pub fn is_readable(&self, within: Duration) -> Result<bool> {
        let ready = raw::poll([(self.0.as_fd(), libc::POLLIN)], Some(within)).map_err(failed("wait for"))?;
        Ok(ready != [0])
    }

    /// Closes both directions, also for a thread that waits for a message.
    pub fn close(&self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl From<OwnedFd> for Channel {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor.into())
    }
}

impl From<Channel> for OwnedFd {
    fn from(channel: Channel) -> Self {
        channel.0.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_whole_and_brings_one_descriptor() {
        let (here, there) = Channel::pair().expect("a pair");
        let (far, near) = Channel::pair().expect("a pair");
        here.send(b"take this", Some(far.0.as_fd())).expect("sent");
        drop(far);
        let (message, descriptor) = there.receive(100).expect("a message").expect("not closed");
        assert_eq!(message, b"take this");
        Channel::from(descriptor.expect("a descriptor")).send(b"thanks", None).expect("sent");
        assert_eq!(near.receive(100).expect("a message").expect("not closed").0, b"thanks");
        assert!(near.receive(100).expect("closed").is_none());
        here.send(&[0; 101], None).expect("sent");
        let error = there.receive(100).expect_err("too long").to_string();
        assert!(error.ends_with("a message of 101 bytes; the maximum is 100"), "{error}");
    }

    #[test]
    fn what_is_cut_off_is_an_error_and_takes_no_memory() {
        let (here, there) = Channel::pair().expect("a pair");
        (&here.0).write_all(&[0xff, 0xff, 0xff, 0x7f, 1]).expect("written");
        drop(here);
        assert!(there.receive(usize::MAX).is_err());
        let (here, there) = Channel::pair().expect("a pair");
        (&here.0).write_all(&[1, 0]).expect("written");
        drop(here);
        assert!(there.receive(10).is_err());
    }
}
