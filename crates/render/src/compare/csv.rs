//! The values as comma-separated values, one observation a line.

use crate::history::csv::{field, unit};
use narrows_model::run::compare::CompareReport;
use narrows_model::words::date;

/// A line for each value of each side.
pub fn table(report: &CompareReport) -> String {
    let mut out = String::from("side,sample,figure,unit,position,run,started,value\n");
    for figure in &report.figures {
        for (side, sample) in report.sides.iter().zip(&figure.samples) {
            let head = format!("{},{},{},{}", side.label, field(&side.name), field(&figure.name), unit(figure.unit));
            for (at, value) in sample.values.iter().enumerate() {
                let run = side.runs.get(at).map_or_else(
                    || ",".to_owned(),
                    |run| format!("{},{}", field(&run.id), date::utc(run.started_unix_us / 1_000_000)),
                );
                out += &format!("{head},{},{run},{value}\n", at + 1);
            }
        }
    }
    out
}
