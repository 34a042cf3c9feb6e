//! The client's end: probes of the idle path, then one step after another.

use super::end::End;
use narrows_model::{Direction, ProfileEndRecord, ProfileProbe, ProfileStep, StepReceived, StepRecord, StepSent};
use narrows_search::profile::{Next, Staircase};
use narrows_sys::nanos;
use narrows_wire::profile::Note;

/// Probes of the idle path, so many that a 99th percentile has one beyond it, and the time between two.
const PROBES: u32 = 100;
const PROBE_GAP_NS: u64 = 8_000_000;
/// Minimum time before a question is repeated, and total time to wait for its answer.
const ASK_NS: u64 = 60_000_000;
const ASK_LIMIT_NS: u64 = 4_000_000_000;
/// After an account with something missing: stragglers may still come.
const STRAGGLERS_NS: u64 = 12_000_000;

pub(super) fn run(mut end: End<'_, '_>) -> ProfileEndRecord {
    probe(&mut end);
    let slowest_rtt_ns = end.record.probes.iter().map(|probe| probe.rtt_ns).max().unwrap_or(100_000_000);
    let ask_ns = ASK_NS.max(2 * slowest_rtt_ns);
    let mut staircase =
        Staircase::new(end.plan, end.record.header_bytes, end.record.datagram_bytes, &end.record.probes);
    if end.record.probes.is_empty() {
        end.record.remarks.push("no answer to the probes of the idle path".to_owned());
    }
    while let Next::Step { step, wait_ns } = staircase.next(end.at_ns()) {
        let until_ns = nanos::monotonic() + wait_ns;
        let _ = end.wait_for(until_ns, |_| None::<()>);
        if end.is_stopped() {
            break;
        }
        let at_us = end.at_ns() / 1000;
        let (sent, received) = if end.plan.direction == Direction::Down {
            receive(&mut end, step, ask_ns)
        } else {
            send(&mut end, step, ask_ns)
        };
        let record = StepRecord { at_us, step, sent, received };
        end.record.steps.push(record.clone());
        staircase.observe(record);
        let steps = u32::try_from(end.record.steps.len()).unwrap_or(u32::MAX);
        end.report(steps);
    }
    for _ in 0..3 {
        end.send_note(&Note::End);
    }
    end.into_record()
}

/// Sends probes, every second one as large as the datagrams of the steps in the direction of the profile.
fn probe(end: &mut End<'_, '_>) {
    let full = end.record.datagram_bytes;
    let mut asked = vec![0_u64; PROBES as usize];
    let begin_ns = nanos::monotonic();
    let mut sent = 0;
    let mut until_ns = begin_ns + u64::from(PROBES) * PROBE_GAP_NS + 1_000_000_000;
    while nanos::monotonic() < until_ns && !end.is_stopped() && end.record.probes.len() < PROBES as usize {
        if sent < PROBES && nanos::monotonic() >= begin_ns + u64::from(sent) * PROBE_GAP_NS {
            asked[sent as usize] = end.clock.now();
            let large = sent % 2 == 1 && end.plan.direction == Direction::Up;
            end.send_filled_note(&Note::Probe { n: sent }, if large { full as usize } else { 0 });
            sent += 1;
        }
        for heard in end.listen(true) {
            let Note::Echo { n, arrived_ns } = heard.note else { continue };
            let Some(asked_ns) = asked.get_mut(n as usize).filter(|ns| **ns > 0) else { continue };
            let difference = |later: u64, earlier: u64| {
                i64::try_from(later).unwrap_or(0).saturating_sub(i64::try_from(earlier).unwrap_or(0))
            };
            let (up_ns, down_ns) = (difference(arrived_ns, *asked_ns), difference(heard.arrived_ns, heard.sent_ns));
            let bytes = if n % 2 == 1 { full } else { 0 };
            let rtt_ns = u64::try_from(up_ns.saturating_add(down_ns)).unwrap_or(0);
            end.record.probes.push(ProfileProbe { bytes, rtt_ns, up_ns, down_ns });
            // A copy of the answer is none.
            *asked_ns = 0;
        }
        // The last ones have as long as the slowest answer took.
        let slowest_ns = end.record.probes.iter().map(|probe| probe.rtt_ns).max();
        if let (PROBES, Some(slowest_ns)) = (sent, slowest_ns) {
            until_ns = until_ns.min(begin_ns + u64::from(PROBES) * PROBE_GAP_NS + 2 * slowest_ns + 20_000_000);
        }
    }
    end.record.probes_sent = sent;
}

/// Sends a step, and asks the server what arrived.
fn send(end: &mut End<'_, '_>, step: ProfileStep, ask_ns: u64) -> (StepSent, Option<StepReceived>) {
    let sent = end.send(&step);
    let mut received = ask(end, step, sent, ask_ns);
    if received.as_ref().is_some_and(|received| received.datagrams < sent.datagrams) {
        let _ = end.wait_for(nanos::monotonic() + STRAGGLERS_NS, |_| None::<()>);
        received = ask(end, step, sent, ask_ns).or(received);
    }
    (sent, received)
}

fn ask(end: &mut End<'_, '_>, step: ProfileStep, sent: StepSent, ask_ns: u64) -> Option<StepReceived> {
    let limit_ns = nanos::monotonic() + ASK_LIMIT_NS;
    let mut wait_ns = ask_ns;
    while nanos::monotonic() < limit_ns && !end.is_stopped() {
        end.send_note(&Note::Sent { step, sent });
        let until_ns = nanos::monotonic() + wait_ns;
        let answer = end.wait_for(until_ns, |heard| match &heard.note {
            Note::Received { id, received } if *id == step.id => Some(received.clone()),
            _ => None,
        });
        if answer.is_some() {
            return answer;
        }
        wait_ns = (wait_ns * 3 / 2).min(500_000_000.max(ask_ns));
    }
    None
}

/// Has the server send a step.
fn receive(end: &mut End<'_, '_>, step: ProfileStep, ask_ns: u64) -> (StepSent, Option<StepReceived>) {
    end.expect(step);
    let limit_ns = nanos::monotonic() + step.planned_ns() + ASK_LIMIT_NS;
    let mut wait_ns = ask_ns;
    while nanos::monotonic() < limit_ns && !end.is_stopped() {
        end.send_note(&Note::Send { step });
        let until_ns = nanos::monotonic() + step.planned_ns() + wait_ns;
        let sent = end.wait_for(until_ns, |heard| match &heard.note {
            Note::Sent { step: of, sent } if of.id == step.id => Some(Some(*sent)),
            Note::Refused { id, .. } if *id == step.id => Some(None),
            _ => None,
        });
        if let Some(sent) = sent {
            let Some(sent) = sent else { break };
            let _ = end.wait_for(nanos::monotonic() + STRAGGLERS_NS / 4, |_| None::<()>);
            if end.account(sent.datagrams).datagrams < sent.datagrams {
                let _ = end.wait_for(nanos::monotonic() + STRAGGLERS_NS, |_| None::<()>);
            }
            return (sent, Some(end.account(sent.datagrams)));
        }
        wait_ns = (wait_ns * 3 / 2).min(500_000_000.max(ask_ns));
    }
    (StepSent::default(), None)
}
