//! The server's end: it answers probes, sends the steps that the client asks for, and accounts for those that it received.

use super::end::End;
use crate::common::limits::GRACE;
use narrows_model::{Direction, ProfileEndRecord, ProfilePlan, StepSent};
use narrows_wire::profile::Note;

pub(super) fn run(mut end: End<'_, '_>) -> ProfileEndRecord {
    let limit_ns = (end.plan.limit_ms + 6_000) * 1_000_000 + u64::try_from(GRACE.as_nanos()).unwrap_or(0);
    let mut steps = 0;
    // The last step that was sent: a client that did not hear of its end asks again.
    let mut last: Option<(u16, StepSent)> = None;
    'trial: while end.at_ns() < limit_ns && !end.is_stopped() {
        for heard in end.listen(true) {
            match heard.note {
                Note::Probe { n } => {
                    let large = n % 2 == 1 && end.plan.direction == Direction::Down;
                    let bytes = if large { end.record.datagram_bytes as usize } else { 0 };
                    end.send_filled_note(&Note::Echo { n, arrived_ns: heard.arrived_ns }, bytes);
                }
                Note::Sent { step, sent } => {
                    end.expected = None;
                    // What the client sends is as large as the path carries, which a first hello need not be.
                    let most = step.datagram_bytes.min(ProfilePlan::MAX_DATAGRAM_BYTES);
                    end.record.datagram_bytes = end.record.datagram_bytes.max(most);
                    let received = end.account_of(step.id, sent.datagrams);
                    end.send_note(&Note::Received { id: step.id, received });
                    steps = steps.max(u32::from(step.id));
                }
                Note::Send { step } => match step.check(end.plan.max_bps, end.record.header_bytes) {
                    Err(why) => end.send_note(&Note::Refused { id: step.id, why }),
                    Ok(()) if last.is_some_and(|(id, _)| id > step.id) => {}
                    Ok(()) => {
                        let sent = match last {
                            Some((id, sent)) if id == step.id => sent,
                            _ => end.send(&step),
                        };
                        last = Some((step.id, sent));
                        end.send_note(&Note::Sent { step, sent });
                        steps = steps.max(u32::from(step.id));
                    }
                },
                Note::End => break 'trial,
                Note::Echo { .. } | Note::Enough { .. } | Note::Received { .. } | Note::Refused { .. } => {}
            }
        }
        end.report(steps);
    }
    end.into_record()
}
