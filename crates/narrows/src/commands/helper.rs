//! `narrows helper`: the part of `narrows serve` that keeps privileges. `narrows serve` starts it; nobody else can use it.

use crate::failure::{Failure, Outcome};
use narrows_runner::helper::{self, Role};

/// A helper of `narrows serve`, which starts it
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What it does: tune or watch
    #[arg(value_name = "ROLE")]
    role: String,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let role = Role::of(&self.role).ok_or_else(|| Failure::usage("`narrows serve` starts its helpers itself"))?;
        helper::run(role).map_err(Failure::run)?;
        Ok(0)
    }
}
