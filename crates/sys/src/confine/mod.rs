//! Takes privileges from this process for good: its user, its capabilities ([`user`], [`capabilities`]), the files that it reaches
//! ([`files`]) and the system calls that it may make ([`calls`]).
//!
//! All of it binds the calling thread and those that it starts, so it is done while there is one thread ([`is_single`]).

pub mod calls;
pub mod capabilities;
pub mod files;
pub mod user;

use crate::error::check;
use crate::{Result, files as text};
use std::path::Path;

/// Whether the calling thread is the only one of this process (`/proc/self/status`, as far as there is one).
pub fn is_single() -> bool {
    status("Threads").is_none_or(|threads| threads == "1")
}

/// A field of `/proc/self/status`.
fn status(field: &str) -> Option<String> {
    let status = text::read_text(Path::new("/proc/self/status")).ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix(field)?.strip_prefix(':')?.trim().to_owned()))
}

/// Lets no program that this process starts gain privileges (`PR_SET_NO_NEW_PRIVS`).
pub fn no_new_privileges() -> Result<()> {
    // SAFETY: prctl with plain numbers.
    let set = unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1_u64, 0_u64, 0_u64, 0_u64) };
    check(set, "renounce", "new privileges").map(drop)
}

/// Limits that an ordinary user gets beforehand, so that it measures as root does: real-time priority 1, nice -10, locked memory
/// (pages that are sent by reference); and no core dumps, which would hold keys. What cannot be raised stays.
pub fn set_limits() {
    let all = libc::RLIM_INFINITY;
    // A nice value of 20 - n (getrlimit(2)).
    let limits =
        [(libc::RLIMIT_RTPRIO, 1), (libc::RLIMIT_NICE, 30), (libc::RLIMIT_MEMLOCK, all), (libc::RLIMIT_CORE, 0)];
    for (resource, value) in limits {
        let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
        // SAFETY: the structure is valid for reading.
        unsafe { libc::setrlimit(resource, &raw const limit) };
    }
}

/// Leaves the signals that end a process to another one of its group: they do nothing here.
pub fn ignore_ends() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: to ignore a signal runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}
