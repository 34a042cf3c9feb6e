//! Frames sent and received: their view, text and lines.

use crate::samples;

use narrows_model::load::frames::{
    FrameInterval, FrameLoad, FrameTrial, GenerateRecord, GotSoFar, ReceiveMode, SendMode, SentSoFar, StampClock,
    StreamSent,
};
use narrows_model::load::frames_report::FramesReport;
use narrows_render::frames::progress::{self, End};
use narrows_render::{Style, frames};
use narrows_views as views;
use proptest::prelude::*;
use samples::fits::{NARROWEST, fits};
use samples::frames::{generate_plan, receive_plan, trial};
use samples::same::reads_back;

const LINK: Option<u64> = Some(10_000_000_000);

/// The lines of both ends' intervals, then the summary.
fn shown(report: &FramesReport, style: Style) -> String {
    let mut out = String::new();
    if let Some(it) = report.sent.as_ref().filter(|it| !it.intervals.is_empty()) {
        out += &End::Sent.heading(style);
        out.extend(it.intervals.iter().map(|it| progress::sent(it, style)));
        out.push('\n');
    }
    if let Some(it) = report.received.as_ref().filter(|it| !it.intervals.is_empty()) {
        out += &End::Received.heading(style);
        out.extend(it.intervals.iter().map(|it| progress::received(it, style)));
        out.push('\n');
    }
    out + &frames::text::summary(report, style)
}

fn troubled() -> FramesReport {
    let mut of = trial(1_000_000, 64, 2, 0);
    of.sent = GenerateRecord {
        mode: SendMode::AfPacket,
        not_better: vec![
            "live frames: the kernel is 5.10, and they came with 5.18".into(),
            "AF_XDP: the driver e1000 has no XDP, and copying would be no faster than a packet socket".into(),
        ],
        streams: vec![StreamSent { stream: 0, due: 2_000_000, handed: 1_700_000 }],
        refused: None,
        ended: Some("the device went down".into()),
        ..of.sent
    };
    of.got.mode = ReceiveMode::XdpGeneric;
    of.got.not_better = vec!["XDP in the driver: e1000 has none".into()];
    of.got.streams[0].duplicates = 17;
    of.got.streams[1].reordered = 1_234;
    of.got.latency_ns = None;
    of.got.flows_left_out = 12;
    views::frames::trial(&of, None)
}

#[test]
fn both_ends() {
    let report = views::frames::trial(&trial(14_880_952, 64, 3, 1_234), LINK);
    insta::assert_snapshot!(shown(&report, Style::default()));
}

#[test]
fn everything_that_can_go_wrong() {
    let report = troubled();
    assert!(report.lost.is_some_and(|it| it.frames < 0), "more received than sent");
    insta::assert_snapshot!(shown(&report, Style::default()));
}

#[test]
fn each_end_alone() {
    let of = trial(1_000_000, 1518, 1, 0);
    let sent = frames::text::summary(&views::frames::generate(&of.sent, None), Style::default());
    let got = frames::text::summary(&views::frames::receive(&of.got, None), Style::default());
    insta::assert_snapshot!(format!("{sent}---\n{got}"));
}

#[test]
fn nothing_received_is_said() {
    let mut of = trial(1_000, 64, 1, 0);
    of.got.streams.clear();
    (of.got.bytes, of.got.elapsed_ns, of.got.gaps_ns, of.got.latency_ns) = (0, 0, None, None);
    of.got.flows.clear();
    let report = views::frames::trial(&of, LINK);
    assert_eq!(report.received.as_ref().map(|it| (it.received, it.frame_bytes)), Some((0, None)));
    let text = frames::text::summary(&report, Style::default());
    assert!(text.contains("no frame with the signature") && text.contains("1,000 (100 %) of those sent"), "{text}");
}

#[test]
fn before_the_first_frame() {
    let style = Style::default();
    let mut plan = generate_plan(FrameLoad::FramesPerSecond(14_880_952.0), 64);
    plan.format.sizes = [vec![64; 7], vec![570; 4], vec![1518]].concat();
    plan.format.vlan = Some(7);
    plan.count = Some(1_000_000_000);
    let text = frames::text::generate_header(&plan, style) + &frames::text::receive_header(&receive_plan(), style);
    insta::assert_snapshot!(text);
}

#[test]
fn a_line_a_second() {
    use views::frames::{Scale, received_interval, sent_interval};
    let style = Style::default();
    let at = |s: u64, frames| FrameInterval { at_us: s * 1_000_000 + 137, frames, ..FrameInterval::default() };
    let sent = |s, frames, due, skipped, refused| FrameInterval {
        sent: Some(SentSoFar { due, skipped, refused, wire_bytes: frames * 84 }),
        ..at(s, frames)
    };
    let got = |s, frames, numbers, reordered, duplicates| FrameInterval {
        got: Some(GotSoFar { numbers, duplicates, reordered, foreign: 3 * s, missed: None, bytes: frames * 64 }),
        ..at(s, frames)
    };
    let scale = Scale { frame_bytes: Some(64.0), link_bps: LINK };
    let unknown = Scale { frame_bytes: None, link_bps: None };
    let first = sent(1, 14_880_952, 14_880_960, 0, Some(0));
    let begun = got(1, 14_880_000, 14_880_952, 0, 0);
    let sending = |before, now, scale| progress::sent(&sent_interval(before, now, scale), style);
    let receiving = |before, now| progress::received(&received_interval(before, now, scale), style);
    let text = [
        End::Sent.heading(style),
        sending(None, first, scale),
        sending(Some(first), sent(2, 22_321_428, 29_761_904, 7_440_000, Some(17)), scale),
        sending(None, sent(1, 7, 7, 0, None), unknown),
        sending(Some(at(1, 14_880_952)), at(2, 22_321_428), unknown),
        End::Received.heading(style),
        receiving(None, begun),
        receiving(Some(begun), got(2, 29_762_000, 29_761_904, 952, 100)),
        receiving(Some(at(2, 5)), at(3, 5)),
        End::Received.heading(Style { width: 80, ..style }),
    ];
    insta::assert_snapshot!(text.concat());
}

#[test]
fn a_receiver_alone_tells_losses_by_their_numbers_and_of_which_clock_its_stamps_are() {
    let mut of = trial(1_000, 64, 1, 20);
    let told = |of: &FrameTrial| frames::text::summary(&views::frames::receive(&of.got, LINK), Style::default());
    let text = told(&of);
    assert!(text.contains("lost         20 (2.0 %) by sequence number; frames after the highest number"), "{text}");
    assert!(text.contains("CPUs differ by at most 84 ns"), "{text}");
    of.got.latency_ns = None;
    of.got.stamp_clock = Some(StampClock { bound_ns: Some(84), of_others: 1 });
    let text = told(&of);
    assert!(text.contains("no latency: the timestamps of 1 frame are from the clock of another machine"), "{text}");
    of.got.stamp_clock = None;
    assert!(told(&of).contains("no latency: no timestamped frame arrived"));
}

#[test]
fn flows_that_took_no_turns_say_that_their_losses_are_not_known() {
    let mut of = trial(1_000_000, 64, 1, 0);
    of.got.flows.iter_mut().for_each(|flow| flow.lost = None);
    of.got.flows.truncate(2);
    (of.got.flows_silent, of.got.flows_left_out) = (None, 0);
    let text = frames::text::summary(&views::frames::receive(&of.got, LINK), Style::default());
    insta::assert_snapshot!(text.split_once("\nflows").map_or("", |it| it.1));
}

#[test]
fn as_json_it_reads_back() {
    for report in [troubled(), views::frames::generate(&trial(10, 64, 1, 0).sent, LINK)] {
        reads_back(&report);
        assert_eq!(report.schema, "narrows.frames/1");
    }
}

/// Whether nothing of it starts an escape sequence or turns the direction of writing.
fn unarmed(text: &str) -> bool {
    !text.contains(['\u{1b}', '\u{202e}'])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_line_is_wider_than_the_terminal(
        word in "\\PC{0,120}",
        width in 80usize..160,
        frames in any::<u64>(),
        elapsed in any::<u64>(),
    ) {
        let mut of = trial(1_000, 64, 1, 0);
        of.sent.plan.device = word.clone();
        of.sent.not_better = vec![word.clone()];
        of.sent.ended = Some(word.clone());
        of.sent.streams[0].handed = frames / 2;
        of.sent.elapsed_ns = elapsed;
        of.got.flows[0].source = word;
        of.got.foreign = frames;
        of.got.intervals[0].frames = frames;
        let style = Style { width, full: true, ..Style::default() };
        let text = shown(&views::frames::trial(&of, LINK), style)
            + &frames::text::generate_header(&of.sent.plan, style)
            + &frames::text::receive_header(&of.got.plan, style);
        for line in text.lines() {
            prop_assert!(line.chars().count() <= width, "{}: {}", line.chars().count(), line);
            prop_assert!(unarmed(line));
        }
    }
}

#[test]
fn it_fits_the_narrowest_terminal() {
    let style = Style { width: NARROWEST, ..Style::default() };
    fits("frames", &shown(&views::frames::trial(&trial(14_880_952, 64, 3, 1_234), LINK), style));
    fits("frames with trouble", &shown(&troubled(), style));
}
