//! The picture of latencies, idle and loaded.

use crate::samples;

use narrows_model::Distribution;
use narrows_render::latency::{Line, picture};
use samples::udp::distribution;

/// Log-normal-like: a peak, and a tail that thins out by a fifth each bucket.
fn latencies(peak: u64, spread: f64, count: u64) -> Distribution {
    let mut values = Vec::new();
    let mut left = count;
    let mut value = peak as f64 * 0.8;
    while left > 0 {
        let n = (left / 5).max(1);
        values.push((value as u64, n));
        left -= n;
        value *= spread;
    }
    distribution(&values)
}

#[test]
fn idle_and_loaded() {
    let (idle, loaded) = (latencies(35_000_000, 1.01, 2_800), latencies(48_000_000, 1.08, 1_900));
    let lines = [Line { name: "idle", latency_ns: &idle }, Line { name: "loaded", latency_ns: &loaded }];
    insta::assert_snapshot!(
        "latency.svg",
        picture("Latency to umfs05", "TCP_RR, 1 B each way · loaded by 1 TCP stream up", &lines)
    );
}

#[test]
fn nothing_measured_is_said() {
    let nothing = Distribution::default();
    let text = picture("Latency", "", &[Line { name: "idle", latency_ns: &nothing }]);
    assert!(text.contains("Nothing was measured.") && text.ends_with("</svg>\n"));
}
