//! The TCP streams of one end, for the sampler.

use super::counters::Counters;
use super::outcome::Outcome;
use super::worker::{Left, Shared};
use crate::common::limits::CALL_LIMIT;
use crate::common::sampler::{EndRule, Remarks, Streams};
use crate::common::timing::Timing;
use narrows_model::{Flow, Limit, TcpSample, TcpStreamRecord};
use narrows_sys::tcp;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// Near the planned end calls are kept this short, so that a blocked sender ends in time …
const LAST_CALL_LIMIT: Duration = Duration::from_millis(5);
/// … and from this long before it: all calls that began earlier are over by then.
const LAST_CALLS_US: u64 = 2 * CALL_LIMIT.as_micros() as u64;

/// See the module. The lists go by position.
pub(super) struct TcpStreams<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) records: Vec<TcpStreamRecord>,
    /// Until the stream ended.
    pub(super) sockets: Vec<Option<Arc<TcpStream>>>,
    pub(super) counters: &'a [Counters],
    pub(super) last_calls: bool,
}

impl Streams for TcpStreams<'_> {
    type Sample = TcpSample;
    type Left = Left;

    fn names(&self) -> Vec<(u32, Flow)> {
        self.records.iter().map(|record| (record.id, record.flow)).collect()
    }

    fn sends(&self, index: usize) -> bool {
        self.records[index].flow.sender() == self.shared.place
    }

    /// What the kernel and the data thread report now. What the kernel does not report is missing.
    fn sample(&self, index: usize, at_us: u64) -> TcpSample {
        let counters = &self.counters[index];
        let socket = self.sockets[index].as_ref();
        TcpSample {
            at_us,
            bytes: counters.bytes(),
            calls: counters.calls(),
            thread_cpu_us: counters.thread.cpu_us(),
            tcp: socket.and_then(|socket| tcp::info(socket).ok()).unwrap_or_default(),
            memory: socket.and_then(|socket| tcp::memory(socket).ok()),
            recv_q_bytes: socket.and_then(|socket| tcp::queued_in(socket).ok()),
            send_q_bytes: socket.and_then(|socket| tcp::queued_out(socket).ok()),
        }
    }

    /// Also closes the stream. A sender whose time is up closes abortively, so that its queue does not drain into the path.
    fn end(&mut self, index: usize, left: Left, _: &mut TcpSample, timing: Timing) -> Remarks {
        let Left { outcome, method } = left;
        let sends = self.sends(index);
        let id = self.records[index].id;
        method.clone_into(&mut self.records[index].method);
        let remark = if sends { outcome.remark_on_sender(id, timing) } else { outcome.remark_on_receiver(id, timing) };
        let mut remarks = Remarks::default();
        if matches!(outcome, Outcome::Closed | Outcome::Broken(_)) {
            remarks.loss = remark;
        } else {
            remarks.remarks.extend(remark);
        }
        if sends && self.shared.payload.as_ref().is_some_and(|payload| payload.method() != method) {
            let remark = format!("stream {id}: zero copy is not possible on this socket; it sent copies");
            remarks.remarks.push(remark);
        }
        let in_order = timing.end_us.is_none() && matches!(outcome, Outcome::Complete);
        if let Some(socket) = self.sockets[index].take().filter(|_| sends && !in_order) {
            // If this fails, the close is an ordinary one.
            let _ = tcp::abort_on_close(&socket);
        }
        remarks
    }

    fn rule(&self) -> EndRule {
        let end_us = match self.shared.plan.limit {
            Limit::DurationMs(ms) => Some(ms * 1000),
            Limit::BytesPerStream(_) => None,
        };
        EndRule { end_us, graces: 1, when_idle: true, after_senders: false }
    }

    fn arrived(&self) -> u64 {
        (0..).zip(self.counters).filter(|(index, _)| !self.sends(*index)).map(|(_, counters)| counters.bytes()).sum()
    }

    fn approach_end(&mut self, left_us: u64) {
        if self.last_calls || left_us > LAST_CALLS_US {
            return;
        }
        self.last_calls = true;
        for socket in (0..).zip(&self.sockets).filter(|(index, _)| self.sends(*index)).filter_map(|(_, it)| it.as_ref())
        {
            // Without it the sender ends one call limit late.
            let _ = tcp::set_call_limit(socket, LAST_CALL_LIMIT);
        }
    }
}
