//! Packets that the kernel drops in the calling thread's network namespace, by reason: counted by a BPF program at the tracepoint
//! `skb:kfree_skb`, which by itself reports those of all namespaces. Needs `CAP_BPF`, `CAP_PERFMON` and the kernel's BTF (reasons since
//! Linux 5.17).
//!
//! Source: `bpf/drops.c`; kernel `include/trace/events/skb.h`.

use crate::Result;

/// Drops of IP packets so far.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dropped {
    /// In this namespace: the reason, the kernel's address of those without one (else 0), and how many.
    pub here: Vec<(u32, u64, u64)>,
    /// In this namespace, for which there was no room in `here`.
    pub uncounted: u64,
    /// In other namespaces of this machine.
    pub elsewhere: u64,
}

#[cfg(feature = "xdp")]
pub use counting::DropCounts;

#[cfg(feature = "xdp")]
mod counting {
    use super::{Dropped, Result};
    use crate::Error;
    use crate::bpf::{Table, chain};
    use crate::netlink::{u32_at, u64_at};
    use crate::network_id::NetworkId;
    use aya::programs::Program;
    use aya::{Btf, Ebpf, EbpfLoader};
    use std::io;

    const PROGRAM: &str = "dropped";
    /// The entries of the map `others`.
    const ELSEWHERE: u32 = 0;
    const UNCOUNTED: u32 = 1;

    /// Counts from its start until it is dropped or the process ends.
    pub struct DropCounts {
        drops: Table,
        others: Table,
        _ebpf: Ebpf,
    }

    impl DropCounts {
        /// Starts counting.
        /// Errors: no privilege, no BTF, or a kernel whose tracepoint has no reasons.
        pub fn start() -> Result<Self> {
            let failed = |error: &dyn std::error::Error| Error::new("load the BPF program", PROGRAM, chain(error));
            let lacks = || Error::new("load the BPF program", PROGRAM, io::Error::other("it is not in the object"));
            let here = u32::try_from(NetworkId::current()?.inode).map_err(|error| failed(&error))?;
            let btf = Btf::from_sys_fs().map_err(|error| failed(&error))?;
            let elf = include_bytes!(concat!(env!("OUT_DIR"), "/drops.o"));
            let mut loader = EbpfLoader::new();
            loader.btf(Some(&btf)).override_global("config", &here, true);
            let mut ebpf = loader.load(elf).map_err(|error| failed(&error))?;
            let table = |name| ebpf.map(name).and_then(|map| Table::of(name, map)).ok_or_else(lacks)?;
            let (drops, others) = (table("drops")?, table("others")?);
            let Some(Program::BtfTracePoint(program)) = ebpf.program_mut(PROGRAM) else { return Err(lacks()) };
            program.load("kfree_skb", &btf).map_err(|error| failed(&error))?;
            program.attach().map_err(|error| failed(&error))?;
            Ok(Self { drops, others, _ebpf: ebpf })
        }

        /// What was counted.
        /// Errors: the kernel refused to read a map.
        pub fn read(&self) -> Result<Dropped> {
            let other = |entry: u32| self.others.read(&entry.to_ne_bytes()).map(|values| sum(&values));
            let mut dropped =
                Dropped { elsewhere: other(ELSEWHERE)?, uncounted: other(UNCOUNTED)?, ..Dropped::default() };
            for key in self.drops.keys()? {
                let (place, reason) = (u64_at(&key, 0).unwrap_or_default(), u32_at(&key, 8).unwrap_or_default());
                dropped.here.push((reason, place, sum(&self.drops.read(&key)?)));
            }
            Ok(dropped)
        }
    }

    /// The values of all CPUs.
    fn sum(values: &[Vec<u8>]) -> u64 {
        let number = |value: &Vec<u8>| value.as_slice().try_into().map_or(0, u64::from_ne_bytes);
        values.iter().map(number).fold(0, u64::saturating_add)
    }

    impl std::fmt::Debug for DropCounts {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.debug_struct("DropCounts").field("drops", &self.drops).finish_non_exhaustive()
        }
    }
}

#[cfg(not(feature = "xdp"))]
pub use without::DropCounts;

#[cfg(not(feature = "xdp"))]
mod without {
    use super::{Dropped, Result};
    use crate::Error;
    use std::io;

    /// A program that was built without BPF counts nothing.
    #[derive(Debug)]
    pub enum DropCounts {}

    impl DropCounts {
        /// Never.
        /// Errors: always: there is no BPF program.
        pub fn start() -> Result<Self> {
            Err(Error::new("load the BPF program", "dropped", io::Error::other("narrows was built without BPF")))
        }

        /// Nothing.
        /// Errors: it cannot be called.
        pub fn read(&self) -> Result<Dropped> {
            match *self {}
        }
    }
}

#[cfg(all(test, feature = "xdp"))]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, UdpSocket};

    #[test]
    fn drops_are_counted_in_their_own_namespace() {
        let counts = match DropCounts::start() {
            Ok(counts) => counts,
            Err(error) => return println!("NOT CHECKED: drops of one namespace, since {error}"),
        };
        let nobody = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|socket| socket.local_addr()).unwrap();
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        for _ in 0..40 {
            let _ = socket.send_to(b"nobody", nobody);
        }
        let dropped = counts.read().unwrap();
        let refused: u64 = dropped.here.iter().map(|(.., n)| n).sum();
        assert!(refused >= 40, "{dropped:?}");
        assert_eq!(dropped.uncounted, 0);
    }
}
