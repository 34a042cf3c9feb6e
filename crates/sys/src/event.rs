//! Waiting: an event that wakes a thread, and a wait for several descriptors with nanosecond resolution.

use crate::{Error, Result};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};
use std::time::Duration;

/// A descriptor that becomes readable after [`Event::signal`] (eventfd).
#[derive(Debug)]
pub struct Event(OwnedFd);

impl Event {
    /// A new event, not signalled.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn new() -> Result<Self> {
        // SAFETY: eventfd takes plain numbers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        crate::error::check(fd, "make", "an event")?;
        // SAFETY: the descriptor was just made and nobody else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Wakes all waiters.
    pub fn signal(&self) {
        let one = 1_u64;
        // SAFETY: eight bytes that live through the call. It fails only where the count is full, and then it is signalled.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

    /// Clears the signal.
    pub fn clear(&self) {
        let mut count = 0_u64;
        // SAFETY: eight bytes that live through the call. It fails only where nothing was signalled.
        unsafe { libc::read(self.0.as_raw_fd(), (&raw mut count).cast(), 8) };
    }
}

impl AsFd for Event {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Waits until one of two descriptors is readable or the time is over (`None`: no limit); returns which ones are
/// readable.
///
/// # Errors
/// The kernel's error; an interrupted wait is `[false, false]`.
pub fn wait_readable(descriptors: [BorrowedFd<'_>; 2], time: Option<Duration>) -> Result<[bool; 2]> {
    let mut polls = descriptors.map(|fd| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 });
    let limit = time.map(|time| libc::timespec {
        tv_sec: libc::time_t::try_from(time.as_secs()).unwrap_or(libc::time_t::MAX),
        tv_nsec: libc::c_long::from(time.subsec_nanos()),
    });
    let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: two pollfd and a timespec that live through the call; no signal mask.
    let ready = unsafe { libc::ppoll(polls.as_mut_ptr(), 2, limit, std::ptr::null()) };
    if ready < 0 {
        let error = io::Error::last_os_error();
        if error.kind() == io::ErrorKind::Interrupted {
            return Ok([false, false]);
        }
        return Err(Error::new("wait for", "descriptors", error));
    }
    Ok(polls.map(|poll| poll.revents != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_signalled_until_cleared() {
        let (first, second) = (Event::new().expect("an event"), Event::new().expect("an event"));
        let ready = || wait_readable([first.as_fd(), second.as_fd()], Some(Duration::ZERO)).expect("a wait");
        assert_eq!(ready(), [false, false]);
        second.signal();
        second.signal();
        assert_eq!(ready(), [false, true]);
        second.clear();
        assert_eq!(ready(), [false, false]);
    }
}
