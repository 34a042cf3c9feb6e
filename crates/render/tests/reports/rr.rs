//! A request/response measurement: its figures, its text and its events.

use crate::samples;

use narrows_model::load::rr::report::{Confidence, LatencyUnderLoad, Responsiveness, RrIntervalView, RrReport};
use narrows_model::run::report::RunView;
use narrows_model::*;
use narrows_render::{Style, json, measure};
use narrows_stats::Histogram;
use narrows_views::measure::rr;
use samples::fits::{NARROWEST, fits};
use samples::runs::run;
use samples::same::{reads_back, unpainted};
use samples::udp::run_view;

/// A stream as the client saw it: `per_s` transactions a second for `seconds`, with latencies spread from half of `us` to twice of
/// it; one failure at second 3.
fn stream(id: u32, seconds: u64, omit: u64, per_s: u64, us: u64) -> RrStreamRecord {
    let mut latency = Histogram::new();
    for n in 0..per_s * (seconds - omit) {
        latency.record((us * 500).max(us * 500 + us * 1500 * (n % 1000) / 1000));
    }
    let mut connect = Histogram::new();
    connect.record(us * 1100);
    let times = [0, 2, 10, 40, 100].into_iter().chain((1..=seconds).map(|s| s * 1000));
    let sample = |ms: u64| RrSample {
        at_us: ms * 1000 + 60,
        transactions: per_s * ms / 1000,
        failures: u64::from(ms >= 3000),
        latency_sum_ns: per_s * ms * us * 1249 / 1000,
        thread_cpu_us: Some(ms * 250),
    };
    RrStreamRecord {
        id,
        local: format!("[2001:db8::1]:{}", 51_000 + id),
        remote: "[2001:db8::5]:5220".to_owned(),
        transactions: per_s * seconds,
        failures: 1,
        latency_ns: latency.distribution(),
        connect_ns: connect.distribution(),
        samples: times.map(sample).collect(),
    }
}

fn trial(plan: RrPlan, per_s: u64, us: u64) -> Trial {
    let (seconds, omit) = (plan.duration_ms / 1000, plan.omit_ms / 1000);
    let tcp = plan.load.clone().map(|load| run(load, seconds, 117_625_000).trials.remove(0).trial);
    let load = |of: fn(&Trial) -> &LoadRecord| tcp.as_ref().and_then(|tcp| of(tcp).get().cloned());
    let core = |cpu, s: u64| CpuTimes {
        cpu,
        user_us: s * 50_000,
        system_us: s * 250_000,
        softirq_us: s * 100_000,
        idle_us: s * 600_000,
        ..CpuTimes::default()
    };
    let end = |place, streams: Vec<RrStreamRecord>, load| RrEndRecord {
        place,
        streams,
        load,
        host: (0..=seconds).map(|s| HostSample { at_us: s * 1_000_000 + 90, cpus: vec![core(0, s)] }).collect(),
        before: Snapshot::default(),
        after: Snapshot::default(),
        remarks: vec![],
    };
    let streams: Vec<_> = (0..plan.streams).map(|id| stream(id, seconds, omit, per_s, us)).collect();
    let answered = streams.iter().map(|it| RrStreamRecord { latency_ns: Distribution::default(), ..it.clone() });
    let client = end(Place::Client, streams.clone(), load(|tcp| &tcp.client));
    let server = end(Place::Server, answered.collect(), load(|tcp| &tcp.server));
    Trial::new(plan, client, server, seconds * 1_000_000 + 4_000)
}

fn view() -> RunView {
    let target = run(TcpPlan::default(), 1, 1).target;
    RunView { elapsed_s: 10.4, target, idle_rtt_us: Some(34_851), ..run_view() }
}

fn plan() -> RrPlan {
    RrPlan { duration_ms: 4_000, omit_ms: 1_000, ..RrPlan::default() }
}

fn loaded_plan() -> RrPlan {
    let load = TcpPlan { limit: Limit::DurationMs(4_000), streams: 2, ..TcpPlan::default() };
    RrPlan { load: Some(load), ..plan() }
}

fn of(trial: &Trial) -> RrTrial<'_> {
    trial.of().expect("requests")
}

fn end(record: &mut LoadRecord) -> &mut RrEndRecord {
    record.get_mut().expect("requests")
}

fn report(trial: &Trial) -> RrReport {
    rr::build(view(), &[of(trial)], None)
}

fn wide() -> Style {
    Style { width: 120, ..Style::default() }
}

#[test]
fn figures_are_those_of_the_counted_part() {
    let report = report(&trial(plan(), 20_000, 48));
    let summary = &report.phases[0].summary;
    let total = summary.total.expect("a total");
    assert_eq!((total.transactions, total.failures), (60_000, 1));
    assert!((total.per_s - 20_000.0).abs() < 1.0, "{total:?}");
    assert!((total.mean_latency_ns.expect("a mean") - 48.0 * 1249.0).abs() < 1.0);
    assert_eq!((summary.latency_ns.count, summary.connect_ns.count), (60_000, 1));
    let omitted: Vec<_> =
        report.phases[0].intervals.iter().filter(|it| it.stream.is_none()).map(|it| it.omitted).collect();
    assert_eq!(omitted, [true, false, false, false]);
    assert_eq!(report.phases[0].streams[0].answered, Some(80_000));
    assert!(summary.load.is_empty());
    let threads = summary.client.as_ref().and_then(|cost| cost.data_threads_cores).expect("threads");
    assert!((threads - 0.25).abs() < 1e-9);
}

#[test]
fn intervals_sum_to_the_whole_and_waiting_for_the_last_answers_takes_no_time() {
    let mut trial = trial(RrPlan { streams: 3, omit_ms: 0, ..plan() }, 100, 48);
    for stream in &mut end(&mut trial.client).streams {
        let last = *stream.samples.last().expect("samples");
        stream.samples.push(RrSample { at_us: 5_000_000, failures: 2, ..last });
    }
    let report = report(&trial);
    let phase = &report.phases[0];
    let (sums, parts): (Vec<RrIntervalView>, Vec<_>) =
        phase.intervals.iter().copied().partition(|it| it.stream.is_none());
    let total = phase.summary.total.expect("a total");
    assert_eq!(sums.iter().map(|it| it.transactions).sum::<u64>(), total.transactions);
    assert_eq!(parts.iter().map(|it| it.transactions).sum::<u64>(), total.transactions);
    assert_eq!((sums.len(), total.failures), (5, 6));
    assert!((total.per_s - 300.0).abs() < 0.1, "{total:?}");
    assert!(sums[4].mean_latency_ns.is_none() && sums[4].failures == 3);
}

#[test]
fn nothing_measured_is_no_figure() {
    let mut trial = trial(loaded_plan(), 100, 48);
    end(&mut trial.client).streams.clear();
    end(&mut trial.client).load = None;
    end(&mut trial.client).host.clear();
    let report = report(&trial);
    let summary = &report.phases[0].summary;
    assert!(summary.total.is_none() && summary.load.is_empty() && summary.client.is_none());
    insta::assert_snapshot!(measure::text(&report, wide()));
}

#[test]
fn one_stream_over_tcp() {
    insta::assert_snapshot!(measure::text(&report(&trial(plan(), 20_000, 48)), wide()));
}

#[test]
fn several_streams_at_a_rate_over_udp_with_remarks() {
    let plan = RrPlan {
        transaction: Transaction::Udp,
        streams: 2,
        outstanding: 16,
        request_bytes: 64,
        response_bytes: 1400,
        rate_per_s: Some(600.0),
        ..plan()
    };
    let mut trial = trial(plan, 300, 20_000);
    end(&mut trial.client).remarks.push("stream 1: 2 responses were late or duplicate\x1b[31m".into());
    end(&mut trial.client).streams.iter_mut().for_each(|stream| stream.connect_ns = Distribution::default());
    let mut report = report(&trial);
    report.run.ending = Ending::Failed("the server was lost after 4.1 s".into());
    insta::assert_snapshot!(measure::text(&report, Style { width: 80, ..Style::default() }));
}

#[test]
fn a_connection_for_each() {
    let plan = RrPlan { transaction: Transaction::TcpConnect, streams: 8, request_bytes: 44, ..plan() };
    insta::assert_snapshot!(measure::text(&report(&trial(plan, 2_000, 90)), wide()));
}

fn under_load(finding: Option<Finding>) -> RrReport {
    let trials = [trial(plan(), 50, 20_000), trial(loaded_plan(), 5, 215_000)];
    let rpm = |rpm, load_rpm| Responsiveness {
        rpm,
        requests_rpm: rpm,
        load_rpm,
        confidence: Confidence::High,
        variation: Some(0.01),
    };
    let view_of = LatencyUnderLoad {
        idle_ns: of(&trials[0]).client.streams[0].latency_ns.clone(),
        loaded_ns: of(&trials[1]).client.streams[0].latency_ns.clone(),
        increase_ns: 241e6,
        ratio: 10.8,
        idle_rpm: Some(rpm(2_412.0, None)),
        loaded_rpm: Some(rpm(223.4, Some(231.0))),
        missing: vec![],
        why_none: if finding.is_none() { "the load adds 1.90 ms to the 100 us".to_owned() } else { String::new() },
        finding,
    };
    rr::build(view(), &trials.each_ref().map(of), Some(view_of))
}

fn finding(confidence: f64) -> Finding {
    Finding {
        id: "bufferbloat".into(),
        at: Place::Path,
        confidence,
        summary: "a load fills a queue that is too long, on the way up".into(),
        ceiling_bps: None,
        prediction: None,
        witnesses: vec![Witness {
            kind: "experiment".into(),
            says: "with the load a transaction takes 266 ms instead of 24.6 ms (mean of the fastest 95 %)".into(),
        }],
        rejected: vec![Rejected { id: "cpu-contention".into(), why: "the kernels' RTT grew as well".into() }],
        fix: Fix { advice: "use an active queue management (fq_codel, cake)".into(), ..Fix::default() },
    }
}

#[test]
fn the_idle_and_the_loaded_path_side_by_side() {
    insta::assert_snapshot!(measure::text(&under_load(Some(finding(0.78))), wide()));
}

#[test]
fn what_is_found_is_told_in_as_many_words_as_it_is_sure() {
    let text = |finding| {
        let report = under_load(finding);
        measure::rr::under_load(report.under_load.as_ref().expect("a comparison"), Style::default())
    };
    assert!(text(Some(finding(0.78))).contains("FOUND  bufferbloat at the path"));
    assert!(text(Some(finding(0.44))).contains("SUSPECTED  bufferbloat at the path"));
    assert!(text(None).contains("no bufferbloat: the load adds 1.90 ms"));
}

#[test]
fn every_line_is_an_event_and_the_document_has_its_schemas_name() {
    let report = under_load(Some(finding(0.78)));
    let lines = measure::events(&report).expect("JSON");
    let events: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).expect("a JSON object")).collect();
    let names: Vec<_> = events.iter().map(|event| event["event"].as_str().expect("a name")).collect();
    assert_eq!(names.iter().filter(|name| **name == "start").count(), 2);
    assert_eq!((names[0], names[names.len() - 1]), ("start", "under_load"));
    assert_eq!(events[0]["schema"], "narrows.rr/1");
    reads_back(&report);
    assert!(json::pretty(&schemars::schema_for!(RrReport)).expect("a schema").contains("RrReport"));
}

#[test]
fn colour_adds_nothing_but_colour() {
    let report = under_load(Some(finding(0.78)));
    let plain = measure::text(&report, wide());
    let painted = measure::text(&report, Style { color: true, ..wide() });
    assert_eq!(unpainted(&painted), plain);
    assert!(plain.lines().all(|line| line.chars().count() <= 120));
}

#[test]
fn it_fits_the_narrowest_terminal() {
    let style = Style { width: NARROWEST, ..Style::default() };
    for plan in [plan(), RrPlan { streams: 8, omit_ms: 1_000, ..plan() }, loaded_plan()] {
        fits("rr", &measure::text(&report(&trial(plan, 12_000, 80)), style));
    }
    fits("latency under load", &measure::text(&under_load(Some(finding(0.9))), style));
}
