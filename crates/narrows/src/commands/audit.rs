//! `narrows audit`: the parameters of both hosts side by side; no load, no change.

use crate::failure::{Failure, Outcome};
use crate::flags::{FormatArg, FullArg, WayArgs};
use crate::output::printed;
use narrows_model::Audit;
use narrows_runner::audit;
use narrows_runner::live::LiveInstruments;

/// Put both hosts' parameters side by side and mark hazards
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("full", |it| it.help("Show every row")),
    after_help = "Examples:\n  narrows audit                 this host alone\n  narrows audit server --token-file token"
)]
pub(crate) struct Args {
    /// A name or address that runs `narrows serve`, or ssh://[user@]host[:port] (default: this host alone)
    #[arg(add = crate::flags::known::hosts())]
    host: Option<String>,
    #[command(flatten)]
    way: WayArgs,
    #[command(flatten)]
    format: FormatArg<Audit>,
    #[command(flatten)]
    full: FullArg,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let instruments = LiveInstruments { collect: true };
        let audit = match &self.host {
            Some(host) => audit::both(&self.way.connect(host, false, instruments)?).map_err(Failure::run)?,
            None => audit::this_host(),
        };
        let style = self.full.style();
        printed(&self.format.write(&audit, style)?)
    }
}
