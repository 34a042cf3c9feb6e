//! All TCP sockets of a network namespace, each with what changes when something happens to it, by a BPF program that the kernel runs
//! for each of them: a fifth of the time of a dump of their counters. Needs `CAP_BPF`, `CAP_PERFMON` and the kernel's BTF (Linux 5.12).
//!
//! Source: kernel `net/ipv4/tcp_ipv4.c` (`bpf_iter_tcp`), `kernel/bpf/bpf_iter.c`, bpf(2).

use crate::bpf::{ATTACH_ITERATOR, Attributes, chain};
use crate::bpf_programs::{LINK_CREATE, call};
use crate::raw::owned;
use crate::sock_diag::Activity;
use crate::{Error, Result};
use aya::programs::Program;
use aya::{Btf, Ebpf, EbpfLoader};
use std::io::{self, Read as _};
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};

const BPF_ITER_CREATE: libc::c_int = 33;
/// `struct record` of `bpf/sockets.c`.
const RECORD: usize = 72;
const PROGRAM: &str = "sockets";

pub(crate) struct Walk {
    link: OwnedFd,
    buffer: Vec<u8>,
    _ebpf: Ebpf,
}

/// A socket on the way.
pub(crate) struct Found<'a>(&'a [u8]);

impl Found<'_> {
    fn u32(&self, at: usize) -> u32 {
        crate::netlink::u32_at(self.0, at).unwrap_or_default()
    }

    fn u16(&self, at: usize) -> [u8; 2] {
        self.0.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).unwrap_or_default()
    }

    /// The cookie of the socket.
    pub(crate) fn id(&self) -> u64 {
        u64::from(self.u32(0)) | u64::from(self.u32(4)) << 32
    }

    /// What changes with whatever happens to it.
    pub(crate) fn activity(&self) -> Activity {
        [8, 12, 16, 20, 24].map(|at| self.u32(at))
    }

    /// Its addresses: of this host and of the peer.
    pub(crate) fn ends(&self) -> [SocketAddr; 2] {
        let address = |at: usize, port: u16| {
            let bytes: [u8; 16] = self.0.get(at..at + 16).and_then(|it| it.try_into().ok()).unwrap_or_default();
            if i32::from(u16::from_ne_bytes(self.u16(32))) == libc::AF_INET6 {
                SocketAddrV6::new(bytes.into(), port, 0, self.u32(28)).into()
            } else {
                SocketAddr::new(IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]]), port)
            }
        };
        [address(40, u16::from_ne_bytes(self.u16(34))), address(56, u16::from_be_bytes(self.u16(36)))]
    }
}

impl Walk {
    /// Loads it.
    /// Errors: no privilege, no BTF, or a kernel that lacks one of its helpers.
    pub(crate) fn load() -> Result<Self> {
        let failed = |error: &dyn std::error::Error| Error::new("load the BPF program", PROGRAM, chain(error));
        let btf = Btf::from_sys_fs().map_err(|error| failed(&error))?;
        let elf = include_bytes!(concat!(env!("OUT_DIR"), "/sockets.o"));
        let mut ebpf = EbpfLoader::new().btf(Some(&btf)).load(elf).map_err(|error| failed(&error))?;
        let missing = || Error::new("load the BPF program", PROGRAM, io::Error::other("it is not in the object"));
        let Some(Program::Iter(program)) = ebpf.program_mut(PROGRAM) else { return Err(missing()) };
        program.load("tcp", &btf).map_err(|error| failed(&error))?;
        let program = program.fd().map_err(|error| failed(&error))?;
        // Without a target; the rest of the union for other kinds of links: zeroes.
        let attributes = Attributes::default().fd(program.as_fd().as_raw_fd()).u32(0).u32(ATTACH_ITERATOR).u32(0);
        let mut attributes = attributes.u64(0).u64(0).u64(0).u64(0);
        let link = call(LINK_CREATE, &mut attributes.0)
            .map_err(|error| Error::new("attach the BPF program", PROGRAM, error))?;
        let link = owned(link, "attach the BPF program", PROGRAM)?;
        Ok(Self { link, buffer: vec![0; 128 << 10], _ebpf: ebpf })
    }

    /// Walks through the sockets of the calling thread's network namespace that may carry data.
    pub(crate) fn each(&mut self, each: &mut dyn FnMut(&Found<'_>)) -> Result<()> {
        let failed = |error: io::Error| Error::new("read", "the TCP sockets by BPF", error);
        let mut attributes = Attributes::default().fd(self.link.as_raw_fd()).u32(0);
        let begun = call(BPF_ITER_CREATE, &mut attributes.0).map_err(failed)?;
        let mut file = std::fs::File::from(owned(begun, "read", "the TCP sockets by BPF")?);
        loop {
            match file.read(&mut self.buffer) {
                Ok(0) => return Ok(()),
                // The kernel writes whole records.
                Ok(bytes) => self.buffer[..bytes].chunks_exact(RECORD).for_each(|record| each(&Found(record))),
                Err(error) if [libc::EINTR, libc::EAGAIN].map(Some).contains(&error.raw_os_error()) => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

impl std::fmt::Debug for Walk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Walk").field("link", &self.link).finish_non_exhaustive()
    }
}
