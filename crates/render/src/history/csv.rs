//! As comma-separated values (RFC 4180), one observation a line.

use narrows_model::Unit;
use narrows_model::run::history::{HistoryReport, TrendReport};
use narrows_model::words::date;

/// A field, in quotes where it needs them.
pub(crate) fn field(text: &str) -> String {
    let text = crate::words::clean(text);
    // A spreadsheet takes a text that begins like this for a formula.
    let text = if text.starts_with(['=', '+', '-', '@']) { format!("'{text}") } else { text };
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

pub(crate) fn unit(unit: Unit) -> String {
    serde_json::to_value(unit).ok().and_then(|it| it.as_str().map(str::to_owned)).unwrap_or_default()
}

/// The list: a line for each figure of each run, one without a figure for a run that has none.
pub fn list(report: &HistoryReport) -> String {
    let mut out = String::from(
        "run,started,user,client,server,server_name,family,command,plan,verdict,tags,made_by,raw_bytes,stored_bytes,figure,unit,value\n",
    );
    for run in &report.runs {
        let (started, tags) = (date::utc(run.started_unix_us / 1_000_000), run.tags.join(" "));
        let words = [
            &run.id, &started, &run.who, &run.client, &run.server, &run.server_name, &run.family, &run.command,
            &run.plan, &run.verdict, &tags, &run.made_by,
        ];
        let head = format!("{},{},{}", words.map(|word| field(word)).join(","), run.raw_bytes, run.stored_bytes);
        if run.figures.is_empty() {
            out += &format!("{head},,,\n");
        }
        for it in &run.figures {
            out += &format!("{head},{},{},{}\n", field(&it.name), unit(it.unit), it.value);
        }
    }
    out
}

/// Figures over time: a line for each run. `level` counts the change points up to the run.
pub fn trend(report: &TrendReport) -> String {
    let mut out = String::from("client,server,family,command,plan,figure,unit,run,started,value,level\n");
    for series in &report.series {
        let of = &series.of;
        let words = [&of.client, &of.server, &of.family, &of.command, &of.plan, &of.figure].map(|word| field(word));
        let head = format!("{},{}", words.join(","), unit(series.unit));
        let mut level = 0;
        for point in &series.points {
            level += series.changes.iter().filter(|change| change.between[1] == point.id).count();
            let started = date::utc(point.started_unix_us / 1_000_000);
            out += &format!("{head},{},{started},{},{level}\n", field(&point.id), point.value);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::tests;

    #[test]
    fn lists_and_series_as_lines() {
        insta::assert_snapshot!("list", list(&tests::list()));
        let text = trend(&tests::trend());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 26);
        assert_eq!(
            lines[12],
            "here,far,ipv4,diagnose,0123456789ab,goodput up,bits_per_second,run-11,2007-09-22T15:33:20Z,945000000,0"
        );
        assert!(lines[13].ends_with(",run-12,2007-09-23T03:33:20Z,601000000,1"), "{}", lines[13]);
        assert_eq!(field("a\"b,c"), "\"a\"\"b,c\"");
        assert_eq!(field("=1+1"), "'=1+1");
    }
}
