//! What the path profile says of the path, in the terms of the rules.

use crate::experiments::profile::PATH_PROFILE;
use narrows_model::run::report::{PathProfileView, ProfileStepView};
use narrows_model::words::units;
use narrows_model::{Direction, Flow, ProfilePlan, Run};
use narrows_search::profile::{Plateau, Shape, StepView};

/// A path profile of the judged direction.
#[derive(Debug, Clone)]
pub struct PathProfile {
    /// What its steps showed.
    pub shape: Shape,
}

impl PathProfile {
    /// The latest profile of a flow's direction up to a round; `None` where none was made.
    #[must_use]
    pub fn of(run: &Run, round: u32, flow: Flow) -> Option<Self> {
        (0..=round).rev().find_map(|round| {
            let of_flow = |(id, _): &(&str, _)| *id == PATH_PROFILE.id;
            let (_, trial) = run.experiments::<ProfilePlan>(round).filter(of_flow).last()?;
            let direction = flow.direction();
            let fits = trial.plan.direction == direction && direction != Direction::Both;
            fits.then(|| Shape::of(trial.plan, trial.client)).flatten().map(|shape| Self { shape })
        })
    }

    /// The view of it in a report; steps in the order of their rates.
    #[must_use]
    pub fn view(&self) -> PathProfileView {
        let shape = &self.shape;
        let (limit, bucket_bytes) = match shape.plateau {
            None => (None, None),
            Some(Plateau::Queue) => (Some("queue"), None),
            Some(Plateau::ShortQueue) => (Some("short-queue"), None),
            Some(Plateau::Shaper { bucket_bytes }) => (Some("shaper"), Some(bucket_bytes)),
            Some(Plateau::Policer { bucket_bytes }) => (Some("policer"), Some(bucket_bytes)),
        };
        let step = |view: &StepView| ProfileStepView {
            offered_bps: view.offered_bps,
            delivered_bps: view.sustained_bps,
            loss: view.loss(),
            queue_us: view.queue_us,
        };
        let mut steps: Vec<ProfileStepView> = shape.steps.iter().map(step).collect();
        steps.sort_by(|a, b| a.offered_bps.total_cmp(&b.offered_bps));
        PathProfileView {
            summary: self.words(),
            capacity_bps: shape.capacity.map(|capacity| capacity.bps),
            capacity_interval_bps: shape.capacity.map(|capacity| capacity.interval_bps),
            limit: limit.map(str::to_owned),
            bucket_bytes,
            carried_bps: shape.carried_bps,
            burst_bps: shape.burst_bps,
            idle_rtt_us: shape.idle_rtt_us.map(|rtt| [rtt.min, rtt.median, rtt.p95]),
            jitter_us: shape.jitter_us,
            queue_us: shape.queue_us,
            lost_below: [shape.sent_below, shape.lost_below],
            reordered: shape.reordered,
            duplicated: shape.duplicated,
            steps,
        }
    }

    /// What it is in a few words.
    #[must_use]
    pub fn words(&self) -> String {
        let shape = &self.shape;
        match (&shape.capacity, &shape.plateau) {
            (Some(capacity), Some(plateau)) => {
                let what = match plateau {
                    Plateau::Queue => "behind a queue",
                    Plateau::Shaper { .. } => "behind a shaper",
                    Plateau::Policer { .. } => "by a policer",
                    Plateau::ShortQueue => "behind a short queue",
                };
                format!("the path sustains {} {what}", units::bps(capacity.bps))
            }
            _ => format!("the path carries at least {}", units::bps(shape.carried_bps)),
        }
    }
}

/// The profile of a round's judged flow in a few words, where it was made.
#[must_use]
pub fn of_run(run: &Run, round: u32) -> Option<String> {
    [Flow::Up, Flow::Down].into_iter().find_map(|flow| PathProfile::of(run, round, flow)).map(|profile| profile.words())
}
