//! A test of responsiveness as a report: what each direction carried, how long round trips took meanwhile, and how sure that is.

use crate::figures;
use narrows_diagnose::latency;
use narrows_model::load::responsiveness::{
    Band, Confidence, ForeignProbe, Responsiveness, ResponsivenessDirection, ResponsivenessLoad, ResponsivenessPoint,
    ResponsivenessRecord, ResponsivenessReport, SCHEMA,
};
use narrows_model::words::figures::float;
use narrows_model::words::show::plural;
use narrows_model::words::units::micros;
use narrows_model::{Distribution, Ending, Flow};
use narrows_stats::Histogram;
use narrows_stats::responsiveness::{MOVING_AVERAGE, Probes, Rpm, is_stable, moving_averages};

/// How far a load has come, by the algorithm of the draft.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Course {
    /// Moving averages of the goodput, bits per second, one for each interval.
    pub goodput_bps: Vec<f64>,
    /// The interval, from 1, in which the goodput was stable.
    pub saturated: Option<usize>,
    /// Responsiveness, one for each interval from that one on.
    pub rpm: Vec<f64>,
    /// Whether the responsiveness is stable: the end.
    pub stable: bool,
}

/// Time span of the moving average that ends with interval `nth`, µs.
fn window(load: &ResponsivenessLoad, nth: usize) -> (u64, u64) {
    let start = nth.checked_sub(MOVING_AVERAGE).and_then(|before| load.intervals.get(before));
    (start.map_or(0, |it| it.end_us), load.intervals.get(nth).map_or(u64::MAX, |it| it.end_us))
}

/// The probes that ended in it, as times in ms.
fn probes(load: &ResponsivenessLoad, (from_us, to_us): (u64, u64)) -> Probes {
    let within = |at_us: u64| at_us > from_us && at_us <= to_us;
    let ms = |of: fn(&ForeignProbe) -> u64| {
        load.foreign.iter().filter(|it| within(it.at_us)).map(|it| float(of(it)) / 1e3).collect()
    };
    Probes {
        tcp: ms(|it| it.tcp_us),
        tls: ms(|it| it.tls_us),
        http: ms(|it| it.http_us),
        loaded: load.own.iter().filter(|it| within(it.at_us)).map(|it| float(it.http_us) / 1e3).collect(),
    }
}

pub fn course(load: &ResponsivenessLoad) -> Course {
    let mut start_us = 0;
    let rates: Vec<f64> = load
        .intervals
        .iter()
        .map(|it| {
            let us = it.end_us.saturating_sub(start_us).max(1);
            start_us = it.end_us;
            float(it.bytes) * 8e6 / float(us)
        })
        .collect();
    let goodput_bps = moving_averages(&rates);
    let saturated = (1..=goodput_bps.len()).find(|end| is_stable(&goodput_bps[..*end]));
    let from = saturated.unwrap_or(usize::MAX);
    let rpm: Vec<f64> =
        (from..load.intervals.len()).filter_map(|nth| probes(load, window(load, nth)).rpm()).map(Rpm::value).collect();
    let stable = is_stable(&rpm);
    Course { goodput_bps, saturated, rpm, stable }
}

/// The round trips of probes on new connections, ns: each a TCP handshake, a round trip of TLS, a request.
fn round_trips<'a>(probes: impl Iterator<Item = &'a ForeignProbe>) -> Distribution {
    distribution(probes.flat_map(|it| [it.tcp_us, it.tls_us, it.http_us]))
}

fn distribution(us: impl Iterator<Item = u64>) -> Distribution {
    let mut all = Histogram::new();
    us.for_each(|us| all.record(us.saturating_mul(1_000)));
    all.distribution()
}

fn p95(times: &Distribution) -> u64 {
    Histogram::from_distribution(times).quantile(0.95).unwrap_or(0)
}

/// How far one median is above another.
fn above(high: &Distribution, low: &Distribution) -> Option<i64> {
    let both = high.count > 0 && low.count > 0;
    both.then(|| i64::try_from(high.p50).unwrap_or(i64::MAX).saturating_sub(i64::try_from(low.p50).unwrap_or(i64::MAX)))
}

fn direction(load: &ResponsivenessLoad, idle: &Distribution) -> ResponsivenessDirection {
    let course = course(load);
    let last = window(load, load.intervals.len().saturating_sub(1));
    let within = |at_us: u64| at_us > last.0 && at_us <= last.1;
    let confidence = |count: usize, stable: bool| match stable {
        true => Confidence::High,
        false if count >= MOVING_AVERAGE => Confidence::Medium,
        false => Confidence::Low,
    };
    let working_ns = round_trips(load.foreign.iter().filter(|it| within(it.at_us)));
    let self_ns = distribution(load.own.iter().filter(|it| within(it.at_us)).map(|it| it.http_us));
    let responsiveness = probes(load, last).rpm().map(|rpm| Responsiveness {
        rpm: rpm.value(),
        foreign_rpm: rpm.foreign,
        self_rpm: rpm.loaded,
        band: Band::of(rpm.value()),
        confidence: confidence(course.rpm.len(), course.stable),
    });
    ResponsivenessDirection {
        flow: load.flow,
        responsiveness,
        goodput_bps: course.goodput_bps.last().copied().unwrap_or(0.0),
        goodput_confidence: confidence(course.goodput_bps.len(), course.saturated.is_some()),
        connections: load.intervals.last().map_or(0, |it| it.connections),
        duration_ms: load.intervals.last().map_or(0, |it| it.end_us / 1_000),
        increase_ns: above(&working_ns, idle),
        gap_ns: above(&self_ns, &working_ns),
        working_p95_ns: p95(&working_ns),
        self_p95_ns: p95(&self_ns),
        working_ns,
        self_ns,
        failed_probes: load.failed_probes,
        ending: load.ending.clone(),
    }
}

fn series(load: &ResponsivenessLoad) -> impl Iterator<Item = ResponsivenessPoint> {
    let starts = std::iter::once(0).chain(load.intervals.iter().map(|it| it.end_us));
    starts.zip(&load.intervals).map(|(from_us, it)| {
        let within = |at_us: u64| at_us > from_us && at_us <= it.end_us;
        let p50 = |times: Distribution| figures::us(&times, |it| float(it.p50));
        ResponsivenessPoint {
            flow: load.flow,
            from_s: float(from_us) / 1e6,
            to_s: float(it.end_us) / 1e6,
            goodput_bps: float(it.bytes) * 8e6 / float(it.end_us.saturating_sub(from_us).max(1)),
            connections: it.connections,
            working_p50_us: p50(round_trips(load.foreign.iter().filter(|it| within(it.at_us)))),
            self_p50_us: p50(distribution(load.own.iter().filter(|it| within(it.at_us)).map(|it| it.http_us))),
        }
    })
}

pub fn report(record: &ResponsivenessRecord) -> ResponsivenessReport {
    let idle_ns = round_trips(record.idle.iter());
    let directions: Vec<_> = record.loads.iter().map(|load| direction(load, &idle_ns)).collect();
    let remarks = remarks(record, &idle_ns, &directions);
    ResponsivenessReport {
        schema: SCHEMA.to_owned(),
        plan: record.plan.clone(),
        asked: record.asked.clone(),
        address: record.address.clone(),
        congestion_control: record.congestion_control.clone(),
        idle_p95_ns: p95(&idle_ns),
        idle_ns,
        directions,
        series: record.loads.iter().flat_map(series).collect(),
        remarks,
    }
}

fn time(ns: i64) -> String {
    micros(ns.unsigned_abs().div_ceil(1_000))
}

/// A wait on connections with load that is this much longer is worth a sentence.
const LONG_NS: i64 = 20_000_000;

fn remarks(record: &ResponsivenessRecord, idle: &Distribution, all: &[ResponsivenessDirection]) -> Vec<String> {
    let mut said = vec![record.trust.clone()];
    for it in all {
        let way = it.flow.direction();
        match &it.ending {
            Ending::Complete => {}
            Ending::Interrupted => said.push(format!("{way}: interrupted; the figures are of what was measured")),
            Ending::Failed(why) => said.push(format!("{way}: ended early: {why}")),
        }
        let sender = if it.flow == Flow::Up { "this host" } else { "the server" };
        let [idle_ns, working_ns] = [idle, &it.working_ns].map(|all| float(all.p50));
        if it.increase_ns.is_some() && latency::is_long_queue(idle_ns, working_ns) {
            let longer = latency::takes_longer("a round trip of a new connection", idle_ns, working_ns);
            said.push(format!("bufferbloat {way}: {longer}; the queue is on the path or in the interface of {sender}"));
        }
        if let Some(ns) = it.gap_ns.filter(|ns| *ns >= LONG_NS && ns.unsigned_abs() >= it.working_ns.p50 / 2) {
            said.push(format!(
                "{way}: requests on loaded connections take {} more than those on new ones: they wait behind data that {sender} \
                 has not sent yet, or for retransmissions",
                time(ns)
            ));
        }
        if it.failed_probes > 0 {
            said.push(format!("{way}: {} got no answer", plural(it.failed_probes, "probe")));
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::load::responsiveness::{ResponsivenessInterval, ResponsivenessPlan, SelfProbe};

    /// A load of 10 Mbit/s from the second interval on, with so many intervals; two probes of each kind in each.
    fn load(intervals: u64) -> ResponsivenessLoad {
        let interval = |nth: u64| ResponsivenessInterval {
            end_us: (nth + 1) * 1_000_000,
            connections: u32::try_from(nth + 1).unwrap(),
            bytes: if nth == 0 { 625_000 } else { 1_250_000 },
        };
        let times = || (0..intervals * 2).map(|nth| nth * 500_000 + 250_000);
        let foreign = |at_us| ForeignProbe { at_us, tcp_us: 90_000, tls_us: 100_000, http_us: 110_000 };
        ResponsivenessLoad {
            flow: Flow::Up,
            intervals: (0..intervals).map(interval).collect(),
            foreign: times().map(foreign).collect(),
            own: times().map(|at_us| SelfProbe { at_us, http_us: 200_000 }).collect(),
            failed_probes: 0,
            ending: Ending::Complete,
        }
    }

    fn record(intervals: u64) -> ResponsivenessRecord {
        ResponsivenessRecord {
            plan: ResponsivenessPlan::default(),
            asked: "far".into(),
            address: "192.0.2.7:4043".into(),
            trust: "trusted".into(),
            congestion_control: None,
            idle: vec![ForeignProbe { at_us: 0, tcp_us: 10_000, tls_us: 11_000, http_us: 12_000 }; 5],
            loads: vec![load(intervals)],
        }
    }

    #[test]
    fn goodput_first_then_responsiveness() {
        // Moving averages: 5, 7.5, 8.33, 8.75, 10, 10, 10, 10 Mbit/s.
        let averages = [5.0, 7.5, 25.0 / 3.0, 8.75, 10.0, 10.0, 10.0];
        for (intervals, saturated, values, stable) in
            [(7, None, 0, false), (8, Some(8), 0, false), (9, Some(8), 1, false), (12, Some(8), 4, true)]
        {
            let course = course(&load(intervals));
            for (seen, wanted) in course.goodput_bps.iter().zip(averages) {
                assert!((seen / 1e6 - wanted).abs() < 1e-9, "{:?}", course.goodput_bps);
            }
            assert_eq!((course.saturated, course.rpm.len(), course.stable), (saturated, values, stable), "{intervals}");
            // 60,000 / 100 and 60,000 / 200.
            assert!(course.rpm.iter().all(|rpm| (rpm - 450.0).abs() < 1e-9), "{:?}", course.rpm);
        }
    }

    #[test]
    fn a_report_of_a_stable_load() {
        let report = report(&record(12));
        let up = &report.directions[0];
        let rpm = up.responsiveness.unwrap();
        assert_eq!((rpm.rpm.round(), rpm.band, rpm.confidence), (450.0, Band::Fair, Confidence::High));
        assert_eq!((up.working_ns.count, up.self_ns.count, up.connections), (24, 8, 12));
        let point = &report.series[1];
        assert_eq!((report.series.len(), point.to_s, point.goodput_bps, point.connections), (12, 2.0, 1e7, 2));
        assert!((95e3..105e3).contains(&point.working_p50_us.unwrap()), "{point:?}");
        let ms = |ns: Option<i64>| (ns.unwrap() + 500_000) / 1_000_000;
        assert!((88..=91).contains(&ms(up.increase_ns)) && (98..=102).contains(&ms(up.gap_ns)), "{up:?}");
        let said = report.remarks.join("\n");
        assert!(said.contains("bufferbloat up") && said.contains("data that this host has not sent yet"), "{said}");
    }

    #[test]
    fn a_long_queue_is_what_it_is_for_requests_and_responses_and_of_the_end_that_sends() {
        let remarks = |flow, us: u64| {
            let mut record = record(12);
            record.loads[0].flow = flow;
            record.loads[0].foreign.iter_mut().for_each(|it| (it.tcp_us, it.tls_us, it.http_us) = (us, us, us));
            report(&record).remarks.join("\n")
        };
        // 11 ms when idle: 25 ms more are nothing that people notice, 31 are.
        assert!(!remarks(Flow::Down, 36_000).contains("bufferbloat"), "{}", remarks(Flow::Down, 36_000));
        let says = "bufferbloat down: with the load a round trip of a new connection takes ";
        let said = remarks(Flow::Down, 43_000);
        assert!(said.contains(says) && said.contains("3.9 times as long") && !said.contains("this host"), "{said}");
        assert!(said.contains("the queue is on the path or in the interface of the server"), "{said}");
        assert!(remarks(Flow::Up, 43_000).contains("in the interface of this host"));
    }

    #[test]
    fn what_was_cut_short_is_less_sure() {
        let short = report(&record(2)).directions.remove(0);
        assert_eq!(short.goodput_confidence, Confidence::Low);
        assert_eq!(short.responsiveness.unwrap().confidence, Confidence::Low);
        let none = report(&ResponsivenessRecord { loads: vec![load(0)], ..record(1) }).directions.remove(0);
        assert_eq!((none.responsiveness, none.duration_ms), (None, 0));
    }
}
