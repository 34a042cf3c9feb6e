//! The procedures of a forwarding benchmark (RFC 2544, section 26, and its successors), without IO and without a clock: each
//! is set up from the plan and what is known so far, says which trial comes next, takes what was seen, and ends.
//!
//! | File | Test | Source |
//! | --- | --- | --- |
//! | [`throughput`] | the search of one row, and the repetitions that confirm it | RFC 2544, 26.1 |
//! | [`mod@latency`] | latency at the throughput | RFC 2544, 26.2; RFC 8219, 7.1–7.3 |
//! | [`loss`] | loss at loads from the maximum down | RFC 2544, 26.3 |
//! | [`back_to_back`] | the longest burst without loss, and the buffer that it tells of | RFC 9004 |
//! | [`recovery`] | time to recover from an overload | RFC 2544, 26.5 |
//! | [`reset`] | outage of a reset | RFC 2544, 26.6; RFC 6201 |
//! | [`mod@estimate`] | what a mix should carry by the results of single sizes | – |
//! | [`schedule()`] | every trial and the time of it all, before anything is sent | – |
//!
//! A test that makes no sense for a row answers with the reason instead of a set-up: that a size reached the line rate is why
//! it has no back-to-back value, and the report says so.

pub mod back_to_back;
pub mod estimate;
pub mod latency;
pub mod loss;
pub mod recovery;
pub mod reset;
pub mod schedule;
pub mod throughput;

#[cfg(test)]
mod device;

pub use back_to_back::{BackToBack, BackToBackPlan, BufferTime, buffer_time};
pub use estimate::{Estimate, estimate};
pub use latency::{Latency, LatencyPlan, latency};
pub use recovery::{Recovery, RecoveryPlan};
pub use reset::{Outage, ResetPlan, outage};
pub use schedule::{Scheduled, check, schedule, total};
pub use throughput::{Confirmation, Confirmed};

use narrows_model::forwarding::ForwardingPlan;
use narrows_model::forwarding::plan::Row;

/// How far below the most that is offered a throughput must be to be the device's: beyond the rounding of loads.
const BELOW_MOST: f64 = 1.0 - 1e-6;

/// The throughput that other tests of a row stand on, and the most that is offered of its frames.
///
/// # Errors
/// Why there is none.
fn known(plan: &ForwardingPlan, row: Row, throughput_pps: Option<f64>) -> Result<(f64, f64), String> {
    let most_pps = plan.most_pps(row).ok_or("the plan has no such frames")?;
    let found = throughput_pps.filter(|pps| pps.is_finite() && *pps > 0.0);
    let throughput_pps = found.ok_or("no throughput was found, and the test stands on it")?;
    Ok((throughput_pps, most_pps))
}

/// Nanoseconds of a number of seconds, rounded; nothing where that is no time.
fn nanos(seconds: f64) -> Option<u64> {
    let ns = (seconds * 1e9).round();
    // Up to 2^63: beyond it nothing here lasts.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    (0.0..9.2e18).contains(&ns).then_some(ns as u64)
}
