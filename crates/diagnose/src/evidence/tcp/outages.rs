//! Times in which nothing arrived although a whole window was on its way.

use narrows_model::TcpInfo;
use narrows_model::load::tcp::{TcpSample, TcpStreamRecord};

/// The streams of one end of a flow, with their samples.
type Streams<'a> = [(&'a TcpStreamRecord, &'a [TcpSample])];

/// One such time, by the receiver's clock.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outage {
    /// The last arrival before it, seconds since the load began.
    pub from_s: f64,
    /// The last sample that still found nothing.
    pub to_s: f64,
    /// Segments that were on their way at its end, none of them acknowledged.
    pub outstanding: u64,
}

/// A sample that came later than after so many planned intervals: its host may have been stopped, and not the path.
const LATE: f64 = 1.5;
/// After two round trips without an acknowledgement a sender asks with a segment of its own (tail loss probe, RFC 8985 section 7.2), so a
/// path that lost the last segments alone is not silent for longer.
const ROUND_TRIPS: f64 = 2.0;
/// Random loss does not take a whole window of so many segments: at 30 % that is 1 of 100,000. Of a burst that a policer or a full queue
/// cuts, the part that passes is acknowledged.
const WINDOW: u64 = 10;
/// Of a window, this part may have been acknowledged selectively.
const ARRIVED: f64 = 0.1;

/// One instant of the receiver.
#[derive(Clone, Copy)]
struct Instant {
    at_us: u64,
    segments: u64,
    quiet_us: u64,
}

fn instants(got: &Streams<'_>) -> Option<Vec<Instant>> {
    let count = got.iter().map(|(_, samples)| samples.len()).min()?;
    let instant = |index: usize| {
        let each = || got.iter().map(|(_, samples)| &samples[index]);
        let at_us = each().map(|sample| sample.at_us).max()?;
        let segments = each().try_fold(0_u64, |sum, sample| Some(sum.saturating_add(sample.tcp.data_segs_in?)))?;
        let quiet_ms = each().filter_map(|sample| sample.tcp.last_data_recv_ms).min();
        Some(Instant { at_us, segments, quiet_us: quiet_ms.unwrap_or(0).saturating_mul(1000) })
    };
    (0..count).map(instant).collect()
}

/// Segments on their way and the smoothed RTT at the last sample of each stream in a time; `None` where some were acknowledged selectively.
fn on_the_way(sent: &Streams<'_>, from_us: u64, to_us: u64) -> Option<(u64, u64)> {
    let (mut outstanding, mut arrived, mut rtt_us) = (0_u64, 0_u64, 0);
    for (_, samples) in sent {
        let after = samples.partition_point(|sample| sample.at_us <= to_us);
        let last = samples[..after].last().filter(|sample| sample.at_us >= from_us)?;
        outstanding = outstanding.saturating_add(last.tcp.unacked?);
        arrived = arrived.saturating_add(last.tcp.sacked?);
        rtt_us = rtt_us.max(last.tcp.rtt_us?);
    }
    (arrived as f64 <= ARRIVED * outstanding as f64).then_some((outstanding, rtt_us))
}

/// The times in which nothing arrived on any stream, in order; `None` where the sockets do not tell. Only what lies between arrivals counts:
/// a path that carries nothing at all has another cause.
pub(super) fn outages(sent: &Streams<'_>, got: &Streams<'_>, interval_us: u64) -> Option<Vec<Outage>> {
    let instants = instants(got)?;
    // Without selective acknowledgements a timeout forgets what arrived (net/ipv4/tcp_input.c, `tcp_enter_loss`).
    let known = |sample: &TcpSample| {
        let tcp = &sample.tcp;
        tcp.unacked.is_some() && tcp.sacked.is_some() && tcp.negotiated(TcpInfo::OPT_SACK) != Some(false)
    };
    if sent.is_empty() || !sent.iter().all(|(_, samples)| samples.iter().all(known)) {
        return None;
    }
    let on_time = |pair: &[Instant]| pair[1].at_us.saturating_sub(pair[0].at_us) as f64 <= LATE * interval_us as f64;
    let silent: Vec<bool> =
        instants.windows(2).map(|pair| pair[1].segments == pair[0].segments && on_time(pair)).collect();
    // The two ends begin, and are sampled, at about the same time.
    let apart_us = interval_us / 10;
    let (mut found, mut index) = (Vec::new(), 0);
    while index < silent.len() {
        let length = silent[index..].iter().take_while(|silent| **silent).count();
        let (first, last) = (instants[index], instants[index + length]);
        let follows = instants.get(index + length + 1).is_some_and(|next| next.segments > last.segments);
        if length > 0 && follows && first.segments >= WINDOW {
            let before_us = instants[index.saturating_sub(1)].at_us.min(first.at_us);
            let from_us = last.at_us.saturating_sub(last.quiet_us).clamp(before_us, first.at_us);
            let long = |rtt_us: u64| last.at_us.saturating_sub(from_us) as f64 > ROUND_TRIPS * rtt_us as f64;
            found.extend(
                on_the_way(sent, first.at_us.saturating_sub(apart_us), last.at_us.saturating_add(apart_us))
                    .filter(|(outstanding, rtt_us)| *outstanding >= WINDOW && long(*rtt_us))
                    .map(|(outstanding, _)| Outage {
                        from_s: from_us as f64 / 1e6,
                        to_s: last.at_us as f64 / 1e6,
                        outstanding,
                    }),
            );
        }
        index += length + 1;
    }
    Some(found)
}
