//! The same forwarding benchmark with two configurations of the device under test, interleaved, and how they compare.

use crate::data::{ForwardingPlan, ForwardingRecord};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of the two configurations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// What is compared against.
    A,
    /// What is compared.
    B,
}

impl Side {
    /// As it is written.
    pub const fn word(self) -> &'static str {
        match self {
            Self::A => "A",
            Self::B => "B",
        }
    }
}

/// One step of switching the device to a configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum SwitchStep {
    /// Words of a command, run without a shell.
    Command {
        /// The program and its arguments.
        words: Vec<String>,
    },
    /// A fault of the lab at the device under test, put in once those of either configuration are out.
    Fault {
        /// The fault's id.
        id: String,
        /// Its value as the user writes it, empty where it has none.
        #[serde(default)]
        value: String,
    },
}

/// A configuration of the device, and how to get there from the other one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DeviceConfiguration {
    /// How reports call it: `forwarding alone`, `10,000 rules`.
    pub name: String,
    /// Made in this order; none: the device is in it once the faults of the other one are out.
    pub steps: Vec<SwitchStep>,
    /// Words of commands that take its steps back: run when it is left, and at the end however that comes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undo: Vec<Vec<String>>,
}

/// `narrows rfc2544 PLAN` with two configurations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ForwardingAb {
    /// What is measured, the same for both.
    pub plan: ForwardingPlan,
    /// What is compared against.
    pub a: DeviceConfiguration,
    /// What is compared.
    pub b: DeviceConfiguration,
    /// Runs of the plan with each configuration.
    pub runs: u32,
    /// Rest after a switch, before anything is measured.
    pub settle_ms: u64,
}

impl ForwardingAb {
    /// The fewest runs of each configuration: with fewer there is no spread worth the name.
    pub const MIN_RUNS: u32 = 3;
    /// The most.
    pub const MAX_RUNS: u32 = 200;

    /// The order of the runs: A B B A, again and again, so that a drift weighs on both alike and half the switches are saved.
    pub fn order(&self) -> Vec<Side> {
        let block = [Side::A, Side::B, Side::B, Side::A];
        let (mut order, mut left) = (Vec::new(), [self.runs, self.runs]);
        for side in block.into_iter().cycle() {
            if left == [0, 0] {
                break;
            }
            let own = &mut left[usize::from(side == Side::B)];
            if *own > 0 {
                *own -= 1;
                order.push(side);
            }
        }
        order
    }

    /// The faults of the lab that either configuration names, each once.
    pub fn faults(&self) -> Vec<&str> {
        let steps = [&self.a, &self.b].into_iter().flat_map(|configuration| &configuration.steps);
        let mut faults: Vec<&str> = steps
            .filter_map(|step| match step {
                SwitchStep::Fault { id, .. } => Some(id.as_str()),
                SwitchStep::Command { .. } => None,
            })
            .collect();
        faults.sort_unstable();
        faults.dedup();
        faults
    }

    /// A configuration.
    pub const fn configuration(&self, side: Side) -> &DeviceConfiguration {
        match side {
            Side::A => &self.a,
            Side::B => &self.b,
        }
    }
}

/// Everything that was measured with two configurations: raw, the only thing that is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbRecord {
    /// What was asked for.
    pub ab: ForwardingAb,
    /// In the order of time, the last perhaps not complete.
    pub measured: Vec<AbRunRecord>,
    /// Why it ended early, if it did.
    pub ended: Option<String>,
    /// What must be known of the device's state now: what could not be taken back.
    #[serde(default)]
    pub remarks: Vec<String>,
}

/// One run of the plan, whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbRunRecord {
    /// With which configuration.
    pub side: Side,
    /// Since the first run began.
    pub at_ms: u64,
    /// What it measured.
    pub record: ForwardingRecord,
}

/// What one run found of one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThroughputOfSize {
    /// Index into [`ForwardingPlan::traffic`].
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// The throughput by the first goal, frames a second.
    pub pps: f64,
    /// Whether the tester, the line or the plan's highest load ended the search, and not the device.
    pub at_least: bool,
}

/// One run of the plan with one configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbRun {
    /// With which.
    pub side: Side,
    /// Since the first run began.
    pub at_ms: u64,
    /// One for each row that has a result.
    pub throughputs: Vec<ThroughputOfSize>,
}

/// A difference of means, B less A, with its interval at 95 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Frames a second.
    pub pps: f64,
    /// Half the width of its interval.
    pub half_pps: f64,
    /// In parts of A's mean: 0.1 is 10 %.
    pub ratio: f64,
    /// Half the width of that.
    pub half_ratio: f64,
    /// Degrees of freedom.
    pub df: f64,
}

impl Difference {
    /// Whether the interval leaves zero out.
    pub fn is_proven(&self) -> bool {
        self.pps.abs() > self.half_pps
    }
}

/// How the configurations compare in one row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AbRow {
    /// Index into [`ForwardingPlan::traffic`].
    pub traffic: usize,
    /// Frame size with FCS; `None`: the mix.
    pub size: Option<u32>,
    /// Throughputs of the runs with A, in the order of time.
    pub a_pps: Vec<f64>,
    /// And with B.
    pub b_pps: Vec<f64>,
    /// As ministat has it: Student's t with a pooled deviation, which takes both to vary alike.
    pub pooled: Option<Difference>,
    /// The pooled deviation, frames a second.
    pub pooled_s: Option<f64>,
    /// Welch's, which does not: the one to go by.
    pub welch: Option<Difference>,
    /// What it comes to, in a sentence.
    pub says: String,
    /// What must be known of it: results that are only *at least*, a drift over the runs.
    pub remarks: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::plan;

    fn ab(runs: u32) -> ForwardingAb {
        let configuration =
            |name: &str| DeviceConfiguration { name: name.to_owned(), steps: Vec::new(), undo: Vec::new() };
        ForwardingAb { plan: plan(), a: configuration("plain"), b: configuration("rules"), runs, settle_ms: 0 }
    }

    #[test]
    fn faults_are_told_once() {
        let mut both = ab(3);
        let fault = |id: &str| SwitchStep::Fault { id: id.to_owned(), value: String::new() };
        both.a.steps = vec![fault("forward-rules"), SwitchStep::Command { words: vec!["true".to_owned()] }];
        both.b.steps = vec![fault("forward-rules"), fault("flowtable")];
        assert_eq!(both.faults(), ["flowtable", "forward-rules"]);
    }

    #[test]
    fn runs_come_as_abba_and_are_as_many_of_each() {
        use Side::{A, B};
        assert_eq!(ab(3).order(), [A, B, B, A, A, B]);
        assert_eq!(ab(4).order(), [A, B, B, A, A, B, B, A]);
        for runs in 0..20 {
            let order = ab(runs).order();
            let of = |side| order.iter().filter(|&&one| one == side).count();
            assert_eq!((of(A), of(B)), (runs as usize, runs as usize));
        }
    }
}
