//! What a procedure says of itself.

use crate::data::settings::Settings;
use narrows_model::run::search::SearchPlan;
use std::ops::RangeInclusive;

pub(super) const REPETITIONS: RangeInclusive<u64> = 1..=1_000;
/// Durations of a trial, ms.
pub(super) const TRIAL_MS: RangeInclusive<u64> = 10..=SearchPlan::LONGEST_TRIAL_MS;

/// When a procedure is made whose table the plan file does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// Where the file names no procedure at all.
    Usually,
    /// The same, with the preset of RFC 2544.
    WithRfc2544,
    OnRequest,
}

/// What is known of a procedure before it is made.
#[derive(Debug, Clone, Copy)]
pub struct About {
    /// Its table in a plan file.
    pub key: &'static str,
    /// What it measures, with the RFC's section: a line of the plan file's page.
    pub what: &'static str,
    /// Its name in reports.
    pub title: &'static str,
    /// Its name while it runs.
    pub word: &'static str,
    /// When it is made without being named.
    pub made: Made,
    /// Whether it is measured at or around the throughput, and needs one.
    pub at_throughput: bool,
}

/// The settings of a procedure.
pub trait Procedure: Settings {
    /// What is known of it.
    const ABOUT: About;

    /// What its values cannot be together: key and sentence.
    fn problems(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Takes what follows from the rest of the plan: the highest frame rate of its smallest frames.
    fn complete(&mut self, _fastest_pps: f64) {}
}
