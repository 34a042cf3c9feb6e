//! Sending a step: datagrams evenly spaced, or all at once.

use narrows_model::{ProfilePlan, ProfileStep, StepSent};
use narrows_sys::nanos;
use narrows_sys::udp::{Outgoing, SendBatch};
use std::io::ErrorKind;
use std::net::UdpSocket;

/// Datagrams of one call.
const BATCH: usize = 32;
/// Datagrams that are due within this time leave together.
const TOGETHER_NS: u64 = 150_000;
/// A sender that is later than this skips the time: no burst makes up for it.
const LATE_NS: u64 = 1_500_000;

/// Sends a step until it is over. `fill` writes the datagram of a number; `goes_on` is told what a call took, in bytes, and says whether to send more;
/// `needs_listener`: where nobody receives any more, the step is over.
pub(super) fn send(
    socket: &UdpSocket,
    step: &ProfileStep,
    needs_listener: bool,
    fill: impl Fn(u32, &mut [u8]),
    mut goes_on: impl FnMut(u64) -> bool,
) -> StepSent {
    let bytes = (step.datagram_bytes as usize).max(narrows_wire::probe::HEADER_BYTES);
    let mut buffer = vec![0; bytes * BATCH];
    let mut out = SendBatch::new(BATCH);
    let (mut sent, mut first_ns, mut last_ns, mut late_ns) = (0_u32, 0, 0, 0);
    let mut start_ns = nanos::monotonic();
    let limit_ns = start_ns + step.planned_ns() + ProfilePlan::MAX_STEP_MS * 1_000_000;
    while sent < step.datagrams {
        let due_ns = start_ns + u64::from(sent) * step.gap_ns;
        let mut now_ns = nanos::monotonic();
        if now_ns < due_ns {
            nanos::sleep_until(due_ns);
            now_ns = nanos::monotonic();
        }
        if now_ns > limit_ns {
            break;
        }
        let late = now_ns.saturating_sub(due_ns);
        late_ns = late_ns.max(late);
        if step.gap_ns > 0 && late > LATE_NS {
            start_ns += late;
        }
        let count = match step.gap_ns {
            0 => BATCH as u64,
            gap => (late.min(LATE_NS) / gap + 1).max(TOGETHER_NS / gap),
        };
        let left = u64::from(step.datagrams - sent);
        let count = usize::try_from(count.min(left)).unwrap_or(BATCH).clamp(1, BATCH);
        for (index, slot) in buffer.chunks_exact_mut(bytes).take(count).enumerate() {
            fill(sent + u32::try_from(index).unwrap_or(0), slot);
        }
        let messages: Vec<Outgoing> =
            (0..count).map(|index| Outgoing { from: index * bytes, bytes, segment_bytes: 0 }).collect();
        let mut took = 0;
        match out.send(socket, &buffer, &messages) {
            Ok(taken) => {
                if sent == 0 {
                    first_ns = now_ns;
                }
                sent += u32::try_from(taken).unwrap_or(0);
                // A train leaves in one call: until it returns.
                last_ns = if step.gap_ns == 0 { nanos::monotonic() } else { now_ns };
                took = (taken * bytes) as u64;
            }
            Err(error) if error.kind() == ErrorKind::ConnectionRefused && needs_listener => break,
            // No room in the device's queue; or an ICMP error of an earlier datagram.
            Err(_) => nanos::sleep_until(nanos::monotonic() + 200_000),
        }
        if !goes_on(took) {
            break;
        }
    }
    StepSent { datagrams: sent, span_ns: last_ns.saturating_sub(first_ns), late_ns }
}
