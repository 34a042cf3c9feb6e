//! The program `receive`, attached to a device for as long as the value lives.

use super::super::counter::{Counter, Seen};
use super::super::device::Device;
use super::super::flows::{FlowSeen, StreamSeen};
use super::layout;
use super::programs::{RECEIVE, load_error};
use layout::{Buckets, StreamState, Totals};
use narrows_model::load::frames::{FrameInterval, GotSoFar, ReceivePlan};
use narrows_stats::Histogram;
use narrows_sys::bpf::{Attached, Object, XdpMode};
use narrows_sys::{Result, clock};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const STREAMS: u16 = 64;
/// The maximum of flows that are counted separately.
const MAX_FLOWS: u32 = 65_536;

#[derive(Debug)]
pub(in super::super) struct LiveReceiver {
    object: Object,
    _attached: Attached,
}

impl LiveReceiver {
    /// Attaches it; or a sentence why not.
    pub(in super::super) fn start(
        plan: &ReceivePlan,
        device: &Device,
        mode: XdpMode,
    ) -> std::result::Result<Self, String> {
        let end_ns = clock::monotonic_ns().saturating_add(plan.duration_ms.saturating_mul(1_000_000));
        let config = layout::receive_config(plan.gaps, plan.per_flow, end_ns);
        // The table takes its memory at once, for each CPU.
        let flows = if plan.per_flow { MAX_FLOWS } else { 1 };
        let object =
            Object::load_sized("receive", RECEIVE, &config, &[("flows", flows)]).map_err(|error| load_error(&error))?;
        let attached = object.attach(device.index, mode).map_err(|error| match error.errno() {
            Some(16) => "another XDP program is attached".to_owned(),
            Some(95) => {
                "its driver has no native XDP (a veth pair needs at least as many receive queues as the peer has send \
                queues)"
                    .to_owned()
            }
            Some(34 | 22) => format!("its MTU of {} or its offloads do not allow native XDP", device.mtu),
            _ => error.to_string(),
        })?;
        Ok(Self { object, _attached: attached })
    }

    fn histogram(&self, which: u32) -> Result<Option<(Histogram, f64)>> {
        let (mut all, mut sum, mut count) = (Histogram::new(), 0_f64, 0_u64);
        let (mut least, mut most) = (u64::MAX, 0);
        for bytes in self.object.read("histograms", &which.to_ne_bytes())? {
            let buckets = Buckets::read(&bytes);
            if buckets.count == 0 {
                continue;
            }
            least = least.min(buckets.least);
            most = most.max(buckets.most);
            sum += buckets.sum as f64;
            count += buckets.count;
            for (bound, n) in buckets.held {
                all.record_many(bound.clamp(least, most), n);
            }
        }
        Ok((count > 0).then(|| (all, sum / count as f64)))
    }
}

impl Counter for LiveReceiver {
    fn frames(&mut self) -> Result<u64> {
        Ok(self.totals()?.iter().map(|totals| totals.frames).sum())
    }

    fn sample(&mut self, at_us: u64) -> Result<FrameInterval> {
        let (mut frames, mut got, mut streams) = (0, GotSoFar::default(), 0);
        for totals in self.totals()? {
            got.foreign += totals.foreign;
            got.bytes += totals.bytes;
            streams |= totals.streams;
        }
        for stream in (0..STREAMS).filter(|stream| streams & 1 << stream != 0) {
            let first = self.stream(stream)?;
            // A frame that one CPU has counted since it was read, behind a later one that another CPU had when that was read,
            // is not lost: the counts are read once more where several CPUs count. One CPU's counts are consistent.
            let many = first.iter().filter(|state| state.received > 0).count() > 1;
            let then = if many { self.stream(stream)? } else { first.clone() };
            got.numbers += first.iter().map(|state| state.next).max().unwrap_or(0);
            for state in then {
                frames += state.received;
                got.duplicates += state.duplicates;
                got.reordered += state.reordered;
            }
        }
        Ok(FrameInterval { at_us, frames, sent: None, got: Some(got) })
    }

    fn read(&mut self, per_flow: bool) -> Result<Seen> {
        let mut seen = Seen::default();
        for totals in self.totals()? {
            seen.foreign += totals.foreign;
            seen.bytes += totals.bytes;
            seen.flows_left_out += totals.flows_left_out;
            seen.other_clocks += totals.other_clocks;
            if totals.frames > 0 {
                seen.first_ns = if seen.first_ns == 0 { totals.first_ns } else { seen.first_ns.min(totals.first_ns) };
                seen.last_ns = seen.last_ns.max(totals.last_ns);
            }
        }
        for stream in 0..STREAMS {
            let mut all = StreamSeen { stream, ..StreamSeen::default() };
            for state in self.stream(stream)? {
                all.received += state.received;
                all.duplicates += state.duplicates;
                all.reordered += state.reordered;
                all.restarts += state.starts;
                all.next = all.next.max(state.next);
            }
            all.restarts = all.restarts.saturating_sub(1);
            // A CPU cannot recognise a duplicate whose original another CPU counted.
            if all.received.saturating_sub(all.duplicates) > all.next {
                all.restarts = all.restarts.max(1);
            }
            if all.received > 0 {
                seen.streams.push(all);
            }
        }
        let distribution = |found: Option<(Histogram, f64)>| {
            found.map(|(histogram, mean)| narrows_model::Distribution { mean, ..histogram.distribution() })
        };
        seen.latency_ns = distribution(self.histogram(0)?);
        seen.gaps_ns = distribution(self.histogram(1)?);
        if per_flow {
            seen.flows = self.flows()?;
        }
        Ok(seen)
    }
}

impl LiveReceiver {
    fn totals(&self) -> Result<Vec<Totals>> {
        let all = self.object.read("totals", &0_u32.to_ne_bytes())?;
        Ok(all.iter().map(|bytes| Totals::read(bytes)).collect())
    }

    fn stream(&self, stream: u16) -> Result<Vec<StreamState>> {
        let all = self.object.read("streams", &u32::from(stream).to_ne_bytes())?;
        Ok(all.iter().map(|bytes| StreamState::read(bytes)).collect())
    }

    fn flows(&self) -> Result<Vec<FlowSeen>> {
        let mut flows = Vec::new();
        for key in self.object.keys("flows")? {
            let Some(mut flow) = name(&key) else { continue };
            for bytes in self.object.read("flows", &key)? {
                let [received, next, gap, duplicates, reordered] = layout::flow_count(&bytes);
                flow.add(&FlowSeen { received, next, gap, duplicates, reordered, ..flow });
            }
            flows.push(flow);
        }
        Ok(flows)
    }
}

/// `struct flow` of `receive.c`.
fn name(key: &[u8]) -> Option<FlowSeen> {
    let number = |at: usize| Some(u16::from_ne_bytes(key.get(at..at + 2)?.try_into().ok()?));
    let ipv6 = number(36)? != 0;
    let address = |at: usize| -> Option<IpAddr> {
        let all: [u8; 16] = key.get(at..at + 16)?.try_into().ok()?;
        let last: [u8; 4] = all[12..].try_into().ok()?;
        Some(if ipv6 { Ipv6Addr::from(all).into() } else { Ipv4Addr::from(last).into() })
    };
    let port = |at: usize| Some(number(at)?.to_be());
    let source = SocketAddr::new(address(0)?, port(32)?);
    Some(FlowSeen::new(number(38)?, source, SocketAddr::new(address(16)?, port(34)?)))
}
