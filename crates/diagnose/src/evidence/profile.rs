//! What the path profile says of the path, in the terms of the rules.

use crate::experiments::profile::PATH_PROFILE;
use narrows_model::words::units;
use narrows_model::{Direction, Flow, ProfilePlan, Run};
use narrows_search::profile::{Plateau, Shape};

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
