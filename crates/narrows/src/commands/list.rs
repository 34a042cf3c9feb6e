//! `narrows list`: the tables of causes, experiments, collectors, faults, kernel parameters and scenarios.

use crate::failure::Outcome;
use crate::output::printed;
use clap::ValueEnum;
use narrows_runner::known;

#[derive(Debug, Clone, Copy, ValueEnum)]
enum What {
    /// Causes that the diagnosis can name
    Causes,
    /// Experiments that separate two causes
    Experiments,
    /// Collectors of host facts
    Collectors,
    /// Faults that the lab can inject
    Faults,
    /// Kernel parameters that `narrows tune apply` sets
    Parameters,
    /// Scenarios of `narrows lab scenarios`
    Scenarios,
}

/// List what narrows knows
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Table to print
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
