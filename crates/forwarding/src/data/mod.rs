//! The forwarding benchmark of a device under test: what is planned, what each trial saw, what every hop counted, and the view of it.
//! Procedures as in RFC 2544, RFC 5180, RFC 9004; words as in RFC 1242 and RFC 2285.

pub mod ab;
pub mod ab_report;
pub mod accounting;
pub mod advice;
pub mod modifiers;
pub mod plan;
pub mod procedures;
pub mod record;
pub mod report;
pub mod settings;

pub use accounting::{AccountLine, Accounting};
pub use plan::{AddressPair, CounterSource, ForwardingPlan, HopPlan, TesterPort, TrialConditions};
pub use procedures::*;
pub use record::{BurstOfSize, ForwardingRecord, ForwardingTrial, OutageOfSize, SearchOfSize, TesterMaximum};
