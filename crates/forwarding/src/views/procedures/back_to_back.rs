//! The bursts of a row, and the buffer that they show.

use super::super::size::Of;
use super::entry::Entry;
use crate::data::Test;
use crate::data::procedures::Results;
use crate::data::procedures::back_to_back::BurstsOfSize;
use crate::procedures::buffer_time;
use narrows_model::run::sweep::Spread;

pub(super) const ENTRY: Entry = Entry::new(Test::BackToBack, fill, |it| it.back_to_back.bursts.is_some(), false);

fn fill(of: &Of<'_>, results: &mut Results, _: &mut Vec<String>) {
    let bursts: Vec<_> = of.record.bursts.iter().filter(|burst| of.is(burst.traffic, burst.size)).cloned().collect();
    let time = of.throughput_pps().and_then(|pps| buffer_time(&bursts, pps));
    let lengths: Vec<f64> = bursts.iter().map(|burst| burst.frames as f64).collect();
    let (Some(time), Some(frames)) = (time, Spread::of(&lengths)) else { return };
    results.back_to_back.bursts = Some(BurstsOfSize {
        traffic: of.row.traffic,
        size: of.row.size,
        mean_frames: time.mean_frames,
        frames,
        offered_pps: bursts.first().map_or(0.0, |burst| burst.offered_pps),
        implied_ns: time.implied_ns,
        corrected_ns: Some(time.corrected_ns),
        at_least: time.at_least,
    });
}
