//! The arithmetic of lines: a table for each line, and the arithmetic in words. As JSON it is [`crate::json::pretty`] of the report.

use crate::doc::page::Page;
use crate::figures::{grouped, precise};
use crate::format::{Document, Writer};
use crate::style::{Style, Tone};
use crate::words::right;
use narrows_model::load::frames::OVERHEAD_BYTES;
use narrows_model::load::line_rate::{LineRateReport, LineRateRow, LineRateTable, TCP_HEADER_BYTES, UDP_HEADER_BYTES};

impl Document for LineRateReport {
    const NAME: &'static str = "a table of line rates";
    const FORMATS: &'static [Writer<Self>] = &[
        Writer::text("Tables for a terminal", |it, style| Ok(report(it, style))),
        Writer::json("One object; the schema is in docs/"),
    ];
}

/// The columns: title, width.
const COLUMNS: [(&str, usize); 6] =
    [("frame", 7), ("on the wire", 13), ("frames/s", 15), ("ns/frame", 14), ("UDP payload", 15), ("TCP goodput", 15)];

pub fn report(report: &LineRateReport, style: Style) -> String {
    let mut page = Page::new(style);
    for table in &report.tables {
        one(&mut page, table);
    }
    page.blank();
    page.labelled("", &arithmetic(), Some(Tone::Faint));
    page.finish()
}

fn one(page: &mut Page, table: &LineRateTable) {
    page.heading(&line_speed(table.line_bps), "");
    let titles: String = COLUMNS.iter().map(|(title, wide)| right(title, *wide)).collect();
    page.line(&page.style().paint(Tone::Faint, &titles));
    for row in &table.rows {
        let line: String = cells(row).iter().zip(COLUMNS).map(|(cell, (_, wide))| right(cell, wide)).collect();
        page.line(&line);
    }
}

fn cells(row: &LineRateRow) -> [String; 6] {
    let rate = |bps: Option<f64>| bps.map_or_else(|| "–".to_owned(), |bps| precise(bps, "bit/s", 4));
    [
        row.frame_bytes.to_string(),
        row.wire_bytes.to_string(),
        // Whole frames only.
        grouped(row.frames_per_second as u64),
        hundredths(row.frame_ns),
        rate(row.udp_payload_bps),
        rate(row.tcp_goodput_bps),
    ]
}

/// `6,720.00`, `67.20`.
fn hundredths(value: f64) -> String {
    let all = (value * 100.0).round() as u64;
    format!("{}.{:02}", grouped(all / 100), all % 100)
}

/// `100 Mbit/s`, `2.5 Gbit/s`: the nominal speed of a line, without trailing zeros.
fn line_speed(bps: u64) -> String {
    let units = [(1_000_000_000_000, "Tbit/s"), (1_000_000_000, "Gbit/s"), (1_000_000, "Mbit/s"), (1_000, "kbit/s")];
    let (factor, unit) = units.into_iter().find(|(factor, _)| bps >= *factor).unwrap_or((1, "bit/s"));
    let rest = format!("{:0wide$}", bps % factor, wide = factor.ilog10() as usize);
    let rest = rest.trim_end_matches('0');
    let point = if rest.is_empty() { "" } else { "." };
    format!("{}{point}{rest} {unit}", bps / factor)
}

fn arithmetic() -> String {
    format!(
        "Frame sizes are bytes with FCS. On the wire each frame takes {OVERHEAD_BYTES} bytes more: 7 of preamble, 1 that starts the \
         frame, 12 of gap; so the smallest frame of 64 bytes takes 84. Frames/s = bit/s ÷ (8 × (frame + {OVERHEAD_BYTES})). UDP payload \
         = frames/s × 8 × (frame − {UDP_HEADER_BYTES}): Ethernet 14, IPv4 20, UDP 8, FCS 4. TCP goodput = frames/s × 8 × (frame − \
         {TCP_HEADER_BYTES}): Ethernet 14, IPv4 20, TCP 20 with 12 of timestamps, FCS 4; acknowledgements go the other way. A VLAN \
         tag takes 4 bytes more, IPv6 20."
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_named_by_what_they_are() {
        let named =
            [100_000_000, 2_500_000_000, 10_000_000_000, 1_000_000_000_000, 1, 1_544_000, 1_000].map(line_speed);
        assert_eq!(named, ["100 Mbit/s", "2.5 Gbit/s", "10 Gbit/s", "1 Tbit/s", "1 bit/s", "1.544 Mbit/s", "1 kbit/s"]);
        assert_eq!(line_speed(1_000_000_001), "1.000000001 Gbit/s");
    }

    #[test]
    fn nanoseconds_keep_hundredths() {
        assert_eq!([6.72, 67.2, 6720.0, 0.056].map(hundredths), ["6.72", "67.20", "6,720.00", "0.06"]);
    }
}
