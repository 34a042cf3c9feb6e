//! Steps to and from a server of iperf3. It has no notes: its control connection says when a step begins, and this end when it is over.

use super::arrivals::Arrivals;
use super::end::{LISTEN, ROOM};
use super::sending;
use crate::Stop;
use narrows_model::{ProfilePlan, ProfileStep, StepReceived, StepSent};
use narrows_sys::nanos::{self, EvenClock};
use narrows_sys::udp::{ReceiveBatch, socket};
use narrows_wire::iperf3::datagram::Header;
use std::net::UdpSocket;

/// A step whose last datagrams are still under way has so long since the last one that came.
const QUIET_NS: u64 = 200_000_000;
/// After a datagram beyond the step's last one: what it overtook may still come.
const STRAGGLERS_NS: u64 = 12_000_000;
/// And no longer than this in all, beside its planned time.
const LATEST_NS: u64 = 4_000_000_000;

/// Sends a step.
pub fn send(socket: &UdpSocket, step: &ProfileStep, stop: &Stop) -> StepSent {
    let fill = |n: u32, slot: &mut [u8]| {
        Header { sent_us: nanos::monotonic() / 1_000, sequence: u64::from(n) + 1 }.encode(true, slot);
    };
    sending::send(socket, step, false, fill, |_| !stop.is_set())
}

/// When the first and the last datagram that arrived were sent, by the sender's clock, and how late the latest one was.
#[derive(Clone, Copy)]
struct Sends {
    first: (u32, u64),
    last: (u32, u64),
    late_ns: u64,
}

impl Sends {
    fn with(self, n: u32, sent_ns: u64, gap_ns: u64) -> Self {
        let due_ns = self.first.1.saturating_add(u64::from(n.saturating_sub(self.first.0)) * gap_ns);
        let late_ns = if gap_ns > 0 { sent_ns.saturating_sub(due_ns) } else { 0 };
        let last = if n > self.last.0 { (n, sent_ns) } else { self.last };
        Self { last, late_ns: self.late_ns.max(late_ns), ..self }
    }

    /// What was sent of so many datagrams, at the rate of those that arrived.
    fn of(self, datagrams: u32) -> StepSent {
        let between = u64::from(self.last.0.saturating_sub(self.first.0));
        let span_ns = self.last.1.saturating_sub(self.first.1);
        let all =
            (u128::from(span_ns) * u128::from(datagrams.saturating_sub(1))).checked_div(between.into()).unwrap_or(0);
        // The stamps are the server's word.
        let span_ns = u64::try_from(all).unwrap_or(u64::MAX).min(ProfilePlan::MAX_MS * 1_000_000);
        StepSent { datagrams, span_ns, late_ns: self.late_ns }
    }
}

/// Receives a step that the server sends from about now on, until it is over or shows what it can. The server sends more until it is told to stop;
/// that is not counted. `first_ns`: how long the first datagram may take. `None`: nothing came.
pub fn receive(socket: &UdpSocket, step: &ProfileStep, first_ns: u64, stop: &Stop) -> Option<(StepSent, StepReceived)> {
    let _ = socket::set_receive_stamps(socket, true);
    let _ = socket::set_coalescing(socket, false);
    let _ = socket.set_read_timeout(Some(LISTEN));
    let clock = EvenClock::begin();
    let mut batch = ReceiveBatch::new(64, ROOM);
    let mut arrivals = Arrivals::new(step.id);
    let (mut sends, mut least_ns, mut is_whole, mut is_over): (Option<Sends>, Option<i64>, _, _) =
        (None, None, false, false);
    let began_ns = nanos::monotonic();
    let latest_ns = began_ns + step.planned_ns() + first_ns + LATEST_NS;
    let mut until_ns = began_ns + step.planned_ns() + first_ns;
    let mut beyond_ns = latest_ns;
    while !is_over && nanos::monotonic() < until_ns.min(beyond_ns) && !stop.is_set() {
        let Ok(count) = batch.receive(socket, true) else { continue };
        let stamps = clock.stamps();
        for message in (0..count).filter_map(|index| batch.message(index)) {
            // The reply that opened the stream may come twice, and is shorter.
            let Some(header) = Header::decode(true, message.bytes) else { continue };
            let Some(n) = header.sequence.checked_sub(1).and_then(|n| u32::try_from(n).ok()) else { continue };
            if n >= step.datagrams {
                beyond_ns = beyond_ns.min(nanos::monotonic() + STRAGGLERS_NS);
                is_whole = true;
                continue;
            }
            let (arrived_ns, sent_ns) = (stamps.at(message.stamp_ns), header.sent_us.saturating_mul(1_000));
            let delay_ns = i64::try_from(arrived_ns).unwrap_or(0) - i64::try_from(sent_ns).unwrap_or(0);
            let least = least_ns.map_or(delay_ns, |least| least.min(delay_ns));
            least_ns = Some(least);
            arrivals.take(n, arrived_ns, delay_ns, delay_ns - least, Some(step));
            let first = Sends { first: (n, sent_ns), last: (n, sent_ns), late_ns: 0 };
            sends = Some(sends.unwrap_or(first).with(n, sent_ns, step.gap_ns));
            until_ns = until_ns.max(nanos::monotonic() + QUIET_NS);
        }
        let has_all = arrivals.has_all(step.datagrams);
        is_whole |= has_all;
        is_over = has_all || step.stop_above_us > 0 && arrivals.is_enough();
    }
    let sends = sends?;
    // Beyond the last one that came nobody knows what was sent, unless that is more than the step.
    let sent = if is_whole { step.datagrams } else { arrivals.sent_at_least() };
    Some((sends.of(sent), arrivals.account(sent, 0)))
}
