//! Two trials made by hand, and what must and must not be said of them.

use super::*;
use narrows_model::load::rr::report::{Confidence, Responsiveness};
use narrows_model::{
    Direction, Place, RrEndRecord, RrPlan, RrSample, RrStreamRecord, Snapshot, TcpInfo, TcpPlan, TcpSample,
    TcpStreamRecord, Transaction, Trial,
};
use narrows_model::{Flow, TcpEndRecord};
use narrows_stats::Histogram;

/// Ten seconds at this latency in each second, 100 transactions a second; the first second is omitted.
fn trial(latency_us: &[u64; 10], plan: RrPlan, load: Option<TcpEndRecord>) -> Trial {
    let mut histogram = Histogram::new();
    let mut sample = RrSample::default();
    let mut samples = vec![sample];
    for (second, us) in (1..).zip(latency_us) {
        if second > 1 {
            histogram.record_many(us * 1000, 100);
        }
        sample.at_us = second * 1_000_000 + 1_234;
        sample.transactions += 100;
        sample.latency_sum_ns += us * 100_000;
        samples.push(sample);
    }
    let stream = RrStreamRecord {
        transactions: 1000,
        latency_ns: histogram.distribution(),
        samples,
        ..RrStreamRecord::default()
    };
    let end = |place, streams, load| RrEndRecord {
        place,
        streams,
        load,
        host: Vec::new(),
        before: Snapshot::default(),
        after: Snapshot::default(),
        remarks: Vec::new(),
    };
    let (client, server) = (end(Place::Client, vec![stream], load.clone()), end(Place::Server, Vec::new(), load));
    Trial::new(RrPlan { omit_ms: 1_000, ..plan }, client, server, 10_002_000)
}

fn compared(idle: &Trial, loaded: &Trial) -> Result<LatencyUnderLoad, String> {
    under_load(idle.of().unwrap(), loaded.of().unwrap())
}

fn responsive(trial: &Trial) -> Result<Responsiveness, String> {
    responsiveness::of(trial.of().unwrap())
}

fn idle(us: u64) -> Trial {
    trial(&[us; 10], RrPlan::default(), None)
}

/// A load whose senders saw this RTT, and this smallest one.
fn load(rtt_us: Option<u64>, min_rtt_us: u64) -> TcpEndRecord {
    let sample = |s: u64| TcpSample {
        at_us: s * 1_000_000,
        // Before the queue is full the RTT is that of the idle path.
        tcp: TcpInfo {
            rtt_us: rtt_us.map(|rtt| if s == 0 { min_rtt_us } else { rtt }),
            min_rtt_us: Some(min_rtt_us),
            ..TcpInfo::default()
        },
        ..TcpSample::default()
    };
    let stream = TcpStreamRecord {
        id: 0,
        flow: Flow::Up,
        local: String::new(),
        remote: String::new(),
        congestion_control: None,
        mss_bytes: None,
        buffer_lock: None,
        sndbuf_bytes: None,
        rcvbuf_bytes: None,
        method: String::new(),
        samples: (0..=10).map(sample).collect(),
        subflows: Vec::new(),
    };
    TcpEndRecord {
        place: Place::Client,
        streams: vec![stream],
        host: Vec::new(),
        before: Snapshot::default(),
        after: Snapshot::default(),
        remarks: Vec::new(),
    }
}

fn loaded_plan() -> RrPlan {
    RrPlan { load: Some(TcpPlan { direction: Direction::Up, ..TcpPlan::default() }), ..RrPlan::default() }
}

fn loaded(us: u64, rtt_us: Option<u64>, min_rtt_us: u64) -> Trial {
    trial(&[us; 10], loaded_plan(), Some(load(rtt_us, min_rtt_us)))
}

fn close(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() < 0.01
}

#[test]
fn a_queue_of_two_hundred_milliseconds_is_named_with_two_witnesses() {
    let view = compared(&idle(20_000), &loaded(220_000, Some(215_000), 20_000)).unwrap();
    assert!(close(view.increase_ns, 200e6) && close(view.ratio, 11.0), "{view:?}");
    let finding = view.finding.unwrap();
    assert_eq!((finding.id.as_str(), finding.at, finding.witnesses.len()), ("bufferbloat", Place::Path, 2));
    assert!(finding.confidence > 0.5 && finding.summary.ends_with("on the way up"));
    assert_eq!(finding.rejected[0].id, "cpu-contention");
    assert!(finding.witnesses[0].says.contains("11.0 times as long"), "{}", finding.witnesses[0].says);
    // 60000 / 220 and 60000 / 215, and their mean.
    let rpm = view.loaded_rpm.unwrap();
    assert!(close(rpm.requests_rpm, 272.7) && close(rpm.load_rpm.unwrap(), 279.1) && close(rpm.rpm, 275.9), "{rpm:?}");
    assert_eq!(rpm.confidence, Confidence::High);
    let rpm = view.idle_rpm.unwrap();
    assert!(close(rpm.rpm, 3000.0) && rpm.load_rpm.is_none());
}

#[test]
fn without_the_kernels_rtt_it_is_a_suspicion() {
    let view = compared(&idle(20_000), &loaded(220_000, None, 20_000)).unwrap();
    let finding = view.finding.unwrap();
    assert!(finding.confidence < 0.5 && finding.witnesses.len() == 1);
    assert_eq!(view.loaded_rpm.unwrap().load_rpm, None);
}

#[test]
fn look_alikes_are_left_alone() {
    let says = |idle_us, loaded: Trial, words: &str| {
        let view = compared(&idle(idle_us), &loaded).unwrap();
        assert_eq!(view.finding, None);
        assert!(view.why_none.contains(words), "{}", view.why_none);
    };
    // Twenty times as long, and nothing that anybody notices.
    says(
        100,
        loaded(2_000, Some(2_000), 100),
        "the load adds 1.90 ms to the median of the idle path, 100 us: less than 30.0 ms",
    );
    // A queue of one bandwidth-delay product.
    says(100_000, loaded(190_000, Some(185_000), 100_000), "no more than the queue that TCP needs");
    // Ends that are too busy.
    says(1_000, loaded(60_000, Some(2_000), 1_000), "the ends answer late, not the path");
    // fq_codel.
    says(20_000, loaded(22_000, Some(120_000), 20_000), "the queue keeps other flows apart");
    // The load made it faster.
    says(20_000, loaded(19_000, Some(20_000), 20_000), "the load adds nothing to the median of the idle path, 20.0 ms");
}

#[test]
fn what_the_load_adds_is_the_difference_of_the_medians_that_are_shown() {
    // The tail moves a mean.
    let us = [19, 19, 19, 20, 20, 20, 20, 20, 20, 900];
    let under = [7_000, 9_000, 9_700, 9_700, 9_700, 9_700, 9_700, 9_700, 12_000, 17_000];
    let view =
        compared(&trial(&us, RrPlan::default(), None), &trial(&under, loaded_plan(), Some(load(None, 20)))).unwrap();
    let added = view.loaded_ns.p50 as f64 - view.idle_ns.p50 as f64;
    assert_eq!((view.increase_ns, view.finding), (added, None));
    assert!(view.why_none.starts_with(&format!("the load adds {} to the median", time(added))), "{}", view.why_none);
}

#[test]
fn trials_that_cannot_be_compared_say_why() {
    let error = compared(&idle(1), &idle(1)).unwrap_err();
    assert!(error.contains("the second with one"));
    let mut silent = loaded(1_000, None, 1_000);
    silent.client.get_mut::<RrEndRecord>().unwrap().streams.clear();
    let error = compared(&idle(1_000), &silent).unwrap_err();
    assert_eq!(error, "no transaction of the loaded path was completed in the counted part");
}

#[test]
fn latencies_that_are_no_round_trips_give_no_figure() {
    let of = |plan| responsive(&trial(&[20_000; 10], plan, None));
    assert!(of(RrPlan { outstanding: 4, ..RrPlan::default() }).unwrap_err().contains("one at a time"));
    assert!(of(RrPlan { response_bytes: 10_000, ..RrPlan::default() }).unwrap_err().contains("10000 bytes"));
    // A connection and a request are two round trips.
    let rpm = of(RrPlan { transaction: Transaction::TcpConnect, ..RrPlan::default() }).unwrap().rpm;
    assert!(close(rpm, 6000.0));
    let view = compared(
        &trial(&[20_000; 10], RrPlan { outstanding: 4, ..RrPlan::default() }, None),
        &loaded(20_000, None, 20_000),
    );
    assert!(view.unwrap().missing[0].starts_with("round trips a minute of the idle path: 4 requests"));
}

#[test]
fn a_latency_that_still_grows_is_of_medium_confidence_and_a_short_trial_of_low() {
    let growing = [10, 10, 20, 40, 60, 80, 120, 160, 200, 240].map(|ms| ms * 1000);
    let rpm = responsive(&trial(&growing, RrPlan::default(), None)).unwrap();
    assert_eq!(rpm.confidence, Confidence::Medium);
    assert!(rpm.variation.unwrap() > 0.05);
    let plan = RrPlan { duration_ms: 4_000, omit_ms: 1_000, ..RrPlan::default() };
    let short = Trial { plan: plan.into(), ..idle(20_000) };
    assert_eq!(responsive(&short).unwrap().confidence, Confidence::Low);
    // What the first second was is not counted.
    let slow_start = [900, 20, 20, 20, 20, 20, 20, 20, 20, 20].map(|ms| ms * 1000);
    let rpm = responsive(&trial(&slow_start, RrPlan::default(), None)).unwrap();
    assert_eq!((rpm.confidence, close(rpm.rpm, 3000.0)), (Confidence::High, true));
}

#[test]
fn nonsense_from_outside_does_not_panic() {
    let mut trial = loaded(u64::MAX / 1_000_000_000, Some(u64::MAX), u64::MAX);
    trial.elapsed_us = u64::MAX;
    let longest = RrPlan { duration_ms: u64::MAX, omit_ms: 0, ..loaded_plan() };
    trial.plan = longest.clone().into();
    assert!(compared(&idle(1), &trial).is_ok());
    trial.plan = RrPlan { omit_ms: u64::MAX, interval_ms: u64::MAX, ..longest }.into();
    assert!(compared(&idle(1), &trial).is_ok());
}

#[test]
fn requests_that_are_faster_under_load_are_explained() {
    let plan = || RrPlan { load: Some(TcpPlan::default()), ..RrPlan::default() };
    let loaded = |us| trial(&[us; 10], plan(), Some(load(Some(30), 20)));
    let why = |us| compared(&idle(120), &loaded(us)).expect("both were measured").why_none;
    assert!(
        why(80).starts_with(
            "the load adds nothing to the median of the idle path, 120 us: less than 30.0 ms; it is even lower under load (80.0 us)"
        ),
        "{}",
        why(80)
    );
    assert!(
        why(80)
            .ends_with("usually because CPUs sleep between the requests of an idle path and a load keeps them awake"),
        "{}",
        why(80)
    );
    assert!(!why(119).contains("sleep") && !why(150).contains("sleep"), "{} {}", why(119), why(150));
}
