//! Buffers for packets under way. Nothing is allocated per packet: a returned buffer is used again, the most recent one
//! first, while it is still in the cache.

use super::frame::Frame;
use narrows_sys::tun::VNET_HEADER_BYTES;

/// The largest packet with its virtio header: 64 KiB, and room to detect a larger one.
pub const LARGE: usize = 65_536 + VNET_HEADER_BYTES + 64;
/// Most packets are acknowledgements or of Ethernet's size and do not need a large buffer.
pub const SMALL: usize = 2048;

/// A buffer and its content.
#[derive(Debug)]
pub struct Slot {
    bytes: Box<[u8]>,
    used: usize,
    pub frame: Frame,
    users: u32,
}

impl Slot {
    /// The virtio header and the packet.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }
}

/// All buffers of one direction.
#[derive(Debug)]
pub struct Pool {
    slots: Vec<Slot>,
    free_large: Vec<u32>,
    free_small: Vec<u32>,
    bytes: usize,
    limit: usize,
    /// The buffer that the next packet is read into.
    scratch: Box<[u8]>,
}

const NO_FRAME: Frame = Frame {
    ip_bytes: 0,
    header_bytes: 0,
    transport_at: 0,
    segment_payload: 0,
    segments: 0,
    segmentation: super::frame::Segmentation::None,
};

impl Pool {
    /// A pool that holds at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        let scratch = vec![0; LARGE].into_boxed_slice();
        Self { slots: Vec::new(), free_large: Vec::new(), free_small: Vec::new(), bytes: 0, limit, scratch }
    }

    /// The buffer to read the next packet into.
    pub fn scratch(&mut self) -> &mut [u8] {
        &mut self.scratch
    }

    /// Keeps the first `used` bytes of the scratch buffer; returns the slot's number, or `None` if the limit is
    /// reached.
    pub fn keep(&mut self, used: usize, frame: Frame) -> Option<u32> {
        let small = used <= SMALL;
        let number = match if small { self.free_small.pop() } else { self.free_large.pop() } {
            Some(number) => number,
            None => self.grow(if small { SMALL } else { LARGE })?,
        };
        let slot = self.slots.get_mut(number as usize)?;
        if small {
            slot.bytes.get_mut(..used)?.copy_from_slice(self.scratch.get(..used)?);
        } else {
            // The packet stays where it was read; the slot's buffer becomes the next scratch buffer.
            std::mem::swap(&mut slot.bytes, &mut self.scratch);
        }
        slot.used = used;
        slot.frame = frame;
        slot.users = 0;
        Some(number)
    }

    fn grow(&mut self, size: usize) -> Option<u32> {
        if self.bytes + size > self.limit {
            return None;
        }
        let number = u32::try_from(self.slots.len()).ok()?;
        self.slots.push(Slot { bytes: vec![0; size].into_boxed_slice(), used: 0, frame: NO_FRAME, users: 0 });
        self.bytes += size;
        Some(number)
    }

    pub fn slot(&self, number: u32) -> Option<&Slot> {
        self.slots.get(number as usize)
    }

    /// Sets how many pieces use a slot; 0 frees it.
    pub fn use_by(&mut self, number: u32, pieces: u32) {
        if let Some(slot) = self.slots.get_mut(number as usize) {
            slot.users = pieces + 1;
            self.release(number);
        }
    }

    /// Removes one user; the last one frees the slot.
    pub fn release(&mut self, number: u32) {
        let Some(slot) = self.slots.get_mut(number as usize) else { return };
        slot.users = slot.users.saturating_sub(1);
        if slot.users == 0 {
            let free = if slot.bytes.len() == SMALL { &mut self.free_small } else { &mut self.free_large };
            free.push(number);
        }
    }

    /// Frees all memory if nothing is under way.
    pub fn shrink(&mut self) {
        if self.free_large.len() + self.free_small.len() == self.slots.len() {
            self.slots = Vec::new();
            self.free_large = Vec::new();
            self.free_small = Vec::new();
            self.bytes = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_back_and_the_limit_holds() {
        let mut pool = Pool::new(2 * SMALL + LARGE);
        let fill = |pool: &mut Pool, byte: u8, used: usize| {
            pool.scratch()[..used].fill(byte);
            pool.keep(used, NO_FRAME)
        };
        let large = fill(&mut pool, 1, 60_000).expect("room");
        assert_eq!(fill(&mut pool, 2, 60_000), None, "one large buffer fits");
        let small = fill(&mut pool, 3, 100).expect("room");
        pool.use_by(large, 2);
        pool.use_by(small, 1);
        assert!(pool.slot(large).expect("there").bytes().iter().all(|byte| *byte == 1));
        assert_eq!(pool.slot(small).expect("there").bytes(), &[3; 100]);
        pool.release(large);
        assert_eq!(fill(&mut pool, 4, 60_000), None, "still used by one");
        pool.release(large);
        assert_eq!(fill(&mut pool, 5, 60_000), Some(large));
        pool.use_by(large, 0);
        pool.release(small);
        pool.shrink();
        assert_eq!(pool.bytes, 0);
    }
}
