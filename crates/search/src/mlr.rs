//! Multiple loss ratio search (draft-ietf-bmwg-mlrsearch-15): chooses load, goal and duration of the next trial.
//!
//! Each goal passes through its targets, coarse ones with few short trials first. The goal with the lowest target comes
//! first, so that all of them tighten together, and every trial counts for every goal. Within a target: the ends of the
//! interval that the previous target found are confirmed, or its middle is tried at once if the interval is narrow enough; a
//! missing bound is approached in growing steps; between two bounds the interval is split. A load is measured until it is
//! decided.
//!
//! Where a profile saw the capacity, the search begins just above it: what one short trial lets through there tells where the
//! limit of each goal is expected, and the loads half a width below and above are confirmed. A wrong hint costs time only: a first
//! trial that passes is repeated at twice the load, and bounds that do not hold are moved as in any other search. Where no profile saw the capacity, a
//! trial somewhat above the bounds of the short trials is the second witness.

use crate::bounds::{Bounds, History};
use crate::classify::Class;
use crate::goal::{Agreed, Target};
use crate::strategy::{Probe, Strategy};
use narrows_model::run::search::{Goal, GoalBounds, SearchPlan};

/// How often a goal may estimate its load from the throughput at a higher one. The first estimate gives one bound, the
/// second the other; the third is for a device that forwards less under overload.
const ESTIMATES: u8 = 3;

/// Packets of the first trial.
const LOOK_PACKETS: f64 = 2_000.0;
/// No load is shorter.
const LEAST_MS: u64 = 10;

#[derive(Debug)]
pub struct Mlr {
    pursuits: Vec<Pursuit>,
    fail_fast: bool,
    look: Option<Look>,
    /// A load above the bounds, which is to say what passes, is still to be tried.
    lacks_witness: bool,
}

/// The trial above the capacity that a profile saw, of the initial length at most.
#[derive(Debug)]
struct Look {
    load: f64,
    trial_ms: u64,
    /// The most that a goal tolerates.
    loss_ratio: f64,
    max: f64,
}

impl Look {
    fn of(plan: &SearchPlan) -> Option<Self> {
        let initial_ms = plan.goals.iter().map(|goal| goal.initial_trial_ms).min()?;
        let loss_ratio = plan.goals.iter().map(|goal| goal.loss_ratio).fold(0.0, f64::max);
        let load = plan.hint?.range(loss_ratio, initial_ms)[1].clamp(plan.min_load_pps, plan.max_load_pps);
        // Half as long where it still has packets enough that one of them is little of a width.
        let trial_ms =
            ((LOOK_PACKETS * 1e3 / load) as u64).max(initial_ms / 2).clamp(LEAST_MS.min(initial_ms), initial_ms);
        Some(Self { load, trial_ms, loss_ratio, max: plan.max_load_pps })
    }

    /// The next such trial; `None` once one lost more, or could not be made.
    fn next(&mut self, history: &History) -> Option<Probe> {
        if history.within(self.loss_ratio, self.load) {
            self.load = (2.0 * self.load).min(self.max);
        }
        (!history.tried(self.load)).then_some(Probe { load_pps: self.load, duration_ms: self.trial_ms })
    }
}

/// Which bound moved last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Lower,
    Upper,
}

/// The search for one goal.
#[derive(Debug)]
struct Pursuit {
    name: String,
    targets: Vec<Target>,
    level: usize,
    /// The interval of the previous target: to be confirmed, not trusted.
    hints: Bounds,
    /// The load being measured.
    pending: Option<f64>,
    /// The next step beyond the bounds, as a logarithm.
    step: f64,
    moved: Side,
    estimates: u8,
    expansion: f64,
    min: f64,
    max: f64,
    /// A shorter sum that decides where a second witness agrees.
    agreed: Option<Agreed>,
    /// The load of the trial above the capacity that the profile saw, and the queue that it saw.
    looked: Option<f64>,
    buffer_ms: f64,
}

impl Mlr {
    /// All goals of a plan.
    pub fn new(plan: &SearchPlan) -> Self {
        let pursuits = plan.goals.iter().map(|goal| Pursuit::new(plan, goal)).collect();
        Self {
            pursuits,
            fail_fast: plan.fail_fast,
            look: Look::of(plan),
            lacks_witness: plan.agreed_sum_ms.is_some() && plan.hint.is_none_or(|hint| hint.agreed_sum_ms.is_none()),
        }
    }
}

impl Mlr {
    /// A trial two widths above all bounds, unless one was made between that and the double.
    fn witness(&self, history: &History) -> Option<Probe> {
        let upper = self.pursuits.iter().filter_map(|pursuit| pursuit.hints.upper).reduce(f64::max)?;
        let first = self.pursuits.first()?;
        let (width, max) = (first.last().log_width.exp(), first.max);
        let load_pps = (upper * width * width).min(max);
        let tried = history.tried_between(upper * width, 2.0 * upper);
        let useful = load_pps >= upper * width && !history.blocked(upper) && !history.blocked(load_pps);
        (!tried && useful).then_some(Probe { load_pps, duration_ms: first.last().trial_ms })
    }
}

impl Strategy for Mlr {
    fn propose(&mut self, history: &History) -> Option<Probe> {
        if let Some(look) = &mut self.look {
            if let Some(probe) = look.next(history) {
                return Some(probe);
            }
            for pursuit in &mut self.pursuits {
                pursuit.looked = Some(look.load);
            }
            self.look = None;
        }
        for pursuit in &mut self.pursuits {
            pursuit.advance(history);
        }
        if self.fail_fast && self.pursuits.iter().any(|pursuit| pursuit.fails(history)) {
            return None;
        }
        if self.lacks_witness && self.pursuits.iter().all(|pursuit| pursuit.level > 0) {
            if let Some(probe) = self.witness(history) {
                return Some(probe);
            }
            self.lacks_witness = false;
        }
        let open = self.pursuits.iter_mut().filter(|pursuit| !pursuit.settled(history));
        let pursuit = open.min_by_key(|pursuit| pursuit.level)?;
        let load_pps = pursuit.load(history);
        Some(Probe { load_pps, duration_ms: pursuit.target().trial_ms })
    }

    fn bounds(&self, history: &History) -> Vec<GoalBounds> {
        self.pursuits.iter().map(|pursuit| pursuit.standing(history)).collect()
    }
}

impl Pursuit {
    fn new(plan: &SearchPlan, goal: &Goal) -> Self {
        let targets = Target::chain(plan, goal);
        Self {
            name: goal.name.clone(),
            level: 0,
            hints: Bounds::default(),
            pending: None,
            step: targets[0].step(),
            moved: Side::Lower,
            estimates: ESTIMATES,
            expansion: plan.expansion,
            min: plan.min_load_pps,
            max: plan.max_load_pps,
            agreed: Agreed::of(plan, goal),
            looked: None,
            buffer_ms: plan.hint.map_or(0.0, |hint| hint.buffer_us / 1e3),
            targets,
        }
    }

    fn target(&self) -> Target {
        self.targets[self.level]
    }

    fn last(&self) -> Target {
        self.targets[self.targets.len() - 1]
    }

    fn settled(&self, history: &History) -> bool {
        self.agrees(history) || history.bounds(&self.last()).settled(&self.last(), self.min, self.max)
    }

    /// Whether the target before the last one decides, since a second witness agrees.
    fn agrees(&self, history: &History) -> bool {
        self.agreed.is_some_and(|agreed| history.agreed(&agreed, self.min, self.max).is_some())
    }

    fn fails(&self, history: &History) -> bool {
        history.bounds(&self.last()).upper.is_some_and(|upper| upper <= self.min)
    }

    /// Advances to the next target if this one is reached. It never goes back: later findings would send an earlier
    /// target after loads that only short trials pass.
    fn advance(&mut self, history: &History) {
        while self.level + 1 < self.targets.len() && !self.agrees(history) {
            let bounds = history.bounds(&self.target());
            if !bounds.settled(&self.target(), self.min, self.max) {
                return;
            }
            self.hints = bounds;
            self.level += 1;
            self.step = self.target().step();
            self.pending = None;
        }
    }

    /// The load to measure next.
    fn load(&mut self, history: &History) -> f64 {
        let target = self.target();
        let bounds = history.bounds(&target);
        if let Some(load) = self.pending {
            let between =
                bounds.lower.is_none_or(|lower| lower < load) && bounds.upper.is_none_or(|upper| load < upper);
            let wasted = bounds == Bounds::default() && self.estimates > 0 && history.far_above(load);
            if between && history.class(&target, load) == Class::Undecided && !wasted {
                return load;
            }
            if bounds.lower == self.pending {
                self.moved = Side::Lower;
            } else if bounds.upper == self.pending {
                self.moved = Side::Upper;
            }
        }
        let load = self.choose(history, &target, bounds);
        self.pending = Some(load);
        load
    }

    fn choose(&mut self, history: &History, target: &Target, bounds: Bounds) -> f64 {
        let within =
            |load: f64| bounds.lower.is_none_or(|lower| lower < load) && bounds.upper.is_none_or(|upper| load < upper);
        let low_hint = self.hints.lower.filter(|load| within(*load));
        let high_hint = self.hints.upper.filter(|load| within(*load));
        match (bounds.lower, bounds.upper) {
            (None, None) => match (low_hint, high_hint) {
                (Some(low), Some(high)) if !target.narrow(low, high) && target.widths(low, high) <= 2.1 => {
                    target.rounded(target.split(low, high), low, high)
                }
                (Some(load), _) | (None, Some(load)) => load,
                (None, None) => {
                    let looked = self.looked.filter(|load| !history.within(0.0, *load));
                    let from = looked.unwrap_or(self.max);
                    let known = looked.is_some() || history.far_above(from);
                    known.then(|| self.estimate(history, target, None, from)).flatten().unwrap_or(from)
                }
            },
            (Some(lower), None) => high_hint.unwrap_or_else(|| self.up(target, lower)),
            (None, Some(upper)) => low_hint
                .or_else(|| self.estimate(history, target, None, upper))
                .unwrap_or_else(|| self.down(target, upper)),
            (Some(lower), Some(upper)) => high_hint
                .filter(|high| target.narrow(lower, *high))
                .or_else(|| low_hint.filter(|low| target.narrow(*low, upper)))
                .or_else(|| self.estimate(history, target, Some(lower), upper))
                .unwrap_or_else(|| self.inside(target, lower, upper)),
        }
    }

    /// A step up beyond the bounds; the highest load if it would come close to it.
    fn up(&mut self, target: &Target, lower: f64) -> f64 {
        let load = lower * self.grown_step().exp();
        if target.narrow(load, self.max) { self.max } else { target.rounded(load, lower, self.max) }
    }

    /// A step down beyond the bounds; the lowest load if it would come close to it.
    fn down(&mut self, target: &Target, upper: f64) -> f64 {
        let load = upper * (-self.grown_step()).exp();
        if target.narrow(self.min, load) { self.min } else { target.rounded(load, self.min, upper) }
    }

    /// Between two bounds: a step from the one that moved last, while steps are small compared with the interval,
    /// since the truth is more likely near the last measurement; then a split.
    fn inside(&mut self, target: &Target, lower: f64, upper: f64) -> f64 {
        let distance = (upper / lower).ln();
        let load = if self.step < distance / 2.0 {
            let step = self.grown_step();
            match self.moved {
                Side::Lower => lower * step.exp(),
                Side::Upper => upper * (-step).exp(),
            }
        } else {
            target.split(lower, upper)
        };
        target.rounded(load, lower, upper)
    }

    fn grown_step(&mut self) -> f64 {
        let step = self.step;
        // A step across the whole range is as good as any longer one.
        self.step = (step * self.expansion).min((self.max / self.min).ln());
        step
    }

    /// A load half a width from the throughput at the upper bound: below it first, then above it.
    fn estimate(&mut self, history: &History, target: &Target, lower: Option<f64>, upper: f64) -> Option<f64> {
        if self.estimates == 0 || self.level > 0 {
            return None;
        }
        let passed = history.estimate(target, upper, self.buffer_ms)?;
        let floor = lower.unwrap_or(self.min);
        let (width, half) = (target.step().exp(), (target.step() / 2.0).exp());
        let below = (floor < passed / width).then_some(passed / half);
        // Not further from the lower bound than the width, if that leaves a margin.
        let near = (floor * width).max(passed * (target.step() / 4.0).exp());
        let above = || (passed * width < upper).then_some(near.min(passed * half));
        let load = below.or_else(above).filter(|load| floor < *load && *load < upper)?;
        self.estimates -= 1;
        Some(target.rounded(load, floor, upper))
    }

    /// The bounds of the current target; those of the previous target where it has none yet.
    fn standing(&self, history: &History) -> GoalBounds {
        let settled = self.settled(history);
        let last = self.targets.len() - 1;
        let level = match (settled, self.agrees(history)) {
            (true, true) => last - 1,
            (true, false) => last,
            (false, _) => self.level,
        };
        let bounds = history.bounds(&self.targets[level]);
        let hints = if settled { Bounds::default() } else { self.hints };
        let above = |load: &f64| bounds.lower.is_none_or(|lower| lower < *load);
        let upper = bounds.upper.or_else(|| hints.upper.filter(above));
        let below = |load: &f64| upper.is_none_or(|upper| *load < upper);
        let number = |index: usize| u32::try_from(index).unwrap_or(u32::MAX);
        GoalBounds {
            goal: self.name.clone(),
            lower_pps: bounds.lower.or_else(|| hints.lower.filter(below)),
            upper_pps: upper,
            target: number(level + 1),
            targets: number(self.targets.len()),
            settled,
        }
    }
}
