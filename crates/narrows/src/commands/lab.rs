//! `narrows lab`: an emulated network on this machine.

use crate::failure::{Failure, Outcome};
use clap::Subcommand;
use narrows_runner::demo;
use std::path::PathBuf;

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
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        match self.what {
            What::Demo { output } => {
                let code = demo::play(output.as_deref(), &mut |line| anstream::eprintln!("{line}")).map_err(Failure::run)?;
                Ok(u8::try_from(code).unwrap_or(1))
            }
        }
    }
}
