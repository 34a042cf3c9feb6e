//! The TCP streams of one end, for the sampler.

use super::worker::{Counters, Left, Shared};
use crate::common::connections::{Layer, Witness};
use crate::common::limits::CALL_LIMIT;
use crate::common::outcome::{Outcome, Remarks, Timing};
use crate::common::placing::{self, Placing};
use crate::common::sampler::Streams;
use narrows_model::{Place, TcpInfo, TcpSample, TcpStreamRecord, Transport};
use narrows_sys::tcp;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

/// Near the planned end calls are kept this short, so that a blocked sender ends in time …
const LAST_CALL_LIMIT: Duration = Duration::from_millis(5);
/// … and from this long before it: all calls that began earlier are over by then.
const LAST_CALLS_US: u64 = 2 * CALL_LIMIT.as_micros() as u64;

/// What is asked of a connection.
#[derive(Debug)]
pub(super) enum Seen {
    Kernel(Arc<TcpStream>),
    Own(Arc<dyn Witness>),
}

impl Seen {
    pub(super) const fn kernel(&self) -> Option<&Arc<TcpStream>> {
        match self {
            Self::Kernel(socket) => Some(socket),
            Self::Own(_) => None,
        }
    }

    pub(super) fn info(&self) -> TcpInfo {
        match self {
            Self::Kernel(socket) => tcp::info(socket).unwrap_or_default(),
            Self::Own(witness) => witness.info(),
        }
    }
}

/// A connection with last words, and its socket where it is aborted after them.
type Parting = (Box<dyn Layer>, Option<Arc<TcpStream>>);

/// See the module. The lists go by position.
pub(super) struct TcpStreams<'a> {
    pub(super) shared: &'a Shared<'a>,
    pub(super) records: Vec<TcpStreamRecord>,
    /// Until the stream ended.
    pub(super) seen: Vec<Option<Seen>>,
    pub(super) counters: &'a [Counters],
    /// Where they run; `None` where other threads move the data.
    pub(super) placing: Option<Placing<'a>>,
    pub(super) last_calls: bool,
    /// What has last words once all is counted, and what is aborted after them.
    pub(super) parting: Vec<Parting>,
}

impl TcpStreams<'_> {
    /// Ends the connections of what has last words.
    pub(super) fn part(&mut self) {
        for (mut layer, socket) in self.parting.drain(..) {
            layer.close();
            // If this fails, the close is an ordinary one.
            let _ = socket.map(|socket| tcp::abort_on_close(&socket));
        }
    }

    fn sends(&self, index: usize) -> bool {
        self.records[index].flow.sender() == self.shared.place
    }
}

impl Streams for TcpStreams<'_> {
    type Sample = TcpSample;
    type Left = Left;

    /// What the kernel and the data thread report now. What the kernel does not report is missing.
    fn sample(&self, index: usize, at_us: u64) -> TcpSample {
        let [bytes, calls] = self.counters[index].all();
        let seen = self.seen[index].as_ref();
        let socket = seen.and_then(Seen::kernel);
        TcpSample {
            at_us,
            bytes,
            calls,
            thread_cpu_us: self.counters[index].thread.cpu_us(),
            thread_wait_us: self.counters[index].thread.wait_us(),
            tcp: seen.map(Seen::info).unwrap_or_default(),
            memory: socket.and_then(|socket| tcp::memory(socket).ok()),
            recv_q_bytes: socket.and_then(|socket| tcp::queued_in(socket).ok()),
            send_q_bytes: socket.and_then(|socket| tcp::queued_out(socket).ok()),
        }
    }

    /// Also closes the stream. A sender whose time is up closes abortively, so that its queue does not drain into the path.
    fn end(&mut self, index: usize, left: Left, _: &mut TcpSample, timing: Timing) -> Remarks {
        let Left { outcome, method, layer } = left;
        let sends = self.sends(index);
        let id = self.records[index].id;
        method.clone_into(&mut self.records[index].method);
        let mut remarks = match outcome {
            // Without a planned time a complete stream ends with the end of data: the byte counts show whether it was complete.
            Outcome::Closed if !sends && timing.end_us.is_none() => Remarks::default(),
            _ if sends => outcome.remarks(id, timing, "the peer closed the connection"),
            _ => outcome.remarks(id, timing, "lost the peer: its data ended"),
        };
        if let Some((_, why)) = self.shared.plain.get().filter(|(plain, _)| sends && plain.method() == method) {
            remarks.remarks.push(format!("stream {id}: zero copy is not possible: {why}; data was copied"));
        }
        let socket = self.seen[index].as_ref().and_then(Seen::kernel);
        if let Some(socket) = socket.filter(|_| self.shared.plan.transport == Transport::Multipath) {
            match narrows_sys::mptcp::subflows(socket) {
                Ok(Some(subflows)) => self.records[index].subflows = subflows,
                Ok(None) if self.shared.place == Place::Client => {
                    remarks
                        .remarks
                        .push(format!("stream {id}: plain TCP, since the other end did not agree to Multipath TCP"));
                }
                Ok(None) => {}
                Err(error) => remarks.remarks.push(format!("stream {id}: its subflows are unknown: {error}")),
            }
        }
        let in_order = timing.end_us.is_none() && matches!(outcome, Outcome::Complete);
        let seen = self.seen[index].take().filter(|_| sends && !in_order);
        let socket = seen.as_ref().and_then(Seen::kernel).cloned();
        if let Some(layer) = layer {
            self.parting.push((layer, socket));
        } else if let Some(socket) = socket {
            // If this fails, the close is an ordinary one.
            let _ = tcp::abort_on_close(&socket);
        }
        remarks
    }

    fn check(&mut self, now_us: u64) {
        let Some(placing) = &mut self.placing else { return };
        let (counters, seen) = (self.counters, &self.seen);
        let incoming = || tcp::incoming_cpu(seen.first()?.as_ref()?.kernel()?);
        placing.check(
            now_us,
            &placing::Seen {
                threads: &|index| counters[index].thread.running(),
                incoming: &incoming,
                bytes: counters.iter().map(|it| it.get(0)).sum(),
            },
        );
    }

    fn remark(&mut self) -> Option<String> {
        self.placing.as_ref()?.remark(" (`--pin none`: as the scheduler places them)")
    }

    fn arrived(&self) -> u64 {
        (0..self.counters.len()).filter(|index| !self.sends(*index)).map(|index| self.counters[index].get(0)).sum()
    }

    fn approach_end(&mut self, left_us: u64) {
        if self.last_calls || left_us > LAST_CALLS_US {
            return;
        }
        self.last_calls = true;
        let senders = (0..).zip(&self.seen).filter(|(index, _)| self.sends(*index));
        for socket in senders.filter_map(|(_, seen)| seen.as_ref()?.kernel()) {
            // Without it the sender ends one call limit late.
            let _ = tcp::set_call_limit(socket, LAST_CALL_LIMIT);
        }
    }
}
