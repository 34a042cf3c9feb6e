//! The commands, one line each.

use crate::commands;
use crate::failure::{Failure, Outcome};
use crate::flags::habits::{self, Meant};
use crate::flags::old;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use std::ffi::OsString;

/// Find out what limits a network path between two hosts, and prove the fix.
#[derive(Debug, Parser)]
#[command(
    name = "narrows",
    version,
    propagate_version = true,
    disable_help_subcommand = true,
    max_term_width = 80,
    after_help = "Rates: 100M, 9.4G (bit/s, powers of ten). Sizes: 64, 9k, 4M (bytes, powers of two). Durations: 10s, \
        250ms.\n\
                  Shares: 1% or 0.01; a flag with the value PERCENT takes 1 or 1%.\n\
                  Exit codes: 0 done, or the verdict is healthy, suspected or unknown; 1 the run failed; 2 usage \
                  error; 3 limiting cause found (--exit-zero: 0); 130 interrupted.\n\
                  Results go to stdout, progress to stderr."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// What the user means, in today's words, in those of before, or in those of iperf3.
    pub(crate) fn from_user(arguments: impl Iterator<Item = OsString>) -> Result<Self, Failure> {
        match habits::meant(old::respelled(arguments), habits::is_host::<Self>) {
            Meant::Say(form) => Err(Failure::usage(format!("this is the form of iperf3; narrows does it by: {form}"))),
            Meant::This(arguments) => Self::parsed(arguments).or_else(|error| match habits::answer(&error) {
                Some(answer) => Err(Failure::usage(answer)),
                None => habits::without_value_tip(error).exit(),
            }),
        }
    }

    /// A negative number behind a flag is its value, which the flag's own parser refuses in its own words.
    pub(crate) fn parsed(arguments: Vec<OsString>) -> Result<Self, clap::Error> {
        fn lenient(command: clap::Command) -> clap::Command {
            let takes = |arg: &clap::Arg| arg.get_action().takes_values() && !arg.is_positional();
            let command = command.mut_args(|arg| if takes(&arg) { arg.allow_negative_numbers(true) } else { arg });
            command.mut_subcommands(lenient)
        }
        let mut command = lenient(Self::command());
        let mut matches = command.try_get_matches_from_mut(arguments)?;
        Self::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
    }
}

macro_rules! commands {
    ($($(#[$meta:meta])* $name:ident($args:ty) $(if $feature:literal)?),* $(,)?) => {
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($(#[$meta])* $(#[cfg(feature = $feature)])? $name(Box<$args>),)*
        }

        impl Command {
            pub(crate) fn run(self) -> Outcome {
                match self {
                    $($(#[cfg(feature = $feature)])? Self::$name(args) => args.run(),)*
                }
            }
        }
    };
}

commands! {
    /// Find what limits the path to HOST, with evidence and a fix
    Diagnose(commands::diagnose::Args),
    /// Run the measurement server
    Serve(commands::serve::Args),
    /// Compare both hosts' settings and mark hazards; no load, no change
    Audit(commands::audit::Args),
    /// Load the paths between many hosts and name what is slow
    Mesh(commands::mesh::Args),
    /// Test many hosts again and again
    Fleet(commands::fleet::Args),
    /// Measure TCP, UDP, or requests and responses
    Measure(commands::measure::Args),
    /// Search for the highest UDP rate within a loss goal
    Search(commands::search::Args),
    /// Send raw frames in many flows, up to line rate
    Generate(commands::generate::Args),
    /// Count the frames that `narrows generate` sends
    Receive(commands::receive::Args),
    /// Benchmark a device under test (RFC 2544 and successors)
    Rfc2544(commands::rfc2544::Args) if "forwarding",
    /// Measure a table over sizes, protocols and directions
    Sweep(commands::sweep::Args),
    /// Measure the effect of settings in randomised blocks
    Campaign(commands::campaign::Args),
    /// Find the shortest set of settings that gives the goodput
    Optimise(commands::optimise::Args),
    /// Show live interface traffic of both ends
    Watch(commands::watch::Args),
    /// Show what limits each TCP connection of this host now; no load
    Connections(commands::connections::Args),
    /// Trace the path to any host: hops, loss, MTU, filters, ECMP
    Trace(commands::trace::Args),
    /// Show a stored run, diagnosed with the rules of this version
    Report(commands::report::Args),
    /// List stored runs, and figures over time with change points
    History(commands::history::Args),
    /// Compare samples of runs or of numbers with statistics
    Compare(commands::compare::Args),
    /// Import, export, prune and check the store of runs
    Store(commands::store::Args),
    /// Store the token of a server once
    Trust(commands::trust::Args),
    /// Capture this host's settings and counters for offline analysis
    Snapshot(commands::snapshot::Args),
    /// List, apply and undo changes on this host
    Tune(commands::tune::Args),
    /// An emulated network on this machine
    Lab(commands::lab::Args),
    /// Serve assistants (Model Context Protocol)
    Mcp(commands::mcp::Args),
    /// Calculate how many frames and how much payload a line carries
    LineRate(commands::line_rate::Args),
    /// List causes, experiments, collectors, faults or scenarios
    List(commands::list::Args),
    /// A member of a mesh, which `narrows mesh` starts
    #[command(hide = true)]
    MeshMember(commands::mesh::Member),
    /// A helper of `narrows serve`, which starts it
    #[command(hide = true)]
    Helper(commands::helper::Args),
    /// Print the completion script of a shell
    #[command(hide = true)]
    Completion(commands::completion::Args),
    /// Write the manual pages into a directory
    #[command(hide = true)]
    Man(commands::man::Args),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_of_every_command_hold_together() {
        Cli::command().debug_assert();
    }
}
