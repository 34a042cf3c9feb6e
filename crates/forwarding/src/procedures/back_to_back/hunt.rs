//! The longest burst without loss of one repetition: which length next, and when it is found.

/// Trials that must agree about a length.
pub(super) const VOTES: u8 = 2;
/// `(upper − lower) ÷ upper` that is near enough.
const WIDTH: f64 = 0.01;
/// The largest step into the unknown.
pub(super) const STEP_MOST: f64 = 4.0;
/// How often the upper bound may turn out to pass when it is asked once more, in one repetition.
pub(super) const CHECKS: u8 = 2;
/// The first step away from what an earlier repetition found.
pub(super) const STEP_AGAIN: f64 = 1.02;

/// The burst lengths of one repetition.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hunt {
    /// The longest that passes.
    pub(super) lower: u64,
    /// The shortest that fails.
    upper: Option<u64>,
    pub(super) at: u64,
    step: f64,
    pub(super) passes: u8,
    pub(super) fails: u8,
    pub(super) invalid: u32,
    /// Valid ones, over all lengths.
    pub(super) trials: u32,
    /// Whether the upper bound is asked once more.
    checking: bool,
    /// How often it may still turn out to pass.
    checks: u8,
}

impl Hunt {
    pub(super) const fn from(at: u64, step: f64) -> Self {
        Self {
            lower: 0,
            upper: None,
            at,
            step,
            passes: 0,
            fails: 0,
            invalid: 0,
            trials: 0,
            checking: false,
            checks: CHECKS,
        }
    }

    pub(super) const fn decided(&self) -> bool {
        self.passes >= VOTES || self.fails >= VOTES
    }

    /// Whether the bounds are near enough.
    fn is_near(&self) -> bool {
        self.upper.is_some_and(|upper| {
            upper - self.lower <= 1 || self.lower > 0 && (upper - self.lower) as f64 <= WIDTH * upper as f64
        })
    }

    /// Goes on to the next length; `false` where there is none.
    pub(super) fn advance(&mut self, most: u64) -> bool {
        let failed = self.fails >= VOTES;
        (self.passes, self.fails, self.invalid) = (0, 0, 0);
        match (self.checking, failed) {
            (true, true) => return false,
            (true, false) => {
                // What failed was a hiccup: on from there.
                (self.lower, self.upper, self.step, self.checking) = (self.at, None, STEP_AGAIN, false);
                self.checks -= 1;
            }
            (false, true) => self.upper = Some(self.at),
            (false, false) => self.lower = self.at,
        }
        if self.lower >= most {
            return false;
        }
        if let Some(upper) = self.upper.filter(|_| self.is_near()) {
            self.checking = self.checks > 0;
            self.at = upper;
            return self.checking;
        }
        // Frames up to the plan's limit, far below 2^53.
        let scaled = |by: f64| (self.at as f64 * by).round() as u64;
        self.at = match self.upper {
            None => scaled(self.step).max(self.at + 1).min(most),
            Some(upper) if self.lower == 0 => scaled(1.0 / self.step).min(upper - 1).max(1),
            Some(upper) => self.lower.midpoint(upper),
        };
        self.step = (self.step * self.step).min(STEP_MOST);
        true
    }
}
