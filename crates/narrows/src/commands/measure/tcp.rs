//! `narrows measure tcp`.

use crate::failure::{Failure, Outcome};
use crate::flags::{FullArg, LoadArgs, RemoteArgs, ResultArgs, TcpLoadArgs};
use crate::output::{print, style};
use crate::session::{open_session, stop_on_interrupt};
use narrows_model::MeasureReport;
use narrows_model::{Ending, Place, TcpPlan};
use narrows_render::Format;
use narrows_render::measure::{Live, Reading, json, text};
use narrows_runner::live::{LiveEnds, LiveInstruments};
use narrows_runner::{TrialProgress, measure, stored};

#[derive(Debug, clap::Args)]
#[command(
    mut_arg("size", |it| it.default_value("128k").value_name("SIZE").help("Bytes handed to the kernel in one call")),
    after_help = "Examples:\n  \
    narrows measure tcp server --token-file token\n  \
    narrows measure tcp server --streams 4 --direction both --duration 30s --omit 2s\n  \
    narrows measure tcp server --format ndjson | jq -c 'select(.event==\"interval\")'"
)]
pub(super) struct TcpArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    tcp: TcpLoadArgs,
    /// Read no counters and no CPU times around and during the load
    #[arg(long)]
    no_collect: bool,
    #[command(flatten)]
    full: FullArg,
    #[command(flatten)]
    result: ResultArgs<MeasureReport>,
}

impl TcpArgs {
    pub(super) fn run(self) -> Outcome {
        let plan = self.tcp.plan(&self.load, |_| 0)?;
        let stop = stop_on_interrupt()?;
        let instruments = LiveInstruments { collect: !self.no_collect };
        let remote = self.remote.connect(false, instruments)?;
        let name = stored::new_name().map_err(Failure::run)?;
        let mut style = style();
        style.full = self.full.full;
        let session = open_session(&remote, &stop, self.result.quiet)?;
        match self.result.format() {
            Format::Text => print(&text::header(&remote.target(), &plan, style))?,
            Format::Ndjson => print(&json::start(&plan).map_err(Failure::run)?)?,
            _ => {}
        }
        let mut ends = LiveEnds::new(&remote, session, instruments, None, stop);
        let mut live = begun(&plan);
        let mut failed = None;
        let run = measure::measure_tcp(&mut ends, &plan, remote.target(), name, &mut |place, progress| {
            for view in readings(&mut live, place, progress) {
                let line = match self.result.format() {
                    Format::Text if !self.result.quiet && text::shown(&view, &plan, style) => {
                        Ok(text::interval(&view, style))
                    }
                    Format::Ndjson => json::interval(&view),
                    _ => continue,
                };
                if let Err(why) = line.map_err(Failure::run).and_then(|line| print(&line)) {
                    failed.get_or_insert(why);
                }
            }
        });
        drop(ends);
        if let Some(file) = self.result.output() {
            stored::save(&run, file).map_err(Failure::run)?;
        }
        let Some(report) = narrows_render::measure::build(&run) else {
            return Err(match run.ending {
                Ending::Failed(why) => Failure::run(why),
                _ => Failure::run("nothing was measured"),
            });
        };
        print(&match self.result.format() {
            Format::Text => text::summary(&report, style),
            Format::Ndjson => json::summary(&report).map_err(Failure::run)?,
            _ => self.result.write(&report, style)?,
        })?;
        match (failed, run.ending) {
            (Some(why), _) => Err(why),
            (None, Ending::Failed(why)) => Err(Failure::run(why)),
            (None, _) => Ok(0),
        }
    }
}

/// Live intervals, in which every stream starts at zero.
fn begun(plan: &TcpPlan) -> Live {
    let mut live = Live::new(plan, None);
    for flow in plan.flows() {
        for (stream, place) in (0..plan.streams).flat_map(|id| [(id, Place::Client), (id, Place::Server)]) {
            let zero = Reading { retransmits: Some(0), ..Reading::default() };
            live.push(place, *flow, stream, zero);
        }
    }
    live
}

/// The intervals that a progress message of one end completes.
fn readings(live: &mut Live, place: Place, progress: &TrialProgress) -> Vec<narrows_model::run::measure::IntervalView> {
    progress
        .streams
        .iter()
        .flat_map(|stream| {
            let reading = Reading {
                at_us: progress.at_us,
                bytes: stream.bytes,
                acked_bytes: None,
                retransmits: stream.retransmits,
                rtt_us: stream.rtt_us,
                cwnd_bytes: stream
                    .cwnd_segments
                    .zip(stream.mss_bytes)
                    .map(|(segments, mss)| segments.saturating_mul(mss)),
            };
            live.push(place, stream.flow, stream.id, reading)
        })
        .collect()
}
