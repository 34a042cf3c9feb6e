//! One line before a sweep and one for each finished point, with the expected remaining time.

use crate::figures::{pps, ratio};
use crate::style::{Style, Tone};
use crate::words::{clean, fit, or_dash, plural, right};
use narrows_model::words::units::bps;
use narrows_model::{SweepCell, SweepOutcome, SweepRecord};

/// The line of the newest point with its line break; empty before the first.
pub fn line(record: &SweepRecord, style: Style) -> String {
    let Some(point) = record.points.last() else { return String::new() };
    let planned = record.plan.cells().count();
    let done = planned - record.remaining().len().min(planned);
    let rest = match record.remaining_us() {
        Some(0) | None => String::new(),
        Some(us) => format!("  {} left", time(us)),
    };
    let count = planned.to_string().len();
    let lead = format!("[{}/{planned}] {}  ", right(&done.to_string(), count), what(point.cell));
    let text = match &point.outcome {
        SweepOutcome::Measured(flows) => flows
            .iter()
            .map(|it| {
                let way = if flows.len() > 1 { format!("{} ", it.flow.direction()) } else { String::new() };
                let got = or_dash(it.receiving_bps.map(bps));
                let rate = it.receiving_pps.map(|rate| format!(" {}", pps(rate))).unwrap_or_default();
                let lost = it.loss.filter(|loss| *loss > 0.0).map(|loss| format!(", lost {}", ratio(loss)));
                let lossless = it.lossless.as_ref().and_then(|it| it.lower_bps);
                let lossless = lossless.map(|rate| format!(", lossless {}", bps(rate)));
                format!("{way}{got}{rate}{}{}", lost.unwrap_or_default(), lossless.unwrap_or_default())
            })
            .collect::<Vec<_>>()
            .join("; "),
        SweepOutcome::CannotRun(why) => format!("cannot run: {}", clean(why)),
    };
    let room = style.columns().saturating_sub(lead.chars().count() + rest.chars().count());
    format!("{lead}{}{}\n", fit(&text, room), style.paint(Tone::Faint, &rest))
}

/// The number of points ahead, and their expected minimum and maximum duration in milliseconds.
pub fn ahead(record: &SweepRecord, [min_ms, max_ms]: [u64; 2]) -> String {
    let (planned, left) = (record.plan.cells().count() as u64, record.remaining().len() as u64);
    let points = if left < planned { format!("{left} of {planned} points remain") } else { plural(planned, "point") };
    let [min, max] = [min_ms, max_ms].map(|ms| time(ms.saturating_mul(1000)));
    let times = if min == max { format!("about {min}") } else { format!("{min} to {max}") };
    let why = if min == max { "" } else { ", depending on the searches" };
    format!("{points}: {times}{why}\n")
}

/// The words for a point: `UDP up 1448 B`.
pub fn what(cell: SweepCell) -> String {
    format!("{} {} {} B", cell.protocol.word(), cell.direction, cell.size_bytes)
}

/// `45 s`, `6 min`, `2 h 05 min`: an estimated duration.
fn time(us: u64) -> String {
    let seconds = us.div_ceil(1_000_000);
    match seconds {
        0..100 => format!("{seconds} s"),
        100..5_400 => format!("{} min", seconds.div_ceil(60)),
        _ => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::{Ending, SweepPlan, SweepPoint};

    #[test]
    fn what_is_ahead_is_told_before() {
        let plan = SweepPlan { sizes: vec![64], ..SweepPlan::default() };
        let mut record = SweepRecord { plan, points: vec![], ending: Ending::Interrupted };
        assert_eq!(ahead(&record, [42_000, 142_000]), "4 points: 42 s to 3 min, depending on the searches\n");
        let cell = record.remaining()[0];
        let outcome = SweepOutcome::CannotRun(String::new());
        record.points.push(SweepPoint { cell, at_us: 0, took_us: 0, outcome });
        assert_eq!(ahead(&record, [31_500, 31_500]), "3 of 4 points remain: about 32 s\n");
        assert_eq!(what(cell), "UDP up 64 B");
    }

    #[test]
    fn guesses_are_coarse() {
        assert_eq!(time(44_100_000), "45 s");
        assert_eq!(time(330_000_000), "6 min");
        assert_eq!(time(7_500_000_000), "2 h 05 min");
    }
}
