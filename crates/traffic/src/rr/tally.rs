//! The running totals of a stream: written by its thread, or by the accept path.

use crate::common::counters::Counters;
use narrows_model::RrSample;

/// Transactions, failures, and the sum of the latencies in nanoseconds.
pub(crate) type Tally = Counters<3>;

const TRANSACTIONS: usize = 0;
const FAILURES: usize = 1;
const LATENCY_SUM_NS: usize = 2;

impl Tally {
    /// A transaction is complete, after this latency.
    #[inline]
    pub(crate) fn complete(&self, latency_ns: u64) {
        self.add(LATENCY_SUM_NS, latency_ns);
        self.add(TRANSACTIONS, 1);
    }

    /// This many requests were answered.
    #[inline]
    pub(crate) fn answered(&self, count: u64) {
        self.add(TRANSACTIONS, count);
    }

    /// This many transactions failed.
    pub(crate) fn fail(&self, count: u64) {
        self.add(FAILURES, count);
    }

    /// A sample; `threaded`: whether the stream has a thread of its own.
    pub(crate) fn sample(&self, at_us: u64, threaded: bool) -> RrSample {
        let [transactions, failures, latency_sum_ns] = self.all();
        let thread_cpu_us = self.thread.cpu_us().filter(|_| threaded);
        RrSample { at_us, transactions, failures, latency_sum_ns, thread_cpu_us }
    }
}
