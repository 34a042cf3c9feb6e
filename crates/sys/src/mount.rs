//! Mounts inside a private mount namespace. Source: mount(2), mount_namespaces(7).

use crate::error::check;
use crate::{Error, Result};
use std::ffi::CString;
use std::fs::OpenOptions;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

fn text(path: &Path) -> Result<CString> {
    use std::os::unix::ffi::OsStrExt as _;
    CString::new(path.as_os_str().as_bytes())
        .map_err(|error| Error::new("mount", path.display().to_string(), std::io::Error::other(error)))
}

fn mount(source: &Path, target: &Path, kind: &str, flags: libc::c_ulong) -> Result<()> {
    let (from, to, kind) = (text(source)?, text(target)?, text(Path::new(kind))?);
    // SAFETY: the strings end in zero and live through the call; no data is passed.
    let result = unsafe { libc::mount(from.as_ptr(), to.as_ptr(), kind.as_ptr(), flags, std::ptr::null()) };
    check(result, "mount on", target.display().to_string()).map(drop)
}

/// Makes the calling thread's mounts private: they do not propagate to other namespaces.
pub fn make_private() -> Result<()> {
    mount(Path::new("none"), Path::new("/"), "none", libc::MS_REC | libc::MS_SLAVE)
}

/// Mounts a new `/sys` that shows the devices of the calling thread's network namespace. The mounts below the old one
/// at `keep` (such as `fs/cgroup`) are restored.
/// Errors: no privilege; in a user namespace also if the old `/sys` is partly hidden.
pub fn fresh_sysfs(keep: &[&str]) -> Result<()> {
    let sys = Path::new("/sys");
    let kept: Vec<_> = keep
        .iter()
        .filter_map(|name| {
            let place = sys.join(name);
            let open = OpenOptions::new().read(true).custom_flags(libc::O_PATH | libc::O_CLOEXEC).open(&place);
            Some((place, open.ok()?))
        })
        .collect();
    mount(Path::new("sysfs"), sys, "sysfs", libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)?;
    for (place, file) in kept {
        let from = format!("/proc/thread-self/fd/{}", file.as_raw_fd());
        // Not an error: a missing directory shows nothing, and its reader reports that.
        let _ = mount(Path::new(&from), &place, "none", libc::MS_BIND | libc::MS_REC);
    }
    Ok(())
}

/// Covers a directory with an empty one, for the processes of this mount namespace only.
/// Errors: no privilege, or the directory does not exist.
pub fn cover(directory: &Path) -> Result<()> {
    mount(Path::new("tmpfs"), directory, "tmpfs", libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)
}

/// Replaces the content of an existing file, for the processes of this mount namespace only.
/// Errors: no privilege, or the file does not exist.
pub fn replace_file(path: &Path, contents: &[u8]) -> Result<()> {
    // A file to bind must be on a mounted file system: one in memory, mounted briefly where no process of this
    // namespace looks yet, and kept alive by the bind alone.
    let scratch = Path::new("/tmp");
    mount(Path::new("tmpfs"), scratch, "tmpfs", libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)?;
    let file = scratch.join("file");
    let bound = std::fs::write(&file, contents)
        .map_err(|error| Error::new("write", file.display().to_string(), error))
        .and_then(|()| {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644))
                .map_err(|error| Error::new("open up", file.display().to_string(), error))
        })
        .and_then(|()| mount(&file, path, "none", libc::MS_BIND));
    let target = text(scratch)?;
    // SAFETY: the string ends in zero and lives through the call.
    let gone = unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    bound?;
    check(gone, "unmount", scratch.display().to_string()).map(drop)
}
