//! Live views in buffers of cells: small, usual and large terminals.

use narrows_model::run::campaign::{CampaignFactor, CampaignReport, Design, Step};
use narrows_model::run::history::Headline;
use narrows_model::run::live::{CampaignStep, LiveKind, LivePoint};
use narrows_model::{
    ConnectionLimit, ConnectionOrder, ConnectionView, ConnectionsView, Flow, InterfaceSample, Place, Unit,
};
use narrows_render::live::campaign::CampaignLive;
use narrows_render::live::connections::ConnectionsLive;
use narrows_render::live::measure::MeasureLive;
use narrows_render::live::trace::TraceLive;
use narrows_render::live::watch::WatchLive;
use narrows_render::live::{After, Key, Screen, View};
use narrows_views::campaign::{Observed, Planned, cells};
use narrows_views::watch::Accumulator;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

const SIZES: [[u16; 2]; 3] = [[80, 24], [120, 40], [60, 20]];

/// What is shown at a size, without blanks at the ends of lines.
fn shown<V: View>(screen: &mut Screen<V>, [width, height]: [u16; 2]) -> String {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    screen.draw(&mut buffer);
    let line = |y| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>().trim_end().to_owned() + "\n";
    (0..height).map(line).collect()
}

/// A snapshot at each size.
macro_rules! at_each_size {
    ($name:literal, $screen:expr) => {
        for size in SIZES {
            insta::assert_snapshot!(format!("{}_{}x{}", $name, size[0], size[1]), shown(&mut $screen, size));
        }
    };
}

fn measured() -> MeasureLive {
    let mut view = MeasureLive::new(LiveKind::Tcp);
    view.begin("TCP to and from server (192.0.2.7:5220), 1 stream, 30 s\n[ ID] Dir     Interval   Transfer\n");
    for second in 1..=30_u16 {
        let at_s = f64::from(second);
        view.add(&format!("[  0] up   {second:>2}.00 sec   118 MB\n"));
        for (flow, rate) in [(Flow::Up, 900e6 + 40e6 * (at_s / 3.0).sin()), (Flow::Down, 300e6)] {
            let point = |place, delay_ms: Option<f64>| LivePoint {
                flow,
                place,
                at_s,
                rate,
                delay_ms,
                lost: delay_ms.map(|_| u64::from(second)),
            };
            view.point(&point(flow.sender(), Some(20.0 + at_s)));
            view.point(&point(flow.receiver(), None));
        }
    }
    view
}

#[test]
fn a_measurement() {
    at_each_size!("measure", Screen::new(measured()));
    let mut screen = Screen::new(measured());
    screen.view().end("- - -\nthe summary\n");
    screen.set_state("done");
    let text = shown(&mut screen, [80, 24]);
    assert!(text.contains("the summary") && text.contains(" done "), "{text}");
    assert_eq!(screen.key(Key::Home), After::Draw);
    let text = shown(&mut screen, [80, 24]);
    assert!(text.contains(" 1.00 sec") && !text.contains("the summary"), "{text}");
    screen.view().report((0..99).map(|n| format!("line {n}\n")).collect());
    shown(&mut screen, [80, 24]);
    screen.key(Key::PageDown);
    let text = shown(&mut screen, [80, 24]);
    assert!(text.starts_with("line 22\n"), "{text}");
}

#[test]
fn help_and_pause() {
    let mut screen = Screen::new(measured());
    screen.key(Key::Char('?'));
    insta::assert_snapshot!("help", shown(&mut screen, [80, 24]));
    assert_eq!(screen.key(Key::Escape), After::Draw);
    screen.key(Key::Char('p'));
    screen.view().add("while it was paused\n");
    let text = shown(&mut screen, [80, 24]);
    assert!(text.contains(" paused ") && !text.contains("while it"), "{text}");
    screen.key(Key::Char('p'));
    assert!(shown(&mut screen, [80, 24]).contains("while it was paused"));
    assert_eq!([Key::Char('x'), Key::Char('q')].map(|key| screen.key(key)), [After::Nothing, After::Quit]);
}

#[test]
fn the_smallest_terminals_and_empty_views_are_drawn() {
    for (width, height) in (0..12).flat_map(|width| (0..8).map(move |height| (width, height))) {
        shown(&mut Screen::new(measured()), [width, height]);
        let mut screen = Screen::new(MeasureLive::new(LiveKind::Rr));
        screen.key(Key::Char('?'));
        shown(&mut screen, [width, height]);
        shown(&mut Screen::new(WatchLive::new(false)), [width, height]);
        shown(&mut Screen::new(TraceLive::default()), [width, height]);
        let mut screen = Screen::new(CampaignLive::default());
        screen.view().begins(&campaign_step(0, 7_300));
        screen.view().results(campaign(11));
        shown(&mut screen, [width, height]);
        shown(&mut Screen::new(ConnectionsLive::new(ConnectionOrder::Rate, true)), [width, height]);
    }
}

#[test]
fn interfaces() {
    let (mut seen, mut view) = (Accumulator::new(), WatchLive::new(false));
    for second in 0..40_u64 {
        let rx_bytes = second * second * 1_000_000;
        let sample = InterfaceSample {
            name: "eth0".into(),
            at_us: second * 1_000_000,
            rx_bytes,
            rx_packets: rx_bytes / 1500,
            ..InterfaceSample::default()
        };
        seen.push(Place::Client, "here", &[sample]);
        view.show(&seen.view());
    }
    at_each_size!("watch", Screen::new(view.clone()));
}

/// A connection of which no more is known.
pub(crate) fn connection(port: u16, send_bps: f64, rtt_ms: f64) -> ConnectionView {
    ConnectionView {
        id: format!("{port:x}"),
        local: format!("192.0.2.1:{port}"),
        remote: format!("198.51.100.20:{port}"),
        process: None,
        uid: 0,
        limit: if port.is_multiple_of(2) { ConnectionLimit::Application } else { ConnectionLimit::ReceiveWindow },
        why: "the evidence".to_owned(),
        shares: None,
        send_bps: Some(send_bps),
        receive_bps: None,
        rtt_ms: Some(rtt_ms),
        min_rtt_ms: Some(1.0),
        retransmitted: None,
        retransmitted_total: None,
        ceilings: Vec::new(),
        congestion_control: None,
        unread_bytes: 0,
        unsent_bytes: None,
        ends: None,
    }
}

#[test]
fn connections_are_sorted_filtered_and_opened() {
    let mut screen = Screen::new(ConnectionsLive::new(ConnectionOrder::Rate, false));
    for second in 1..=20_u16 {
        let all = (1..=60).map(|port| connection(port, f64::from(port) * 1e6, f64::from(100 - port + second)));
        screen.view().show(ConnectionsView {
            host: "here".to_owned(),
            elapsed_s: f64::from(second),
            matching: 60,
            active: 60,
            quiet: 0,
            connections: all.collect(),
            remarks: Vec::new(),
        });
    }
    at_each_size!("connections", screen);
    let marked = |screen: &mut Screen<ConnectionsLive>| {
        let text = shown(screen, [80, 24]);
        let line = text.lines().find(|line| line.trim_start().starts_with('>')).unwrap_or_default();
        line.split_whitespace().nth(1).unwrap_or_default().to_owned()
    };
    assert_eq!(marked(&mut screen), "198.51.100.20:60");
    screen.key(Key::Char('s'));
    assert_eq!(marked(&mut screen), "198.51.100.20:1", "by RTT");
    screen.key(Key::Down);
    assert_eq!(marked(&mut screen), "198.51.100.20:2");
    screen.key(Key::End);
    assert_eq!(marked(&mut screen), "198.51.100.20:60");
    for key in [Key::Char('/'), Key::Char('q'), Key::Backspace, Key::Char('W'), Key::Char('i'), Key::Enter] {
        assert_eq!(screen.key(key), After::Draw, "{key:?}");
    }
    let text = shown(&mut screen, [80, 24]);
    assert!(
        text.contains("filter: Wi\n") && text.contains("receive window") && !text.contains("application"),
        "{text}"
    );
    screen.key(Key::Enter);
    insta::assert_snapshot!("connection_opened", shown(&mut screen, [80, 24]));
    screen.key(Key::Escape);
    screen.key(Key::Escape);
    assert!(shown(&mut screen, [80, 24]).contains("application"), "no filter");
}

/// A campaign of two factors in four blocks after so many runs.
fn campaign(done: usize) -> CampaignReport {
    let factor = |name: &str| CampaignFactor { name: name.to_owned(), levels: vec!["off".into(), "on".into()] };
    let cells = cells(Design::Full, &[2, 2]);
    let steps: Vec<Step> =
        (0..16).map(|at| Step { number: at + 1, block: at / 4 + 1, host: 0, cell: cells[at % 4].clone() }).collect();
    let planned = Planned {
        name: "offloads".into(),
        tag: "campaign:0a1b2c3d4e5f".into(),
        hosts: vec!["server".into()],
        factors: vec![factor("gro"), factor("tso")],
        design: Design::Full,
        blocks: 4,
        steps: steps.clone(),
        better: None,
    };
    let run = |step: &Step| {
        let value =
            if step.cell[0] == 1 { 900e6 } else { 400e6 } + f64::from(u32::try_from(step.number % 3).expect("small"));
        let figure = Ok(Headline::new("goodput up", value, Unit::BitsPerSecond));
        (step.number, Observed { id: step.number.to_string(), started_unix_us: 1_190_232_884_000_000, figure })
    };
    narrows_views::campaign::report(&planned, &steps.iter().take(done).map(run).collect(), 0.01)
}

fn campaign_step(done: usize, left_s: u64) -> CampaignStep {
    let [host, cell] = ["server", "gro=on, tso=off"].map(str::to_owned);
    CampaignStep { number: done + 1, of: 16, done, block: done / 4 + 1, host, cell, left_s }
}

#[test]
fn a_campaign_shows_how_far_it_is_and_its_results_so_far() {
    let mut screen = Screen::new(CampaignLive::default());
    assert!(shown(&mut screen, [80, 24]).starts_with("connecting\n"));
    screen.view().begins(&campaign_step(0, 7_300));
    let text = shown(&mut screen, [60, 20]);
    assert!(text.contains(" 0 of 16 runs, 2 h 1 min left\n[1/16] block 1, server: gro=on, tso=off\n"), "{text}");
    screen.view().say("server: server closed the connection; attempt 1 of 5 in 3 s");
    screen.view().results(campaign(11));
    screen.view().begins(&campaign_step(11, 130));
    at_each_size!("campaign", screen);
}
