//! `narrows completion`: what a shell reads to complete the words of narrows. It asks the program itself at each Tab
//! ([`complete_and_exit`]), so it also knows causes, kept runs and hosts.

use super::GRAMMAR;
use crate::failure::{Failure, Outcome};
use crate::output::printed;
use clap::ValueEnum;
use clap_complete::CompleteEnv;
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};

/// Tells the program that a shell asks for completions.
const VARIABLE: &str = "NARROWS_COMPLETE";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// Print the completion script of a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: narrows completion bash > ~/.local/share/bash-completion/completions/narrows")]
pub(crate) struct Args {
    /// Shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let shell: &dyn EnvCompleter = match self.shell {
            Shell::Bash => &Bash,
            Shell::Zsh => &Zsh,
            Shell::Fish => &Fish,
        };
        let mut script = Vec::new();
        shell
            .write_registration(VARIABLE, "narrows", "narrows", "narrows", &mut script)
            .map_err(|error| Failure::run(format!("cannot write the script: {error}")))?;
        printed(String::from_utf8_lossy(&script).trim())
    }
}

/// Answers a shell that asks for completions, and ends the program; otherwise does nothing.
pub(crate) fn complete_and_exit() {
    CompleteEnv::with_factory(|| GRAMMAR.get().map_or_else(clap::Command::default, |of| of())).var(VARIABLE).complete();
}
