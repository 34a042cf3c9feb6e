//! The sweep as comma-separated values: one line per row, rates in bit/s and packets/s, CPU in cores.

use crate::words::clean;
use narrows_model::SweepReport;
use narrows_model::run::measure::HostCpu;
use narrows_model::run::sweep::{Spread, SweepRow};

const HEAD: &str = "protocol,direction,flow,size_bytes,repetitions,sending_bps,sending_pps,receiving_bps,receiving_bps_min,\
                    receiving_bps_max,receiving_pps,lossless_bps,lossless_pps,lossless_upper_pps,unsent,lost,loss_ratio,\
                    sender_user_cores,sender_system_cores,sender_softirq_cores,sender_idle_cores,receiver_user_cores,\
                    receiver_system_cores,receiver_softirq_cores,receiver_idle_cores,remarks";

/// The whole sweep. An unknown value is an empty field.
pub fn table(report: &SweepReport) -> String {
    let mut out = format!("{HEAD}\n");
    for row in &report.rows {
        out += &line(row).join(",");
        out += "\n";
    }
    out
}

fn line(row: &SweepRow) -> Vec<String> {
    let number = |value: Option<f64>| value.map(|value| format!("{value}")).unwrap_or_default();
    let rate = |value: Option<f64>| value.map(|value| format!("{value:.1}")).unwrap_or_default();
    let median = |spread: Option<Spread>| rate(spread.map(|it| it.median));
    let count = |value: Option<u64>| value.map(|value| value.to_string()).unwrap_or_default();
    let mut fields = vec![
        row.protocol.word().to_lowercase(),
        row.direction.to_string(),
        row.flow.direction().to_string(),
        row.size_bytes.to_string(),
        row.receiving_bps.or(row.sending_bps).map_or(0, |it| it.n).to_string(),
        median(row.sending_bps),
        median(row.sending_pps),
        median(row.receiving_bps),
        rate(row.receiving_bps.map(|it| it.min)),
        rate(row.receiving_bps.map(|it| it.max)),
        median(row.receiving_pps),
        median(row.lossless_bps),
        median(row.lossless_pps),
        rate(row.lossless_upper_pps),
        count(row.unsent),
        count(row.lost),
        number(row.loss),
    ];
    fields.extend(cpu(row.sender));
    fields.extend(cpu(row.receiver));
    fields.push(quoted(&row.remarks.join("; ")));
    fields
}

fn cpu(host: Option<HostCpu>) -> [String; 4] {
    host.map_or_else(Default::default, |it| {
        [it.user, it.system, it.softirq, it.idle].map(|cores| format!("{cores:.4}"))
    })
}

/// A text as one field, quoted; one that begins like a formula is protected from spreadsheets.
fn quoted(text: &str) -> String {
    let text = clean(text);
    if text.is_empty() {
        return text;
    }
    let guard = if text.starts_with(['=', '+', '-', '@']) { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_stay_fields() {
        assert_eq!(quoted("a \"b\", c\nd"), "\"a \"\"b\"\", c d\"");
        assert_eq!(quoted("=1+1"), "\"'=1+1\"");
        assert_eq!(quoted(""), "");
    }
}
