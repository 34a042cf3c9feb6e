//! The search for the highest load against paths whose capacity is known.

use crate::demo::{Stage, StageError};
use narrows_lab::{LabSpec, Row, Watch};
use narrows_model::lab::Impairment;
use narrows_model::run::search::Outcome;
use narrows_model::run::search_report::{GoalView, SearchReport};
use std::time::Duration;

/// A path and what its capacity is.
struct Case {
    what: &'static str,
    path: Impairment,
    /// Its sustained rate, bits per second on the wire.
    carries_bps: u64,
    /// Bytes that it buffers or passes as a burst beyond that rate.
    holds_bytes: u64,
    /// Part of the packets that are lost at any load.
    loses: f64,
}

/// The length of the trials.
pub(super) const TRIAL: Duration = Duration::from_secs(1);
/// How far below the truth a result may be.
const BELOW: f64 = 0.01;
/// Maximum duration of a search with two goals.
const LIMIT: Duration = Duration::from_secs(120);
/// A full frame on the wire.
const FRAME_BYTES: u64 = 1_538;

fn cases() -> [Case; 4] {
    let policer = |what, bps, bucket| Case {
        what,
        path: Impairment { police_bps: bps, police_burst_bytes: bucket, delay_us: 500, ..Impairment::default() },
        carries_bps: bps,
        holds_bytes: bucket,
        loses: 0.0,
    };
    let shaper = |what, bps, queue, loss| Case {
        what,
        path: Impairment { rate_bps: bps, queue_packets: queue, loss, delay_us: 500, ..Impairment::default() },
        carries_bps: bps,
        holds_bytes: queue * FRAME_BYTES,
        loses: loss,
    };
    [
        policer("policer 100 Mbit/s", 100_000_000, 32_000),
        policer("policer 1 Gbit/s", 1_000_000_000, 320_000),
        // 20 packets last for 2.5 ms at this rate: longer than the cores of a virtual machine stall now and then, which makes the
        // path drop more than its capacity explains.
        shaper("shaper 100 Mbit/s, queue of 20 packets", 100_000_000, 20, 0.0),
        shaper("shaper 200 Mbit/s, loss 0.1 %", 200_000_000, 50, 0.001),
    ]
}

impl Case {
    /// The highest load of which no more than a part is lost in a trial, bits a second on the wire; `None`: every load loses more.
    fn truth(&self, loss: f64, trial: Duration) -> Option<f64> {
        let passes = self.carries_bps as f64 + self.holds_bytes as f64 * 8.0 / trial.as_secs_f64();
        // Of a load L, min(L·(1 − loses), passes) arrives: random loss comes before the rate limit on this path.
        (loss >= self.loses).then(|| passes / (1.0 - loss))
    }
}

/// A search over a path; its report.
pub(super) fn run(stage: &Stage, more: &[&str]) -> Result<SearchReport, StageError> {
    let words = [&["search", "server", "--ipv4", "--quiet", "--format", "json", "--duration", "1s"], more].concat();
    stage.report("the search", &words)
}

/// A path with a server behind it.
pub(super) fn stage(path: &Impairment) -> Result<Stage, StageError> {
    let back = Impairment { delay_us: path.delay_us, ..Impairment::default() };
    let spec = LabSpec { name: "verify".to_owned(), up: path.clone(), down: back, ..LabSpec::default() };
    Stage::up(&spec, &[])
}

pub fn verify(watch: &mut dyn Watch) -> Result<(), StageError> {
    for case in cases() {
        watch.begins(&format!("search, {}", case.what));
        let report = run(&stage(&case.path)?, &[])?;
        for goal in &report.goals {
            if !watch.row(&bound(&case, goal)) {
                return Ok(());
            }
        }
        let took = Duration::from_millis(report.trials.last().map_or(0, |trial| trial.ended_at_ms));
        let row = Row {
            what: format!("{}: both goals, {} trials", case.what, report.trials.len()),
            requested: LIMIT.as_secs_f64(),
            measured: took.as_secs_f64(),
            unit: "s",
            tolerance: "at most",
            met: took <= LIMIT,
        };
        if !watch.row(&row) {
            return Ok(());
        }
    }
    Ok(())
}

fn bound(case: &Case, view: &GoalView) -> Row {
    let found = view.lower.map_or(0.0, |load| load.wire_bps);
    // Longer than what was asked for where a profile saw a queue.
    let truth = case.truth(view.goal.loss_ratio, Duration::from_millis(view.goal.final_trial_ms));
    let met = match truth {
        Some(truth) => (truth * (1.0 - BELOW)..=truth).contains(&found),
        // There may be a load so small that a trial has no packet to lose.
        None => view.result.outcome != Outcome::Found || found < 0.01 * case.carries_bps as f64,
    };
    Row {
        what: format!("{}: {}, lower bound", case.what, view.goal.name),
        requested: truth.unwrap_or(0.0) / 1e6,
        measured: found / 1e6,
        unit: "Mbit/s",
        tolerance: if truth.is_some() { "within 1 % below" } else { "no load, or nearly" },
        met,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_truth_counts_what_the_path_holds_and_what_it_loses() {
        let cases = cases();
        assert_eq!(cases[0].truth(0.0, TRIAL), Some(100_256_000.0));
        // With 0.5 % loss allowed, the load may be slightly higher.
        assert!(cases[0].truth(0.005, TRIAL).is_some_and(|bps| (bps - 100_256_000.0 / 0.995).abs() < 1.0));
        assert_eq!(cases[3].truth(0.0, TRIAL), None);
        assert!(cases[3].truth(0.005, TRIAL).is_some_and(|bps| bps > 200e6));
    }
}
