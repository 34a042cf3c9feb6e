//! One line for each point that is done, with the time that the rest will take.

use crate::figures::{pps, ratio};
use crate::style::{Style, Tone};
use crate::words::{clean, fit, right};
use narrows_model::units::bps;
use narrows_model::{Flow, SweepOutcome, SweepPoint, SweepRecord};

/// The line of the newest point, its line break included; nothing before the first.
#[must_use]
pub fn line(record: &SweepRecord, style: Style) -> String {
    let Some(point) = record.points.last() else { return String::new() };
    let planned = record.plan.cells().count();
    let done = planned - record.remaining().len().min(planned);
    let rest = match record.remaining_us() {
        Some(0) | None => String::new(),
        Some(us) => format!("  {} left", time(us)),
    };
    let count = planned.to_string().len();
    let lead = format!("[{}/{planned}] {}  ", right(&done.to_string(), count), what(point));
    let text = match &point.outcome {
        SweepOutcome::Measured(flows) => flows
            .iter()
            .map(|it| {
                let way = if flows.len() > 1 { format!("{} ", flow(it.flow)) } else { String::new() };
                let got = it.receiving_bps.map_or_else(|| "–".to_owned(), bps);
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

fn what(point: &SweepPoint) -> String {
    let cell = point.cell;
    format!("{} {} {} B", cell.protocol.word(), cell.direction, cell.size_bytes)
}

const fn flow(flow: Flow) -> &'static str {
    match flow {
        Flow::Up => "up",
        Flow::Down => "down",
    }
}

/// `45 s`, `6 min`, `2 h 05 min`: as coarse as such a guess is.
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

    #[test]
    fn guesses_are_coarse() {
        assert_eq!(time(44_100_000), "45 s");
        assert_eq!(time(330_000_000), "6 min");
        assert_eq!(time(7_500_000_000), "2 h 05 min");
    }
}
