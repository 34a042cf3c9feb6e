//! Moments at which the sender was told to slow down, by loss or by a congestion mark, and what was in flight then.
//!
//! A queue drops or marks what exceeds the capacity, whether it is full (drop-tail) or managed (RFC 7567; CoDel, RFC 8289: after 100 ms
//! above 5 ms): the load fills the path then, and waits. Whatever else loses or marks packets does not wait for that.

use super::counted::Counted;
use super::loss::{LEAST_APART_US, REPAIR};
use narrows_model::load::tcp::TcpSample;
use narrows_model::words::figures::float;

/// One of them, of one stream.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Signal {
    /// The RTT, microseconds, and …
    pub rtt_us: f64,
    /// … the rate of what was in flight, bits per second: the higher ones of the samples before and after.
    pub bps: f64,
    /// Whether a timeout followed: all that was in flight was lost, and no queue drops all.
    pub timeout: bool,
}

/// `TCP_CA_Loss`, include/uapi/linux/tcp.h.
const LOSS: u64 = 4;

/// The signals of all streams; one stands for what follows it within a few round trips, as the repairs of one overflow do.
pub(super) fn of<'a>(streams: impl Iterator<Item = &'a [TcpSample]>) -> Vec<Signal> {
    let mut signals = Vec::new();
    for samples in streams {
        let mut quiet_until_us = 0;
        for pair in samples.windows(2) {
            let [before, after] = pair else { continue };
            let (at_us, told) = (after.at_us, told(before, after));
            let known =
                || Some((before.tcp.rtt_us?.max(after.tcp.rtt_us?), in_flight_bps(before)?.max(in_flight_bps(after)?)));
            let Some((rtt_us, bps)) = told.then(known).flatten() else { continue };
            if at_us >= quiet_until_us {
                signals.push(Signal { rtt_us: float(rtt_us), bps, timeout: after.tcp.ca_state == Some(LOSS) });
                let apart_us = REPAIR.saturating_mul(rtt_us.min(1_000_000)).max(LEAST_APART_US);
                quiet_until_us = at_us.saturating_add(apart_us);
            }
        }
    }
    signals
}

/// Whether segments were retransmitted or ECN-marked between two samples, not counting repairs of an earlier loss.
fn told(before: &TcpSample, after: &TcpSample) -> bool {
    let grew = |of: fn(&TcpSample) -> Option<u64>| of(before).zip(of(after)).is_some_and(|(a, b)| b > a);
    let repairs = before.tcp.ca_state.is_some_and(|state| state >= 3);
    (grew(|sample| sample.tcp.total_retrans) && !repairs) || grew(|sample| sample.tcp.delivered_ce)
}

fn in_flight_bps(sample: &TcpSample) -> Option<f64> {
    let tcp = &sample.tcp;
    let bits = float(tcp.unacked?.saturating_mul(tcp.snd_mss_bytes?)) * 8.0;
    Some(bits * 1e6 / float(tcp.rtt_us.filter(|us| *us > 0)?))
}

/// See [`FlowView::restarts`](super::FlowView::restarts); `net/ipv4/tcp_output.c`, `tcp_cwnd_restart`.
pub(super) fn restarts(sent: &Counted<'_>) -> Option<u64> {
    let shrunk = |pair: &[TcpSample]| {
        let [a, b] = pair else { return Some(false) };
        let clean = a.tcp.total_retrans? == b.tcp.total_retrans? && a.tcp.ca_state? == 0 && b.tcp.ca_state? == 0;
        Some(clean && b.tcp.snd_cwnd?.saturating_mul(4) <= a.tcp.snd_cwnd?.saturating_mul(3))
    };
    let pairs: Option<Vec<bool>> = sent.iter().flat_map(|(_, samples)| samples.windows(2)).map(shrunk).collect();
    pairs.map(|pairs| pairs.into_iter().map(u64::from).sum())
}

/// See [`FlowView::marked_share`](super::FlowView::marked_share).
pub(super) fn marked(sent: &Counted<'_>) -> Option<f64> {
    let (mut marked, mut delivered) = (0, 0);
    for (_, samples) in sent {
        let (first, last) = (samples.first()?, samples.last()?);
        let grew = |of: fn(&TcpSample) -> Option<u64>| Some(of(last)?.saturating_sub(of(first)?));
        marked += grew(|sample| sample.tcp.delivered_ce)?;
        delivered += grew(|sample| sample.tcp.delivered)?;
    }
    (delivered > 0).then(|| marked as f64 / delivered as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::TcpInfo;

    /// A sample each 100 ms: segments sent again so far, marks so far, state, segments in flight and the RTT.
    fn samples(told: &[(u64, u64, u64, u64, u64)]) -> Vec<TcpSample> {
        let sample = |(at, (retrans, marks, state, unacked, rtt_us)): (u64, &(u64, u64, u64, u64, u64))| TcpSample {
            at_us: at * 100_000,
            tcp: TcpInfo {
                total_retrans: Some(*retrans),
                delivered_ce: Some(*marks),
                ca_state: Some(*state),
                unacked: Some(*unacked),
                rtt_us: Some(*rtt_us),
                snd_mss_bytes: Some(1_000),
                ..TcpInfo::default()
            },
            ..TcpSample::default()
        };
        (0..).zip(told).map(sample).collect()
    }

    #[test]
    fn one_overflow_is_one_signal_and_a_timeout_is_none_of_a_queue() {
        let full = (0, 0, 0, 120, 12_000);
        let repaired = samples(&[
            full,
            (1, 0, 3, 60, 10_000),
            (5, 0, 3, 60, 10_000),
            (9, 0, 3, 60, 10_000),
            (9, 0, 0, 60, 10_000),
        ]);
        // 120 segments of 1,000 bytes in 12 ms.
        assert_eq!(of(std::iter::once(&*repaired)), [Signal { rtt_us: 12_000.0, bps: 80e6, timeout: false }]);
        let marked = samples(&[full, (0, 1, 2, 84, 10_500), full, full, (0, 1, 0, 120, 12_000), (0, 3, 2, 84, 10_500)]);
        assert_eq!(of([&*marked, &*repaired].into_iter()).len(), 3);
        let dead = samples(&[full, (1, 0, 4, 120, 12_000)]);
        assert!(of(std::iter::once(&*dead))[0].timeout);
        assert_eq!(of(std::iter::once(&*samples(&[full, full]))), []);
    }
}
