//! A packet tap that costs CPU time and receives nothing: a packet socket with a long filter that rejects every packet.
//!
//! The filter runs in the softirq that receives the packet (packet(7), kernel `net/packet/af_packet.c`).

use crate::error::check;
use crate::{Error, Result};
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};

/// The longest classic filter (`BPF_MAXINSNS`).
pub const INSTRUCTIONS_MAX: u16 = 4096;

/// An open tap.
#[derive(Debug)]
pub struct PacketTap {
    _fd: OwnedFd,
}

impl PacketTap {
    /// Opens a tap on the device with that index in the calling thread's network namespace; its filter has `instructions`.
    ///
    /// # Errors
    /// No privilege, no such device.
    pub fn open(device: &str, index: u32, instructions: u16) -> Result<Self> {
        // SAFETY: socket takes plain numbers. Protocol 0: no packets before it is bound.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        check(fd, "open", "a packet socket")?;
        // SAFETY: the descriptor was just made and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let set = |level, option, value: *const libc::c_void, length: usize, operation| {
            // SAFETY: each caller below passes a value that lives through the call, with its size.
            let result = unsafe {
                libc::setsockopt(fd.as_raw_fd(), level, option, value, libc::socklen_t::try_from(length).unwrap_or(0))
            };
            check(result, operation, device)
        };
        // A classic filter cannot loop: many multiplications, then "accept 0 bytes".
        let work = libc::sock_filter { code: (libc::BPF_ALU | libc::BPF_MUL | libc::BPF_K) as u16, jt: 0, jf: 0, k: 3 };
        let refuse = libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
        let count = instructions.clamp(1, INSTRUCTIONS_MAX);
        let mut filter = vec![work; usize::from(count) - 1];
        filter.push(refuse);
        let program = libc::sock_fprog { len: count, filter: filter.as_mut_ptr() };
        set(
            libc::SOL_SOCKET,
            libc::SO_ATTACH_FILTER,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>(),
            "attach a filter to a tap of",
        )?;
        // PACKET_IGNORE_OUTGOING: no cost for sent packets.
        let one: libc::c_int = 1;
        set(
            libc::SOL_PACKET,
            libc::PACKET_IGNORE_OUTGOING,
            (&raw const one).cast(),
            size_of::<libc::c_int>(),
            "tap only what is received by",
        )?;
        // SAFETY: sockaddr_ll is plain data for which zeroes are valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = libc::c_int::try_from(index)
            .map_err(|_| Error::new("tap", device, std::io::Error::from_raw_os_error(libc::ENODEV)))?;
        // SAFETY: the address lives through the call, with its size.
        let bound = unsafe {
            libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size_of::<libc::sockaddr_ll>() as libc::socklen_t)
        };
        check(bound, "tap", device)?;
        Ok(Self { _fd: fd })
    }
}
