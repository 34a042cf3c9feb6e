//! An overload that is cut to half of it at once, and how long frames are missing after that: the recovery's trial.

use super::error::ForwardingError;
use super::tester::{LOOK_MS, Load, Tester};
use narrows_model::forwarding::modifiers::Modifier;
use narrows_model::forwarding::plan::Row;
use narrows_model::forwarding::{ForwardingTrial, Test};
use narrows_model::load::frames::{
    BROADCAST_STREAM, FrameInterval, FrameTrial, GeneratePlan, GenerateRecord, ReceiveRecord, StreamGot, StreamSent,
};
use narrows_search::procedures::RecoveryPlan;
use narrows_search::procedures::recovery::{Look, RecoverySeen, seen};

/// The first stream of the part of the overload that ends with the cut; those before are of the part that goes on.
const SECOND: u16 = 32;
/// Looks that are kept with the trial, once it is known what they tell.
const KEPT_LOOKS: usize = 200;

impl Tester<'_> {
    /// An overload that becomes half of it at once: two generators, of which one ends. The trial is that of both together; what was
    /// lost before the cut and after it, the receiver's looks say.
    pub(super) fn cut(
        &mut self,
        row: Row,
        repetition: u32,
        order: &RecoveryPlan,
    ) -> Result<(ForwardingTrial, RecoverySeen, Option<u64>), ForwardingError> {
        let way = self.way(row)?;
        let whole_ms = order.overload_ms + order.after_ms;
        let load = Load::Rate { pps: order.after_pps, duration_ms: whole_ms };
        let begun = self.begin(std::slice::from_ref(&way), row, load, Some(LOOK_MS))?;
        let base = self.generate_plan(&way, row, load, 2);
        let more = Load::Rate { pps: order.overload_pps - order.after_pps, duration_ms: order.overload_ms };
        let extra = GeneratePlan { first_stream: SECOND, ..self.generate_plan(&way, row, more, 2) };
        let base = GeneratePlan { workers: base.workers.min(SECOND.into()), ..base };
        let (port, stop) = (way.from.port.clone(), self.stop.clone());
        let (sent, beside) = self.beside(row, || port.generate(&[base, extra], &stop))?;
        let mut sent = sent?.into_iter();
        let (Some(base), Some(extra)) = (sent.next(), sent.next()) else {
            return Err(way.from.unfit("a generator of two saw nothing"));
        };
        let mut trial = self.end(begun, Test::Recovery, row, repetition, vec![together(&base, &extra)], beside)?;
        let one_clock = self.plan.one_clock();
        let cut_ns = trial.directions.first().and_then(|frames| cut_ns(&frames.got, &base, &extra, one_clock));
        // The looks count test frames alone.
        let share = self.modifier(row).map_or(0.0, Modifier::broadcast_share);
        let order = RecoveryPlan { after_pps: order.after_pps * (1.0 - share), ..*order };
        let mut found =
            trial.directions.first().map_or_else(RecoverySeen::default, |frames| around(&order, frames, &base, cut_ns));
        // Of both ways of the books the trial's own stands; whether frames were told apart, the looks say.
        found.invalid = trial.invalid.clone().or(found.invalid);
        for frames in &mut trial.directions {
            thin(&mut frames.got.intervals);
        }
        Ok((trial, found, cut_ns))
    }
}

/// Both generators as one: they send by one device.
fn together(base: &GenerateRecord, extra: &GenerateRecord) -> GenerateRecord {
    let end = |of: &GenerateRecord| of.first_ns.map(|first| first.saturating_add(of.elapsed_ns));
    let first_ns = [base.first_ns, extra.first_ns].into_iter().flatten().min();
    let last_ns = [end(base), end(extra)].into_iter().flatten().max();
    GenerateRecord {
        streams: base.streams.iter().chain(&extra.streams).copied().collect(),
        // Of the device, whose counter both have read over their own time.
        refused: base.refused.max(extra.refused),
        first_ns,
        elapsed_ns: first_ns.zip(last_ns).map_or(base.elapsed_ns, |(first, last)| last.saturating_sub(first)),
        ended: base.ended.clone().or_else(|| extra.ended.clone()),
        ..base.clone()
    }
}

/// What the looks tell; invalid where they cannot.
fn around(order: &RecoveryPlan, frames: &FrameTrial, base: &GenerateRecord, cut_ns: Option<u64>) -> RecoverySeen {
    let cannot = |why: &str| RecoverySeen { invalid: Some(why.to_owned()), ..RecoverySeen::default() };
    let Some(after_ns) = cut_ns.zip(frames.got.began_ns).and_then(|(cut, began)| cut.checked_sub(began)) else {
        return cannot("when the overload ended is not known by the clock of the receiver");
    };
    let look = |it: &FrameInterval| Some(Look { at_us: it.at_us, frames: it.frames, lost: it.lost()? });
    let Some(looks) = frames.got.intervals.iter().map(look).collect::<Option<Vec<_>>>() else {
        return cannot("the receiver does not tell by when frames were lost");
    };
    seen(order, &looks, after_ns / 1_000, u64::try_from(frames.lost()).unwrap_or(0), at_end(base, &frames.got))
}

/// The end of the second generator by the clock of the receiver. Two hosts have two clocks: the first frame that left and the first
/// that came are then the same moment.
fn cut_ns(got: &ReceiveRecord, base: &GenerateRecord, extra: &GenerateRecord, one_clock: bool) -> Option<u64> {
    let cut_ns = extra.first_ns?.saturating_add(extra.elapsed_ns);
    if one_clock {
        return Some(cut_ns);
    }
    let after_ns = cut_ns.checked_sub(base.first_ns?.min(extra.first_ns?))?;
    Some(got.first_ns?.saturating_add(after_ns))
}

/// Frames that the first generator sent after the last one of each stream that came.
fn at_end(base: &GenerateRecord, got: &ReceiveRecord) -> u64 {
    let behind = |sent: &StreamSent| {
        let came = got.streams.iter().find(|stream| stream.stream == sent.stream && stream.received > 0);
        sent.handed.saturating_sub(came.map_or(0, |stream: &StreamGot| stream.highest.saturating_add(1)))
    };
    // Frames to all stations are not missed.
    base.streams.iter().filter(|sent| sent.stream != BROADCAST_STREAM).map(behind).sum()
}

/// Some of many looks, the last among them.
pub(super) fn thin(looks: &mut Vec<FrameInterval>) {
    let every = looks.len().div_ceil(KEPT_LOOKS).max(1);
    let last = looks.len();
    let mut nth = 0;
    looks.retain(|_| {
        nth += 1;
        nth % every == 0 || nth == last
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinned_looks_keep_the_last() {
        let look = |at_us| FrameInterval { at_us, ..FrameInterval::default() };
        let mut looks: Vec<_> = (1..=1_001).map(look).collect();
        thin(&mut looks);
        assert_eq!((looks.len(), looks[0].at_us), (167, 6));
        assert_eq!(looks.last().map(|look| look.at_us), Some(1_001));
        let mut few: Vec<_> = (1..=3).map(look).collect();
        thin(&mut few);
        assert_eq!(few.len(), 3);
    }
}
