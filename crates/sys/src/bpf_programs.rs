//! The BPF programs of this machine and how long they run; a program that costs each packet of a device time.
//!
//! Source: bpf(2); kernel `include/uapi/linux/bpf.h`, `kernel/bpf/syscall.c` (`bpf_enable_stats`, Linux 5.8), `net/core/dev.c`
//! (`do_xdp_generic`).

use crate::netlink::{u32_at, u64_at};
use crate::raw::owned;
use crate::{Error, Result};
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd, RawFd};

const PROG_LOAD: libc::c_int = 5;
const PROG_GET_NEXT_ID: libc::c_int = 11;
const PROG_GET_FD_BY_ID: libc::c_int = 13;
const OBJ_GET_INFO_BY_FD: libc::c_int = 15;
pub(crate) const LINK_CREATE: libc::c_int = 28;
const ENABLE_STATS: libc::c_int = 32;
/// `BPF_STATS_RUN_TIME`
const RUN_TIME: u64 = 0;
/// `BPF_PROG_TYPE_XDP`, `BPF_XDP` of `enum bpf_attach_type`, and `XDP_FLAGS_SKB_MODE`.
const TYPE_XDP: u32 = 6;
pub(crate) const ATTACH_XDP: u32 = 37;
pub(crate) const SKB_MODE: u32 = 1 << 1;
/// `struct bpf_prog_info` up to `run_cnt`, and where its fields are.
const INFO: usize = 208;
const INFO_NAME: std::ops::Range<usize> = 64..80;
const INFO_RUN_NS: usize = 192;
const INFO_RUNS: usize = 200;
/// Hosts with many agents have some hundreds.
const PROGRAMS_MAX: usize = 1 << 14;

/// `enum bpf_prog_type`, as bpftool names its values.
const TYPES: [&str; 33] = [
    "unspec", "socket_filter", "kprobe", "sched_cls", "sched_act", "tracepoint", "xdp", "perf_event", "cgroup_skb",
    "cgroup_sock", "lwt_in", "lwt_out", "lwt_xmit", "sock_ops", "sk_skb", "cgroup_device", "sk_msg", "raw_tracepoint",
    "cgroup_sock_addr", "lwt_seg6local", "lirc_mode2", "sk_reuseport", "flow_dissector", "cgroup_sysctl",
    "raw_tracepoint_writable", "cgroup_sockopt", "tracing", "struct_ops", "ext", "lsm", "sk_lookup", "syscall",
    "netfilter",
];

/// The kernel counts the run time of every BPF program while this lives.
#[derive(Debug)]
pub struct Statistics {
    _held: OwnedFd,
}

/// A loaded program, and how long it has run while that was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramTime {
    pub id: u32,
    /// Its type, as bpftool names it.
    pub kind: &'static str,
    /// Its name, 15 characters at most; it may have none.
    pub name: String,
    pub run_ns: u64,
    pub runs: u64,
}

/// An attached program that costs each packet of a device time, until this is dropped or the process ends.
#[derive(Debug)]
pub struct Costly {
    _link: OwnedFd,
}

/// The attributes are bytes, or words of 64 bits, where two fields of 32 bits share one ([`pair`]).
pub(crate) fn call<T: Copy>(command: libc::c_int, attributes: &mut [T]) -> io::Result<libc::c_int> {
    let bytes = size_of_val(attributes);
    // SAFETY: the attributes are as long as told and outlive the call, and each caller fills in pointers that do too.
    let result = unsafe { libc::syscall(libc::SYS_bpf, command, attributes.as_mut_ptr(), bytes) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(libc::c_int::try_from(result).unwrap_or(-1)) }
}

/// Two fields of 32 bits, in the order of the structure.
fn pair(first: u32, second: u32) -> u64 {
    let ([a, b, c, d], [e, f, g, h]) = (first.to_ne_bytes(), second.to_ne_bytes());
    u64::from_ne_bytes([a, b, c, d, e, f, g, h])
}

fn of_fd(fd: RawFd, second: u32) -> u64 {
    pair(u32::try_from(fd).unwrap_or(u32::MAX), second)
}

impl Statistics {
    /// Has the kernel count from here on.
    /// Errors: no `CAP_SYS_ADMIN`, or a kernel before Linux 5.8 (`EINVAL`).
    pub fn enable() -> Result<Self> {
        const WHAT: (&str, &str) = ("count", "the run time of BPF programs");
        let fd = call(ENABLE_STATS, &mut [RUN_TIME]).map_err(|error| Error::new(WHAT.0, WHAT.1, error))?;
        Ok(Self { _held: owned(fd, WHAT.0, WHAT.1)? })
    }
}

/// All BPF programs of this machine.
/// Errors: no `CAP_SYS_ADMIN`.
pub fn programs() -> Result<Vec<ProgramTime>> {
    let mut found = Vec::new();
    let mut id = 0;
    while found.len() < PROGRAMS_MAX {
        let mut next = [pair(id, 0), 0];
        match call(PROG_GET_NEXT_ID, &mut next) {
            Ok(_) => id = u32_at(&next[0].to_ne_bytes(), 4).unwrap_or_default(),
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => break,
            Err(error) => return Err(Error::new("list", "BPF programs", error)),
        }
        match time_of(id) {
            Ok(program) => found.push(program),
            Err(error) if error.errno() == Some(libc::ENOENT) => {} // unloaded meanwhile
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn time_of(id: u32) -> Result<ProgramTime> {
    let object = || format!("BPF program {id}");
    let failed = |error| Error::new("read", object(), error);
    let fd = owned(call(PROG_GET_FD_BY_ID, &mut [pair(id, 0), 0]).map_err(failed)?, "read", object())?;
    let mut info = [0_u8; INFO];
    let mut attributes = [of_fd(fd.as_raw_fd(), INFO as u32), info.as_mut_ptr() as u64];
    call(OBJ_GET_INFO_BY_FD, &mut attributes).map_err(failed)?;
    Ok(parse(&info))
}

fn parse(info: &[u8; INFO]) -> ProgramTime {
    let kind = TYPES.get(u32_at(info, 0).unwrap_or_default() as usize);
    let name = info[INFO_NAME].split(|byte| *byte == 0).next().unwrap_or_default();
    ProgramTime {
        id: u32_at(info, 4).unwrap_or_default(),
        kind: kind.copied().unwrap_or("unknown"),
        name: String::from_utf8_lossy(name).into_owned(),
        run_ns: u64_at(info, INFO_RUN_NS).unwrap_or_default(),
        runs: u64_at(info, INFO_RUNS).unwrap_or_default(),
    }
}

impl Costly {
    /// Attaches an XDP program named `costly` to the device with that index, which counts to `loops` for each packet after its driver and
    /// lets it pass.
    /// Errors: no privilege (`CAP_BPF`, `CAP_NET_ADMIN`), more loops than the verifier follows (some 400,000), or the
    /// device has a program.
    pub fn attach(index: u32, loops: u16) -> Result<Self> {
        const WHAT: (&str, &str) = ("attach", "a costly XDP program");
        let failed = |error| Error::new(WHAT.0, WHAT.1, error);
        // Operation, registers, offset and constant: `struct bpf_insn`.
        let one = |op: u8, register: u8, offset: i16, constant: i32| {
            let [low, high] = offset.to_ne_bytes();
            let [a, b, c, d] = constant.to_ne_bytes();
            u64::from_ne_bytes([op, register, low, high, a, b, c, d])
        };
        let instructions = [
            one(0xb7, 1, 0, i32::from(loops.max(1))), // r1 = loops
            one(0x07, 1, 0, -1),                      // r1 -= 1
            one(0x55, 1, -2, 0),                      // if r1 != 0, back by two
            one(0xb7, 0, 0, 2),                       // r0 = XDP_PASS
            one(0x95, 0, 0, 0),                       // exit
        ];
        let name = u64::from_ne_bytes(*b"costly\0\0");
        // Type and number of instructions; they; the license; no log of the verifier; version and flags; the name.
        let mut load = [
            pair(TYPE_XDP, instructions.len() as u32),
            instructions.as_ptr() as u64,
            c"GPL".as_ptr() as u64,
            0,
            0,
            0,
            name,
            0,
        ];
        let program = owned(call(PROG_LOAD, &mut load).map_err(failed)?, WHAT.0, WHAT.1)?;
        let mut link = [of_fd(program.as_raw_fd(), index), pair(ATTACH_XDP, SKB_MODE)];
        Ok(Self { _link: owned(call(LINK_CREATE, &mut link).map_err(failed)?, WHAT.0, WHAT.1)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_read_from_the_kernels_structure() {
        let mut info = [0; INFO];
        info[..4].copy_from_slice(&6_u32.to_ne_bytes());
        info[4..8].copy_from_slice(&17_u32.to_ne_bytes());
        info[INFO_NAME][..4].copy_from_slice(b"slow");
        info[INFO_RUN_NS..INFO_RUNS].copy_from_slice(&9_000_u64.to_ne_bytes());
        info[INFO_RUNS..].copy_from_slice(&3_u64.to_ne_bytes());
        let expected = ProgramTime { id: 17, kind: "xdp", name: "slow".into(), run_ns: 9_000, runs: 3 };
        assert_eq!(parse(&info), expected);
        info[..4].copy_from_slice(&99_u32.to_ne_bytes());
        assert_eq!(parse(&info).kind, "unknown");
    }

    #[test]
    fn two_fields_share_a_word_in_their_order() {
        let bytes = pair(1, 2).to_ne_bytes();
        assert_eq!((u32_at(&bytes, 0), u32_at(&bytes, 4)), (Some(1), Some(2)));
    }
}
