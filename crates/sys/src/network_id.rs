//! Identifies the calling thread's network namespace, and checks whether one still exists.

use crate::{Error, Result, raw};
use std::collections::HashSet;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// A network namespace. The inode identifies it while it exists, but is reused later; the cookie is unique within a
/// boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct NetworkId {
    /// The number in `net:[…]`.
    pub inode: u64,
    /// The kernel's cookie; `None` before Linux 5.14.
    pub cookie: Option<u64>,
}

impl NetworkId {
    /// The namespace of the calling thread.
    pub fn current() -> Result<Self> {
        let path = "/proc/thread-self/ns/net";
        let inode = std::fs::metadata(path).map_err(|error| Error::new("look at", path, error))?.ino();
        Ok(Self { inode, cookie: cookie() })
    }

    /// Whether both are the same, as far as is known.
    pub fn is(&self, other: &Self) -> bool {
        self.inode == other.inode
            && match (self.cookie, other.cookie) {
                (Some(a), Some(b)) => a == b,
                _ => true,
            }
    }

    /// Whether a process, an open file or a mount still holds a network namespace with this inode, as far as
    /// `/proc` shows.
    pub fn lives(inode: u64) -> bool {
        let name = format!("net:[{inode}]");
        held_by_mount(&name) || held_by_process(&name)
    }
}

fn cookie() -> Option<u64> {
    // Any socket reports the namespace that it was created in.
    let socket = UnixDatagram::unbound().ok()?;
    let mut bytes = [0; 8];
    let (level, name) = (libc::SOL_SOCKET, libc::SO_NETNS_COOKIE);
    raw::option_bytes(&socket, level, name, &mut bytes, "read the cookie of", "a socket").ok()?;
    Some(u64::from_ne_bytes(bytes))
}

fn held_by_mount(name: &str) -> bool {
    // A field of its own: ` net:[4026532201] `.
    std::fs::read_to_string("/proc/self/mountinfo")
        .is_ok_and(|text| text.lines().any(|line| line.split(' ').any(|field| field == name)))
}

fn held_by_process(name: &str) -> bool {
    let is_name = |path: &Path| std::fs::read_link(path).is_ok_and(|target| target.as_os_str() == name);
    let children = |path: &Path| {
        std::fs::read_dir(path).into_iter().flatten().flatten().map(|entry| entry.path()).collect::<HashSet<_>>()
    };
    children(Path::new("/proc")).iter().any(|process| {
        children(&process.join("task")).iter().any(|task| is_name(&task.join("ns/net")))
            || children(&process.join("fd")).iter().any(|fd| is_name(fd))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_namespace_is_itself_and_lives() {
        let id = NetworkId::current().expect("proc");
        assert!(id.is(&NetworkId::current().expect("proc")));
        assert!(NetworkId::lives(id.inode));
        assert!(!NetworkId::lives(1));
    }

    #[test]
    fn a_reused_inode_is_detected_by_the_cookie() {
        let old = NetworkId { inode: 7, cookie: Some(1) };
        assert!(!old.is(&NetworkId { inode: 7, cookie: Some(2) }));
        assert!(old.is(&NetworkId { inode: 7, cookie: None }));
    }
}
