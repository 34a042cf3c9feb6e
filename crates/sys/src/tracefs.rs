//! The files that describe the kernel's tracepoints (`tracefs`), from the usual mount point, otherwise from a detached mount:
//! it is not visible in the file system, and ends with its descriptor.
//!
//! Source: kernel `Documentation/trace/ftrace.rst`; fsopen(2), fsmount(2) (Linux 5.2).

use crate::error::check;
use crate::raw::owned;
use crate::{Error, Result, files};
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;

/// Where tracefs is mounted on most hosts.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// Above the length of the longest description of a tracepoint.
const LIMIT: u64 = 1 << 20;

#[derive(Debug)]
pub struct Tracefs(Root);

#[derive(Debug)]
enum Root {
    Mounted(&'static str),
    Detached(OwnedFd),
}

impl Tracefs {
    /// The mounted one, otherwise a detached mount.
    /// Errors: it is not mounted, and this process may not mount it, or the kernel has none.
    pub fn open() -> Result<Self> {
        let mounted = PLACES.into_iter().find(|place| files::exists(&Path::new(place).join("events")));
        match mounted {
            Some(place) => Ok(Self(Root::Mounted(place))),
            None => Self::detached(),
        }
    }

    /// A detached mount.
    /// Errors: no privilege, or a kernel without tracefs or before 5.2.
    pub fn detached() -> Result<Self> {
        let descriptor = |result: libc::c_long, operation| -> Result<OwnedFd> {
            owned(libc::c_int::try_from(result).unwrap_or(-1), operation, "tracefs")
        };
        // SAFETY: the name ends in zero and lives through the call; the flags are plain numbers.
        let context = unsafe { libc::syscall(libc::SYS_fsopen, c"tracefs".as_ptr(), libc::FSOPEN_CLOEXEC) };
        let context = descriptor(context, "open the file system")?;
        let (create, none) = (libc::FSCONFIG_CMD_CREATE, std::ptr::null::<libc::c_void>());
        // SAFETY: this command takes no key and no value.
        let made = unsafe { libc::syscall(libc::SYS_fsconfig, context.as_raw_fd(), create, none, none, 0_i64) };
        check(libc::c_int::try_from(made).unwrap_or(-1), "make", "a view of tracefs")?;
        // SAFETY: plain numbers; the descriptor is open.
        let mount = unsafe { libc::syscall(libc::SYS_fsmount, context.as_raw_fd(), libc::FSMOUNT_CLOEXEC, 0_i64) };
        Ok(Self(Root::Detached(descriptor(mount, "mount")?)))
    }

    /// The text of a file below the root, as `events/skb/kfree_skb/format`.
    /// Errors: the file cannot be read or is larger than 1 MiB.
    pub fn read(&self, path: &str) -> Result<String> {
        let bytes = match &self.0 {
            Root::Mounted(place) => files::read(&Path::new(place).join(path), LIMIT)?,
            Root::Detached(root) => {
                let shown = || format!("tracefs {path}");
                let name = CString::new(path).map_err(|error| Error::new("open", shown(), io::Error::other(error)))?;
                // SAFETY: the name ends in zero and lives through the call; the descriptor is open.
                let fd = unsafe { libc::openat(root.as_raw_fd(), name.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
                let file = File::from(owned(fd, "open", shown())?);
                let mut bytes = Vec::new();
                file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(|error| Error::new("read", shown(), error))?;
                if bytes.len() as u64 > LIMIT {
                    return Err(Error::new("read", shown(), io::Error::other("it is larger than 1 MiB")));
                }
                bytes
            }
        };
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detached_mount_shows_what_a_mounted_one_would() {
        let tracefs = match Tracefs::detached() {
            Ok(tracefs) => tracefs,
            Err(error) => return println!("NOT CHECKED: a detached tracefs, since {error}"),
        };
        let format = tracefs.read("events/skb/kfree_skb/format").expect("a kernel with a network");
        assert!(format.starts_with("name: kfree_skb\nID: "), "{format}");
        assert!(tracefs.read("events/no/such/format").is_err());
        assert!(tracefs.read("a\0b").is_err());
    }
}
