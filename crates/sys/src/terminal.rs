//! Keys of the terminal on standard input, one at a time and without an echo.

use std::mem::MaybeUninit;
use std::os::fd::AsRawFd as _;

/// The terminal as it was, and reads of single keys until this is dropped. Ctrl-C and Ctrl-Z keep their meaning.
pub struct Keys {
    before: libc::termios,
}

impl Keys {
    /// `None` where standard input is no terminal, or this process is in its background.
    #[must_use]
    pub fn open() -> Option<Self> {
        let fd = std::io::stdin().as_raw_fd();
        // SAFETY: neither call takes a pointer. A process of the background would be stopped when it changes the terminal.
        if unsafe { libc::tcgetpgrp(fd) != libc::getpgrp() } {
            return None;
        }
        let mut before = MaybeUninit::<libc::termios>::uninit();
        // SAFETY: the pointer is to a termios, which the call fills where it succeeds.
        if unsafe { libc::tcgetattr(fd, before.as_mut_ptr()) } != 0 {
            return None;
        }
        // SAFETY: it was filled.
        let before = unsafe { before.assume_init() };
        let mut single = before;
        single.c_lflag &= !(libc::ICANON | libc::ECHO);
        // A read returns at once, with nothing where no key was pressed.
        single.c_cc[libc::VMIN] = 0;
        single.c_cc[libc::VTIME] = 0;
        // SAFETY: the pointer is to a termios that outlives the call.
        (unsafe { libc::tcsetattr(fd, libc::TCSANOW, &raw const single) } == 0).then_some(Self { before })
    }

    /// The next key that was pressed; `None` where none was.
    #[must_use]
    pub fn next(&self) -> Option<u8> {
        let mut key = 0_u8;
        // SAFETY: the pointer is to one byte, and one byte at most is written.
        let read = unsafe { libc::read(std::io::stdin().as_raw_fd(), (&raw mut key).cast(), 1) };
        (read == 1).then_some(key)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        // SAFETY: the pointer is to a termios that outlives the call.
        unsafe { libc::tcsetattr(std::io::stdin().as_raw_fd(), libc::TCSANOW, &raw const self.before) };
    }
}
