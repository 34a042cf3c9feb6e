//! The forwarding benchmark of a device under test: what is planned, what each trial saw, what every hop counted, and the view of it.
//! Procedures as in RFC 2544, RFC 5180, RFC 9004; words as in RFC 1242 and RFC 2285.

pub mod ab;
pub mod ab_report;
pub mod accounting;
pub mod advice;
pub mod credentials;
pub mod modifiers;
pub mod plan;
pub mod procedures;
pub mod record;
pub mod report;
pub mod settings;

pub use accounting::{AccountLine, Accounting};
pub use plan::{AddressPair, CounterSource, ForwardingPlan, HopPlan, TesterPort, Traffic, TrialConditions};
pub use procedures::back_to_back::BackToBackTest;
pub use procedures::frmol::FrmolTest;
pub use procedures::latency::LatencyTest;
pub use procedures::loss::LossTest;
pub use procedures::recovery::RecoveryTest;
pub use procedures::reset::ResetTest;
pub use procedures::throughput::ThroughputTest;
pub use procedures::{Test, Tests};
pub use record::{
    BurstOfSize, DropCount, ForwardingRecord, ForwardingTrial, HopCount, OutageOfSize, SearchOfSize, TesterMaximum,
};
