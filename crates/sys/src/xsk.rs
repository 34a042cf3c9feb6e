//! `AF_XDP` for sending: a socket on one queue of a device, with its frames in shared memory.
//!
//! Source: kernel `Documentation/networking/af_xdp.rst`, `include/uapi/linux/if_xdp.h`.

use crate::netlink::u64_at;
use crate::shared::{READ_WRITE, Shared};
use crate::{Error, Result, raw};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

/// Frames in the memory area, and slots of each ring.
pub const FRAMES: u32 = 2048;
/// Bytes of a frame's slot; larger frames need another mode.
pub const FRAME_BYTES: usize = 4096;

/// One ring, as the kernel laid it out.
#[derive(Debug)]
struct Ring {
    memory: Shared,
    producer: usize,
    consumer: usize,
    flags: usize,
    descriptors: usize,
}

/// `struct xdp_ring_offset`: producer, consumer, descriptors, flags.
const OFFSETS_BYTES: usize = 4 * 8;

impl Ring {
    fn map(fd: &OwnedFd, offsets: &[u8], entry: usize, page: i64) -> Result<Self> {
        let offset = |number: usize| u64_at(offsets, number * 8).unwrap_or(0) as usize;
        let descriptors = offset(2);
        let bytes = descriptors + FRAMES as usize * entry;
        let memory = Shared::of_fd(fd, bytes, READ_WRITE, libc::MAP_POPULATE, page)?;
        Ok(Self { memory, producer: offset(0), consumer: offset(1), flags: offset(3), descriptors })
    }

    fn word(&self, at: usize) -> &AtomicU32 {
        // SAFETY: the kernel gave the offset as that of an aligned u32 inside the ring, which is mapped as long as `self` is;
        // both sides access it atomically only.
        unsafe { &*self.memory.at(at).cast::<AtomicU32>() }
    }
}

/// An open socket that sends through one queue.
#[derive(Debug)]
pub struct XskSender {
    fd: OwnedFd,
    memory: Shared,
    tx: Ring,
    completion: Ring,
    free: Vec<u32>,
    /// Whether the driver uses zero copy.
    pub zero_copy: bool,
}

// SAFETY: the mappings belong to the process and not to a thread, and only the owner of the value touches them.
unsafe impl Send for XskSender {}

fn set<T: Copy>(fd: &OwnedFd, option: libc::c_int, value: &T, operation: &'static str) -> Result<()> {
    raw::set_option(fd, libc::SOL_XDP, option, value, operation, || "an AF_XDP socket".to_owned())
}

impl XskSender {
    /// Opens a socket on a queue of the device with that index in the calling thread's network namespace: zero copy
    /// if the driver supports it, otherwise with copies.
    /// Errors: no privilege, no `AF_XDP` in this kernel, no such queue, or a queue that is in use.
    pub fn open(index: u32, queue: u32) -> Result<Self> {
        Self::bound(index, queue, libc::XDP_USE_NEED_WAKEUP).or_else(|_| Self::bound(index, queue, libc::XDP_COPY))
    }

    fn bound(index: u32, queue: u32, flags: u16) -> Result<Self> {
        let fd = raw::socket(libc::AF_XDP, libc::SOCK_RAW, 0, "open", "an AF_XDP socket")?;
        let memory = Shared::anonymous(FRAMES as usize * FRAME_BYTES)?;
        let register = libc::xdp_umem_reg {
            addr: memory.at(0) as usize as u64,
            len: u64::from(FRAMES) * FRAME_BYTES as u64,
            chunk_size: FRAME_BYTES as u32,
            headroom: 0,
            flags: 0,
            tx_metadata_len: 0,
        };
        set(&fd, libc::XDP_UMEM_REG, &register, "give memory to")?;
        set(&fd, libc::XDP_UMEM_FILL_RING, &FRAMES, "make the fill ring of")?;
        set(&fd, libc::XDP_UMEM_COMPLETION_RING, &FRAMES, "make the completion ring of")?;
        set(&fd, libc::XDP_TX_RING, &FRAMES, "make the send ring of")?;
        // `struct xdp_mmap_offsets`: the rings to receive, to send, to fill, of completions.
        let mut offsets = [0; 4 * OFFSETS_BYTES];
        let operation = "read the layout of";
        raw::option_bytes(&fd, libc::SOL_XDP, libc::XDP_MMAP_OFFSETS, &mut offsets, operation, "an AF_XDP socket")?;
        let ring = |number: usize| &offsets[number * OFFSETS_BYTES..(number + 1) * OFFSETS_BYTES];
        let tx = Ring::map(&fd, ring(1), 16, libc::XDP_PGOFF_TX_RING)?;
        let completion = Ring::map(&fd, ring(3), 8, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64)?;
        let address = libc::sockaddr_xdp {
            sxdp_family: libc::AF_XDP as u16,
            sxdp_flags: flags,
            sxdp_ifindex: index,
            sxdp_queue_id: queue,
            sxdp_shared_umem_fd: 0,
        };
        let object = format!("queue {queue} of device {index}");
        raw::bind(&fd, &address, size_of::<libc::sockaddr_xdp>(), "bind an AF_XDP socket to", object)?;
        let options =
            raw::option_u32(&fd, libc::SOL_XDP, libc::XDP_OPTIONS, "read the options of", "an AF_XDP socket")?;
        Ok(Self {
            fd,
            memory,
            tx,
            completion,
            free: (0..FRAMES).collect(),
            zero_copy: options & libc::XDP_OPTIONS_ZEROCOPY != 0,
        })
    }

    /// Reclaims the slots of sent frames.
    fn complete(&mut self) {
        let ring = &self.completion;
        let produced = ring.word(ring.producer).load(Ordering::Acquire);
        let mut consumed = ring.word(ring.consumer).load(Ordering::Relaxed);
        while consumed != produced {
            let at = ring.descriptors + (consumed % FRAMES) as usize * 8;
            // SAFETY: the entry lies inside the ring and the kernel has written it before it moved the producer.
            let address = unsafe { ring.memory.at(at).cast::<u64>().read() };
            self.free.push(u32::try_from(address / FRAME_BYTES as u64).unwrap_or(0) % FRAMES);
            consumed = consumed.wrapping_add(1);
        }
        ring.word(ring.consumer).store(consumed, Ordering::Release);
    }

    /// Sends up to `count` frames; `write` writes each into its slot and returns its length. Returns how many were
    /// accepted: fewer if the ring is full.
    /// Errors: the kernel's error, except for a busy device.
    pub fn send(&mut self, count: usize, mut write: impl FnMut(&mut [u8]) -> usize) -> Result<usize> {
        self.complete();
        let ring = &self.tx;
        let mut produced = ring.word(ring.producer).load(Ordering::Relaxed);
        let consumed = ring.word(ring.consumer).load(Ordering::Acquire);
        let room = FRAMES.saturating_sub(produced.wrapping_sub(consumed)) as usize;
        let taken = count.min(room).min(self.free.len());
        for _ in 0..taken {
            let Some(place) = self.free.pop() else { break };
            let start = place as usize * FRAME_BYTES;
            // SAFETY: the place lies inside the memory, is on the list of free ones, so neither the kernel nor another frame
            // uses it, and `self` is borrowed mutably.
            let bytes = unsafe { std::slice::from_raw_parts_mut(self.memory.at(start), FRAME_BYTES) };
            let length = write(bytes).min(FRAME_BYTES);
            // `struct xdp_desc`: u64 addr, u32 len, u32 options
            let at = ring.descriptors + (produced % FRAMES) as usize * 16;
            // SAFETY: the entry lies inside the ring, and the kernel does not read it before the producer moves.
            unsafe {
                let entry = ring.memory.at(at);
                entry.cast::<u64>().write(start as u64);
                entry.add(8).cast::<u32>().write(length as u32);
                entry.add(12).cast::<u32>().write(0);
            }
            produced = produced.wrapping_add(1);
        }
        ring.word(ring.producer).store(produced, Ordering::Release);
        self.kick()?;
        Ok(taken)
    }

    /// Wakes the kernel if it requires that; in copy mode this call is what sends.
    fn kick(&self) -> Result<()> {
        let asleep = self.tx.word(self.tx.flags).load(Ordering::Relaxed) & libc::XDP_RING_NEED_WAKEUP != 0;
        if self.zero_copy && !asleep {
            return Ok(());
        }
        // SAFETY: no bytes and no address are passed.
        let result =
            unsafe { libc::sendto(self.fd.as_raw_fd(), std::ptr::null(), 0, libc::MSG_DONTWAIT, std::ptr::null(), 0) };
        if result >= 0 {
            return Ok(());
        }
        let error = Error::last("send by", "an AF_XDP socket");
        match error.errno() {
            Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::ENETDOWN | libc::EINTR) => Ok(()),
            _ => Err(error),
        }
    }

    /// Whether no frame is under way any more; checks once.
    pub fn idle(&mut self) -> Result<bool> {
        self.kick()?;
        self.complete();
        Ok(self.free.len() == FRAMES as usize)
    }
}
