//! A pseudo-terminal: a program is run on it as its user would run it in a terminal (`pty(7)`).

use crate::error::check;
use crate::{Error, Result};
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::time::Duration;

/// The side of the user: screen and keyboard.
pub struct Pty {
    user: File,
    program: OwnedFd,
}

impl Pty {
    /// A terminal of this size.
    pub fn open(columns: u16, rows: u16) -> Result<Self> {
        let (mut user, mut program) = (-1, -1);
        let none = std::ptr::null_mut();
        // SAFETY: two pointers to integers, and null where the defaults are wanted.
        let made = unsafe { libc::openpty(&raw mut user, &raw mut program, none, none.cast(), none.cast()) };
        check(made, "open", "a pseudo-terminal")?;
        // SAFETY: both are new descriptors that nobody else has.
        let pty = unsafe { Self { user: File::from_raw_fd(user), program: OwnedFd::from_raw_fd(program) } };
        for fd in [user, program] {
            // SAFETY: no pointers.
            check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }, "set FD_CLOEXEC of", "a terminal")?;
        }
        pty.resize(columns, rows)?;
        Ok(pty)
    }

    /// Changes the size; the program in the foreground gets `SIGWINCH`.
    pub fn resize(&self, columns: u16, rows: u16) -> Result<()> {
        let size = libc::winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the pointer is to a winsize that outlives the call.
        let result = unsafe { libc::ioctl(self.user.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) };
        check(result, "resize", "a terminal")?;
        Ok(())
    }

    /// Makes this the controlling terminal of a new session with the command, and its standard input, output and error.
    pub fn apply(&self, command: &mut Command) -> Result<()> {
        let stdio = || self.program.try_clone().map_err(|error| Error::new("copy", "a terminal", error));
        command.stdin(stdio()?).stdout(stdio()?).stderr(stdio()?);
        // SAFETY: setsid and ioctl are async-signal-safe; standard input is the terminal by then.
        unsafe {
            command.pre_exec(|| {
                if libc::setsid() < 0 || libc::ioctl(0, libc::TIOCSCTTY, 0) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                Ok(())
            });
        }
        Ok(())
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) -> Result<()> {
        self.user.write_all(keys.as_bytes()).map_err(|error| Error::new("write to", "a terminal", error))
    }

    /// What the program wrote, waiting so long at most; nothing where it wrote nothing.
    pub fn read(&mut self, wait: Duration) -> Result<Vec<u8>> {
        let mut poll = libc::pollfd { fd: self.user.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let ms = i32::try_from(wait.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the pointer is to one pollfd.
        if check(unsafe { libc::poll(&raw mut poll, 1, ms) }, "poll", "a terminal")? == 0 {
            return Ok(Vec::new());
        }
        let mut bytes = vec![0; 1 << 16];
        let read = self.user.read(&mut bytes).map_err(|error| Error::new("read", "a terminal", error))?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Whether lines are edited and echoed, as they are unless a program asks for single keys.
    pub fn edits_lines(&self) -> Result<bool> {
        // SAFETY: a termios is plain integers, and the call fills it.
        let mut modes: libc::termios = unsafe { std::mem::zeroed() };
        // SAFETY: the pointer is to a termios.
        let result = unsafe { libc::tcgetattr(self.program.as_raw_fd(), &raw mut modes) };
        check(result, "read", "the modes of a terminal")?;
        Ok(modes.c_lflag & (libc::ICANON | libc::ECHO) == libc::ICANON | libc::ECHO)
    }
}
