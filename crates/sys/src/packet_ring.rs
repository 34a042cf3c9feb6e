//! A passive observer of a device: a packet socket with a ring large enough to hold a whole trial.
//!
//! The kernel records the time and the length of each packet that the device receives; the ring is read only afterwards, so
//! the observer uses no CPU time of its own and costs every sender the same. Source: packet(7), kernel
//! `Documentation/networking/packet_mmap.rst` (`TPACKET_V2`), `net/packet/af_packet.c`.

use crate::error::check;
use crate::{Error, Result};
use std::ffi::CString;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// The maximum number of packets of a ring (about 400 MB of kernel memory).
pub const PACKETS_MAX: usize = 4_000_000;

/// Bytes of a packet's slot: `struct tpacket2_hdr` and `struct sockaddr_ll` take 52, and the packet is truncated to the
/// rest.
const FRAME_BYTES: usize = 96;
/// Slots are allocated in blocks of contiguous memory; small ones are always available.
const BLOCK_BYTES: usize = 1 << 16;
const FRAMES_PER_BLOCK: usize = BLOCK_BYTES / FRAME_BYTES;

/// One packet.
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

/// An open observer.
#[derive(Debug)]
pub struct PacketRing {
    fd: OwnedFd,
    map: *mut u8,
    blocks: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and only `observed`, which takes the ring, reads it.
unsafe impl Send for PacketRing {}

impl PacketRing {
    /// Observes the IPv4 packets that `device`, in the calling thread's network namespace, receives from now on;
    /// the first `packets` of them (at most [`PACKETS_MAX`]) fit.
    ///
    /// # Errors
    /// No privilege, no such device, no memory.
    pub fn open(device: &str, packets: usize) -> Result<Self> {
        let index = index(device)?;
        // SAFETY: socket takes plain numbers. Protocol 0: no packets before it is bound.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
        check(fd, "open", "a packet socket")?;
        // SAFETY: the descriptor was just made and nobody else owns it.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
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
        // SAFETY: a new mapping, at a place of the kernel's choice, of exactly the ring's length.
        let map = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                blocks * BLOCK_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(Error::last("map", format!("the ring of {device}")));
        }
        let ring = Self { fd, map: map.cast(), blocks };
        ring.bind(device, index)?;
        Ok(ring)
    }

    fn bind(&self, device: &str, index: libc::c_int) -> Result<()> {
        // SAFETY: sockaddr_ll is plain data for which zeroes are valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as libc::c_ushort;
        address.sll_protocol = (libc::ETH_P_IP as u16).to_be();
        address.sll_ifindex = index;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address lives through the call, with its size.
        let bound = unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const address).cast(), length) };
        check(bound, "observe", device).map(drop)
    }

    /// The packets so far; ends the observation.
    ///
    /// # Errors
    /// The kernel does not report what it missed.
    pub fn observed(self) -> Result<Observed> {
        // SAFETY: tpacket_stats is plain data for which zeroes are valid.
        let mut stats: libc::tpacket_stats = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into `stats`.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut stats).cast(),
                &raw mut length,
            )
        };
        check(result, "ask what was missed by", "a packet socket")?;
        let frames = (0..self.blocks * FRAMES_PER_BLOCK).map_while(|frame| self.frame(frame));
        Ok(Observed { packets: frames.collect(), missed: stats.tp_drops })
    }

    /// The packet in a slot, if there is one. The kernel fills the slots in order and stops at the first that is
    /// not free.
    fn frame(&self, frame: usize) -> Option<Seen> {
        let offset = frame / FRAMES_PER_BLOCK * BLOCK_BYTES + frame % FRAMES_PER_BLOCK * FRAME_BYTES;
        // SAFETY: the caller asks for places of the ring, which the mapping holds whole; each begins with a tpacket2_hdr
        // and is aligned to 16 bytes.
        let header: *mut libc::tpacket2_hdr = unsafe { self.map.add(offset) }.cast();
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

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: the mapping was made with this length, and nothing refers to it any more.
        unsafe { libc::munmap(self.map.cast(), self.blocks * BLOCK_BYTES) };
    }
}

fn index(device: &str) -> Result<libc::c_int> {
    let missing = || Error::new("observe", device, std::io::Error::from_raw_os_error(libc::ENODEV));
    let name = CString::new(device).map_err(|_| missing())?;
    // SAFETY: the name ends with a zero byte and lives through the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    libc::c_int::try_from(index).ok().filter(|index| *index > 0).ok_or_else(missing)
}

fn set<T>(fd: &OwnedFd, level: i32, option: i32, value: &T, operation: &'static str, device: &str) -> Result<()> {
    let length = libc::socklen_t::try_from(size_of::<T>()).unwrap_or(0);
    // SAFETY: the value lives through the call, with its size; the options above take plain numbers and a tpacket_req.
    let result = unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, (&raw const *value).cast(), length) };
    check(result, operation, device).map(drop)
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
