//! Runs of the store: the list, and figures over time.

pub mod csv;
pub mod svg;
pub mod text;

use crate::figures::ratio;
use crate::words::rounded;
use narrows_model::Unit;
use narrows_model::words::units::{bps, bytes, micros};

/// A figure with its unit.
pub(crate) fn value(unit: Unit, value: f64) -> String {
    match unit {
        Unit::BitsPerSecond => bps(value),
        Unit::Microseconds => micros(rounded(value)),
        Unit::Bytes => bytes(rounded(value)),
        Unit::Fraction => ratio(value),
        _ if value.abs() >= 1000.0 => narrows_model::words::units::grouped(i128::from(rounded(value.abs()))),
        Unit::Count if value.fract() == 0.0 => format!("{value:.0}"),
        _ => format!("{value:.2}"),
    }
}

/// A change with its sign: `-37.0 %`, `+3.2 %`.
pub(crate) fn signed(share: f64) -> String {
    if share.is_finite() { format!("{:+.1} %", share * 100.0) } else { "unknown".to_owned() }
}

#[cfg(test)]
pub(crate) mod tests {
    use narrows_model::host::side_by_side::{Cell, Group};
    use narrows_model::run::campaign::Better;
    use narrows_model::run::diff::DiffParameter;
    use narrows_model::run::history::{
        Headline, HistoryReport, SCHEMA, StoredRun, TREND_SCHEMA, TrendChange, TrendOf, TrendPoint, TrendReport,
        TrendSeries,
    };
    use narrows_model::{Place, Unit};

    pub(crate) fn list() -> HistoryReport {
        let figure = |name: &str, value, unit| Headline { name: name.into(), value, unit };
        let run = |id: &str, command: &str, figures| StoredRun {
            id: id.into(),
            started_unix_us: 1_190_232_884_000_000,
            who: "ann".into(),
            client: "here".into(),
            server: "far.example".into(),
            server_name: "far".into(),
            family: "ipv6".into(),
            command: command.into(),
            plan: "0123456789ab".into(),
            tags: vec!["before".into(), "a,b".into()],
            figures,
            verdict: "limited: tcp-receive-window".into(),
            made_by: "narrows 0.1.0".into(),
            raw_bytes: 243_094,
            stored_bytes: 7_000,
        };
        HistoryReport {
            schema: SCHEMA.into(),
            offset: 0,
            total: 7,
            runs: vec![
                run(
                    "20070919-201444-0000002a",
                    "diagnose",
                    vec![
                        figure("goodput up", 37.2e6, Unit::BitsPerSecond),
                        figure("idle RTT", 35_004.0, Unit::Microseconds),
                    ],
                ),
                run("20070919-201444-00000029", "generate", vec![figure("sent", 14_880_952.0, Unit::Number)]),
            ],
        }
    }

    pub(crate) fn trend() -> TrendReport {
        let level = |k: u64| if k < 12 { 941e6 } else { 593e6 };
        let noise = |k: u64| (k * 7 % 5) as f64 * 2e6;
        let start = 1_190_000_000_000_000;
        let points = (0..24).map(|k| TrendPoint {
            id: format!("run-{k}"),
            started_unix_us: start + k * 43_200_000_000,
            value: level(k) + noise(k),
        });
        let cell = |text: &str| Cell { text: text.into(), value: None, why_missing: None };
        let of = |figure: &str| TrendOf {
            client: "here".into(),
            server: "far".into(),
            family: "ipv4".into(),
            command: "diagnose".into(),
            plan: "0123456789ab".into(),
            figure: figure.into(),
        };
        TrendReport {
            schema: TREND_SCHEMA.into(),
            series: vec![
                TrendSeries {
                    of: of("goodput up"),
                    unit: Unit::BitsPerSecond,
                    better: Some(Better::Higher),
                    points: points.collect(),
                    median: 770e6,
                    changes: vec![TrendChange {
                        between: ["run-11".into(), "run-12".into()],
                        between_unix_us: [start + 11 * 43_200_000_000, start + 12 * 43_200_000_000],
                        before: 945e6,
                        after: 597e6,
                        change: -0.368,
                        interval: [-0.371, -0.366],
                        p: 1e-12,
                        inventory: vec![DiffParameter {
                            at: Place::Server,
                            group: Group::Host,
                            key: "host.kernel".into(),
                            label: "kernel".into(),
                            cells: [cell("6.1.0-27"), cell("6.1.0-28")],
                        }],
                        inventory_missing: None,
                    }],
                },
                TrendSeries {
                    of: of("idle RTT"),
                    unit: Unit::Microseconds,
                    better: Some(Better::Lower),
                    points: vec![TrendPoint { id: "run-0".into(), started_unix_us: start, value: 35_000.0 }],
                    median: 35_000.0,
                    changes: vec![],
                },
            ],
        }
    }
}
