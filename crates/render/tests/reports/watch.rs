//! Watching interfaces: frames of the terminal view.

use crate::samples::fits;

use fits::{NARROWEST, fits};
use narrows_model::{InterfaceSample, Place, WatchView};
use narrows_render::watch::frame;
use narrows_render::{Style, json};
use narrows_views::watch::Accumulator;

fn sample(name: &str, at_s: u64, mbytes: [u64; 2], dropped: u64) -> InterfaceSample {
    let [rx, tx] = mbytes.map(|mbytes| mbytes * 1_000_000);
    InterfaceSample {
        name: name.into(),
        at_us: at_s * 1_000_000,
        rx_bytes: rx,
        rx_packets: rx / 1500,
        rx_dropped: dropped,
        tx_bytes: tx,
        tx_packets: tx / 1500,
        tx_dropped: 0,
    }
}

fn watched() -> WatchView {
    let mut it = Accumulator::new();
    for (s, sent) in [(0, 0), (1, 112), (2, 160), (3, 240)] {
        let samples = [sample("eth2", s, [sent / 40, sent], 0), sample("lo", s, [77, 77], 0)];
        it.push(Place::Client, "dct00", &samples);
        let drops = if s == 3 { 178_067 } else { 0 };
        let samples = [
            sample("enp129s0f1np1.3000", s, [sent, sent / 40], drops),
            sample("br-4f5a", s, [0, 0], 0),
            sample("lo", s, [5, 5], 0),
        ];
        it.push(Place::Server, "umfs05", &samples);
    }
    it.view()
}

#[test]
fn both_ends() {
    insta::assert_snapshot!(frame(&watched(), Style { width: 120, ..Style::default() }));
}

#[test]
fn a_small_terminal() {
    let text = frame(&watched(), Style { width: 80, ..Style::default() });
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn every_width_from_sixty_columns_on_is_kept() {
    for width in [60, 64, 72, 80, 120] {
        let text = frame(&watched(), Style { width, ..Style::default() });
        assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
        assert!(text.contains("dropped"), "{width}:\n{text}");
    }
}

#[test]
fn an_end_that_does_not_answer() {
    let mut it = Accumulator::new();
    it.push(Place::Client, "dct00", &[sample("eth2", 0, [0, 0], 0)]);
    it.push(Place::Client, "dct00", &[sample("eth2", 1, [1, 1], 0)]);
    it.silent(Place::Server, "connection refused\x1b[2J");
    let text = frame(&it.view(), Style { full: true, ..Style::default() });
    assert!(text.contains("silent: connection refused?[2J"), "{text}");
    let back: WatchView = serde_json::from_str(&json::line(&it.view()).expect("json")).expect("it reads back");
    assert_eq!(back, it.view());
}

#[test]
fn it_fits_the_narrowest_terminal() {
    let style = Style { width: NARROWEST, ..Style::default() };
    fits("interfaces", &frame(&watched(), style));
}
