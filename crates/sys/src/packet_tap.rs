//! A packet tap that costs CPU time and receives nothing: a packet socket with a long filter that rejects every packet.
//!
//! The filter runs in the softirq that receives the packet (packet(7), kernel `net/packet/af_packet.c`).

use crate::Result;
use crate::raw::{bind_packet_socket, set_option, socket};
use std::os::fd::OwnedFd;

/// The longest classic filter (`BPF_MAXINSNS`).
pub const INSTRUCTIONS_MAX: u16 = 4096;

#[derive(Debug)]
pub struct PacketTap {
    _fd: OwnedFd,
}

impl PacketTap {
    /// Opens a tap on the device with that index in the calling thread's network namespace; its filter has `instructions`.
    /// Errors: no privilege, no such device.
    pub fn open(device: &str, index: u32, instructions: u16) -> Result<Self> {
        // Protocol 0: no packets before it is bound.
        let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, 0, "open", "a packet socket")?;
        let object = || device.to_owned();
        // A classic filter cannot loop: many multiplications, then "accept 0 bytes".
        let work = libc::sock_filter { code: (libc::BPF_ALU | libc::BPF_MUL | libc::BPF_K) as u16, jt: 0, jf: 0, k: 3 };
        let refuse = libc::sock_filter { code: (libc::BPF_RET | libc::BPF_K) as u16, jt: 0, jf: 0, k: 0 };
        let count = instructions.clamp(1, INSTRUCTIONS_MAX);
        let mut filter = vec![work; usize::from(count) - 1];
        filter.push(refuse);
        let program = libc::sock_fprog { len: count, filter: filter.as_mut_ptr() };
        let name = libc::SO_ATTACH_FILTER;
        set_option(&fd, libc::SOL_SOCKET, name, &program, "attach a filter to a tap of", object)?;
        // No cost for sent packets.
        let (name, one): (_, libc::c_int) = (libc::PACKET_IGNORE_OUTGOING, 1);
        set_option(&fd, libc::SOL_PACKET, name, &one, "tap only what is received by", object)?;
        bind_packet_socket(&fd, index, libc::ETH_P_ALL, "tap", device)?;
        Ok(Self { _fd: fd })
    }
}
