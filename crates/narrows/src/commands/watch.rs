//! `narrows watch`: live counters of the interfaces of both ends.

use crate::failure::{Failure, Outcome};
use crate::flags::{FormatArg, FullArg, IntervalArg, TuiArg, WayArgs};
use crate::output::write;
use crate::session::stop_on_interrupt;
use crate::tui::Tui;
use narrows_model::WatchView;
use narrows_render::Document as _;
use narrows_render::live::watch::WatchLive;
use narrows_runner::live::LiveInstruments;
use narrows_runner::remote::Remote;
use narrows_runner::watch::{here, there, watch};
use std::io;

/// Watch the traffic of both ends' interfaces
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("full", |it| it.help("Show interfaces without traffic, too")),
    after_help = "Examples:\n  \
    narrows watch server             while a test runs in another terminal\n  \
    narrows watch --local --interval 250ms\n  \
    narrows watch server --count 9 --format ndjson | jq -c '.ends[].interfaces[]'"
)]
pub(crate) struct Args {
    /// A name or address that runs `narrows serve`, or ssh://[user@]host[:port]
    #[arg(required_unless_present = "local", conflicts_with = "local")]
    host: Option<String>,
    #[command(flatten)]
    way: WayArgs,
    /// This host alone
    #[arg(long)]
    local: bool,
    #[command(flatten)]
    interval: IntervalArg,
    /// End after so many readings
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    #[command(flatten)]
    format: FormatArg<WatchView>,
    #[command(flatten)]
    full: FullArg,
    #[command(flatten)]
    tui: TuiArg,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        self.interval.check_live()?;
        self.tui.check()?;
        let stop = stop_on_interrupt()?;
        let remote = match &self.host {
            Some(host) => Some(self.way.connect(host, false, LiveInstruments::Nothing)?),
            None => None,
        };
        let session = remote.as_ref().map(Remote::open_look).transpose().map_err(Failure::run)?;
        let mut ends = vec![here()];
        if let (Some(session), Some(remote)) = (&session, &remote) {
            // A server that does not show its interfaces fails here, not in each reading.
            session.interfaces().map_err(Failure::run)?;
            ends.push(there(session, &remote.hello().host));
        }
        let live = self.tui.live(self.format.format(), || WatchLive::new(self.full.full), &stop)?;
        let mut failed = None;
        let mut last = None;
        let (interval, count) = (self.interval.interval, self.count);
        watch(&mut ends, interval, count, &stop, &mut |view| {
            if let Some(live) = &live {
                live.update(|shown| shown.show(view));
                last = Some(view.clone());
                return true;
            }
            match self.show(view) {
                Ok(()) => true,
                // A closed pipe (`narrows … | head`) is not a failure.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => false,
                Err(error) => {
                    failed = Some(error);
                    false
                }
            }
        });
        live.map(Tui::close).transpose()?;
        if let Some(view) = last {
            failed = failed.or(self.show(&view).err());
        }
        failed.map_or(Ok(0), |error| Err(Failure::run(format!("cannot write the result: {error}"))))
    }

    fn show(&self, view: &WatchView) -> io::Result<()> {
        write(&view.write(self.format.format(), self.full.style()).map_err(io::Error::other)?.unwrap_or_default())
    }
}
