//! The running totals and the CPU time of a data thread, readable by the sampler while the thread runs and after it ended.

use narrows_sys::{clock, cpu};
use std::array;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// One thread's totals, by the positions that its engine gives them, on cache lines of their own so that the sampler does not slow
/// others down. Plain sums: no order is needed.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct Counters<const N: usize> {
    totals: [AtomicU64; N],
    pub(crate) thread: ThreadClock,
}

impl<const N: usize> Counters<N> {
    pub(crate) fn new() -> Self {
        Self { totals: array::from_fn(|_| AtomicU64::new(0)), thread: ThreadClock::new() }
    }

    /// Sets the totals from the position `first` on.
    #[inline]
    pub(crate) fn set<const M: usize>(&self, first: usize, totals: [u64; M]) {
        for (total, value) in self.totals[first..first + M].iter().zip(totals) {
            total.store(value, Ordering::Relaxed);
        }
    }

    #[inline]
    pub(crate) fn add(&self, position: usize, count: u64) {
        self.totals[position].fetch_add(count, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self, position: usize) -> u64 {
        self.totals[position].load(Ordering::Relaxed)
    }

    pub(crate) fn all(&self) -> [u64; N] {
        array::from_fn(|position| self.get(position))
    }
}

/// One data thread's CPU clock. The thread writes, the sampler reads; no order between the two is needed.
#[derive(Debug)]
pub(crate) struct ThreadClock {
    thread: AtomicI32,
    /// The thread's CPU time when it ended; [`ThreadClock::RUNS`] until then.
    cpu_us_at_end: AtomicU64,
}

impl ThreadClock {
    const RUNS: u64 = u64::MAX;

    const fn new() -> Self {
        Self { thread: AtomicI32::new(0), cpu_us_at_end: AtomicU64::new(Self::RUNS) }
    }

    /// Called by the data thread when it begins.
    pub(crate) fn begin(&self) {
        self.thread.store(cpu::this_thread().0, Ordering::Relaxed);
    }

    /// Called by the data thread when it ends: its clock cannot be read from outside afterwards.
    pub(crate) fn end(&self) {
        self.cpu_us_at_end.store(clock::thread_cpu_us(), Ordering::Relaxed);
    }

    /// The thread, once it has begun and until it ended.
    pub(crate) fn running(&self) -> Option<cpu::ThreadId> {
        let ended = self.cpu_us_at_end.load(Ordering::Relaxed) != Self::RUNS;
        Some(self.thread.load(Ordering::Relaxed)).filter(|id| *id != 0 && !ended).map(cpu::ThreadId)
    }

    /// How long the data thread was ready and waited for a core; `None` before it began and once it has ended.
    pub(crate) fn wait_us(&self) -> Option<u64> {
        match self.thread.load(Ordering::Relaxed) {
            0 => None,
            id => cpu::thread_wait_us(cpu::ThreadId(id)),
        }
    }

    /// CPU time of the data thread so far; 0 before it began.
    pub(crate) fn cpu_us(&self) -> Option<u64> {
        let at_end = || Some(self.cpu_us_at_end.load(Ordering::Relaxed)).filter(|&us| us != Self::RUNS);
        match self.thread.load(Ordering::Relaxed) {
            0 => Some(0),
            // It may end between the two reads.
            id => at_end().or_else(|| cpu::thread_cpu_us(cpu::ThreadId(id))).or_else(at_end),
        }
    }
}
