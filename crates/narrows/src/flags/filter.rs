//! Which runs of the store are meant, and the confirmation of what cannot be undone.

use super::{known, values};
use crate::failure::Failure;
use clap::Args;
use narrows_runner::stored::{Filter, maintenance};
use std::io::{BufRead as _, IsTerminal as _};
use std::time::Duration;

/// Runs of the store. All of the given flags must match.
#[derive(Debug, Args)]
#[command(next_help_heading = "Filter")]
pub(crate) struct FilterArgs {
    /// Client or server, by name
    #[arg(long, value_name = "HOST", add = known::hosts())]
    host: Option<String>,
    /// Runs that are not older than this (12h, 7d, 8w)
    #[arg(long, value_name = "TIME", value_parser = values::age)]
    since: Option<Duration>,
    /// Tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Verdict (limited, healthy, …) or cause
    #[arg(long, value_name = "VERDICT")]
    verdict: Option<String>,
    /// Command (diagnose, measure, `measure tcp`, …)
    #[arg(long, value_name = "COMMAND")]
    command: Option<String>,
}

impl FilterArgs {
    pub(crate) fn filter(&self) -> Result<Filter, Failure> {
        let (host, tag) = (self.host.clone(), self.tag.clone());
        if let Some(empty) = [&host, &tag, &self.verdict, &self.command].into_iter().flatten().find(|it| it.is_empty())
        {
            return Err(Failure::usage(format!("invalid filter `{empty}`: it is empty")));
        }
        let since_unix_us = self.since.map(maintenance::ago);
        let (verdict, command) = (self.verdict.clone(), self.command.clone());
        Ok(Filter { host, since_unix_us, tag, verdict, command, ..Filter::default() })
    }
}

/// Asks on the terminal, unless the user said yes already.
pub(crate) fn confirmed(yes: bool, what: &str) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        return Err(Failure::usage(format!(
            "cannot {what} without confirmation: standard input is no terminal; give --yes"
        )));
    }
    eprint!("{what}? [y/N] ");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    match read.map(|_| answer.trim().to_lowercase()) {
        Ok(word) if word == "y" || word == "yes" => Ok(()),
        _ => Err(Failure::run("nothing was deleted")),
    }
}
