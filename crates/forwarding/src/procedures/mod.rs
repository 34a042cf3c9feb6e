//! The procedures of a forwarding benchmark (RFC 2544, section 26, and its successors), without IO and without a clock: each
//! is set up from the plan and what is known so far, asks for the next trial, takes what was seen of it, and writes its results into the record.
//!
//! | File | Test | Source |
//! | --- | --- | --- |
//! | [`throughput`] | the search of one row, and the repetitions that confirm it | RFC 2544, 26.1 |
//! | [`mod@latency`] | latency at the throughput | RFC 2544, 26.2; RFC 8219, 7.1–7.3 |
//! | [`loss`] | loss at loads from the maximum down | RFC 2544, 26.3 |
//! | [`back_to_back`] | the longest burst without loss, and the buffer that it tells of | RFC 9004 |
//! | [`recovery`] | time to recover from an overload | RFC 2544, 26.5 |
//! | [`reset`] | outage of a reset | RFC 2544, 26.6; RFC 6201 |
//! | [`frmol`] | what arrives at the highest load | RFC 2285 |
//! | [`mod@estimate`] | what a mix should carry by the results of single sizes | – |
//! | [`schedule()`] | every trial and the time of it all, before anything is sent | – |
//!
//! A test that makes no sense for a row answers with the reason instead of a set-up: that a size reached the line rate is why
//! it has no back-to-back value, and the report says so.

pub mod back_to_back;
pub mod estimate;
pub mod frmol;
pub mod latency;
pub mod loss;
mod procedure;
pub mod recovery;
pub mod reset;
pub mod schedule;
pub mod throughput;

#[cfg(test)]
mod device;
#[cfg(test)]
mod tests;

pub use back_to_back::{BufferTime, buffer_time};
pub use estimate::{Estimate, estimate};
pub use latency::{Latency, latency};
pub use procedure::{Context, Keep, Known, Load, Procedure, Request, Seen, SetUp};
pub use schedule::{Scheduled, total};

use crate::data::plan::Row;
use crate::data::{ForwardingPlan, Test};

pub struct Entry {
    pub test: Test,
    /// Sets it up for a row; `None` where the plan does not ask for it.
    pub set_up: fn(&ForwardingPlan, Row, &Known) -> Option<SetUp>,
    /// Its trials for a row, and their time.
    schedule: fn(&ForwardingPlan, Row) -> Vec<Scheduled>,
}

macro_rules! procedures {
    ($( $test:ident $file:ident, )*) => {
        /// Every procedure, in the order in which they are made.
        pub const ALL: &[Entry] =
            &[$( Entry { test: Test::$test, set_up: $file::set_up, schedule: $file::schedule }, )*];
    };
}

procedures! {
    Throughput throughput,
    Latency latency,
    Loss loss,
    BackToBack back_to_back,
    Recovery recovery,
    Frmol frmol,
    Reset reset,
}

/// Every test of every row, in the order in which they are made. What a row turns out not to need (bursts of a size that
/// reached the line rate) is in it: before anything is sent nobody knows.
pub fn schedule(plan: &ForwardingPlan) -> Vec<Scheduled> {
    let of_row = |row: Row| {
        let first = schedule::fixed(plan, Test::Qualification, row, 1, schedule::QUALIFY_MS);
        std::iter::once(first).chain(ALL.iter().flat_map(move |entry| (entry.schedule)(plan, row)))
    };
    plan.rows().into_iter().flat_map(of_row).filter(|one| one.most_trials > 0).collect()
}

/// The parts of a plan that cannot be run, one sentence each; tests that need no throughput are set up for each row. To be
/// called after the plan file is parsed, before anything runs: the parser checks syntax, this checks values.
pub fn check(plan: &ForwardingPlan) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in plan.rows() {
        let name = row.size.map_or_else(|| "the mix".to_owned(), |size| format!("{size} B"));
        for (entry, about) in ALL.iter().filter_map(|entry| Some((entry, entry.test.about()?))) {
            if let (false, Some(Err(why))) = (about.at_throughput, (entry.set_up)(plan, row, &Known::default())) {
                wrong.push(format!("{} of traffic[{}], {name}: {why}", about.key, row.traffic));
            }
        }
    }
    wrong
}
