//! The commands, one line each.

use crate::commands;
use crate::failure::Outcome;
use clap::{Parser, Subcommand};

/// Measures a network path between two hosts and narrows down why it is slow.
#[derive(Debug, Parser)]
#[command(
    name = "narrows",
    version,
    propagate_version = true,
    disable_help_subcommand = true,
    after_help = "Rates: 100M, 9.4G (powers of ten, bit/s). Sizes: 64, 9k, 4M (powers of two, bytes). Durations: 10s, 250ms.\n\
                  Shares: 1%; a number without the sign is a ratio, or a percentage where the flag says PERCENT.\n\
                  Exit codes: 0 healthy or done, 1 the run failed, 2 usage, 3 a limiting cause was found (--exit-zero turns that off).\n\
                  Results go to stdout, progress to stderr."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

macro_rules! commands {
    ($($(#[$meta:meta])* $name:ident($args:ty)),* $(,)?) => {
        #[derive(Debug, Subcommand)]
        pub(crate) enum Command {
            $($(#[$meta])* $name(Box<$args>),)*
        }

        impl Command {
            pub(crate) fn run(self) -> Outcome {
                match self {
                    $(Self::$name(args) => args.run(),)*
                }
            }
        }
    };
}

commands! {
    /// Name what limits the path to HOST, with evidence, and the fix
    Diagnose(commands::diagnose::Args),
    /// Be the other end of measurements
    Serve(commands::serve::Args),
    /// Put both hosts' parameters side by side and mark hazards; no load, no change
    Audit(commands::audit::Args),
    /// Make one plain measurement
    Measure(commands::measure::Args),
    /// Search the highest rate of UDP within a loss goal
    Search(commands::search::Args),
    /// Send raw frames in many flows, up to line rate
    Generate(commands::generate::Args),
    /// Count the frames of a generator
    Receive(commands::receive::Args),
    /// Benchmark a device under test by RFC 2544 and its successors
    Rfc2544(commands::rfc2544::Args),
    /// Measure a table over sizes, protocols and directions
    Sweep(commands::sweep::Args),
    /// Watch the traffic of both ends' interfaces
    Watch(commands::watch::Args),
    /// Render a stored run again, and diagnose it again by today's rules
    Report(commands::report::Args),
    /// Write a capture of this host that the tests can read back
    Snapshot(commands::snapshot::Args),
    /// Show, make and undo changes of this host
    Tune(commands::tune::Args),
    /// An emulated network on this machine
    Lab(commands::lab::Args),
    /// Tell how many frames a line carries
    LineRate(commands::line_rate::Args),
    /// List what narrows knows: causes, experiments, collectors, faults, scenarios
    List(commands::list::Args),
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
    use clap::CommandFactory as _;

    #[test]
    fn the_flags_of_every_command_hold_together() {
        Cli::command().debug_assert();
    }
}
