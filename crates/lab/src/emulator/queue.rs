//! The queue in front of a rate. Drop tail: a packet that does not fit is dropped as a whole.
//!
//! A packet is in the queue until its last bit is through the rate. So of a burst into an idle link exactly as many packets
//! pass as the limit says, and the longest wait is the limit divided by the rate.

use super::meter::Nanos;
use narrows_model::lab::Impairment;
use std::collections::VecDeque;

/// The default limit of a queue in front of a rate.
const DEFAULT_PACKETS: u64 = Impairment::DEFAULT_QUEUE_PACKETS;

/// The packets in front of a rate, each with the instant at which it is through.
#[derive(Debug, Default)]
pub struct Queue {
    limit_packets: u64,
    limit_bytes: u64,
    waiting: VecDeque<(Nanos, u32)>,
    bytes: u64,
    bytes_max: u64,
}

impl Queue {
    /// Sets the limits, 0 = none; both 0 = [`DEFAULT_PACKETS`]. Queued packets stay.
    pub fn limit(&mut self, packets: u64, bytes: u64) {
        self.limit_packets = if packets == 0 && bytes == 0 { DEFAULT_PACKETS } else { packets };
        self.limit_bytes = bytes;
    }

    /// Removes the packets that are through by `now`.
    pub fn advance(&mut self, now: Nanos) {
        while let Some((through, bytes)) = self.waiting.front().copied() {
            if through > now {
                break;
            }
            self.waiting.pop_front();
            self.bytes -= u64::from(bytes);
        }
    }

    /// Whether a packet of that many bytes fits.
    pub fn has_room(&self, bytes: u32) -> bool {
        let packets = self.waiting.len() as u64;
        (self.limit_packets == 0 || packets < self.limit_packets)
            && (self.limit_bytes == 0 || self.bytes + u64::from(bytes) <= self.limit_bytes)
    }

    pub fn push(&mut self, through: Nanos, bytes: u32) {
        self.waiting.push_back((through, bytes));
        self.bytes += u64::from(bytes);
        self.bytes_max = self.bytes_max.max(self.bytes);
    }

    /// The maximum depth so far, in bytes.
    pub const fn bytes_max(&self) -> u64 {
        self.bytes_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_limit_is_exact() {
        let mut queue = Queue::default();
        queue.limit(3, 0);
        let taken = (0..10).filter(|index| {
            let room = queue.has_room(1500);
            if room {
                queue.push(1000 + index, 1500);
            }
            room
        });
        assert_eq!(taken.count(), 3);
        queue.advance(1000);
        assert!(queue.has_room(1500), "one is through");
        assert_eq!(queue.bytes_max(), 4500);
    }

    proptest! {
        #[test]
        fn never_above_its_limits(
            packets in 0_u64..50, bytes in 0_u64..60_000,
            arrivals in prop::collection::vec((0_u64..2000, 40_u32..1600), 0..300),
        ) {
            let mut queue = Queue::default();
            queue.limit(packets, bytes);
            let (mut now, mut through) = (0, 0);
            for (gap, size) in arrivals {
                now += gap;
                queue.advance(now);
                if queue.has_room(size) {
                    through = through.max(now) + 1000;
                    queue.push(through, size);
                }
                let limit = if packets == 0 && bytes == 0 { DEFAULT_PACKETS } else { packets };
                prop_assert!(limit == 0 || queue.waiting.len() as u64 <= limit);
                prop_assert!(bytes == 0 || queue.bytes <= bytes);
                prop_assert_eq!(queue.bytes, queue.waiting.iter().map(|(_, size)| u64::from(*size)).sum::<u64>());
            }
        }
    }
}
