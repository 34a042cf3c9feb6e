//! The UDP streams of one end, for the sampler.

use super::counters::Counters;
use super::stream::UdpStream;
use super::worker::{Counted, Left};
use crate::common::sampler::{EndRule, Remarks, Streams};
use crate::common::timing::Timing;
use narrows_model::{DatagramSizes, Flow, Place, UdpPlan, UdpSample, UdpStreamRecord};
use narrows_sys::tcp;
use narrows_sys::udp::socket::header_bytes;

/// See the module. The lists go by position.
pub(super) struct UdpStreams<'a> {
    pub(super) place: Place,
    pub(super) plan: &'a UdpPlan,
    pub(super) records: Vec<UdpStreamRecord>,
    pub(super) streams: &'a [UdpStream],
    pub(super) counters: &'a [Counters],
}

impl Streams for UdpStreams<'_> {
    type Sample = UdpSample;
    type Left = Left;

    fn names(&self) -> Vec<(u32, Flow)> {
        self.records.iter().map(|record| (record.id, record.flow)).collect()
    }

    fn sends(&self, index: usize) -> bool {
        self.streams[index].sends(self.place)
    }

    fn sample(&self, index: usize, at_us: u64) -> UdpSample {
        let memory = tcp::memory(&self.streams[index].socket).ok();
        self.counters[index].sample(at_us, memory, !self.sends(index))
    }

    fn end(&mut self, index: usize, left: Left, last: &mut UdpSample, _: Timing) -> Remarks {
        let record = &mut self.records[index];
        let remark = match left.counted {
            Counted::Sent(sent) => {
                last.datagrams = sent.sent.datagrams;
                record.datagram_bytes = sent.datagram_bytes;
                if self.plan.sizes == DatagramSizes::Largest {
                    record.path_mtu_bytes = Some(sent.datagram_bytes + header_bytes(&self.streams[index].peer));
                }
                sent.method.clone_into(&mut record.method);
                record.sent = Some(sent.sent);
                sent.remark
            }
            Counted::Received(received) => {
                // What is still missing now is lost, and the last datagrams sent may be missing too.
                last.lost = received.received.lost;
                record.datagram_bytes = received.datagram_bytes.unwrap_or(record.datagram_bytes);
                received.method.clone_into(&mut record.method);
                record.received = Some(received.received);
                received.remark
            }
        };
        let id = record.id;
        let remark = remark.map(|remark| format!("stream {id}: {remark}"));
        Remarks { remarks: remark.into_iter().chain(left.outcome.remark(id)).collect(), loss: None }
    }

    fn rule(&self) -> EndRule {
        EndRule { end_us: Some(self.plan.duration_ms * 1000), graces: 1, when_idle: false, after_senders: true }
    }

    /// A receiver notices an idle sender by itself.
    fn arrived(&self) -> u64 {
        0
    }
}
