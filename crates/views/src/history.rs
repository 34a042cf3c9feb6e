//! Runs in the store: what a run is listed with, and figures over time with their change points.

use crate::figures::{self, way};
use crate::{diff, search, sweep};
use narrows_diagnose::report;
use narrows_model::load::frames_report::FramesReport;
use narrows_model::load::responsiveness::ResponsivenessRecord;
use narrows_model::load::stamp::StampReport;
use narrows_model::run::RunPlan;
use narrows_model::run::campaign::{CampaignReport, EffectVerdict};
use narrows_model::run::command::CommandRecord;
use narrows_model::run::history::{
    Headline, StoredRun, TREND_RUNS_MIN, TREND_SCHEMA, TrendChange, TrendOf, TrendPoint, TrendReport, TrendSeries,
};
use narrows_model::run::report::RoundView;
use narrows_model::run::sweep::SweepRow;
use narrows_model::trace::report::TraceEnd;
use narrows_model::words::figures::float;
use narrows_model::words::show::plural;
use narrows_model::{Ending, LoadPlan, Run, TraceProtocol, TraceRecord, Unit};
use narrows_stats::change_points::{Options, VALUES_MIN, change_points};
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of headline figures of a run: of a sweep with many points those of the first rows.
const FIGURES_MAX: usize = 64;

/// The command that measures a load, and the headline figures of its run: the table of loads knows them.
pub type OfLoad = fn(&LoadPlan, &Run) -> (&'static str, Vec<Headline>);

/// What a run is listed with. `plan` is left empty; sizes and tags are the store's.
pub fn of_run(run: &Run, of_load: OfLoad) -> StoredRun {
    let (command, figures, verdict) = match &run.plan {
        RunPlan::Diagnose(_) => diagnosis(run),
        RunPlan::Measure(load) => {
            let (command, figures) = of_load(load, run);
            (command, figures, None)
        }
        RunPlan::Search(_) => ("search", searched(run), None),
        RunPlan::Sweep(_) => ("sweep", swept(run), None),
    };
    StoredRun {
        id: run.id.clone(),
        started_unix_us: run.started_unix_us,
        client: run.client.host.clone(),
        server: run.target.asked.clone(),
        server_name: run.server.host.clone(),
        family: run.target.family.to_string(),
        made_by: run.made_by.clone(),
        verdict: verdict.filter(|_| run.ending == Ending::Complete).unwrap_or_else(|| ended(&run.ending).to_owned()),
        ..empty(command, figures)
    }
}

/// What a report of raw frames is listed with. `plan`, id, time and program are left empty.
pub fn of_frames(frames: &FramesReport) -> StoredRun {
    let command = if frames.sent.is_some() { "generate" } else { "receive" };
    let got = frames.received.as_ref();
    let latency = |value: fn(&_) -> f64| figures::us(got?.latency_ns.as_ref()?, value);
    let rates = [
        frames.sent.as_ref().map(|it| figures::FRAMES_SENT.at("", it.rate.pps)),
        got.map(|it| figures::FRAMES_RECEIVED.at("", it.rate.pps)),
        got.and_then(|it| Some(figures::LOSS.at("", it.lost_ratio?))),
        latency(|it| float(it.p50)).map(|us| figures::P50.at("", us)),
        latency(|it| float(it.p99)).map(|us| figures::P99.at("", us)),
        got.map(|it| figures::REORDERED.at("", float(it.reordered))),
    ];
    let why = frames.sent.iter().filter_map(|it| it.ended.as_ref());
    let why = why.chain(frames.received.iter().filter_map(|it| it.ended.as_ref())).next();
    let device = frames.sent.as_ref().map(|it| &it.device).or(frames.received.as_ref().map(|it| &it.device));
    StoredRun {
        server: device.cloned().unwrap_or_default(),
        verdict: cut(why.is_some()),
        ..empty(command, rates.into_iter().flatten().collect())
    }
}

/// What a STAMP session is listed with. `plan`, id, time and program are left empty.
pub fn of_stamp(report: &StampReport) -> StoredRun {
    let loss = (report.sent > 0).then(|| float(report.lost) / float(report.sent));
    let figures = [
        figures::us(&report.rtt_ns, |it| float(it.p50)).map(|us| figures::RTT.at("", us)),
        loss.map(|share| figures::LOSS.at("", share)),
        figures::us(&report.rtt_ns, |it| float(it.p99)).map(|us| figures::P99_RTT.at("", us)),
    ];
    let ways = [("up", &report.up), ("down", &report.down)].into_iter().flat_map(|(way, it)| {
        let loss = it.lost.filter(|_| it.known > 0).map(|lost| float(lost) / float(it.known));
        [
            loss.map(|share| figures::LOSS.at(way, share)),
            figures::us(&it.variation_ns, |it| float(it.p99)).map(|us| figures::DELAY_VARIATION.at(way, us)),
            Some(figures::REORDERED.at(way, float(it.reordered))),
            Some(figures::DUPLICATED.at(way, float(it.copies))),
        ]
    });
    let figures = figures.into_iter().chain(ways.filter(|_| report.replies > 0));
    StoredRun {
        server: report.asked.clone(),
        verdict: cut(report.sent < u64::from(report.plan.packets)),
        ..empty("measure stamp", figures.flatten().collect())
    }
}

/// What a test of responsiveness is listed with: both directions' RPM, goodput and latency. `plan`, id, time and program are left empty.
pub fn of_responsiveness(record: &ResponsivenessRecord) -> StoredRun {
    let report = crate::responsiveness::report(record);
    let latency = |of: &str, times: &_, p95_ns: u64| {
        let p50 = figures::us(times, |it| float(it.p50));
        p50.map(|us| [figures::P50.at(of, us), figures::P95.at(of, float(p95_ns) / 1e3)]).into_iter().flatten()
    };
    let working = report
        .directions
        .iter()
        .flat_map(|it| latency(&format!("working {}", way(it.flow)), &it.working_ns, it.working_p95_ns));
    let idle = latency("idle", &report.idle_ns, report.idle_p95_ns);
    let figures = report.directions.iter().flat_map(|it| {
        let rpm = format!("{} {}", way(it.flow), figures::RPM.name);
        let value = it.responsiveness.map(|it| Headline::new(rpm, it.rpm, figures::RPM.unit));
        [value, Some(figures::GOODPUT.at(way(it.flow), it.goodput_bps))]
    });
    let worst = report.directions.iter().filter_map(|it| it.responsiveness).min_by(|a, b| a.rpm.total_cmp(&b.rpm));
    let ended = record.loads.iter().map(|load| &load.ending).find(|ending| **ending != Ending::Complete);
    StoredRun {
        server: record.asked.clone(),
        verdict: match (ended, worst) {
            (None, Some(worst)) => worst.band.word().to_owned(),
            _ => cut(true),
        },
        ..empty("measure responsiveness", figures.flatten().chain(working).chain(idle).collect())
    }
}

/// What a trace is listed with: its first harm, or how it ended. `plan`, id, time and program are left empty.
pub fn of_trace(record: &TraceRecord) -> StoredRun {
    let report = crate::trace::report(record);
    // Figures of the target: those of the last hop that answers are of another path.
    let reached = matches!(report.end, TraceEnd::Reached { .. });
    let last = report.hops.iter().rev().find(|hop| hop.answered > 0).filter(|_| reached);
    let rtt = last.and_then(|hop| hop.nodes.first()?.rtt_ms);
    let figures = [
        rtt.map(|[_, median, _]| figures::RTT.at("", median * 1e3)),
        // ICMP errors, which answer UDP, may be limited: what is missing of them is no loss of the path.
        last.filter(|_| record.plan.protocol != TraceProtocol::Udp)
            .and_then(|hop| hop.loss)
            .map(|share| figures::LOSS.at("", share)),
        last.map(|hop| figures::HOPS.at("", f64::from(hop.ttl))),
        report.mtu.as_ref().filter(|mtu| mtu.to_target).map(|mtu| figures::MTU.at("", f64::from(mtu.path_bytes))),
    ];
    let harm = report.findings.iter().find(|it| it.harm).map(|it| it.id.clone());
    StoredRun {
        server: report.asked,
        verdict: harm.unwrap_or_else(|| cut(record.ending != Ending::Complete)),
        ..empty("trace", figures.into_iter().flatten().collect())
    }
}

/// What a run of another program is listed with. `plan` is left empty.
pub fn of_command(record: &CommandRecord) -> StoredRun {
    StoredRun {
        id: record.id.clone(),
        started_unix_us: record.started_unix_us,
        server: record.host.clone(),
        made_by: record.made_by.clone(),
        verdict: if record.failed.is_some() { "failed" } else { "complete" }.to_owned(),
        ..empty(record.program(), record.figure().into_iter().collect())
    }
}

/// What the results of a campaign are listed with. `plan`, id, time and program are left empty.
pub fn of_campaign(report: &CampaignReport) -> StoredRun {
    let is_proven = |verdict| matches!(verdict, EffectVerdict::Raises | EffectVerdict::Lowers);
    let terms = report.effects.iter().filter(|it| is_proven(it.verdict)).flat_map(|it| &it.terms);
    let proven = terms.map(|it| it.factor.as_str()).collect::<BTreeSet<_>>().len();
    let is_cut = (report.runs.len() as u64) < report.planned;
    let verdict = match (is_cut, report.mean, proven) {
        (true, ..) => cut(true),
        (_, None, _) => "nothing measured".to_owned(),
        (.., 0) => "no effect found".to_owned(),
        (.., count) => format!("effect: {count} of {}", plural(report.factors.len() as u64, "factor")),
    };
    let figures = [("mean", report.mean), ("best", report.best.as_ref().map(|it| it.mean))];
    let figures =
        figures.map(|(of, value)| Some(Headline::new(format!("{} {of}", report.figure), value?, report.unit)));
    StoredRun { server: report.hosts.join(", "), verdict, ..empty("campaign", figures.into_iter().flatten().collect()) }
}

/// A run of a command with figures, of which nothing else is known.
pub fn empty(command: &str, mut figures: Vec<Headline>) -> StoredRun {
    figures.truncate(FIGURES_MAX);
    StoredRun {
        id: String::new(),
        started_unix_us: 0,
        who: String::new(),
        client: String::new(),
        server: String::new(),
        server_name: String::new(),
        family: String::new(),
        command: command.to_owned(),
        plan: String::new(),
        tags: Vec::new(),
        figures,
        verdict: String::new(),
        made_by: String::new(),
        raw_bytes: 0,
        stored_bytes: 0,
    }
}

const fn ended(ending: &Ending) -> &'static str {
    match ending {
        Ending::Complete => "complete",
        Ending::Interrupted => "interrupted",
        Ending::Failed(_) => "failed",
    }
}

pub fn cut(is: bool) -> String {
    if is { "ended early".to_owned() } else { "complete".to_owned() }
}

fn diagnosis(run: &Run) -> (&'static str, Vec<Headline>, Option<String>) {
    let Some(report) = report(run) else { return ("diagnose", Vec::new(), None) };
    let rtt = report.run.idle_rtt_us.map(|us| figures::IDLE_RTT.at("", float(us)));
    let capacity = report.accounts.path_profile.as_ref().and_then(|it| it.capacity_bps);
    let loaded = report.accounts.latency.as_ref();
    let loaded = loaded.and_then(|it| Some(figures::LOADED_RTT.at(it.direction, it.loaded_us?.p50)));
    // A later load is compared with the goodput that belongs to the verdict.
    let after_fixes = after_fixes(&report.run.ending, &report.rounds);
    let goodput_bps = after_fixes.map_or(report.verdict.goodput_bps, |last| last.goodput_bps);
    let first = [
        Some(figures::GOODPUT.at(report.verdict.direction, goodput_bps)),
        rtt,
        capacity.map(|bps| figures::CAPACITY.at("", bps)),
        loaded,
    ];
    let mut listed: Vec<Headline> = first.into_iter().flatten().collect();
    let more = figures::baseline(run).into_iter().filter(|it| listed.iter().all(|of| of.name != it.name));
    listed.extend(more.collect::<Vec<_>>());
    let (status, cause) = match after_fixes {
        Some(last) => (last.status, last.cause.as_ref()),
        None => (report.verdict.status, report.verdict.causes.first().map(|cause| &cause.id)),
    };
    let cause = cause.map(|cause| format!(": {cause}")).unwrap_or_default();
    ("diagnose", listed, Some(format!("{status}{cause}")))
}

/// The round that says what is true after the fixes that are kept. `None` where none is, or where a fix was another load: later rounds do
/// not measure the load that was asked for then.
fn after_fixes<'a>(ending: &Ending, rounds: &'a [RoundView]) -> Option<&'a RoundView> {
    let is_kept = RoundView::kept(ending, rounds).next().is_some();
    let is_other_load = rounds.iter().any(|round| round.is_proven() && round.changes.is_empty());
    rounds.last().filter(|_| is_kept && !is_other_load)
}

fn searched(run: &Run) -> Vec<Headline> {
    let Some(report) = search::of_run(run) else { return Vec::new() };
    let lower = report.goals.iter().filter_map(|it| Some((it.goal.name.as_str(), it.lower?.payload_bps)));
    let lower = lower.map(|(goal, bps)| figures::LOWER.at(goal, bps));
    let more = report.goals.iter().flat_map(|it| {
        let goal = &it.goal.name;
        let at_lower = report.trials.iter().filter(|trial| Some(trial.load_pps) == it.result.lower_pps);
        let valid = at_lower.filter(|trial| trial.seen.invalid.is_none());
        let [sent, got] = valid.fold([0, 0], |[sent, got], it| [sent + it.seen.sent, got + it.seen.received]);
        [
            it.upper.map(|it| figures::UPPER.at(goal, it.payload_bps)),
            it.conditional_throughput.map(|it| figures::FORWARDED.at(goal, it.payload_bps)),
            (sent > 0).then(|| figures::LOSS.at(goal, float(sent.saturating_sub(got)) / float(sent))),
        ]
    });
    lower.chain(more.flatten()).collect()
}

fn swept(run: &Run) -> Vec<Headline> {
    let rows = sweep::of_run(run).map(|report| report.rows).unwrap_or_default();
    let name = |row: &SweepRow| format!("{} {} {} B", row.protocol.word(), way(row.flow), row.size_bytes);
    let first = rows.iter().filter_map(|it| Some(figures::GOODPUT.at(name(it), it.receiving_bps?.median)));
    let more = rows.iter().flat_map(|it| {
        let lossless = it.lossless_bps.map(|bps| figures::LOSSLESS.at(name(it), bps.median));
        [lossless, it.loss.map(|share| figures::LOSS.at(name(it), share))]
    });
    first.chain(more.flatten()).collect()
}

/// What reports say is what the search for change points needs.
const _: () = assert!(TREND_RUNS_MIN == VALUES_MIN);

/// Figures over time. Each run comes with the figure that is meant, in the order of time; runs with the same hosts, family, command,
/// plan and figure are a series. The inventory of the changes is [`inventory`]'s.
pub fn trend(points: Vec<(StoredRun, Headline)>, change_min: f64) -> TrendReport {
    let mut series: BTreeMap<TrendOf, (Unit, Vec<TrendPoint>)> = BTreeMap::new();
    for (run, figure) in points {
        let of = TrendOf {
            client: run.client,
            server: run.server,
            family: run.family,
            command: run.command,
            plan: run.plan,
            figure: figure.name,
        };
        let point = TrendPoint { id: run.id, started_unix_us: run.started_unix_us, value: figure.value };
        series.entry(of).or_insert_with(|| (figure.unit, Vec::new())).1.push(point);
    }
    let mut series: Vec<TrendSeries> =
        series.into_iter().map(|(of, (unit, points))| of_points(of, unit, points, change_min)).collect();
    series.sort_by_key(|it| std::cmp::Reverse(it.points.len()));
    TrendReport { schema: TREND_SCHEMA.to_owned(), series }
}

fn of_points(of: TrendOf, unit: Unit, points: Vec<TrendPoint>, change_min: f64) -> TrendSeries {
    let values: Vec<f64> = points.iter().map(|it| it.value).collect();
    let times: Vec<u64> = points.iter().map(|it| it.started_unix_us).collect();
    let found = change_points(&values, &times, Options { change_min, ..Options::default() });
    let changes = found.into_iter().filter_map(|it| {
        let (before, after) = (points.get(it.at.checked_sub(1)?)?, points.get(it.at)?);
        Some(TrendChange {
            between: [before.id.clone(), after.id.clone()],
            between_unix_us: [before.started_unix_us, after.started_unix_us],
            before: it.before,
            after: it.after,
            change: it.change,
            interval: it.interval,
            p: it.p,
            inventory: Vec::new(),
            inventory_missing: None,
        })
    });
    let changes = changes.collect();
    let better = figures::better(&of.figure, unit);
    TrendSeries { of, unit, better, median: narrows_stats::median(&values).unwrap_or(0.0), points, changes }
}

/// Adds to a change what differs in the inventories of the two runs around it.
pub fn inventory(change: &mut TrendChange, runs: Result<[Run; 2], String>) {
    match runs {
        Ok([before, after]) => {
            change.inventory = diff::inventory(&before, &after);
            change.inventory_missing = diff::unknown(&before, &after, [&before.id, &after.id]);
        }
        Err(why) => change.inventory_missing = Some(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::run::report::ProofView;
    use narrows_model::{
        AnswerKind, Change, Place, ProbePurpose, Setting, Status, TraceAnswer, TracePlan, TraceProbe, TraceProtocol,
    };

    #[test]
    fn a_diagnosis_with_kept_fixes_is_listed_with_what_is_true_after_them() {
        let change = Change {
            id: "1".to_owned(),
            at: Place::Server,
            set: Setting::Sysctl { key: "net.ipv4.tcp_rmem".to_owned(), value: "4096 131072 8388608".to_owned() },
            before: "4096 131072 262144".to_owned(),
            made_unix_us: 0,
            in_force: true,
        };
        let proof = ProofView {
            before_bps: vec![1e6; 3],
            after_bps: vec![9e6; 3],
            before_loss: Vec::new(),
            after_loss: Vec::new(),
            gain: Some(9.0),
            gain_interval: Some([8.9, 9.1]),
            predicted_bps: 9e6,
            predicted_interval_bps: None,
            helped: true,
        };
        let round = |round, status, changes: &[Change], proof| RoundView {
            round,
            cause: Some(format!("cause {round}")),
            at: Some(Place::Server),
            status,
            headline: String::new(),
            goodput_bps: 1e6,
            changes: changes.to_vec(),
            proof,
        };
        let of = |ending: &Ending, changes: &[Change], helped| {
            let proof = ProofView { helped, ..proof.clone() };
            let rounds = [round(0, Status::Limited, changes, Some(proof)), round(1, Status::Suspected, &[], None)];
            after_fixes(ending, &rounds).map(|last| (last.status, last.cause.clone()))
        };
        let kept = std::slice::from_ref(&change);
        assert_eq!(of(&Ending::Complete, kept, true), Some((Status::Suspected, Some("cause 1".to_owned()))));
        // A run that was killed, or whose change could not be undone, meant to roll it back.
        assert_eq!(of(&Ending::Interrupted, kept, true), None);
        assert_eq!(of(&Ending::Failed("cannot roll back".to_owned()), kept, true), None);
        assert_eq!(of(&Ending::Complete, kept, false), None, "a fix that did not help is not kept");
        let rolled_back = [Change { in_force: false, ..change.clone() }];
        assert_eq!(of(&Ending::Complete, &rolled_back, true), None);
        let of_load = round(0, Status::Limited, &[], Some(proof.clone()));
        let rounds = [of_load, round(1, Status::Limited, kept, Some(proof)), round(2, Status::Healthy, &[], None)];
        assert_eq!(RoundView::kept(&Ending::Complete, &rounds).count(), 1);
        assert!(after_fixes(&Ending::Complete, &rounds).is_none(), "the last round has another load");
    }

    #[test]
    fn a_trace_that_did_not_reach_its_target_has_no_figures_of_it() {
        let target = std::net::IpAddr::from([10, 0, 0, 9]);
        let plan = TracePlan {
            asked: "server".to_owned(),
            target,
            protocol: TraceProtocol::Udp,
            port: 33_434,
            first_ttl: 1,
            max_ttl: 2,
            gap: 5,
            rounds: 1,
            continuous: false,
            flows: 1,
            interval_ms: 500,
            wait_ms: 1_000,
            probe_bytes: 64,
            ports: Vec::new(),
            mtu: false,
            names: false,
        };
        let probe = |ttl: u8, from, kind| TraceProbe {
            purpose: ProbePurpose::Sample,
            flow: 0,
            ttl,
            bytes: 64,
            sent_us: 1_000,
            answer: Some(TraceAnswer {
                at_us: 2_000,
                from,
                kind,
                reply_ttl: Some(64),
                mtu: None,
                mpls: Vec::new(),
                refused: false,
            }),
        };
        let router = probe(1, std::net::IpAddr::from([10, 0, 0, 1]), AnswerKind::TimeExceeded);
        let mut record = TraceRecord {
            plan,
            started_unix_us: 0,
            probes: vec![router],
            forgotten: 0,
            unmatched: 0,
            other_ports: std::collections::BTreeMap::new(),
            first_link_mtu: None,
            mtu_done: false,
            names: std::collections::BTreeMap::new(),
            ending: Ending::Complete,
            back: None,
        };
        assert_eq!(of_trace(&record).figures, []);
        record.probes.push(probe(2, target, AnswerKind::Reached));
        assert_eq!(of_trace(&record).figures.len(), 2, "what is missing of ICMP errors is no figure");
        record.plan.protocol = TraceProtocol::Icmp;
        assert_eq!(of_trace(&record).figures.len(), 3);
    }

    #[test]
    fn runs_of_one_plan_are_a_series_and_its_step_is_named() {
        let point = |k: u64, server: &str, value: f64| {
            let run = StoredRun {
                id: format!("{server}{k}"),
                started_unix_us: k * 3_600_000_000,
                server: server.to_owned(),
                ..empty("diagnose", Vec::new())
            };
            (run, Headline::new("goodput up", value, Unit::BitsPerSecond))
        };
        let level =
            |k: u64| if k < 20 { 1e9 } else { 0.63e9 } + [1e6, -1e6, 2e6, -2e6][usize::try_from(k % 4).unwrap()];
        let points = (0..40).map(|k| point(k, "a", level(k))).chain((0..3).map(|k| point(k, "b", 1.0))).collect();
        let report = trend(points, 0.0);
        assert_eq!(report.series.iter().map(|it| it.points.len()).collect::<Vec<_>>(), [40, 3]);
        let [change] = &report.series[0].changes[..] else { panic!("{:?}", report.series[0].changes) };
        assert_eq!(change.between, ["a19", "a20"]);
        assert!((change.change + 0.37).abs() < 1e-6, "{change:?}");
        assert!(report.series[1].changes.is_empty());
    }
}
