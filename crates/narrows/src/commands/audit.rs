//! `narrows audit`: the parameters of both hosts side by side; no load, no change.

use crate::failure::{Failure, Outcome};
use crate::flags::{FormatArg, FullArg, WayArgs};
use crate::output::printed;
use crate::session::stop_on_interrupt;
use narrows_model::Audit;
use narrows_runner::audit;
use narrows_runner::live::LiveInstruments;

/// Put both hosts' parameters side by side and mark hazards
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("full", |it| it.help("Name every parameter that is not known, and explain every hazard")),
    after_help = "Examples:\n  narrows audit                 this host alone\n  narrows audit server --token-file token\n  \
    narrows audit server --trace                 with the MTU of each direction, and where it shrinks"
)]
pub(crate) struct Args {
    /// A name or address that runs `narrows serve`, or ssh://[user@]host[:port] (default: this host alone)
    #[arg(add = crate::flags::known::hosts())]
    host: Option<String>,
    #[command(flatten)]
    way: WayArgs,
    /// Trace the path from both ends: MTU, black holes, asymmetry (some hundred probes)
    #[arg(long, requires = "host")]
    trace: bool,
    #[command(flatten)]
    format: FormatArg<Audit>,
    #[command(flatten)]
    full: FullArg,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let instruments = LiveInstruments::All;
        let stop = self.trace.then(stop_on_interrupt).transpose()?;
        let audit = match &self.host {
            Some(host) => {
                let remote = self.way.connect(host, false, instruments)?;
                let (audit, why) = audit::both(&remote, stop.as_ref()).map_err(Failure::run)?;
                if let Some(why) = why {
                    crate::failure::note!("cannot trace the path both ways: {why}");
                }
                audit
            }
            None => audit::this_host(),
        };
        let style = self.full.style();
        printed(&self.format.write(&audit, style)?)
    }
}
