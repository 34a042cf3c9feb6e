//! A UDP measurement: its figures, its text and its events.

use crate::samples;

use narrows_model::load::udp::report::MeasureUdpReport;
use narrows_model::*;
use narrows_render::measure::{self, Measurement as _, UdpMeasurement};
use narrows_render::{Document, Format, Style};
use narrows_views::measure::{live::Live, udp};
use samples::fits::{NARROWEST, fits};
use samples::same::reads_back;
use samples::udp::{Trouble, run_view, trial};

fn plan() -> UdpPlan {
    UdpPlan { rate_up: UdpRate::Pps(100_000.0), duration_ms: 4_000, ..UdpPlan::default() }
}

fn of(trial: &Trial) -> MeasureUdpReport {
    udp::from_trial(trial.of().expect("UDP"), run_view())
}

fn measurement(report: &MeasureUdpReport) -> UdpMeasurement {
    UdpMeasurement { report: report.clone(), ledgers: vec![] }
}

fn shown_text(report: &MeasureUdpReport, style: Style) -> String {
    measure::text(&measurement(report), style)
}

fn end(record: &mut LoadRecord) -> &mut UdpEndRecord {
    record.get_mut().expect("UDP")
}

fn built(plan: UdpPlan, trouble: Trouble) -> MeasureUdpReport {
    of(&trial(plan, 4, 100_000, trouble))
}

const LOSSY: Trouble = Trouble { lost_s: 310, unsent_s: 12, reordered_s: 1 };

#[test]
fn figures_of_a_flow() {
    let report = built(plan(), LOSSY);
    let total = &report.summary.flows[0].total;
    let (sent, got) = (total.sent.as_ref().expect("sender"), total.received.as_ref().expect("receiver"));
    assert_eq!((sent.datagrams, sent.unsent, got.lost), (4 * 99_988, 48, 1240));
    assert!((sent.pps - 99_988.0).abs() < 1.0, "{}", sent.pps);
    assert!((sent.of_asked.expect("a rate was asked") - 0.99988).abs() < 1e-9);
    assert!((got.loss.expect("something was sent") - 1240.0 / 399_952.0).abs() < 1e-12);
    assert!((got.pps / sent.pps - (1.0 - 1240.0 / 399_952.0)).abs() < 1e-9, "one time base");
    assert!((sent.offered_pps - 100_000.0).abs() < 1.0);
    let short = &report.summary.flows[0].short_buffers[0];
    assert_eq!((short.at, short.sysctl.as_str(), short.needs), (Place::Server, "net.core.rmem_max", 4 << 20));
    let host = report.summary.server.as_ref().and_then(|cost| cost.host).expect("cpu");
    assert_eq!(host.cores, 2);
    assert!((host.user - 0.26).abs() < 1e-9 && (host.softirq - 0.31).abs() < 1e-9, "{host:?}");
}

#[test]
fn one_datagram_has_the_rate_of_the_planned_duration() {
    let plan = UdpPlan { rate_up: UdpRate::Bps(1_000), duration_ms: 4_000, ..UdpPlan::default() };
    let mut trial = trial(plan, 4, 1, Trouble::default());
    for end in [&mut trial.client, &mut trial.server].map(end) {
        for stream in &mut end.streams {
            if let Some(sent) = &mut stream.sent {
                (sent.datagrams, sent.bytes, sent.active_ns, sent.burst_max) = (1, 1448, 0, 1);
            }
            if let Some(got) = &mut stream.received {
                (got.datagrams, got.distinct, got.bytes, got.active_ns) = (1, 1, 1448, 0);
            }
            // Both ends are done a moment after the only datagram.
            stream.samples.truncate(2);
            let [first, last] = &mut stream.samples[..] else { panic!("two samples") };
            (first.at_us, first.bytes, first.datagrams) = (0, 0, 0);
            (last.at_us, last.bytes, last.datagrams) = (21, 1448, 1);
        }
    }
    let report = of(&trial);
    let total = &report.summary.flows[0].total;
    let (sent, got) = (total.sent.as_ref().expect("sender"), total.received.as_ref().expect("receiver"));
    assert_eq!((sent.datagrams, sent.bps, got.bps), (1, 1448.0 * 8.0 / 4.0, 1448.0 * 8.0 / 4.0));
}

#[test]
fn the_omitted_part_is_not_counted() {
    let report = built(UdpPlan { omit_ms: 1_000, ..plan() }, LOSSY);
    let total = &report.summary.flows[0].total;
    let (sent, got) = (total.sent.as_ref().expect("sender"), total.received.as_ref().expect("receiver"));
    assert_eq!((sent.datagrams, sent.unsent, got.lost), (3 * 99_988, 36, 930));
    assert!((sent.pps - 99_988.0).abs() < 1.0, "{}", sent.pps);
    let omitted: Vec<_> = report.intervals.iter().filter(|it| it.stream.is_none()).map(|it| it.omitted).collect();
    assert_eq!(omitted, [true, false, false, false]);
}

#[test]
fn datagrams_after_the_last_arrival_are_lost_too() {
    let mut trial = trial(plan(), 4, 100_000, Trouble::default());
    let received = end(&mut trial.server).streams[0].received.as_mut().expect("a receiver");
    (received.datagrams, received.distinct, received.lost) = (300_000, 300_000, 0);
    received.active_ns /= 2;
    let report = of(&trial);
    let got = report.summary.flows[0].total.received.clone().expect("receiver");
    assert_eq!((got.lost, got.loss), (100_000, Some(0.25)));
    assert!((got.pps - 75_000.0).abs() < 1.0, "over the sender's time: {}", got.pps);
}

#[test]
fn intervals_sum_to_the_whole() {
    for streams in [1, 3, 9] {
        let report = built(UdpPlan { streams, direction: Direction::Both, ..plan() }, LOSSY);
        for flow in &report.summary.flows {
            let own = report.intervals.iter().filter(|it| it.flow == flow.flow && it.stream.is_none());
            let parts: Vec<_> = own.map(|it| (it.sent.expect("sent"), it.received.expect("received"))).collect();
            let (sent, got) = (flow.total.sent.as_ref().expect("sent"), flow.total.received.as_ref().expect("got"));
            assert_eq!(parts.iter().map(|it| it.0.datagrams).sum::<u64>(), sent.datagrams);
            assert_eq!(parts.iter().map(|it| it.1.lost).sum::<u64>(), got.lost);
            assert_eq!(sent.datagrams, u64::from(streams) * 4 * 99_988);
        }
    }
}

#[test]
fn a_missing_record_is_no_zero() {
    let mut trial = trial(plan(), 4, 100_000, Trouble::default());
    end(&mut trial.server).streams.clear();
    end(&mut trial.server).host.clear();
    let mut run = run_view();
    run.ending = Ending::Failed("the server was lost after 4.1 s".into());
    let report = udp::from_trial(trial.of().expect("UDP"), run);
    assert!(report.summary.flows[0].total.received.is_none());
    insta::assert_snapshot!(shown_text(&report, Style::default()));
    end(&mut trial.client).streams.clear();
    assert!(of(&trial).summary.flows.is_empty());
}

#[test]
fn one_stream_with_trouble() {
    insta::assert_snapshot!(shown_text(&built(UdpPlan { omit_ms: 1_000, ..plan() }, LOSSY), Style::default()));
}

#[test]
fn one_stream_at_its_best() {
    let mut trial = trial(UdpPlan { rate_up: UdpRate::Max, ..plan() }, 4, 100_000, Trouble::default());
    end(&mut trial.server).streams[0].rcvbuf_requested_bytes = Some(212_992);
    insta::assert_snapshot!(shown_text(&of(&trial), Style::default()));
}

#[test]
fn both_ways_with_two_streams() {
    let plan = UdpPlan {
        streams: 2,
        direction: Direction::Both,
        rate_down: UdpRate::Bps(1_000_000_000),
        sizes: DatagramSizes::Sequence(vec![64, 570, 1448]),
        ..plan()
    };
    let mut report = built(plan, LOSSY);
    report.remarks =
        vec![narrows_model::run::measure::Remark { at: Place::Server, says: "no\x1b[31m time stamps".into() }];
    insta::assert_snapshot!(shown_text(&report, Style { width: 120, ..Style::default() }));
}

#[test]
fn a_narrow_terminal_loses_columns_and_not_its_shape() {
    let text = shown_text(&built(plan(), LOSSY), Style { width: 80, ..Style::default() });
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(text.contains("jitter") && !text.contains("  dup"), "{text}");
}

#[test]
fn where_the_loss_does_not_fit_rows_are_stacked_and_lose_nothing() {
    for direction in [Direction::Up, Direction::Both] {
        let report = built(UdpPlan { streams: 2, direction, omit_ms: 1_000, ..plan() }, LOSSY);
        let wide = shown_text(&report, Style { wide: true, ..Style::default() });
        let cells = |line: &&str| line.split_whitespace().filter(|word| *word != "(omitted)").count();
        let all: usize = wide
            .lines()
            .filter(|line| line.starts_with('['))
            .filter(|line| !line.contains("ID"))
            .map(|it| cells(&it))
            .sum();
        for width in 40..58 {
            let text = shown_text(&report, Style { width, ..Style::default() });
            fits_in(width, &text);
            let rows = text.split("\n\n").next().expect("rows").split_once("ID]").expect("a heading").1;
            let rows = rows.split_once('\n').expect("a row").1;
            // Each cell has its heading, but the name, the direction and the interval.
            let named = ["Sent", "pps", "Received", "Lost", "Loss", "Jitter", "Unsent", "Reord", "Dup"];
            let names: usize = named.iter().map(|name| rows.matches(&format!("{name} ")).count()).sum();
            let found = rows.split_whitespace().filter(|word| *word != "(omitted)").count();
            assert_eq!(found - names, all, "{width}:\n{text}\n{wide}");
        }
        let text = shown_text(&report, Style { width: 62, ..Style::default() });
        assert!(text.lines().any(|line| line.contains("Loss")), "{text}");
    }
    let narrow = shown_text(&built(plan(), LOSSY), Style { width: 40, ..Style::default() });
    let rows: String =
        narrow.lines().skip_while(|line| !line.starts_with("[ ID]")).take(6).map(|line| format!("{line}\n")).collect();
    insta::assert_snapshot!(rows);
}

fn fits_in(width: usize, text: &str) {
    assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
}

#[test]
fn however_many_streams_each_has_its_lines_and_then_the_sum() {
    let text = shown_text(&built(UdpPlan { streams: 9, ..plan() }, LOSSY), Style::default());
    for name in ["[  0]", "[  8]", "[SUM]"] {
        assert_eq!(text.matches(name).count(), 4, "{text}");
    }
    assert!(text.contains("stream 8"), "{text}");
}

#[test]
fn every_width_from_sixty_columns_on_is_kept() {
    for direction in [Direction::Up, Direction::Both] {
        let report = built(UdpPlan { streams: 2, direction, omit_ms: 1_000, ..plan() }, LOSSY);
        for width in [60, 72, 80, 100] {
            let text = shown_text(&report, Style { width, ..Style::default() });
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
        }
    }
}

#[test]
fn events_a_line_each() {
    let report = built(plan(), LOSSY);
    let lines = measure::events(&measurement(&report)).expect("json");
    let events: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    assert_eq!(events[0]["event"], "start");
    assert_eq!(events[0]["schema"], "narrows.measure-udp/1");
    assert!(events[1..events.len() - 1].iter().all(|event| event["event"] == "interval"));
    assert!(events[1]["sent"]["pps"].is_number() && events[1]["received"]["lost"] == 310);
    let last = &events[events.len() - 1];
    assert_eq!(last["event"], "summary");
    assert_eq!(last["flows"][0]["total"]["sent"]["unsent_by"]["no_buffers"], 48);
    assert!(last["client"]["host"]["softirq"].is_number());
    reads_back(&report);
}

#[test]
fn live_lines_are_those_of_the_record() {
    let trial = trial(UdpPlan { streams: 2, omit_ms: 1_000, ..plan() }, 4, 100_000, LOSSY);
    let record: UdpTrial<'_> = trial.of().expect("UDP");
    let mut live = Live::new(record.plan);
    let mut lines = Vec::new();
    for at in 0..record.client.streams[0].samples.len() {
        for end in [record.client, record.server] {
            let of = |it: &UdpStreamRecord| StreamProgress {
                id: it.id,
                flow: it.flow,
                sample: it.samples[at].clone().into(),
            };
            let at_us = end.streams[0].samples[at].at_us;
            lines.extend(live.take(end.place, &Progress { at_us, streams: end.streams.iter().map(of).collect() }));
        }
    }
    let recorded = of(&trial).intervals;
    assert_eq!(lines.len(), recorded.len() - 3, "the last one comes from the record");
    lines.extend(live.rest(record));
    assert_eq!(lines.len(), recorded.len());
    // A live stream begins at its zero, a recorded one at its first sample: the first rates differ by that.
    for (live, recorded) in lines.iter().zip(&recorded) {
        assert_eq!((live.stream, live.omitted), (recorded.stream, recorded.omitted));
        assert_eq!(live.sent.map(|it| it.datagrams), recorded.sent.map(|it| it.datagrams));
        assert_eq!(live.received.map(|it| it.lost), recorded.received.map(|it| it.lost));
    }
    assert_eq!(lines[3..], recorded[3..]);
}

#[test]
fn a_hostile_record_breaks_nothing() {
    let mut trial = trial(UdpPlan { streams: 2, direction: Direction::Both, omit_ms: 1, ..plan() }, 4, 100_000, LOSSY);
    for end in [&mut trial.client, &mut trial.server].map(end) {
        end.remarks.push("\x1b[2J".into());
        for stream in &mut end.streams {
            (stream.method, stream.rcvbuf_requested_bytes) = ("\x1b]0;x\x07".into(), Some(u32::MAX));
            if let Some(sent) = &mut stream.sent {
                (sent.datagrams, sent.bytes, sent.active_ns, sent.calls) = (u64::MAX, u64::MAX, 0, u64::MAX);
                sent.unsent = Unsent { no_buffers: u64::MAX, other: u64::MAX, ..Unsent::default() };
            }
            if let Some(received) = &mut stream.received {
                (received.distinct, received.datagrams, received.lost) = (0, u64::MAX, u64::MAX);
                (received.jitter_ns, received.stamps) = (f64::NAN, "\x1b".into());
            }
            for sample in &mut stream.samples {
                (sample.lost, sample.bytes, sample.jitter_ns) = (u64::MAX, u64::MAX, f64::INFINITY);
            }
            stream.samples.reverse();
        }
    }
    let plan = trial.plan.get_mut::<UdpPlan>().expect("UDP");
    (plan.interval_ms, plan.duration_ms) = (u64::MAX, u64::MAX);
    let report = of(&trial);
    let text = shown_text(&report, Style::default());
    assert!(!text.contains('\x1b'), "{text}");
    assert!(measure::events(&measurement(&report)).is_ok());
}

#[test]
fn intervals_are_rows_of_one_length_and_a_picture() {
    let report = measurement(&built(plan(), LOSSY));
    let csv = Document::write(&report, Format::Csv, Style::default()).expect("text").expect("a table");
    let rows: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0][..6], ["trial", "direction", "stream", "from_s", "to_s", "omitted"]);
    assert!(rows[0].contains(&"loss_fraction") && rows.len() > 2, "{csv}");
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{csv}");
    let page = Document::write(&report, Format::Html, Style::default()).expect("text").expect("a page");
    assert!(page.contains("<svg") && page.contains(">goodput<") && page.contains("<pre"), "{page}");
    assert!(report.picture().ends_with("</svg>\n"));
}

#[test]
fn it_fits_the_narrowest_terminal() {
    let style = Style { width: NARROWEST, ..Style::default() };
    for (streams, direction) in [(1, Direction::Up), (2, Direction::Both)] {
        let plan = UdpPlan { streams, direction, omit_ms: 1_000, ..plan() };
        fits("udp", &shown_text(&built(plan, LOSSY), style));
    }
}
