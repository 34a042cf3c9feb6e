//! `narrows rfc2544`: a device under test between two ports of the tester, measured by the procedures of
//! `narrows_forwarding::procedures`, its counters reconciled for each trial.

mod ab;
pub mod advise;
mod autosave;
mod command;
mod cut;
pub mod demo;
mod error;
mod far;
pub mod files;
mod hops;
mod hosts;
mod kinds;
mod modifier;
mod row;
mod tables;
mod tester;
pub mod verify;
mod watch;
pub mod words;

pub use ab::{check_pair, measure_pair};
pub use autosave::Write;
pub use error::ForwardingError;
pub use hosts::HostAccess;
pub use kinds::KINDS;

use autosave::Autosave;
use narrows_forwarding::data::plan::Row;
use narrows_forwarding::data::{ForwardingPlan, ForwardingRecord, ForwardingTrial};
use narrows_traffic::Stop;
use tester::Tester;

/// What is told while it runs.
#[derive(Debug, Clone, Copy)]
pub enum Event<'a> {
    Row(Row),
    /// What the tester alone carries.
    Tester(f64),
    /// A trial is over: its load in frames a second, the trial with its counts corrected, and why it is invalid, if so.
    Trial(f64, &'a ForwardingTrial, Option<&'a str>),
    /// A message for the user.
    Says(&'a str),
    /// A line to print verbatim.
    Line(&'a str),
}

/// Hears of what happens.
pub type Watch<'a> = &'a mut dyn FnMut(Event<'_>);

/// A benchmark under way.
struct Bench<'a> {
    tester: Tester<'a>,
    record: ForwardingRecord,
    watch: Watch<'a>,
    stop: Stop,
    /// Trials of the row that were kept because they tell where frames are lost.
    telling: usize,
    /// How often hosts of the tester were connected to again.
    renewals: u32,
    autosave: Autosave<'a>,
    /// The table of the device that is filled.
    filled: Option<tables::Filled>,
    /// The row under way, from 1, and how many there are.
    at: (usize, usize),
}

/// Problems with a plan, one sentence each; empty if there are none.
pub fn check(plan: &ForwardingPlan) -> Vec<String> {
    let mut wrong = hosts::check_hosts(plan);
    wrong.extend(modifier::check(plan));
    wrong.extend(narrows_forwarding::procedures::check(plan));
    wrong
}

/// Runs the whole benchmark. What was measured is kept, however it ends: see [`ForwardingRecord::ended`]. Where a host of the tester is
/// lost, the trial under way is incomplete and the host is connected to again, a few times at most. Fails where the tester's ports
/// cannot be used at all.
pub fn run<'a>(
    plan: &'a ForwardingPlan,
    hosts: &'a HostAccess,
    stop: &Stop,
    watch: Watch<'a>,
) -> Result<ForwardingRecord, ForwardingError> {
    run_kept(plan, hosts, stop, watch, None)
}

/// As [`run`]; `keep` gets what was measured so far after each row, and between trials every few seconds.
pub fn run_kept<'a>(
    plan: &'a ForwardingPlan,
    hosts: &'a HostAccess,
    stop: &Stop,
    watch: Watch<'a>,
    keep: Option<Write<'a>>,
) -> Result<ForwardingRecord, ForwardingError> {
    let tester = Tester::open(plan, hosts, stop, &mut |words| watch(Event::Says(words)))?;
    let record = ForwardingRecord::of(plan.clone());
    let rows = plan.rows();
    let autosave = Autosave::new(keep);
    let (filled, at) = (None, (0, rows.len()));
    let mut bench = Bench { tester, record, watch, stop: stop.clone(), telling: 0, renewals: 0, autosave, filled, at };
    for row in rows {
        (bench.watch)(Event::Row(row));
        bench.at.0 += 1;
        bench.telling = 0;
        match bench.table(plan, row).and_then(|()| if bench.over() { Ok(()) } else { bench.row(plan, row) }) {
            Ok(()) => {}
            Err(error) => bench.record.ended = Some(error.to_string()),
        }
        if bench.stop.is_set() {
            let lost = bench.tester.lost().map(|error| error.to_string());
            bench.record.ended.get_or_insert_with(|| lost.unwrap_or_else(|| "interrupted".to_owned()));
        }
        if bench.record.ended.is_some() {
            break;
        }
        bench.keep();
    }
    if let Err(error) = bench.empty() {
        (bench.watch)(Event::Says(&error.to_string()));
        bench.record.ended.get_or_insert_with(|| error.to_string());
    }
    Ok(bench.record)
}

impl Bench<'_> {
    /// Whether nothing more is to be measured.
    fn over(&self) -> bool {
        self.stop.is_set() || self.record.ended.is_some()
    }

    /// Keeps what there is.
    fn keep(&mut self) {
        if let Some(says) = self.autosave.part(&mut self.record, self.at.0, self.at.1) {
            (self.watch)(Event::Says(&says));
        }
    }
}
