//! An overload that is cut to half of it at once, and how long frames are missing after that: the recovery's trial.

use super::error::ForwardingError;
use super::tester::{Load, Tester};
use narrows_model::forwarding_plan::Row;
use narrows_model::frames::{FrameInterval, GeneratePlan, ReceivePlan};
use narrows_sys::clock;
use std::time::Duration;

/// What was lost around a cut of the load.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Cut {
    pub(super) overload_lost: u64,
    pub(super) after_lost: u64,
    /// From the cut to the last frame lost.
    pub(super) last_loss_ns: Option<u64>,
    pub(super) invalid: Option<String>,
}

impl Tester<'_> {
    /// An overload that becomes half of it at once: two generators, of which one ends. Frames of the second are missing after
    /// the cut as long as the device has not recovered; the receiver's looks say how long.
    pub(super) fn cut(
        &mut self,
        row: Row,
        order: &narrows_search::procedures::RecoveryPlan,
    ) -> Result<Cut, ForwardingError> {
        let way = self.way(row)?;
        let whole_ms = order.overload_ms + order.after_ms;
        let receive = ReceivePlan {
            interval_ms: 10,
            ..self.receive_plan(&way, Load::Rate { pps: order.after_pps, duration_ms: whole_ms })
        };
        let receiver = way.to.port.receive(&receive, true)?;
        let counting_since = clock::now();
        let base = self.generate_plan(&way, row, Load::Rate { pps: order.after_pps, duration_ms: whole_ms });
        let more = Load::Rate { pps: order.overload_pps - order.after_pps, duration_ms: order.overload_ms };
        let extra = GeneratePlan { first_stream: 32, ..self.generate_plan(&way, row, more) };
        let order_us = clock::micros_since(counting_since);
        let sent = way.from.port.generate(&[base, extra], &self.stop)?;
        let [base, extra] = sent.as_slice() else { return Err(way.from.unfit("a generator of two saw nothing")) };
        // The cut by the clock of the receiver's looks: as near as the way of a request is long.
        let cut_us = order_us + extra.over_us;
        clock::sleep(Duration::from_millis(self.plan.residue_ms));
        let got = receiver.finish()?;
        let sent = [&base.record, &extra.record];
        let streams = |from: u16, to: u16| {
            got.streams
                .iter()
                .filter(|stream| (from..to).contains(&stream.stream))
                .map(|stream| stream.received.saturating_sub(stream.duplicates))
                .sum::<u64>()
        };
        let lost = [sent[0].sent().saturating_sub(streams(0, 32)), sent[1].sent().saturating_sub(streams(32, 64))];
        // After the cut only the first generator sends: where an interval holds clearly fewer frames than it sent, some are lost.
        let due = order.after_pps / 1e6;
        let short_of = |pair: &[FrameInterval]| {
            let time = (pair[1].at_us - pair[0].at_us) as f64;
            let missing = due * time - (pair[1].frames - pair[0].frames) as f64;
            (missing > 0.1 * due * time).then_some((pair[1].at_us, missing))
        };
        let after: Vec<(u64, f64)> =
            got.intervals.windows(2).filter(|pair| pair[0].at_us >= cut_us).filter_map(short_of).collect();
        let end_us = cut_us + order.after_ms * 1000;
        let after: Vec<_> = after.into_iter().filter(|(at, _)| *at + 20_000 < end_us).collect();
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let after_lost = (after.iter().map(|(_, missing)| missing).sum::<f64>() as u64).min(lost[0]);
        let ended = sent.iter().find_map(|record| record.ended.clone());
        Ok(Cut {
            overload_lost: (lost[0] + lost[1]).saturating_sub(after_lost),
            after_lost,
            last_loss_ns: after.last().map(|(at, _)| at.saturating_sub(cut_us) * 1000),
            invalid: ended.map(|why| format!("the generator ended early: {why}")),
        })
    }
}
