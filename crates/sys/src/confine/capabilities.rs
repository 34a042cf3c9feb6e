//! The capabilities of this process (capabilities(7)).

use crate::error::check;
use crate::{Error, Result};
use std::io;

/// A capability by its number (include/uapi/linux/capability.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// Files of other users.
    DacOverride = 1,
    /// To read files of other users.
    DacReadSearch = 2,
    /// Ports below 1024.
    NetBindService = 10,
    /// Network settings, buffers above the limits, filters' counters.
    NetAdmin = 12,
    NetRaw = 13,
    IpcLock = 14,
    /// To enter mount namespaces.
    SysChroot = 18,
    /// Descriptors of other processes.
    SysPtrace = 19,
    SysAdmin = 21,
    SysNice = 23,
    SysResource = 24,
    /// Tracepoints and counters of the CPU.
    Perfmon = 38,
    Bpf = 39,
}

/// `_LINUX_CAPABILITY_VERSION_3`
const VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

fn own() -> Result<[Sets; 2]> {
    let (header, mut sets) = (Header { version: VERSION, pid: 0 }, [Sets::default(); 2]);
    // SAFETY: a header of this version is followed by two sets, which the kernel fills.
    let got = unsafe { libc::syscall(libc::SYS_capget, &raw const header, sets.as_mut_ptr()) };
    check(libc::c_int::try_from(got).unwrap_or(-1), "read", "the capabilities of this process")?;
    Ok(sets)
}

fn mask_of(kept: &[Capability]) -> u64 {
    kept.iter().fold(0, |mask, one| mask | 1 << *one as u8)
}

/// Bounds what a started program can get to these, as far as this process may.
pub fn bound(kept: &[Capability]) {
    let mask = mask_of(kept);
    for number in (0..64_u64).filter(|number| mask >> number & 1 == 0) {
        // SAFETY: prctl with plain numbers. Where it is refused, no_new_privs keeps programs from gaining them.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, number, 0_u64, 0_u64, 0_u64) };
    }
    // SAFETY: as above; kernels before 4.3 have none.
    unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, 0_u64, 0_u64, 0_u64) };
}

/// Keeps at most these, and nothing that a started program would inherit.
/// Errors: the kernel's error; it kept others.
pub fn keep_only(kept: &[Capability]) -> Result<()> {
    bound(kept);
    let mask = mask_of(kept);
    let masks = [mask as u32, (mask >> 32) as u32];
    let mut sets = own()?;
    for (set, mask) in sets.iter_mut().zip(masks) {
        let permitted = set.permitted & mask;
        *set = Sets { effective: permitted, permitted, inheritable: 0 };
    }
    let header = Header { version: VERSION, pid: 0 };
    // SAFETY: a header of this version is followed by two sets, which live through the call.
    let set = unsafe { libc::syscall(libc::SYS_capset, &raw const header, sets.as_ptr()) };
    check(libc::c_int::try_from(set).unwrap_or(-1), "drop", "capabilities")?;
    if own()?.iter().zip(masks).any(|(set, mask)| (set.permitted | set.effective) & !mask != 0) {
        return Err(Error::new("drop", "capabilities", io::Error::other("the kernel kept some")));
    }
    Ok(())
}
