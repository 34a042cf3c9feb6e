//! `narrows`: measures a network path between two hosts and narrows down why it is slow.
//!
//! The binary parses, calls the runner and prints; it holds no logic of its own.

// The documentation of a flag is its help text, in which brackets are brackets.
#![allow(rustdoc::broken_intra_doc_links)]

mod cli;
mod commands;
mod failure;
mod flags;
mod output;
mod progress;
mod session;
mod tui;

use std::process::ExitCode;

fn main() -> ExitCode {
    let _ = commands::GRAMMAR.set(<cli::Cli as clap::CommandFactory>::command);
    commands::completion::complete_and_exit();
    let cli = match cli::Cli::from_user(std::env::args_os()) {
        Ok(cli) => cli,
        Err(failure) => return failure.report(),
    };
    if let Some(why) = narrows_runner::state::refused() {
        return failure::Failure::usage(why).report();
    }
    let done = cli.command.run();
    if let Some(line) = narrows_runner::stored::waiting() {
        crate::failure::note!("{line}");
    }
    match done {
        Ok(code) => ExitCode::from(code),
        Err(failure) => failure.report(),
    }
}
