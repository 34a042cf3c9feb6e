//! Recovery and reset against a router whose forwarding goes and comes at known times.

use super::{plan, throughput};
use crate::Event;
use crate::demo::Bench;
use narrows_forwarding::data::{ForwardingRecord, OutageOfSize, RecoveryTest, ResetTest, Test, Tests, ThroughputTest};
use narrows_lab::Row;
use narrows_runner::demo::StageError;
use narrows_runner::result_of;
use narrows_sys::clock;
use narrows_traffic::Stop;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Rate of the slow device, low enough that a busy machine can overload it; and how long an overload lasts.
const SLOW_PPS: f64 = 5_000.0;
/// Burst size of that device: large enough that frames sent to catch up after a stall are not dropped by the limit.
const SLOW_BUCKET: f64 = 300.0;
/// Long beside the time that this bucket lasts.
const SEARCH_MS: u64 = 500;
const CUT_MS: u64 = 1_000;
/// How long a reset takes the forwarding away.
const OUTAGE_MS: u64 = 300;

/// When forwarding stops: this many ms after a line that contains these words, and for how long; `None`: until the benchmark ends.
type Absence = (&'static str, u64, Option<u64>);

/// When the forwarding was away, by the monotonic clock: a rule is in force from some moment while it is made, and until some moment
/// while it is taken away.
#[derive(Debug, Clone, Copy)]
struct Away {
    from_ns: [u64; 2],
    to_ns: [u64; 2],
}

/// Turns the router's forwarding off at each of the given times.
fn absences(bench: &Bench, hear: &Receiver<String>, times: &[Absence]) -> Result<Vec<Away>, StageError> {
    let mut away = Vec::new();
    for (words, after_ms, lasts_ms) in times {
        if !hear.iter().any(|said| said.contains(words)) {
            break;
        }
        clock::sleep(Duration::from_millis(*after_ms));
        let begun_ns = clock::monotonic_ns();
        bench.fault("forward-drop-nth", "1")?;
        let from_ns = [begun_ns, clock::monotonic_ns()];
        match lasts_ms {
            Some(lasts_ms) => clock::sleep(Duration::from_millis(*lasts_ms)),
            None => hear.iter().for_each(drop),
        }
        let ending_ns = clock::monotonic_ns();
        bench.repair("forward-drop-nth")?;
        away.push(Away { from_ns, to_ns: [ending_ns, clock::monotonic_ns()] });
    }
    Ok(away)
}

/// A benchmark of a device that carries little and whose forwarding goes and comes, with the tests and a short search before them.
fn away(bench: &Bench, tests: Tests, times: &[Absence]) -> Result<(ForwardingRecord, Vec<Away>), StageError> {
    let mut search = ThroughputTest { max_search_ms: 8_000, ..throughput(SEARCH_MS) };
    for goal in &mut search.goals {
        (goal.width, goal.duration_sum_ms) = (0.05, goal.final_trial_ms);
    }
    let plan = plan(bench, 2.0 * SLOW_PPS, Tests { throughput: Some(search), ..tests })?;
    bench.fault("forward-police", &format!("{SLOW_PPS:.0}x{SLOW_BUCKET:.0}"))?;
    let (tell, hear) = channel();
    let done = std::thread::scope(|scope| {
        let absences = scope.spawn(move || absences(bench, &hear, times));
        let record = bench.run(&plan, &Stop::new(), &mut |event| {
            if let Event::Line(line) = event {
                // Who has heard enough listens no more.
                let _ = tell.send(line.to_owned());
            }
        });
        drop(tell);
        let absences = result_of(absences.join());
        Ok((record?, absences?))
    });
    bench.repair("forward-police")?;
    done
}

fn millis(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64() * 1e3
}

/// Compares a known duration (minimum and maximum) with the measured one.
fn lasted(what: &str, known_ns: Option<[u64; 2]>, found: Option<&OutageOfSize>) -> Row {
    let measured = found.and_then(|outage| outage.outage_ns).map_or(0.0, millis);
    let remarks = found.map(|outage| outage.remarks.join("; ")).filter(|remarks| !remarks.is_empty());
    let [least, most] = known_ns.map_or([0.0; 2], |known| known.map(millis));
    let known = format!("{what}, which lasted from {least:.0} to {most:.0} ms");
    Row {
        what: remarks.map_or_else(|| known.clone(), |remarks| format!("{known} ({remarks})")),
        requested: least.midpoint(most),
        measured,
        unit: "ms",
        // Two looks of the receiver, and the time in which a rule was changed.
        tolerance: "20 ms",
        met: known_ns.is_some() && (least - 20.0..=most + 20.0).contains(&measured),
    }
}

/// Overloads after which the forwarding comes back a known time after the cut; and one after which it does not.
pub(super) fn recovery(bench: &Bench) -> Result<Vec<Row>, StageError> {
    let test = RecoveryTest { overload_ms: CUT_MS, after_ms: CUT_MS, repetitions: 2 };
    let begun = "overload of";
    let times = [(begun, CUT_MS - 200, Some(200 + OUTAGE_MS)), (begun, CUT_MS - 200, None)];
    let (record, away) = away(bench, Tests { recovery: Some(test), ..Tests::default() }, &times)?;
    let outages: Vec<&OutageOfSize> = record.outages.iter().filter(|it| it.test == Test::Recovery).collect();
    let cut_ns = outages.first().and_then(|outage| outage.since_ns);
    let known = away.first().zip(cut_ns).map(|(away, cut_ns)| away.to_ns.map(|back| back.saturating_sub(cut_ns)));
    let remarks = outages.get(1).map(|outage| outage.remarks.join("; ")).unwrap_or_default();
    let said = remarks.contains("no recovery");
    Ok(vec![
        lasted("recovery of a device after an overload", known, outages.first().copied()),
        Row {
            what: format!("a device that does not recover: {remarks}"),
            requested: 1.0,
            measured: f64::from(u8::from(said)),
            unit: "said",
            tolerance: "said so",
            met: said,
        },
    ])
}

/// A reset that takes the forwarding away for a known time.
pub(super) fn reset(bench: &Bench) -> Result<Vec<Row>, StageError> {
    let test = ResetTest { command: vec!["true".to_owned()], within_ms: 2_500 };
    let times = [("resets the device", 1_000, Some(OUTAGE_MS))];
    let (record, away) = away(bench, Tests { reset: Some(test), ..Tests::default() }, &times)?;
    let known = away.first().map(|away| {
        let [from, to] = [away.from_ns, away.to_ns];
        [to[0].saturating_sub(from[1]), to[1].saturating_sub(from[0])]
    });
    let found = record.outages.iter().find(|outage| outage.test == Test::Reset);
    Ok(vec![lasted("outage of a device that is reset", known, found)])
}
