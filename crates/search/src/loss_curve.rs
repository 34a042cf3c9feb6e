//! The frame loss rate curve of RFC 2544, section 26.3: from the highest load down in equal steps, until two trials in
//! a row lose nothing.

use crate::bounds::History;
use crate::classify::{Class, reduce};
use crate::goal::Target;
use crate::strategy::{Probe, Strategy};
use narrows_model::run::search::{GoalBounds, LoadTrial, LossPoint, SearchPlan};

/// The strategy; its only state is the trials.
#[derive(Debug)]
pub struct LossCurve {
    max: f64,
    min: f64,
    step: f64,
    target: Target,
}

impl LossCurve {
    /// From the plan's highest load down to its lowest.
    pub const fn new(plan: &SearchPlan, step: f64, trial_ms: u64) -> Self {
        let target =
            Target { loss_ratio: 0.0, exceed_ratio: 0.0, trial_ms, sum_ms: trial_ms as f64, log_width: f64::INFINITY };
        Self { max: plan.max_load_pps, min: plan.min_load_pps, step, target }
    }

    /// The loads, highest first.
    fn loads(&self) -> impl Iterator<Item = f64> {
        // From a whole number of steps, so that 1 − 10 × 0.1 is exactly 0.
        (0..=1_000_u32)
            .map(|steps| self.max * (1.0 - f64::from(steps) * self.step))
            .take_while(|load| *load >= self.min)
    }
}

impl Strategy for LossCurve {
    fn propose(&mut self, history: &History) -> Option<Probe> {
        let mut lossless = 0;
        for load_pps in self.loads() {
            match history.class(&self.target, load_pps) {
                Class::Undecided => return Some(Probe { load_pps, duration_ms: self.target.trial_ms }),
                Class::Upper => lossless = 0,
                Class::Lower => lossless += 1,
            }
            if lossless == 2 {
                return None;
            }
        }
        None
    }

    fn bounds(&self, _: &History) -> Vec<GoalBounds> {
        Vec::new()
    }
}

/// The points of a loss curve, highest load first: one per valid trial.
pub fn loss_curve(plan: &SearchPlan, trials: &[LoadTrial]) -> Vec<LossPoint> {
    let point = |trial: &LoadTrial| {
        let weighed = reduce(trial).ok()?;
        Some(LossPoint {
            load_pps: trial.load_pps,
            load_percent: 100.0 * trial.load_pps / plan.max_load_pps,
            loss_ratio: weighed.loss_ratio,
            unsent_ratio: weighed.loss_ratio - weighed.path_loss_ratio,
        })
    };
    let mut points: Vec<LossPoint> = trials.iter().filter_map(point).collect();
    points.sort_by(|a, b| b.load_pps.total_cmp(&a.load_pps));
    points
}
