//! Namespaces held by descriptors only: they have no name on disk, so they end with the last process that holds them.
//!
//! A host of the lab lives in a [`Namespaces`]: a network, a host name (UTS) and a view of the mounts (so that `/sys` shows
//! the devices of its network). Source: namespaces(7), setns(2), unshare(2).

use crate::error::check;
use crate::{Error, Result};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// Descriptors of the namespaces that a thread can enter.
#[derive(Debug)]
pub struct Namespaces {
    network: OwnedFd,
    uts: OwnedFd,
    mount: OwnedFd,
}

/// The kinds in the order in which they are entered, with the names below `/proc/PID/ns`.
const KINDS: [(&str, libc::c_int); 3] =
    [("net", libc::CLONE_NEWNET), ("uts", libc::CLONE_NEWUTS), ("mnt", libc::CLONE_NEWNS)];

fn of_this_thread(kind: &str) -> Result<OwnedFd> {
    let path = format!("/proc/thread-self/ns/{kind}");
    File::open(&path).map(OwnedFd::from).map_err(|error| Error::new("open", path, error))
}

/// The namespaces of the calling thread.
pub fn network_of_this_thread() -> Result<OwnedFd> {
    of_this_thread("net")
}

impl Namespaces {
    /// Creates new ones, with the given host name, and runs `prepare` inside them on a separate thread.
    ///
    /// Mounts in the new mount namespace are not visible outside (`MS_PRIVATE`).
    /// Errors: no privilege, namespaces disabled, or the error of `prepare`.
    pub fn create<T: Send, E: Send + From<Error>>(
        host_name: &str,
        prepare: impl FnOnce() -> std::result::Result<T, E> + Send,
    ) -> std::result::Result<(Self, T), E> {
        on_thread(|| {
            let flags = libc::CLONE_NEWNET | libc::CLONE_NEWUTS | libc::CLONE_NEWNS;
            // SAFETY: unshare takes a plain number and here affects only this thread, which ends after this closure.
            check(unsafe { libc::unshare(flags) }, "make", format!("the namespaces of {host_name}"))?;
            // SAFETY: sethostname reads the bytes within the length given.
            let named = unsafe { libc::sethostname(host_name.as_ptr().cast(), host_name.len()) };
            check(named, "set host name", host_name)?;
            crate::mount::make_private()?;
            let value = prepare()?;
            let namespaces =
                Self { network: of_this_thread("net")?, uts: of_this_thread("uts")?, mount: of_this_thread("mnt")? };
            Ok((namespaces, value))
        })
    }

    /// Opens those of another process that holds them as descriptors `fds` (network, UTS, mount).
    /// Errors: the process has ended, or belongs to another user.
    pub fn of_holder(pid: u32, fds: [i32; 3]) -> Result<Self> {
        let open = |fd: i32| {
            let path = format!("/proc/{pid}/fd/{fd}");
            File::open(&path).map(OwnedFd::from).map_err(|error| Error::new("open", path, error))
        };
        Ok(Self { network: open(fds[0])?, uts: open(fds[1])?, mount: open(fds[2])? })
    }

    /// The descriptors in this process: network, UTS, mount.
    pub fn descriptors(&self) -> [i32; 3] {
        [&self.network, &self.uts, &self.mount].map(|fd| fd.as_raw_fd())
    }

    /// The network namespace, to move devices into.
    pub fn network(&self) -> BorrowedFd<'_> {
        self.network.as_fd()
    }

    /// Moves the calling thread into them. The working directory stays, if it still exists.
    pub fn enter(&self) -> Result<()> {
        let directory = std::env::current_dir().ok();
        // SAFETY: a plain number; the mount namespace can only be entered by a thread with a file system state of its own.
        check(unsafe { libc::unshare(libc::CLONE_FS) }, "part", "the file system state of the thread")?;
        for (fd, (name, kind)) in self.descriptors().into_iter().zip(KINDS) {
            // SAFETY: setns takes plain numbers, and the descriptor is open as long as `self`.
            check(unsafe { libc::setns(fd, kind) }, "enter", format!("the {name} namespace"))?;
        }
        if let Some(directory) = directory {
            // Not an error: the directory may be hidden here.
            let _ = std::env::set_current_dir(directory);
        }
        Ok(())
    }

    /// Runs `work` inside them on a separate thread, and returns its result.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T> {
        on_thread(|| {
            self.enter()?;
            Ok(work())
        })
    }

    /// Makes a command's process enter them before it starts, in the working directory that the command has at this
    /// point. The descriptors must stay open until it has started.
    pub fn apply(&self, command: &mut Command) {
        let fds = self.descriptors();
        let directory = command.get_current_dir().map(std::path::Path::to_path_buf);
        let directory = directory.or_else(|| std::env::current_dir().ok());
        let directory = directory.and_then(|path| CString::new(path.into_os_string().into_vec()).ok());
        // SAFETY: the closure calls only unshare, setns and chdir, which are async-signal-safe, on values made before the fork.
        unsafe {
            command.pre_exec(move || {
                // For a command that replaces this process: entering the mount namespace requires a
                // private file system state.
                if libc::unshare(libc::CLONE_FS) < 0 {
                    return Err(std::io::Error::last_os_error());
                }
                for (fd, (_, kind)) in fds.into_iter().zip(KINDS) {
                    if libc::setns(fd, kind) < 0 {
                        return Err(std::io::Error::last_os_error());
                    }
                }
                if let Some(directory) = &directory {
                    // Entering a mount namespace leads to its root. A directory that is hidden there
                    // is not an error.
                    libc::chdir(directory.as_ptr());
                }
                Ok(())
            });
        }
    }
}

/// Runs `work` in the network namespace of another process, on a separate thread.
/// Errors: no privilege, the process has ended, or the error of `work`.
pub fn in_network_of<T: Send, E: Send + From<Error>>(
    pid: u32,
    work: impl FnOnce() -> std::result::Result<T, E> + Send,
) -> std::result::Result<T, E> {
    in_network_at(&format!("/proc/{pid}/ns/net"), work)
}

/// Runs `work` in the network namespace of a file (`/proc/PID/ns/net`, `/run/netns/NAME`), on a separate thread.
/// Errors: no privilege, no such network namespace, or the error of `work`.
pub fn in_network_at<T: Send, E: Send + From<Error>>(
    path: &str,
    work: impl FnOnce() -> std::result::Result<T, E> + Send,
) -> std::result::Result<T, E> {
    on_thread(|| {
        let file = File::open(path).map_err(|error| Error::new("open", path, error))?;
        // SAFETY: setns takes plain numbers, and the descriptor is open; only this thread changes, and ends after this closure.
        check(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) }, "enter", path)?;
        work()
    })
}

/// Runs on a separate thread, since a thread that changed its namespaces cannot be reused.
fn on_thread<T: Send, E: Send + From<Error>>(
    work: impl FnOnce() -> std::result::Result<T, E> + Send,
) -> std::result::Result<T, E> {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(result) => result,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// Makes the calling process root of a new user namespace, in which it may create namespaces and devices without
/// privilege.
///
/// Only a process with one thread can do that: call it first.
/// Errors: user namespaces are disabled, or the process already has several threads.
pub fn become_root_of_user_namespace() -> Result<()> {
    // SAFETY: getuid and getgid have no preconditions and cannot fail.
    let (user, group) = unsafe { (libc::getuid(), libc::getgid()) };
    // SAFETY: unshare takes a plain number.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }, "make", "a user namespace")?;
    let write = |file: &str, text: String| crate::files::write_kernel(std::path::Path::new(file), &text);
    write("/proc/self/setgroups", "deny".to_owned())?;
    write("/proc/self/uid_map", format!("0 {user} 1"))?;
    write("/proc/self/gid_map", format!("0 {group} 1"))
}

/// Enters the user namespace of another process of the same user. Only for a process with one thread.
/// Errors: the process has ended, or belongs to another user.
pub fn join_user_namespace(pid: u32) -> Result<()> {
    let path = format!("/proc/{pid}/ns/user");
    let same = |a: &str, b: &str| matches!((std::fs::read_link(a), std::fs::read_link(b)), (Ok(a), Ok(b)) if a == b);
    if same(&path, "/proc/self/ns/user") {
        return Ok(());
    }
    let file = File::open(&path).map_err(|error| Error::new("open", path.as_str(), error))?;
    // SAFETY: setns takes plain numbers, and the descriptor is open.
    check(unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWUSER) }, "enter", path).map(drop)
}
