//! `narrows rfc2544`: a device under test between two ports of the tester, measured by the procedures of
//! `narrows_search::procedures`, its counters reconciled for each trial.

mod ab;
mod beside;
mod broadcast;
mod command;
mod cut;
pub mod demo;
mod derive;
mod error;
pub mod files;
pub(crate) mod format;
mod hops;
mod keep;
pub(crate) mod port;
mod qualify;
mod reach;
mod row;
mod tester;
mod watch;
pub mod words;

pub use ab::{check_pair, derive_pair, measure_pair};
pub use derive::derive;
pub use error::ForwardingError;
pub use keep::Write;
pub use narrows_search::procedures::{Scheduled, schedule, total};
pub use narrows_wire::forwarding_plan::{PlanFile, Problems, parse, reference};
pub use reach::Reach;

use keep::Keeper;
use narrows_model::forwarding::modifiers::Modifier;
use narrows_model::forwarding::plan::Row;
use narrows_model::forwarding::{CounterSource, ForwardingPlan, ForwardingRecord, ForwardingTrial, Test};
use narrows_sys::clock;
use narrows_traffic::Stop;
use std::time::Duration;
use tester::{Load, Tester};

/// What is told while it runs.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    /// A row begins.
    Row(Row),
    /// What the tester alone carries.
    Tester(f64),
    /// A trial is over: its load in frames a second, and what it saw.
    Trial(f64, &'a ForwardingTrial),
    /// A search ended: the goal's name, and the highest rate that passes.
    Found(&'a str, Option<f64>),
    /// What has to be told in words.
    Says(&'a str),
    /// A line as it shall stand.
    Line(&'a str),
}

/// Hears of what happens.
pub type Watch<'a> = &'a mut dyn FnMut(Event<'_>);

/// Trials of searches that are kept beside the searches themselves, a row: those that lost or say nothing tell where.
const TELLING: usize = 6;
/// No trial with fewer frames than that tells that the device is gone.
const GONE_LEAST: u64 = 100;
/// How often a lost device is asked for.
const ASK: Duration = Duration::from_millis(500);

/// A benchmark under way.
struct Bench<'a> {
    tester: Tester<'a>,
    record: ForwardingRecord,
    watch: Watch<'a>,
    stop: Stop,
    telling: usize,
    keeper: Keeper<'a>,
    /// The row under way, from 1, and how many there are.
    at: (usize, usize),
}

/// What of a plan cannot be made, a sentence each: empty where all can.
#[must_use]
pub fn check(plan: &ForwardingPlan) -> Vec<String> {
    let mut wrong = reach::check_hosts(plan);
    wrong.extend(beside::check(plan));
    wrong.extend(narrows_search::procedures::check(plan));
    wrong
}

/// Makes the whole benchmark. What was measured is kept, however it ends: see [`ForwardingRecord::ended`].
///
/// Where a host of the tester is lost, `stop` is raised: what runs elsewhere ends, too.
///
/// # Errors
/// The tester's ports cannot be used at all.
pub fn run<'a>(
    plan: &'a ForwardingPlan,
    reach: &Reach,
    stop: &Stop,
    watch: Watch<'a>,
) -> Result<ForwardingRecord, ForwardingError> {
    run_kept(plan, reach, stop, watch, None)
}

/// The same; `keep` gets what was measured so far after each row, and between trials every so often; the whole is the caller's.
///
/// # Errors
/// The tester's ports cannot be used at all.
pub fn run_kept<'a>(
    plan: &'a ForwardingPlan,
    reach: &Reach,
    stop: &Stop,
    watch: Watch<'a>,
    keep: Option<Write<'a>>,
) -> Result<ForwardingRecord, ForwardingError> {
    let tester = Tester::open(plan, reach, stop, &mut |words| watch(Event::Says(words)))?;
    let record = ForwardingRecord {
        plan: without_secrets(plan),
        tester: Vec::new(),
        trials: Vec::new(),
        searches: Vec::new(),
        curves: Vec::new(),
        bursts: Vec::new(),
        outages: Vec::new(),
        ended: None,
    };
    let rows = plan.rows();
    let keeper = Keeper::new(keep);
    let mut bench = Bench { tester, record, watch, stop: stop.clone(), telling: 0, keeper, at: (0, rows.len()) };
    for row in rows {
        (bench.watch)(Event::Row(row));
        bench.at.0 += 1;
        bench.telling = 0;
        match bench.row(plan, row) {
            Ok(()) => {}
            Err(error) => bench.record.ended = Some(error.to_string()),
        }
        if bench.stop.is_set() {
            let lost = bench.tester.lost().map(|error| error.to_string());
            bench.record.ended.get_or_insert_with(|| lost.unwrap_or_else(|| "it was interrupted".to_owned()));
        }
        if bench.record.ended.is_some() {
            break;
        }
        bench.keep();
    }
    Ok(bench.record)
}

/// A stored plan names agents and users, but opens no door.
fn without_secrets(plan: &ForwardingPlan) -> ForwardingPlan {
    let mut plan = plan.clone();
    for port in [&mut plan.generator, &mut plan.receiver] {
        port.token_file = None;
    }
    for traffic in &mut plan.traffic {
        traffic.modifier = traffic.modifier.take().map(Modifier::without_secrets);
    }
    for hop in &mut plan.hops {
        match &mut hop.source {
            CounterSource::Snmp { name, password, version, .. } => {
                if version == "2c" {
                    name.clear();
                }
                password.clear();
            }
            CounterSource::Narrows { token_file, .. } => *token_file = None,
            CounterSource::Namespace { .. } => {}
        }
    }
    plan
}

impl Bench<'_> {
    /// Whether nothing more is to be measured.
    fn over(&self) -> bool {
        self.stop.is_set() || self.record.ended.is_some()
    }

    /// Keeps what there is.
    fn keep(&mut self) {
        if let Some(says) = self.keeper.part(&mut self.record, self.at.0, self.at.1) {
            (self.watch)(Event::Says(&says));
        }
    }

    /// One trial through the device; a device that is gone is waited for if the plan says so.
    fn trial(&mut self, test: Test, row: Row, repetition: u32, load: Load) -> Result<ForwardingTrial, ForwardingError> {
        if self.keeper.is_due() {
            self.keep();
        }
        let rest = Duration::from_millis(self.record.plan.rest_ms);
        clock::sleep(rest);
        let mut trial = self.tester.trial(test, row, repetition, load)?;
        let (sent, got) = trial
            .directions
            .iter()
            .fold((0, 0), |(sent, got), frames| (sent + frames.sent.sent(), got + frames.got.distinct()));
        if sent >= GONE_LEAST && got == 0 && !self.stop.is_set() {
            trial.invalid = Some("device lost: nothing came back".to_owned());
            self.await_device(row)?;
        }
        let pps = match load {
            Load::Rate { pps, .. } | Load::Burst { pps, .. } => pps,
        };
        (self.watch)(Event::Trial(pps, &trial));
        Ok(trial)
    }

    /// Asks for a device that is gone with a few frames now and then.
    fn await_device(&mut self, row: Row) -> Result<(), ForwardingError> {
        let limit = Duration::from_millis(self.record.plan.lost_device_wait_ms);
        let since = clock::now();
        (self.watch)(Event::Says("the device forwards nothing any more"));
        while since.elapsed() < limit && !self.stop.is_set() {
            clock::sleep(ASK);
            let asked = self.tester.trial(Test::Qualification, row, 0, Load::Burst { frames: 10, pps: 1_000.0 })?;
            if asked.directions.iter().all(|frames| frames.got.distinct() > 0) {
                (self.watch)(Event::Says("the device forwards again"));
                return Ok(());
            }
        }
        self.record.ended = Some(format!(
            "device lost: it forwarded nothing any more{}",
            if limit.is_zero() {
                String::new()
            } else {
                format!(" and did not come back within {} s", limit.as_secs())
            }
        ));
        Ok(())
    }

    /// Keeps a trial of a search where it tells where frames were lost, or that it says nothing.
    fn keep_if_telling(&mut self, trial: ForwardingTrial) {
        let lost = trial.directions.iter().any(|frames| frames.lost() != 0);
        if (lost || trial.invalid.is_some()) && self.telling < TELLING {
            self.telling += 1;
            self.record.trials.push(trial);
        }
    }
}
