//! The search for the highest load that a path or a device carries within a loss goal. No IO and no clock: the caller runs
//! each requested trial and reports the observation.
//!
//! ```text
//! Search::new(&plan) -> next(now) -> Trial { load_pps, duration } -> the tester
//!                        ^   |                                          |
//!                        |   +-> Done(results)    observe(seen, now) <--+
//!                        +---------------------------------+
//! ```
//!
//! Three strategies share that interface: [`mlr`] (several trials per load, several goals at once, short trials first),
//! [`bisection`] (one trial per load, as RFC 2544 is commonly automated) and [`mod@loss_curve`] (RFC 2544, section 26.3). The
//! results do not depend on the strategy: [`results()`] derives them from the plan and the trials alone, at any later time.
//!
//! - A load is judged by all valid trials at it, weighted by their effective durations ([`classify`]).
//! - Unsent datagrams count as loss. If they alone make a load fail, the result is *limited by the tester*, never by the
//!   path.
//! - Every search ends: by its bounds, its time or its number of trials.

pub mod bisection;
pub mod bounds;
pub mod classify;
pub mod goal;
pub mod loss_curve;
pub mod mlr;
pub mod profile;
pub mod results;
pub mod search;
pub mod steady;
pub mod strategy;
pub mod trace;

#[cfg(test)]
mod sim;
#[cfg(test)]
mod tests;

pub use loss_curve::loss_curve;
pub use results::{Unproven, results, unproven};
pub use search::{Search, SearchError, Step};
pub use steady::Steady;
