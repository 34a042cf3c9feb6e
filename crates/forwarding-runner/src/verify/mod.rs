//! The forwarding benchmark against a device of which everything is known: the router of the lab, with a token bucket, a queue,
//! a rule that drops, forwarding that goes and comes, 256 networks, and agents that count wrongly.

mod networks;
mod outages;

use crate::demo::{Bench, DemoError};
use narrows_forwarding::data::{
    BackToBackTest, ForwardingPlan, ForwardingRecord, FrmolTest, Test, Tests, ThroughputTest,
};
use narrows_forwarding::views::derive;
use narrows_lab::{Row, Watch};
use narrows_model::run::search::Goal;
use narrows_runner::demo::StageError;
use narrows_traffic::Stop;

/// The known device passes this many frames per second ...
const POLICED_PPS: f64 = 200_000.0;
/// ... and a burst of this many after idle time: the backlog when a virtual machine's core stalls for 1 ms.
const BUCKET: f64 = 200.0;
/// The known queue, and the rate at which it drains: with one kernel timer per frame, a virtual machine cannot sustain a higher
/// rate.
const QUEUE: f64 = 500.0;
const SHAPED_PPS: f64 = 10_000.0;
/// A trial of 1 s would almost never pass on a virtual machine: some stall would fill a ring of 256 frames.
const TRIAL_MS: u64 = 100;
/// Duration of the one trial that shows where frames were lost.
const LOOK_MS: u64 = 1_000;
/// A rule drops one frame in this many.
const NTH: f64 = 1_000.0;

impl From<DemoError> for StageError {
    fn from(error: DemoError) -> Self {
        match error {
            DemoError::Stage(error) => error,
            other => Self::Failed("the forwarding benchmark", other.to_string()),
        }
    }
}

/// The plan with these tests alone, frames of 64 bytes.
fn plan(bench: &Bench, max_load_pps: f64, tests: Tests) -> Result<ForwardingPlan, StageError> {
    let mut plan = bench.plan()?;
    plan.max_load_pps = Some(max_load_pps);
    plan.traffic.truncate(1);
    for traffic in &mut plan.traffic {
        traffic.sizes = vec![64];
        traffic.mix = Vec::new();
    }
    plan.tests = tests;
    Ok(plan)
}

fn throughput(trial_ms: u64) -> ThroughputTest {
    let goal = Goal {
        initial_trial_ms: trial_ms,
        final_trial_ms: trial_ms,
        duration_sum_ms: 11 * trial_ms,
        width: 0.002,
        ..Goal::ndr()
    };
    ThroughputTest { goals: vec![goal], confirm: 0, max_search_ms: 60_000 }
}

fn run(bench: &Bench, plan: &ForwardingPlan) -> Result<ForwardingRecord, StageError> {
    Ok(bench.run(plan, &Stop::new(), &mut |_| {})?)
}

fn found(record: &ForwardingRecord) -> f64 {
    let result = record.searches.first().and_then(|search| search.record.results.first());
    result.and_then(|result| result.lower_pps).unwrap_or(0.0)
}

fn rate(bench: &Bench) -> Result<Row, StageError> {
    bench.fault("forward-police", &format!("{POLICED_PPS:.0}x{BUCKET:.0}"))?;
    let tests = Tests { throughput: Some(throughput(TRIAL_MS)), ..Tests::default() };
    let record = run(bench, &plan(bench, 500_000.0, tests)?);
    bench.repair("forward-police")?;
    let measured = found(&record?);
    let requested = POLICED_PPS + BUCKET * 1e3 / TRIAL_MS as f64;
    Ok(Row {
        what: "throughput of a device with a token bucket".to_owned(),
        requested,
        measured,
        unit: "frames/s",
        tolerance: "1 %",
        met: (measured / requested - 1.0).abs() <= 0.01,
    })
}

fn queue(bench: &Bench) -> Result<Row, StageError> {
    bench.fault("forward-shape", &format!("{SHAPED_PPS:.0}x64x{QUEUE:.0}"))?;
    let tests = Tests {
        // Long beside the time in which the queue empties, which a throughput holds as well.
        throughput: Some(throughput(LOOK_MS)),
        back_to_back: Some(BackToBackTest { most_frames: 20_000, repetitions: 3 }),
        ..Tests::default()
    };
    let mut plan = plan(bench, 100_000.0, tests)?;
    // The queue empties before the next burst.
    plan.conditions.rest_ms = 100;
    let record = run(bench, &plan);
    bench.repair("forward-shape")?;
    let derived = derive(&record?);
    // Frames that the queue held: the burst less what left meanwhile.
    let bursts = derived.results.values().find_map(|it| it.back_to_back.bursts.clone());
    let measured = bursts.and_then(|bursts| Some(bursts.corrected_ns? * 1e-9 * bursts.offered_pps));
    let measured = measured.unwrap_or(0.0);
    Ok(Row {
        what: "queue of a device by back-to-back".to_owned(),
        requested: QUEUE,
        measured,
        unit: "frames",
        tolerance: "5 %",
        met: (measured / QUEUE - 1.0).abs() <= 0.05,
    })
}

/// One trial at a rate that the router carries.
fn one_trial(bench: &Bench, change: impl FnOnce(&mut ForwardingPlan)) -> Result<ForwardingRecord, StageError> {
    let tests = Tests { frmol: Some(FrmolTest { duration_ms: LOOK_MS, repetitions: 1 }), ..Tests::default() };
    let mut plan = plan(bench, 100_000.0, tests)?;
    change(&mut plan);
    run(bench, &plan)
}

fn rule(bench: &Bench) -> Result<Row, StageError> {
    bench.fault("forward-drop-nth", &format!("{NTH:.0}"))?;
    let record = one_trial(bench, |_| {});
    bench.repair("forward-drop-nth")?;
    let record = record?;
    let derived = derive(&record);
    let trial = record.trials.iter().position(|trial| trial.test == Test::Frmol);
    let account = derived.accounts.iter().find(|it| Some(it.trial) == trial).map(|it| &it.account);
    let named = account.is_some_and(|account| {
        account.disagreement.is_none()
            && account.found.iter().any(|words| words.contains("dropped by router") && words.contains("nftables rule"))
    });
    let sent = trial.and_then(|at| derived.record.trials[at].directions.first()).map_or(0, |frames| frames.sent.sent());
    // A pause of the machine may fill the ring besides: the account keeps the two apart, and so does this.
    let drops = account.into_iter().flat_map(|account| &account.lines).flat_map(|line| &line.drops);
    let dropped: u64 = drops.filter(|drop| drop.reason.contains("nftables rule")).map(|drop| drop.frames).sum();
    let what = match account.and_then(|account| account.found.first()) {
        Some(words) => format!("a rule that drops every {NTH:.0}th of {sent}: {words}"),
        None => format!("a rule that drops every {NTH:.0}th of {sent}: nothing was found"),
    };
    // Frames of the first sample count, too: the first drop comes up to one frame earlier or later.
    let requested = sent as f64 / NTH;
    Ok(Row {
        what,
        requested,
        measured: dropped as f64,
        unit: "drops",
        tolerance: "all, device and reason named",
        met: named && (dropped as f64 - requested).abs() <= 1.0,
    })
}

#[cfg(not(feature = "snmp"))]
fn agents(_: &Bench) -> Result<Vec<Row>, StageError> {
    Ok(Vec::new())
}

/// The same trial with the router's counters served by SNMP agents: one correct, two that miscount.
#[cfg(feature = "snmp")]
fn agents(bench: &Bench) -> Result<Vec<Row>, StageError> {
    use narrows_collect::link_counters;
    use narrows_forwarding::data::CounterSource;
    use narrows_model::host::snmp::{Secret, SnmpAccess, SnmpAgent};
    use narrows_snmp::testing::{Behaviour, Counts, Miscount, Port, TestAgent};
    use narrows_sys::netns;
    let CounterSource::Namespace { name: router } = bench.router() else { return Ok(Vec::new()) };
    // The counters start at this value, so that a 32-bit counter wraps during the trial.
    const BEFORE: u64 = (1 << 32) - 20_000;
    let cases = [
        ("a correct agent", None),
        ("an agent that divides by 1024", Some(Miscount::Divided)),
        ("an agent whose counters wrap at 2^32", Some(Miscount::Wrapped)),
    ];
    let mut rows = Vec::new();
    for (what, miscount) in cases {
        let router = router.clone();
        let read = |router: &str| {
            let read = || Ok::<_, narrows_sys::Error>(["in0", "out0"].map(link_counters));
            match netns::in_network_at(router, read) {
                Ok([Ok(input), Ok(output)]) => Some((input, output)),
                _ => None,
            }
        };
        let since = read(&router).map_or(0, |(input, _)| input.rx_packets);
        let ports = move || {
            let Some((input, output)) = read(&router) else { return Behaviour::Silent };
            let counts = |packets: u64, bytes: u64| Counts {
                // With FCS, as switches count.
                octets: bytes + 4 * packets + BEFORE * 64,
                unicast: packets + BEFORE - since,
                ..Counts::default()
            };
            let port = |index, name: &str, link: narrows_collect::LinkCounters| {
                let port = Port::new(
                    index,
                    name,
                    counts(link.rx_packets, link.rx_bytes),
                    counts(link.tx_packets, link.tx_bytes),
                );
                if let Some(miscount) = miscount { port.miscounting(miscount) } else { port }
            };
            Behaviour::Answer(vec![port(1, "in0", input), port(2, "out0", output)])
        };
        let start = || TestAgent::start(([127, 0, 0, 1], 0).into(), "public", ports);
        let agent = bench.lab.host("tester")?.run(start)??;
        let record = one_trial(bench, |plan| {
            if let Some(hop) = plan.hops.first_mut() {
                let access = SnmpAccess::V2c { community: Secret::new("public") };
                hop.source = CounterSource::Snmp(SnmpAgent { agent: agent.address().to_string(), access });
            }
        })?;
        let derived = derive(&record);
        let trial = record.trials.iter().position(|trial| trial.test == Test::Frmol);
        let silent = trial.and_then(|at| record.trials[at].hops.first()?.silent.clone());
        let invalid = trial.and_then(|at| derived.invalid[at].clone()).or(silent);
        let truthful = miscount.is_none();
        let met = match &invalid {
            None => truthful,
            Some(why) => !truthful && why.contains("router") || why.contains("wraps"),
        };
        let says = invalid.as_ref().map_or_else(|| "no error".to_owned(), |why| format!("invalid: {why}"));
        rows.push(Row {
            what: format!("{what}: {says}"),
            requested: f64::from(u8::from(!truthful)),
            measured: f64::from(u8::from(invalid.is_some())),
            unit: "invalid",
            tolerance: "at that hop",
            met,
        });
    }
    Ok(rows)
}

type Check = fn(&Bench) -> Result<Vec<Row>, StageError>;

/// Verifies each property in turn.
pub fn verify(watch: &mut dyn Watch) -> Result<(), StageError> {
    let bench = Bench::up()?;
    let checks: [(&str, Check); 7] = [
        ("token bucket", |bench| Ok(vec![rate(bench)?])),
        ("queue", |bench| Ok(vec![queue(bench)?])),
        ("a rule that drops", |bench| Ok(vec![rule(bench)?])),
        ("recovery from an overload", outages::recovery),
        ("a reset of the device", outages::reset),
        ("256 networks", networks::networks),
        ("agents that count wrongly", agents),
    ];
    for (what, check) in checks {
        watch.begins(&format!("forwarding, {what}"));
        for row in check(&bench)? {
            if !watch.row(&row) {
                return Ok(());
            }
        }
    }
    Ok(())
}
