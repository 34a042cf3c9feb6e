//! Connections: a table, narrow and wide, and one connection opened.

use crate::live::connection;
use crate::samples::{fits, same};

use fits::{NARROWEST, fits};
use narrows_model::{
    ConnectionCeiling, ConnectionEnds, ConnectionLimit as Limit, ConnectionShares, ConnectionView, ConnectionsView,
    Owner,
};
use narrows_render::connections::{LiveOptions, Past, frame, opened, text};
use narrows_render::{Document as _, Format, Style};

fn one(port: u16, limit: Limit, why: &str, [send, receive]: [f64; 2]) -> ConnectionView {
    ConnectionView {
        remote: "198.51.100.20:50812".to_owned(),
        process: Some(Owner { pid: 812, name: "rsync".to_owned() }),
        limit,
        why: why.to_owned(),
        shares: (send > 0.0).then_some(ConnectionShares {
            application: 0.02,
            receive_window: 0.9,
            send_buffer: 0.0,
            network: 0.08,
        }),
        receive_bps: Some(receive),
        min_rtt_ms: Some(35.0),
        retransmitted: Some(if limit == Limit::Loss { 0.012 } else { 0.0 }),
        retransmitted_total: Some(17),
        ceilings: vec![
            ConnectionCeiling { limit: Limit::ReceiveWindow, bps: 14.9e6 },
            ConnectionCeiling { limit: Limit::CongestionWindow, bps: 220e6 },
        ],
        congestion_control: Some("cubic".to_owned()),
        unsent_bytes: Some(1_300_000),
        ..connection(port, send, 35.2)
    }
}

/// Both ends of the first connection.
fn both() -> ConnectionsView {
    let mut view = view();
    let mut far = one(50812, Limit::ReceivingApplication, "48 KiB are received and not read", [0.0, 14.6e6]);
    (far.local, far.remote) = (view.connections[0].remote.clone(), view.connections[0].local.clone());
    (far.unread_bytes, far.process, far.shares, far.congestion_control) =
        (49_152, None, None, Some("b\x1b[0m|br".to_owned()));
    let near = &mut view.connections[0];
    let why = std::mem::replace(&mut near.why, "48 KiB are received and not read; the window was full".to_owned());
    near.ends = Some(Box::new(ConnectionEnds { limit: near.limit, why, far }));
    near.limit = Limit::ReceivingApplication;
    view
}

fn view() -> ConnectionsView {
    let all = vec![
        one(873, Limit::ReceiveWindow, "the peer's window of 64 KiB was full 90 % of the time", [14.7e6, 0.0]),
        one(443, Limit::Loss, "1.2 % of the segments were sent again, without a queue", [2.1e6, 0.0]),
        one(22, Limit::Unknown, "only the sending end sees what limits it", [0.0, 31e3]),
        one(5432, Limit::Idle, "no data", [0.0, 0.0]),
    ];
    ConnectionsView {
        host: "dtn\x1b[31m".to_owned(),
        elapsed_s: 3.0,
        matching: all.len(),
        active: 3,
        quiet: 0,
        connections: all,
        remarks: vec!["the process of 2 of them is not visible to this user; root sees it".to_owned()],
    }
}

#[test]
fn wide_and_narrow() {
    insta::assert_snapshot!("wide", text(&view(), Style { width: 160, full: true, ..Style::default() }));
    let narrow = text(&view(), Style { width: 60, ..Style::default() });
    assert!(narrow.lines().all(|line| line.chars().count() <= 60), "{narrow}");
    insta::assert_snapshot!("narrow", narrow);
}

#[test]
fn a_live_frame_has_no_more_lines_than_the_terminal() {
    let mut many = view();
    many.connections = (1..200).map(|port| one(port, Limit::Path, "BBR", [1e6, 0.0])).collect();
    for marked in [0, 7, 198] {
        let options = LiveOptions { rows: 24, marked: Some(marked), order: "rate" };
        let text = frame(&many, Style { width: 80, ..Style::default() }, &options);
        assert!(text.lines().count() <= 24, "{text}");
        let line = text.lines().find(|line| line.trim_start().starts_with('>')).expect("the marked one");
        assert!(line.contains("198.51.100.20"), "{line}");
    }
}

#[test]
fn one_opened() {
    let view = view();
    let past = [1e6, 5e6, 14.7e6].map(|bps| Past { bps, ..Past::of(&view.connections[0]) });
    insta::assert_snapshot!("opened", opened(&view.connections[0], &past, Style::default()));
}

#[test]
fn both_ends_are_side_by_side() {
    let view = both();
    insta::assert_snapshot!("both_wide", text(&view, Style { width: 190, ..Style::default() }));
    insta::assert_snapshot!(
        "both_markdown",
        view.write(Format::Markdown, Style::default()).expect("text").expect("it has Markdown")
    );
    insta::assert_snapshot!("both_opened", opened(&view.connections[0], &[], Style::default()));
}

#[test]
fn its_json_reads_back_as_it_was() {
    for view in [view(), both()] {
        same::reads_back(&view);
    }
}

#[test]
fn it_fits_the_narrowest_terminal() {
    let style = Style { width: NARROWEST, ..Style::default() };
    fits("connections", &text(&view(), Style { full: true, ..style }));
    fits("both ends", &text(&both(), style));
    let (view, both) = (view(), both());
    let past: Vec<Past> = [Past::of(&view.connections[0]); 90].to_vec();
    fits("one connection", &opened(&view.connections[0], &past, style));
    fits("one connection of both ends", &opened(&both.connections[0], &past, style));
}
