//! Waiting: an event that wakes a thread, and a wait for several descriptors with nanosecond resolution.

use crate::raw::{owned, poll};
use crate::{Error, Result};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

/// A descriptor that becomes readable after [`Event::signal`] (eventfd).
#[derive(Debug)]
pub struct Event(OwnedFd);

impl Event {
    /// A new event, not signalled.
    pub fn new() -> Result<Self> {
        // SAFETY: eventfd takes plain numbers.
        owned(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }, "make", "an event").map(Self)
    }

    pub fn signal(&self) {
        let one = 1_u64;
        // SAFETY: eight bytes that live through the call. It fails only where the count is full, and then it is signalled.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }

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
/// Errors: the kernel's error; an interrupted wait is `[false, false]`.
pub fn wait_readable(descriptors: [BorrowedFd<'_>; 2], time: Option<Duration>) -> Result<[bool; 2]> {
    let events = poll(descriptors.map(|fd| (fd, libc::POLLIN)), time);
    events.map(|events| events.map(|events| events != 0)).map_err(|error| Error::new("wait for", "descriptors", error))
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
