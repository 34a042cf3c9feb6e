//! A measurement: its figures, its text and its events.

use crate::samples;

use narrows_model::run::measure::MeasureReport;
use narrows_model::*;
use narrows_render::{Style, measure};
use narrows_views::measure::live::Live;
use narrows_views::measure::tcp;
use samples::fits::{NARROWEST, fits};
use samples::runs::run;
use samples::same::reads_back;

fn built(plan: TcpPlan, seconds: u64) -> MeasureReport {
    tcp::build(&run(plan, seconds, 117_625_000)).expect("it holds a trial")
}

fn with_omit() -> TcpPlan {
    TcpPlan { limit: Limit::DurationMs(4_000), omit_ms: 1_000, ..TcpPlan::default() }
}

fn end(record: &mut LoadRecord) -> &mut TcpEndRecord {
    record.get_mut().expect("TCP")
}

#[test]
fn figures_are_those_of_the_receiver_after_the_omitted_part() {
    let report = built(with_omit(), 4);
    let total = &report.summary.flows[0].total;
    assert_eq!((total.seen_by, total.bytes), (Place::Server, 3 * 117_625_000));
    assert!((total.goodput_bps - 941e6).abs() < 1.0);
    // total_retrans goes 0, 1, 2, 2 at seconds 1 to 4.
    assert_eq!(total.columns.retransmits, Some(2));
    assert_eq!(report.summary.flows[0].min_rtt_us, Some(34_900));
    let omitted: Vec<_> = report.intervals.iter().filter(|it| it.stream.is_none()).map(|it| it.omitted).collect();
    assert_eq!(omitted, [true, false, false, false]);
    let cpu = report.summary.server.as_ref().expect("cpu").busiest.expect("a core");
    assert_eq!(cpu.cpu, 1);
    assert!((cpu.softirq - 0.3).abs() < 1e-9 && (cpu.idle - 0.49).abs() < 1e-9);
    let threads = report.summary.client.as_ref().and_then(|cost| cost.data_threads_cores).expect("threads");
    assert!((threads - 0.2).abs() < 1e-9);
}

#[test]
fn intervals_sum_to_the_whole() {
    for streams in [1, 3, 9] {
        let report = built(TcpPlan { streams, direction: Direction::Both, ..TcpPlan::default() }, 10);
        for flow in &report.summary.flows {
            let own = report.intervals.iter().filter(|it| it.flow == flow.total.flow);
            let (sums, parts): (Vec<_>, Vec<_>) = own.partition(|it| it.stream.is_none());
            assert_eq!(sums.iter().map(|it| it.bytes).sum::<u64>(), flow.total.bytes);
            assert_eq!(parts.iter().map(|it| it.bytes).sum::<u64>(), flow.total.bytes);
            assert_eq!(sums.len(), 10);
        }
    }
}

#[test]
fn the_servers_own_limit_is_named() {
    let mut run = run(with_omit(), 4, 117_625_000);
    let plan: &mut TcpPlan = run.trials[0].trial.plan.get_mut().expect("TCP");
    plan.pacing_bps = Some(1_000_000_000);
    let report = tcp::build(&run).expect("it holds a trial");
    assert_eq!(report.run.server_limit_bps, Some(1_000_000_000));
    let text = measure::text(&report, Style::default());
    let line = "server  ! this server limits clients without its token to 1.00 Gbit/s (`narrows serve --open-rate`):\n";
    assert!(text.contains(line), "{text}");
    // A cap that was asked for is the user's own.
    run.plan = run::RunPlan::Measure(run.trials[0].trial.plan.clone());
    let report = tcp::build(&run).expect("it holds a trial");
    assert_eq!(report.run.server_limit_bps, None);
    assert!(!measure::text(&report, Style::default()).contains("this server limits"));
}

#[test]
fn a_lost_receiver_leaves_what_the_sender_saw_acknowledged() {
    let mut run = run(with_omit(), 4, 117_625_000);
    end(&mut run.trials[0].trial.server).streams.clear();
    end(&mut run.trials[0].trial.server).host.clear();
    run.ending = Ending::Failed("the server was lost after 4.1 s".into());
    let report = tcp::build(&run).expect("it holds a trial");
    let total = &report.summary.flows[0].total;
    assert_eq!(total.seen_by, Place::Client);
    assert!((total.goodput_bps - 941e6).abs() < 1.0);
    insta::assert_snapshot!(measure::text(&report, Style::default()));
}

#[test]
fn nothing_measured_is_no_figure() {
    let mut run = run(with_omit(), 4, 1);
    end(&mut run.trials[0].trial.client).streams.clear();
    end(&mut run.trials[0].trial.server).streams.clear();
    let report = tcp::build(&run).expect("it holds a trial");
    assert!(report.summary.flows.is_empty() && report.intervals.is_empty());
    run.trials.clear();
    assert!(tcp::build(&run).is_none());
}

#[test]
fn one_stream() {
    insta::assert_snapshot!(measure::text(&built(with_omit(), 4), Style::default()));
}

#[test]
fn a_narrow_terminal_loses_columns_and_not_its_shape() {
    insta::assert_snapshot!(measure::text(&built(with_omit(), 4), Style { width: 60, ..Style::default() }));
}

#[test]
fn both_ways_with_two_streams() {
    let plan = TcpPlan {
        streams: 2,
        direction: Direction::Both,
        limit: Limit::DurationMs(2_000),
        congestion_control: Some("bbr".into()),
        pacing_bps: Some(500_000_000),
        ..TcpPlan::default()
    };
    let mut run = run(plan, 2, 60_000_000);
    end(&mut run.trials[0].trial.server).remarks = vec!["SO_SNDBUF: asked for 4 MiB, obtained 208 KiB".into()];
    let report = tcp::build(&run).expect("it holds a trial");
    insta::assert_snapshot!(measure::text(&report, Style { width: 120, ..Style::default() }));
    assert_eq!(report.summary.flows[0].streams[0].sent.map(|sent| sent.bytes), Some(120_000_000));
}

#[test]
fn however_many_streams_each_has_its_lines_and_then_the_sum() {
    for streams in [2, 9] {
        let plan = TcpPlan { streams, limit: Limit::BytesPerStream(1 << 30), ..TcpPlan::default() };
        let text = measure::text(&built(plan, 3), Style::default());
        // Three intervals, then the sender and the receiver.
        for name in (0..streams).map(|id| format!("[{id:>3}]")).chain(["[SUM]".to_owned()]) {
            assert_eq!(text.matches(&name).count(), 3 + 2, "{name}: {text}");
        }
    }
}

#[test]
fn what_is_not_known_is_a_dash() {
    let mut run = run(TcpPlan { limit: Limit::DurationMs(2_000), ..TcpPlan::default() }, 2, 117_625_000);
    end(&mut run.trials[0].trial.client).streams.clear();
    let text = measure::text(&tcp::build(&run).expect("it holds a trial"), Style::default());
    let line = |begin: &str| text.lines().find(|line| line.contains(begin)).unwrap_or_else(|| panic!("{text}"));
    assert_eq!(line("0.00-1.00").split_whitespace().rev().take(3).collect::<Vec<_>>(), ["-", "-", "-"], "{text}");
    assert!(line("sender").split_whitespace().filter(|cell| *cell == "-").count() >= 4, "{text}");
    assert!(line("receiver").contains("0.00-2.00"), "{text}");
}

#[test]
fn intervals_and_summary_count_the_same() {
    for omit_ms in [0, 500, 1_000] {
        let mut run = run(TcpPlan { omit_ms, ..with_omit() }, 4, 117_625_000);
        // The two ends read their counters at slightly different instants.
        for sample in &mut end(&mut run.trials[0].trial.client).streams[0].samples {
            sample.at_us += 1_900;
        }
        let trial: TcpTrial<'_> = run.trials[0].trial.of().expect("TCP");
        let mut live = Live::new(trial.plan);
        let mut shown = Vec::new();
        for at in 0..trial.client.streams[0].samples.len() {
            for end in [trial.client, trial.server] {
                let it = &end.streams[0];
                let sample = it.samples[at].clone();
                let told = Progress {
                    at_us: sample.at_us,
                    streams: vec![StreamProgress { id: it.id, flow: it.flow, sample: sample.into() }],
                };
                shown.extend(live.take(end.place, &told));
            }
        }
        shown.extend(live.rest(trial));
        let report = tcp::build(&run).expect("it holds a trial");
        let total = &report.summary.flows[0].total;
        for intervals in [&shown, &report.intervals] {
            let counted: Vec<_> = intervals.iter().filter(|it| it.stream.is_none() && !it.omitted).collect();
            assert_eq!(counted.iter().map(|it| it.bytes).sum::<u64>(), total.bytes, "{omit_ms}: {counted:?}");
            assert_eq!(
                counted.iter().map(|it| it.columns.retransmits).sum::<Option<u64>>(),
                total.columns.retransmits,
                "{omit_ms}: {counted:?}"
            );
        }
    }
}

#[test]
fn every_width_from_sixty_columns_on_is_kept() {
    for (streams, direction) in [(1, Direction::Up), (2, Direction::Both)] {
        let report = built(TcpPlan { streams, direction, ..with_omit() }, 4);
        for width in [60, 66, 72, 80, 100] {
            let text = measure::text(&report, Style { width, ..Style::default() });
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
            assert!(text.contains("Retr") && text.contains("sender") && text.contains("receiver"), "{width}:\n{text}");
        }
    }
}

#[test]
fn events_a_line_each() {
    let report = built(with_omit(), 4);
    let lines = measure::events(&report).expect("json");
    let events: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    assert_eq!(events[0]["event"], "start");
    assert_eq!(events[0]["schema"], "narrows.measure/1");
    assert!(events[1..events.len() - 1].iter().all(|event| event["event"] == "interval"));
    assert!(events[1]["goodput_bps"].is_number() && events[1]["sender"]["snd_cwnd"].is_number());
    let last = &events[events.len() - 1];
    assert_eq!(last["event"], "summary");
    assert!(last["flows"][0]["total"]["goodput_bps"].is_number() && last["client"]["busiest"]["idle"].is_number());
    reads_back(&report);
}

#[test]
fn live_lines_are_those_of_the_record() {
    let run = run(TcpPlan { streams: 2, ..with_omit() }, 4, 117_625_000);
    let trial: TcpTrial<'_> = run.trials[0].trial.of().expect("TCP");
    let mut live = Live::new(trial.plan);
    let mut lines = Vec::new();
    for at in 0..trial.client.streams[0].samples.len() {
        for end in [trial.client, trial.server] {
            let of = |it: &TcpStreamRecord| StreamProgress {
                id: it.id,
                flow: it.flow,
                sample: it.samples[at].clone().into(),
            };
            let at_us = end.streams[0].samples[at].at_us;
            lines.extend(live.take(end.place, &Progress { at_us, streams: end.streams.iter().map(of).collect() }));
        }
    }
    assert_eq!(lines.len(), 9, "the last one comes from the record");
    lines.extend(live.rest(trial));
    let mut recorded = tcp::build(&run).expect("it holds a trial").intervals;
    assert_eq!(lines.len(), recorded.len());
    for view in &mut recorded {
        (view.sender, view.receiver) = (None, None);
    }
    // A live stream begins at its zero, a recorded one at its first sample: the first rates differ by that.
    for (live, recorded) in lines.iter().zip(&recorded) {
        assert_eq!((live.stream, live.bytes, live.columns), (recorded.stream, recorded.bytes, recorded.columns));
    }
    assert_eq!(lines[3..], recorded[3..]);
}

#[test]
fn it_fits_the_narrowest_terminal() {
    let style = Style { width: NARROWEST, ..Style::default() };
    for (streams, direction) in [(1, Direction::Up), (2, Direction::Both)] {
        fits("tcp", &measure::text(&built(TcpPlan { streams, direction, ..with_omit() }, 4), style));
    }
}
