//! `narrows tune`: changes of this host and their undo.

use crate::failure::{Failure, Outcome};
use crate::output::{print, printed};
use crate::session::tuner;
use clap::Subcommand;
use narrows_model::{Change, Place, Setting};
use narrows_runner::tune::{NotTogether, TuneError, Tuner, Undoing, before};

/// Show, make and undo changes of this host
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  narrows tune list\n  narrows tune apply net.ipv4.tcp_rmem='4096 131072 33554432'\n  narrows tune undo all"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// The changes that are in force, oldest first
    List,
    /// Set kernel parameters, all of them or none; the old values are written down first
    Apply {
        /// KEY=VALUE, such as net.ipv4.tcp_wmem='4096 16384 33554432'
        #[arg(required = true, value_name = "KEY=VALUE")]
        settings: Vec<String>,
    },
    /// Set changes back
    Undo {
        /// The id of a change, or `all`
        #[arg(value_name = "ID|all")]
        which: String,
    },
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let tuner = tuner("tune")?;
        match self.what {
            What::List => list(&tuner),
            What::Apply { settings } => apply(&tuner, &settings),
            What::Undo { which } if which == "all" => {
                let unreadable = tuner.unreadable().map_err(Failure::run)?;
                let code = print_undone(tuner.undo_all().map_err(Failure::run)?, "nothing is changed on this host")?;
                for error in &unreadable {
                    print(&error.to_string())?;
                }
                Ok(if unreadable.is_empty() { code } else { 1 })
            }
            What::Undo { which } => {
                let undone = tuner.undo(&which).map_err(Failure::run)?;
                printed(&format!("{which}: {undone}"))
            }
        }
    }
}

fn print_change(change: &Change) -> Result<(), Failure> {
    print(&format!("{}  {}  (before: {})", change.id, change.set, before(change)))
}

fn list(tuner: &Tuner) -> Outcome {
    let entries = tuner.list().map_err(Failure::run)?;
    let unreadable = tuner.unreadable().map_err(Failure::run)?;
    if entries.is_empty() && unreadable.is_empty() {
        print("nothing is changed on this host")?;
    }
    for error in unreadable {
        print(&error.to_string())?;
    }
    for entry in entries {
        print_change(&entry.change)?;
    }
    Ok(0)
}

fn apply(tuner: &Tuner, words: &[String]) -> Outcome {
    let settings: Vec<Setting> = words
        .iter()
        .map(|word| match word.split_once('=') {
            Some((key, value)) if !key.is_empty() => {
                Ok(Setting::Sysctl { key: key.trim().into(), value: value.trim().into() })
            }
            _ => Err(Failure::usage(format!("`{word}` is no setting; write it like net.ipv4.tcp_sack=1"))),
        })
        .collect::<Result<_, _>>()?;
    for change in tuner.apply_together(&settings, Place::Client).map_err(refused)? {
        print_change(&change)?;
    }
    Ok(0)
}

/// What the user asked for is not settable, or this host did not take it.
fn refused(error: NotTogether) -> Failure {
    match *error.why {
        TuneError::NotInTable { .. } | TuneError::BadValue { .. } => Failure::usage(error),
        _ => Failure::run(error),
    }
}

/// Prints the outcome of each undo, or `nothing` where there was none.
pub(super) fn print_undone(undone: Vec<Undoing>, nothing: &str) -> Outcome {
    if undone.is_empty() {
        print(nothing)?;
    }
    let mut code = 0;
    for undoing in undone {
        let line = match &undoing.outcome {
            Ok(undone) => format!("{}: {undone}", undoing.entry.change.set),
            Err(why) => {
                code = 1;
                format!("{}: not undone: {why}", undoing.entry.change.set)
            }
        };
        print(&line)?;
    }
    Ok(code)
}
