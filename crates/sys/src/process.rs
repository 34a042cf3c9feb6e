//! Processes: what this one is, and others that end with it.

use crate::{Error, Result};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// A command whose process gets `SIGKILL` when the thread that started it dies (`PR_SET_PDEATHSIG`), so that nothing is left behind.
///
/// The signal is bound to the *thread*: start such a process from a thread that lives as long as it should.
#[must_use]
pub fn bound_command(program: &str) -> Command {
    let mut command = Command::new(program);
    // SAFETY: the closure calls only prctl, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            if libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    command
}

/// A command whose process lives on by itself.
#[must_use]
pub fn free_command(program: &str) -> Command {
    Command::new(program)
}

/// Whether the effective user is root (of its user namespace).
#[must_use]
pub fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Sends a signal to a process by its id.
///
/// # Errors
/// The id and what the kernel said.
pub fn signal(pid: u32, signal: i32) -> Result<()> {
    let id = libc::pid_t::try_from(pid)
        .map_err(|_| Error::new("signal process", pid.to_string(), std::io::Error::from_raw_os_error(libc::ESRCH)))?;
    // SAFETY: kill takes plain numbers.
    crate::error::check(unsafe { libc::kill(id, signal) }, "signal process", pid.to_string())?;
    Ok(())
}
