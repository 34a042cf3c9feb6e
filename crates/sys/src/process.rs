//! Properties of this process, and child processes that end with it.

use crate::{Error, Result};
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A command whose process gets `SIGKILL` when the thread that started it ends (`PR_SET_PDEATHSIG`), so that no process
/// is left behind.
///
/// The signal is bound to the *thread*: start such a process from a thread that lives long enough.
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

/// Names that processes of this network namespace have taken with [`mark`].
pub fn marks() -> Vec<String> {
    let all = crate::files::read_text(Path::new("/proc/net/unix")).unwrap_or_default();
    all.lines().filter_map(|line| line.split_whitespace().last()?.strip_prefix('@')).map(str::to_owned).collect()
}

/// Takes a name, as long as what is returned lives; `None`: another process has it.
pub fn mark(name: &str) -> Option<UnixDatagram> {
    let address = SocketAddr::from_abstract_name(name).ok()?;
    UnixDatagram::bind_addr(&address).ok()
}

/// A command whose process is interrupted (`SIGINT`), not killed, when the thread that started it ends, so that it can keep what it measured
/// and undo what it changed. It has a session of its own: nothing that it starts can ask at this program's terminal.
pub fn parting_command(program: &str) -> Command {
    let mut command = Command::new(program);
    // SAFETY: the closure calls only prctl and setsid, which are async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            if libc::setsid() < 0 || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGINT) < 0 {
                return Err(std::io::Error::last_os_error());
            }
            Ok(())
        });
    }
    command
}

/// As [`bound_command`], for ssh, whose configuration can send variables of the environment and start programs: without the secrets that
/// are meant for narrows.
pub fn ssh_command(program: &str) -> Command {
    let mut command = bound_command(program);
    command.env_remove("NARROWS_TOKEN").env_remove("NARROWS_STORE");
    command
}

/// A command whose process outlives this one. It takes no descriptors along but the standard streams: a pipe or a lock of the caller's
/// shell would stay open as long as it lives. Linux before 5.11 leaves them open.
pub fn free_command(program: &str) -> Command {
    let mut command = Command::new(program);
    // SAFETY: the closure makes only a system call with plain numbers, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
            Ok(())
        });
    }
    command
}

/// This host's own name, of the calling thread's UTS namespace (`/proc/sys/kernel/hostname`).
pub fn host_name() -> String {
    let path = std::path::Path::new("/proc/sys/kernel/hostname");
    crate::files::read_text(path).map_or_else(|_| "localhost".to_owned(), |name| name.trim().to_owned())
}

/// A mark of the running kernel, another one after each start (`/proc/sys/kernel/random/boot_id`).
pub fn boot_id() -> Option<String> {
    let read = crate::files::read_text(std::path::Path::new("/proc/sys/kernel/random/boot_id"));
    read.ok().map(|text| text.trim().to_owned())
}

/// Whether the effective user is root (of its user namespace).
pub fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Whether the effective user is root of the machine itself: of the first user namespace (`/proc/self/uid_map`).
pub fn is_root_of_machine() -> bool {
    let map = crate::files::read_text(Path::new("/proc/self/uid_map")).unwrap_or_default();
    is_root() && map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// Raises the limit of open files to the user's maximum (`RLIMIT_NOFILE`); returns it.
pub fn raise_open_files() -> Result<u64> {
    let object = "the limit of open files";
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is valid for writing.
    let got = unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    crate::error::check(got, "read", object)?;
    if limit.rlim_cur < limit.rlim_max {
        limit.rlim_cur = limit.rlim_max;
        // SAFETY: the structure is valid for reading.
        let set = unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) };
        crate::error::check(set, "raise", object)?;
    }
    Ok(limit.rlim_cur)
}

/// The id of the real user.
pub fn user_id() -> u32 {
    // SAFETY: getuid has no preconditions and cannot fail.
    unsafe { libc::getuid() }
}

/// Sends a signal to a process by its id.
/// Errors: the id and the kernel's error.
pub fn signal(pid: u32, signal: i32) -> Result<()> {
    let id = libc::pid_t::try_from(pid)
        .map_err(|_| Error::new("signal process", pid.to_string(), std::io::Error::from_raw_os_error(libc::ESRCH)))?;
    // SAFETY: kill takes plain numbers.
    crate::error::check(unsafe { libc::kill(id, signal) }, "signal process", pid.to_string()).map(drop)
}

/// Ends a process group with SIGKILL: a process that leads one, and its children. One that has ended is no error.
pub fn kill_group(leader: u32) {
    if let Ok(id @ 2..) = libc::pid_t::try_from(leader) {
        // SAFETY: kill takes plain numbers.
        unsafe { libc::kill(-id, libc::SIGKILL) };
    }
}

/// When a process started, in clock ticks since boot: with the id it identifies a process uniquely. `None`: it has
/// ended.
pub fn start_time(pid: u32) -> Option<u64> {
    let text = crate::files::read_text(Path::new(&format!("/proc/{pid}/stat"))).ok()?;
    // The name may contain blanks and brackets; the fields after the last one are plain (proc_pid_stat(5), field
    // 22).
    let after = text.rsplit_once(')')?.1;
    let mut fields = after.split_whitespace();
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    fields.nth(18)?.parse().ok()
}

/// Waits until a process has ended, whoever its parent is; returns whether it has within the time.
pub fn wait_gone(pid: u32, time: Duration) -> Result<bool> {
    // SAFETY: pidfd_open takes plain numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::c_long::from(pid), 0) };
    let Ok(fd) = libc::c_int::try_from(fd) else { return Ok(false) };
    if fd < 0 {
        let error = std::io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ESRCH) => Ok(true),
            _ => Err(Error::new("watch process", pid.to_string(), error)),
        };
    }
    // SAFETY: the descriptor was just made and nobody else owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let [ended, _] = crate::event::wait_readable([fd.as_fd(), fd.as_fd()], Some(time))?;
    Ok(ended)
}

/// Makes this process a session leader: a terminal that closes does not end it.
/// Errors: it already leads a process group.
pub fn new_session() -> Result<()> {
    // SAFETY: setsid has no preconditions.
    crate::error::check(unsafe { libc::setsid() }, "begin", "a session").map(drop)
}

/// Redirects standard input, output and error to `/dev/null`: their readers see the end of file.
pub fn detach_standard_streams() -> Result<()> {
    let open = std::fs::OpenOptions::new().read(true).write(true).open("/dev/null");
    let null = open.map_err(|error| Error::new("open", "/dev/null", error))?;
    for stream in 0..3 {
        // SAFETY: dup2 takes plain numbers; the standard streams are owned by nobody in particular.
        crate::error::check(unsafe { libc::dup2(null.as_raw_fd(), stream) }, "detach", "the standard streams")?;
    }
    Ok(())
}

/// The number of cores that this process may run on; at least 1.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The program that runs in this process.
pub fn own_program() -> Result<std::path::PathBuf> {
    // Not the name it was called by: the same file, even if it was replaced meanwhile.
    std::env::current_exe().map_err(|error| Error::new("find", "the own program", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ssh_gets_no_secrets_of_narrows() {
        let command = ssh_command("ssh");
        let removed: Vec<_> = command.get_envs().filter_map(|(name, value)| value.is_none().then_some(name)).collect();
        assert_eq!(removed, ["NARROWS_STORE", "NARROWS_TOKEN"]);
    }

    #[test]
    fn a_process_that_outlives_this_one_takes_no_descriptors_along() {
        let (open, _reader) = std::os::unix::net::UnixStream::pair().expect("a pair");
        // As a shell opens them: without close-on-exec.
        // SAFETY: dup takes a plain number; the new descriptor is ours.
        let open = unsafe { OwnedFd::from_raw_fd(libc::dup(open.as_raw_fd())) };
        let seen = |command: &mut Command| {
            let path = format!("/proc/self/fd/{}", open.as_raw_fd());
            command.args(["-e", &path]).status().expect("test is everywhere").success()
        };
        assert!(seen(&mut Command::new("test")) && !seen(&mut free_command("test")));
    }

    #[test]
    fn a_process_is_there_until_it_has_ended() {
        let mut child = bound_command("sleep").arg("60").spawn().expect("sleep is everywhere");
        let pid = child.id();
        assert!(start_time(pid).is_some());
        assert!(!wait_gone(pid, Duration::from_millis(1)).expect("a wait"));
        signal(pid, libc::SIGKILL).expect("it is ours");
        assert!(wait_gone(pid, Duration::from_secs(5)).expect("a wait"));
        assert_eq!(start_time(pid), None, "a zombie is gone");
        child.wait().expect("it is ours");
        assert!(wait_gone(pid, Duration::ZERO).expect("a wait"));
    }
}
