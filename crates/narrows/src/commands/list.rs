//! `narrows list`: the tables of causes, experiments, collectors, faults, kernel parameters and scenarios.

use crate::failure::Outcome;
use crate::output::printed;
use clap::ValueEnum;
use narrows_runner::known;

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// What the diagnosis can name
    Causes,
    /// What separates two hypotheses
    Experiments,
    /// What reads a host
    Collectors,
    /// What the lab can do to a host or a path
    Faults,
    /// The kernel parameters that `narrows tune apply` sets
    Parameters,
    /// The named scenarios of `narrows lab scenarios`
    Scenarios,
}

/// List what narrows knows
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which table
    #[arg(value_enum)]
    what: What,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let rows = match self.what {
            What::Causes => known::causes(),
            What::Experiments => known::experiments(),
            What::Collectors => known::collectors(),
            What::Faults => known::faults(),
            What::Parameters => known::parameters(),
            What::Scenarios => known::scenarios(),
        };
        let wide = rows.iter().map(|(id, _)| id.len()).max().unwrap_or(0);
        let lines: Vec<String> = rows.iter().map(|(id, about)| format!("{id:<wide$}  {about}")).collect();
        printed(&lines.join("\n"))
    }
}
