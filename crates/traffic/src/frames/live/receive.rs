//! The program `receive`, attached to a device for as long as the value lives.

use super::super::generator::Device;
use super::super::receiver::{Counter, Seen, StreamSeen};
use super::{RECEIVE, layout};
use layout::{Buckets, StreamState, Totals};
use narrows_model::frames::{FlowGot, ReceivePlan};
use narrows_stats::Histogram;
use narrows_sys::bpf::{Attached, Object, XdpMode};
use narrows_sys::{Result, clock};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const STREAMS: u32 = 64;

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
        let object = Object::load("receive", RECEIVE, &config).map_err(|error| match error.errno() {
            Some(1 | 13) => "it needs root (CAP_BPF and CAP_NET_ADMIN)".to_owned(),
            _ => error.to_string(),
        })?;
        let attached = object.attach(device.index, mode).map_err(|error| match error.errno() {
            Some(16) => "another XDP program is attached to it".to_owned(),
            Some(95) => {
                "its driver runs no XDP programs (a virtual pair does where this end has at least as many queues to \
                         receive as the other has to send)"
                    .to_owned()
            }
            Some(34 | 22) => format!("its MTU of {} or its offloads do not go with XDP in the driver", device.mtu),
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
        let totals = self.object.read("totals", &0_u32.to_ne_bytes())?;
        Ok(totals.iter().map(|bytes| Totals::read(bytes).frames).sum())
    }

    fn read(&mut self, per_flow: bool) -> Result<Seen> {
        let mut seen = Seen::default();
        for bytes in self.object.read("totals", &0_u32.to_ne_bytes())? {
            let totals = Totals::read(&bytes);
            seen.foreign += totals.foreign;
            seen.bytes += totals.bytes;
            seen.flows_left_out += totals.flows_left_out;
            if totals.frames > 0 {
                seen.first_ns = if seen.first_ns == 0 { totals.first_ns } else { seen.first_ns.min(totals.first_ns) };
                seen.last_ns = seen.last_ns.max(totals.last_ns);
            }
        }
        for stream in 0..STREAMS {
            let mut all = StreamSeen { stream: u16::try_from(stream).unwrap_or(0), ..StreamSeen::default() };
            for bytes in self.object.read("streams", &stream.to_ne_bytes())? {
                let state = StreamState::read(&bytes);
                all.received += state.received;
                all.duplicates += state.duplicates;
                all.reordered += state.reordered;
                all.next = all.next.max(state.next);
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
    fn flows(&self) -> Result<Vec<FlowGot>> {
        let mut flows = Vec::new();
        for key in self.object.keys("flows")? {
            let received = self
                .object
                .read("flows", &key)?
                .iter()
                .filter_map(|bytes| bytes.as_slice().try_into().ok().map(u64::from_ne_bytes))
                .sum();
            if let Some((source, destination)) = name(&key) {
                flows.push(FlowGot { source: source.to_string(), destination: destination.to_string(), received });
            }
        }
        Ok(flows)
    }
}

/// `struct flow` of `receive.c`.
fn name(key: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let ipv6 = u32::from_ne_bytes(key.get(36..40)?.try_into().ok()?) != 0;
    let address = |at: usize| -> Option<IpAddr> {
        let all: [u8; 16] = key.get(at..at + 16)?.try_into().ok()?;
        let last: [u8; 4] = all[12..].try_into().ok()?;
        Some(if ipv6 { Ipv6Addr::from(all).into() } else { Ipv4Addr::from(last).into() })
    };
    let port = |at: usize| Some(u16::from_be_bytes(key.get(at..at + 2)?.try_into().ok()?));
    Some((SocketAddr::new(address(0)?, port(32)?), SocketAddr::new(address(16)?, port(34)?)))
}
