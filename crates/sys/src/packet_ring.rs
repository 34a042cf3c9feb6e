//! A passive observer of a device: a packet socket with a ring large enough to hold a whole trial.
//!
//! The kernel records the time and the length of each packet that the device receives; the ring is read only afterwards, so
//! the observer uses no CPU time of its own and costs every sender the same. Source: packet(7), kernel
//! `Documentation/networking/packet_mmap.rst` (`TPACKET_V2`), `net/packet/af_packet.c`.

use crate::raw::{bind_packet_socket, packet_drops, set_option, socket};
use crate::shared::{READ_WRITE, Shared};
use crate::{Error, Result, device};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};

/// The maximum number of packets of a ring (about 400 MB of kernel memory).
pub const PACKETS_MAX: usize = 4_000_000;

/// Bytes of a packet's slot: `struct tpacket2_hdr` and `struct sockaddr_ll` take 52, and the packet is truncated to the
/// rest.
const FRAME_BYTES: usize = 96;
/// Slots are allocated in blocks of contiguous memory; small ones are always available.
const BLOCK_BYTES: usize = 1 << 16;
const FRAMES_PER_BLOCK: usize = BLOCK_BYTES / FRAME_BYTES;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// When it reached the device, ns since the epoch by the wall clock.
    pub at_ns: u64,
    /// Its length with the Ethernet header, before truncation.
    pub bytes: u32,
}

/// The content of a ring.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// In order of arrival.
    pub packets: Vec<Seen>,
    /// Packets dropped for lack of room.
    pub missed: u32,
}

#[derive(Debug)]
pub struct PacketRing {
    fd: OwnedFd,
    map: Shared,
}

// SAFETY: the mapping belongs to the process, not to a thread, and only `observed`, which takes the ring, reads it.
unsafe impl Send for PacketRing {}

impl PacketRing {
    /// Observes the IPv4 packets that `device`, in the calling thread's network namespace, receives from now on;
    /// the first `packets` of them (at most [`PACKETS_MAX`]) fit.
    /// Errors: no privilege, no such device, no memory.
    pub fn open(device: &str, packets: usize) -> Result<Self> {
        let index = device::index(device).map_err(|error| Error::new("observe", device, error.source))?;
        let fd = socket(libc::AF_PACKET, libc::SOCK_RAW, 0, "open", "a packet socket")?;
        let one: libc::c_int = 1;
        set(&fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &one, "observe only what is received by", device)?;
        // With this, the time is taken when the sender's device passes the packet on, not when this socket
        // receives it.
        set(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &one, "take the times of packets of", device)?;
        let version = libc::tpacket_versions::TPACKET_V2 as libc::c_int;
        set(&fd, libc::SOL_PACKET, libc::PACKET_VERSION, &version, "make a ring for", device)?;
        let blocks = packets.clamp(1, PACKETS_MAX).div_ceil(FRAMES_PER_BLOCK);
        let number = |value: usize| libc::c_uint::try_from(value).unwrap_or(libc::c_uint::MAX);
        let request = libc::tpacket_req {
            tp_block_size: number(BLOCK_BYTES),
            tp_block_nr: number(blocks),
            tp_frame_size: number(FRAME_BYTES),
            tp_frame_nr: number(blocks * FRAMES_PER_BLOCK),
        };
        set(&fd, libc::SOL_PACKET, libc::PACKET_RX_RING, &request, "make a ring for", device)?;
        let map = Shared::of_fd(&fd, blocks * BLOCK_BYTES, READ_WRITE, 0, 0)?;
        bind_packet_socket(&fd, index, libc::ETH_P_IP, "observe", device)?;
        Ok(Self { fd, map })
    }

    /// The packets so far; ends the observation.
    /// Errors: the kernel does not report what it missed.
    pub fn observed(self) -> Result<Observed> {
        let missed = packet_drops(&self.fd, "read the drops of")?;
        let frames = self.map.bytes() / BLOCK_BYTES * FRAMES_PER_BLOCK;
        Ok(Observed { packets: (0..frames).map_while(|frame| self.frame(frame)).collect(), missed })
    }

    /// The packet in a slot, if there is one. The kernel fills the slots in order and stops at the first that is
    /// not free.
    fn frame(&self, frame: usize) -> Option<Seen> {
        let offset = frame / FRAMES_PER_BLOCK * BLOCK_BYTES + frame % FRAMES_PER_BLOCK * FRAME_BYTES;
        // Each slot begins with a tpacket2_hdr and is aligned to 16 bytes.
        let header: *mut libc::tpacket2_hdr = self.map.at(offset).cast();
        // SAFETY: the status is the one word that kernel and process share, at all times a valid number.
        let status = unsafe { AtomicU32::from_ptr(&raw mut (*header).tp_status) }.load(Ordering::Acquire);
        if status & libc::TP_STATUS_USER == 0 {
            return None;
        }
        // SAFETY: the kernel gave this place to the process and writes it no more, since nobody gives it back.
        let header = unsafe { header.read() };
        Some(Seen { at_ns: u64::from(header.tp_sec) * 1_000_000_000 + u64::from(header.tp_nsec), bytes: header.tp_len })
    }
}

fn set<T: Copy>(fd: &OwnedFd, level: i32, option: i32, value: &T, operation: &'static str, device: &str) -> Result<()> {
    set_option(fd, level, option, value, operation, || device.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::Namespaces;
    use std::net::UdpSocket;

    /// Loopback of a separate namespace; `None` if this user may not create one.
    fn observed(packets: usize, datagrams: usize) -> Option<Observed> {
        let work = || -> std::result::Result<Observed, Box<dyn std::error::Error + Send + Sync>> {
            crate::rtnl::Links::open()?.set_up("lo", true)?;
            let ring = PacketRing::open("lo", packets)?;
            let socket = UdpSocket::bind("127.0.0.1:0")?;
            let to = socket.local_addr()?;
            for _ in 0..datagrams {
                socket.send_to(&[0; 100], to)?;
                socket.recv(&mut [0; 100])?; // what has arrived has been seen
            }
            Ok(ring.observed()?)
        };
        match Namespaces::create("ring", || Ok::<_, Error>(work())) {
            Ok((_, observed)) => Some(observed.expect("an observation")),
            Err(_) => None,
        }
    }

    #[test]
    fn each_packet_is_seen_once_with_its_length_and_in_order() {
        let Some(observed) = observed(100, 5) else { return };
        assert_eq!(observed.missed, 0);
        // 14 bytes of Ethernet, 20 of IP, 8 of UDP, the payload.
        assert_eq!(observed.packets.iter().map(|packet| packet.bytes).collect::<Vec<_>>(), [142; 5]);
        assert!(observed.packets.is_sorted_by_key(|packet| packet.at_ns));
    }

    #[test]
    fn packets_without_room_are_counted() {
        let Some(observed) = observed(1, FRAMES_PER_BLOCK + 3) else { return };
        assert_eq!((observed.packets.len(), observed.missed), (FRAMES_PER_BLOCK, 3));
    }

    #[test]
    fn a_device_that_is_not_there_is_named() {
        let error = PacketRing::open("no-such-link", 1).expect_err("none");
        assert!(error.to_string().starts_with("cannot observe no-such-link: "), "{error}");
    }
}
