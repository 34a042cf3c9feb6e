//! `narrows lab`: an emulated network on this machine.

use crate::failure::{Failure, Outcome};
use super::remote::stop_on_interrupt;
use crate::output::print;
use clap::Subcommand;
use narrows_runner::{bank, demo};
use std::path::{Path, PathBuf};

/// An emulated network on this machine
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Play the story of the small receive window: three acts on 1 Gbit/s and 35 ms
    Demo {
        /// Keep the run in this file
        #[arg(long, short = 'o', value_name = "PATH")]
        output: Option<PathBuf>,
    },
    /// Run the fault bank: every injectable cause and healthy paths, judged by the injector's truth
    Bank {
        /// Only scenarios whose name contains one of these words
        #[arg(value_name = "WORD")]
        only: Vec<String>,
        /// Runs of each case
        #[arg(long, short = 'r', default_value_t = 1, value_name = "N")]
        repetitions: u32,
        /// Keep each run in this directory
        #[arg(long, value_name = "DIRECTORY")]
        keep: Option<PathBuf>,
    },
    /// Check the emulator: a table of asked against measured
    Verify,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        match self.what {
            What::Demo { output } => {
                let code = demo::play(output.as_deref(), &mut |line| anstream::eprintln!("{line}")).map_err(Failure::run)?;
                Ok(u8::try_from(code).unwrap_or(1))
            }
            What::Bank { only, repetitions, keep } => bank(&only, repetitions, keep.as_deref()),
            What::Verify => verify(),
        }
    }
}

fn bank(only: &[String], repetitions: u32, keep: Option<&Path>) -> Outcome {
    let mut cases = bank::all_cases().map_err(Failure::run)?;
    cases.retain(|case| only.is_empty() || only.iter().any(|word| case.scenario.contains(word.as_str())));
    if cases.is_empty() {
        return Err(Failure::usage("no scenario has such a name; `narrows list scenarios` shows them"));
    }
    let stop = stop_on_interrupt()?;
    let total = cases.len() * repetitions.max(1) as usize;
    let mut tally = bank::Tally::default();
    let mut done = 0;
    for repetition in 0..repetitions.max(1) {
        for case in &cases {
            if stop.is_set() {
                anstream::eprintln!("interrupted; what follows is what was run");
                print(&tally.text())?;
                return Ok(1);
            }
            done += 1;
            let file = keep.map(|directory| directory.join(format!("{}-{repetition}.run.json", case.name().replace(' ', "-"))));
            let outcome = bank::run(case, file.as_deref());
            let words = match &outcome {
                Ok(said) => said.words(),
                Err(why) => why.to_string(),
            };
            let grade = tally.add(case.clone(), outcome.ok());
            anstream::eprintln!("{done}/{total} {:<44} {grade:?}: {words}", case.name());
        }
    }
    print(&tally.text())?;
    Ok(u8::from(!tally.passes()))
}

fn verify() -> Outcome {
    let mut broken = 0;
    narrows_runner::verify_lab(|row: &narrows_runner::VerifyRow| {
        broken += u8::from(!row.kept);
        let kept = if row.kept { "kept" } else { "BROKEN" };
        let _ = print(&format!(
            "{:<52} {:>12.3} {:>12.3} {:<8} {:<22} {kept}",
            row.what, row.asked, row.measured, row.unit, row.promise
        ));
    })
    .map_err(Failure::run)?;
    Ok(u8::from(broken > 0))
}
