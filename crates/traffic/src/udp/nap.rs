//! Fewer wake-ups at high rates: a receiver that found its queue short sleeps by the clock until there is a batch worth a call.
//!
//! A thread that blocks in the call is woken up for each datagram, which costs more than the datagram, and costs the sender
//! where both are on one host. A nap is bounded by a part of the receive buffer, so that the kernel has room for a late wake-up
//! too. At low rates the receiver blocks: naps would burn CPU for nothing. Pure; times are nanoseconds.

use super::buffers::memory_of;

/// Below this rate a receiver blocks: a nap of the longest would not save four wake-ups.
const FROM_PPS: f64 = 4_000.0;
/// The maximum of a nap …
const MAX_NS: f64 = 1_000_000.0;
/// … and the minimum: a shorter one costs more than it saves.
const MIN_NS: f64 = 20_000.0;
/// A nap fills at most this part of the receive buffer.
const PART: f64 = 1.0 / 8.0;
/// The rate is averaged over at least this time.
const UPDATE_NS: u64 = 5_000_000;

#[derive(Debug)]
pub(crate) struct Nap {
    /// The maximum of datagrams to sleep for.
    max: f64,
    buffer_bytes: f64,
    updated_ns: u64,
    datagrams: u64,
    bytes: u64,
    nap_ns: Option<u64>,
}

impl Nap {
    /// For calls of up to `batch` datagrams and a receive buffer in bytes of kernel memory.
    pub(crate) fn new(batch: usize, buffer_bytes: u32, now_ns: u64) -> Self {
        let max = batch as f64 * 0.75;
        Self { max, buffer_bytes: f64::from(buffer_bytes), updated_ns: now_ns, datagrams: 0, bytes: 0, nap_ns: None }
    }

    /// After a call that found the queue short, with the totals so far: how long to sleep; `None`: block.
    pub(crate) fn after(&mut self, now_ns: u64, datagrams: u64, bytes: u64) -> Option<u64> {
        let passed = now_ns.saturating_sub(self.updated_ns);
        if passed >= UPDATE_NS {
            let (count, sum, ns) = ((datagrams - self.datagrams) as f64, (bytes - self.bytes) as f64, passed as f64);
            self.nap_ns = self.length(count * 1e9 / ns, sum / count.max(1.0));
            (self.updated_ns, self.datagrams, self.bytes) = (now_ns, datagrams, bytes);
        }
        self.nap_ns
    }

    /// After a call that found nothing: a pause of the sender, or its end.
    pub(crate) const fn idle(&mut self) {
        self.nap_ns = None;
    }

    fn length(&self, pps: f64, mean_bytes: f64) -> Option<u64> {
        if pps < FROM_PPS {
            return None;
        }
        let room = self.buffer_bytes * PART / memory_of(mean_bytes);
        let ns = (room.min(self.max) * 1e9 / pps).min(MAX_NS);
        (ns >= MIN_NS).then_some(ns as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn length(buffer: u32, pps: f64, bytes: f64) -> Option<u64> {
        Nap::new(128, buffer, 0).length(pps, bytes)
    }

    #[test]
    fn low_rates_block_and_high_rates_nap() {
        assert_eq!(length(64 << 20, 3_000.0, 1472.0), None);
        assert_eq!(length(64 << 20, 10_000.0, 1472.0), Some(1_000_000));
        assert_eq!(length(64 << 20, 100_000.0, 1472.0), Some(960_000));
        assert_eq!(length(64 << 20, 400_000.0, 1472.0), Some(240_000));
        // So fast that a batch is there at once.
        assert_eq!(length(64 << 20, 10_000_000.0, 64.0), None);
    }

    #[test]
    fn a_small_buffer_is_not_slept_full() {
        // 425,984 bytes hold 154 datagrams of 1472 bytes; an eighth are 19.
        assert_eq!(length(425_984, 100_000.0, 1472.0), Some(193_488));
        assert_eq!(length(40_000, 400_000.0, 1472.0), None);
    }

    #[test]
    fn the_rate_is_updated_now_and_then() {
        let mut nap = Nap::new(128, 64 << 20, 0);
        assert_eq!(nap.after(1_000_000, 100, 147_200), None);
        assert_eq!(nap.after(5_000_000, 1000, 1_472_000), Some(480_000));
        assert_eq!(nap.after(6_000_000, 1001, 1_473_000), Some(480_000));
        nap.idle();
        assert_eq!(nap.after(7_000_000, 1001, 1_473_000), None);
        assert_eq!(nap.after(11_000_000, 1010, 1_480_000), None);
    }
}
