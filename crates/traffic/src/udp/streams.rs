//! The UDP streams of one end, for the sampler.

use super::stream::UdpStream;
use super::worker::{Counters, Left};
use crate::common::outcome::{Remarks, Timing};
use crate::common::placing::{Placing, Seen};
use crate::common::sampler::Streams;
use narrows_model::{DatagramSizes, Place, UdpPlan, UdpSample, UdpStreamRecord};
use narrows_sys::tcp;
use narrows_sys::udp::socket::header_bytes;

/// See the module. The lists go by position.
pub(super) struct UdpStreams<'a> {
    pub(super) place: Place,
    pub(super) plan: &'a UdpPlan,
    pub(super) records: Vec<UdpStreamRecord>,
    pub(super) streams: &'a [UdpStream],
    pub(super) counters: &'a [Counters],
    pub(super) placing: Placing<'a>,
}

impl Streams for UdpStreams<'_> {
    type Sample = UdpSample;
    type Left = Left;

    fn sample(&self, index: usize, at_us: u64) -> UdpSample {
        let (stream, counters) = (&self.streams[index], &self.counters[index]);
        let memory = tcp::memory(&stream.socket).ok();
        let [datagrams, bytes, calls, errors, unsent, lost, duplicates, reordered, jitter] = counters.all();
        UdpSample {
            at_us,
            datagrams,
            bytes,
            calls,
            errors,
            unsent,
            lost,
            duplicates,
            reordered,
            jitter_ns: f64::from_bits(jitter),
            socket_drops: memory.filter(|_| !stream.sends(self.place)).map(|memory| u64::from(memory.drops)),
            thread_cpu_us: counters.thread.cpu_us(),
            memory,
        }
    }

    fn end(&mut self, index: usize, left: Left, last: &mut UdpSample, timing: Timing) -> Remarks {
        last.at_us = timing.data_over_us(left.waited);
        let record = &mut self.records[index];
        record.datagram_bytes = left.datagram_bytes.unwrap_or(record.datagram_bytes);
        left.method.clone_into(&mut record.method);
        if let Some(sent) = &left.sent {
            last.datagrams = sent.datagrams;
            if self.plan.sizes == DatagramSizes::Largest {
                record.path_mtu_bytes = Some(record.datagram_bytes + header_bytes(&self.streams[index].peer));
            }
        }
        if let Some(received) = &left.received {
            // What is still missing now is lost, and the last datagrams sent may be missing too.
            last.lost = received.lost;
        }
        (record.sent, record.received) = (left.sent, left.received);
        let mut remarks = left.outcome.remarks(record.id, timing, "");
        if let Some(remark) = left.remark {
            remarks.remarks.insert(0, format!("stream {}: {remark}", record.id));
        }
        remarks
    }

    fn check(&mut self, now_us: u64) {
        let (counters, streams) = (self.counters, self.streams);
        self.placing.check(
            now_us,
            &Seen {
                threads: &|index| counters[index].thread.running(),
                incoming: &|| tcp::incoming_cpu(&streams.first()?.socket),
                bytes: counters.iter().map(|it| it.get(1)).sum(),
            },
        );
    }

    fn remark(&mut self) -> Option<String> {
        self.placing.remark("")
    }

    /// A receiver notices an idle sender by itself.
    fn arrived(&self) -> u64 {
        0
    }
}
