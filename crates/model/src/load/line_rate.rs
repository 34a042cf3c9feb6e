//! The arithmetic of a line: how many frames of a size fit into its seconds, and what they carry.

use crate::load::frames::OVERHEAD_BYTES;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of the published JSON.
pub const SCHEMA: &str = "narrows.line-rate/1";

/// What of a frame is no payload of UDP over IPv4: Ethernet 14, IPv4 20, UDP 8, FCS 4.
pub const UDP_HEADER_BYTES: u32 = 46;
/// What of a frame is no payload of TCP over IPv4: Ethernet 14, IPv4 20, TCP 20 with 12 of timestamps, as Linux sends them,
/// FCS 4.
pub const TCP_HEADER_BYTES: u32 = 70;

/// Bits that a frame of `frame_bytes` with FCS takes on the wire: 672 for the smallest. A mean size is as good as a size.
pub fn wire_bits(frame_bytes: f64) -> f64 {
    8.0 * (frame_bytes + f64::from(OVERHEAD_BYTES))
}

/// Frames a second that take `wire_bps` on the wire.
pub fn frames_per_second(wire_bps: f64, frame_bytes: f64) -> f64 {
    wire_bps / wire_bits(frame_bytes)
}

/// Bit/s on the wire that so many frames a second take.
pub fn wire_bps(frames_per_second: f64, frame_bytes: f64) -> f64 {
    frames_per_second * wire_bits(frame_bytes)
}

/// Frames of one size back to back on a line.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineRateRow {
    /// The frame with FCS.
    pub frame_bytes: u32,
    /// With preamble, start of frame and inter-frame gap.
    pub wire_bytes: u32,
    /// Frames a second.
    pub frames_per_second: f64,
    /// From the start of one frame to that of the next.
    pub frame_ns: f64,
    /// Payload of UDP over IPv4; `null` where the frame has no room for its headers.
    pub udp_payload_bps: Option<f64>,
    /// Payload of TCP over IPv4 with timestamps; `null` where the frame has no room for its headers.
    pub tcp_goodput_bps: Option<f64>,
}

impl LineRateRow {
    /// The arithmetic for one line and one size.
    pub fn of(line_bps: u64, frame_bytes: u32) -> Self {
        let bps = line_bps as f64;
        let frame = f64::from(frame_bytes);
        let frames = frames_per_second(bps, frame);
        let payload = |headers: u32| {
            let bytes = frame_bytes.checked_sub(headers).filter(|bytes| *bytes > 0)?;
            Some(frames * 8.0 * f64::from(bytes))
        };
        Self {
            frame_bytes,
            wire_bytes: frame_bytes.saturating_add(OVERHEAD_BYTES),
            frames_per_second: frames,
            frame_ns: 1e9 * wire_bits(frame) / bps,
            udp_payload_bps: payload(UDP_HEADER_BYTES),
            tcp_goodput_bps: payload(TCP_HEADER_BYTES),
        }
    }
}

/// One line and several sizes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineRateTable {
    /// Bit/s of the line.
    pub line_bps: u64,
    /// One for each size, in the order that was asked for.
    pub rows: Vec<LineRateRow>,
}

/// What `narrows line-rate` tells.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LineRateReport {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// One for each line, in the order that was asked for.
    pub tables: Vec<LineRateTable>,
}

impl LineRateReport {
    /// The tables of some lines, bit/s, for some sizes with FCS.
    pub fn of(lines_bps: &[u64], sizes: &[u32]) -> Self {
        let table = |line_bps| {
            let rows = sizes.iter().map(|size| LineRateRow::of(line_bps, *size)).collect();
            LineRateTable { line_bps, rows }
        };
        Self { schema: SCHEMA.to_owned(), tables: lines_bps.iter().map(|bps| table(*bps)).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];

    #[test]
    fn the_figures_of_every_table_of_line_rates() {
        let whole = |bps, size| LineRateRow::of(bps, size).frames_per_second.floor();
        let gigabit = [1_488_095.0, 844_594.0, 452_898.0, 234_962.0, 119_731.0, 96_153.0, 81_274.0];
        assert_eq!(SIZES.map(|size| whole(1_000_000_000, size)), gigabit);
        assert_eq!(whole(100_000_000, 64), 148_809.0);
        assert_eq!(whole(10_000_000_000, 64), 14_880_952.0);
        assert_eq!(whole(100_000_000_000, 64), 148_809_523.0);
    }

    #[test]
    fn a_frame_takes_its_84_bytes_and_its_time() {
        let row = LineRateRow::of(10_000_000_000, 64);
        assert_eq!((row.wire_bytes, row.frame_ns), (84, 67.2));
        assert_eq!(LineRateRow::of(100_000_000, 64).frame_ns, 6720.0);
    }

    #[test]
    fn payload_is_what_the_headers_leave() {
        let near = |value: Option<f64>, wanted: f64| value.is_some_and(|value| (value / wanted - 1.0).abs() < 1e-9);
        let row = LineRateRow::of(1_000_000_000, 1518);
        // 1472 and 1448 of 1538 bytes on the wire.
        assert!(near(row.udp_payload_bps, 1e9 * 1472.0 / 1538.0));
        assert!(near(row.tcp_goodput_bps, 1e9 * 1448.0 / 1538.0));
        let least = LineRateRow::of(1_000_000_000, 64);
        assert!(near(least.udp_payload_bps, 1e9 * 18.0 / 84.0));
        assert_eq!(least.tcp_goodput_bps, None);
        assert!(near(LineRateRow::of(1_000_000_000, 71).tcp_goodput_bps, 1e9 / 91.0));
    }

    #[test]
    fn rates_go_there_and_back() {
        assert_eq!(wire_bps(1_000_000.0, 64.0), 672e6);
        assert_eq!(frames_per_second(672e6, 64.0), 1_000_000.0);
    }
}
