//! TCP connections of this host without a descriptor of them, and the processes that hold them.

use crate::Missing;
use narrows_model::{ConnectionsReading, Owner};
use narrows_sys::{clock, files, sock_diag};
use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Instant;

/// When this process read them first: time zero of the samples.
static FIRST: OnceLock<Instant> = OnceLock::new();

/// Reads every TCP connection of a network namespace that may carry data. Times are since this process read them first.
#[derive(Debug)]
pub struct Connections(sock_diag::Connections);

fn missing(error: &narrows_sys::netlink::Error) -> Missing {
    Missing::Kernel { what: "SOCK_DIAG_BY_FAMILY".to_owned(), why: error.to_string() }
}

impl Connections {
    /// In the calling thread's network namespace.
    /// Errors: the kernel does not answer.
    pub fn open() -> Result<Self, Missing> {
        sock_diag::Connections::open().map(Self).map_err(|error| missing(&error))
    }

    /// All of them now, or those with a peer.
    /// Errors: the kernel does not answer.
    pub fn read(&mut self, peer: Option<IpAddr>) -> Result<ConnectionsReading, Missing> {
        self.0.read(clock::micros_since(*FIRST.get_or_init(clock::now)), peer).map_err(|error| missing(&error))
    }

    /// How many the newest reading saw.
    pub fn count(&self) -> usize {
        self.0.count()
    }

    /// Lets the next reading have all of them with their counters.
    pub fn forget(&mut self) {
        self.0.forget();
    }
}

/// The processes that hold the sockets with these inodes, as far as this user may see them; of several, that with the lowest id
/// (proc_pid_fd(5)).
pub fn owners(inodes: &HashSet<u64>) -> HashMap<u64, Owner> {
    let mut found = HashMap::new();
    let mut pids: Vec<u32> =
        files::list(Path::new("/proc")).unwrap_or_default().iter().filter_map(|name| name.parse().ok()).collect();
    pids.sort_unstable();
    for pid in pids {
        if found.len() == inodes.len() {
            break;
        }
        let directory = format!("/proc/{pid}/fd");
        let mut name = None;
        for descriptor in files::list(Path::new(&directory)).unwrap_or_default() {
            let target = files::read_link(Path::new(&format!("{directory}/{descriptor}"))).unwrap_or_default();
            let Some(inode) = target.to_str().and_then(socket_inode).filter(|inode| inodes.contains(inode)) else {
                continue;
            };
            let name = name.get_or_insert_with(|| {
                files::read_text(Path::new(&format!("/proc/{pid}/comm"))).unwrap_or_default().trim_end().to_owned()
            });
            found.entry(inode).or_insert_with(|| Owner { pid, name: name.clone() });
        }
    }
    found
}

/// The inode in `socket:[123]`.
fn socket_inode(target: &str) -> Option<u64> {
    target.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The inodes of a control group below `/sys/fs/cgroup` and of those in it.
/// Errors: there is none of that path.
pub fn control_groups(path: &str) -> Result<HashSet<u64>, Missing> {
    /// More would not be meant.
    const MOST: usize = 100_000;
    let root = Path::new("/sys/fs/cgroup").join(path.trim_start_matches("/sys/fs/cgroup").trim_start_matches('/'));
    let why = |error: narrows_sys::Error| Missing::File { path: root.display().to_string(), why: error.to_string() };
    let mut inodes = HashSet::from([files::inode(&root).map_err(why)?]);
    let mut open = vec![root.clone()];
    while let Some(directory) = open.pop() {
        for name in files::list(&directory).unwrap_or_default() {
            let below = directory.join(name);
            // Only control groups have this file; a listing of anything else fails.
            if inodes.len() < MOST && files::exists(&below.join("cgroup.procs")) {
                inodes.extend(files::inode(&below));
                open.push(below);
            }
        }
    }
    Ok(inodes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, SocketAddr};

    #[test]
    fn a_connection_of_this_process_is_found_with_its_process() {
        let listener = narrows_sys::net::listen(0).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.local_addr().unwrap().port()));
        let stream =
            narrows_sys::net::connect(address, std::time::Duration::from_secs(5), |_| Ok::<_, narrows_sys::Error>(()))
                .unwrap();
        let all = Connections::open().unwrap().read(None).unwrap().changed;
        let own =
            all.iter().find(|it| it.local == stream.local_addr().unwrap() && it.remote == stream.peer_addr().unwrap());
        let inode = own.expect("listed").inode;
        let owners = owners(&HashSet::from([inode, u64::MAX]));
        assert_eq!(owners.keys().collect::<Vec<_>>(), [&inode]);
        assert_eq!(owners[&inode].pid, std::process::id());
        assert!(!owners[&inode].name.is_empty());
    }

    #[test]
    fn only_sockets_have_an_inode() {
        assert_eq!(socket_inode("socket:[4711]"), Some(4711));
        for other in ["pipe:[4711]", "socket:[x]", "/dev/null", ""] {
            assert_eq!(socket_inode(other), None, "{other}");
        }
        assert!(control_groups("no/such/group").unwrap_err().to_string().starts_with("/sys/fs/cgroup/no/such/group: "));
    }
}
