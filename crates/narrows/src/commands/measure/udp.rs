//! `narrows measure udp`.

use crate::failure::{Failure, Outcome};
use crate::flags::{FullArg, LoadArgs, RemoteArgs, ResultArgs, UdpLoadArgs};
use crate::output::{print, style};
use crate::session::{open_session, stop_on_interrupt};
use narrows_model::MeasureUdpReport;
use narrows_model::run::measure_udp::{UdpProgress, UdpStreamProgress};
use narrows_model::{Ending, Place};
use narrows_render::Format;
use narrows_render::udp::{self, Live, json, text};
use narrows_runner::live::{LiveEnds, LiveInstruments};
use narrows_runner::{TrialProgress, ledgers, measure, stored};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(
    mut_arg("full", |it| it.help("Show each stream, and the stages that dropped nothing")),
    after_help = "Examples:\n  \
    narrows measure udp server --rate 100M\n  \
    narrows measure udp server --rate 50kpps --size 64,512,1400 --direction both --rate-down 10M\n  \
    narrows measure udp server --rate max --size 1448 --duration 5s --ledger loss.svg"
)]
pub(super) struct UdpArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    load: LoadArgs,
    #[command(flatten)]
    udp: UdpLoadArgs,
    /// Draw where the datagrams went into this file (SVG); with both directions the second one gets `-down` in its name
    #[arg(long, value_name = "PATH")]
    ledger: Option<PathBuf>,
    /// Read no counters and no CPU times around and during the load
    #[arg(long)]
    no_collect: bool,
    #[command(flatten)]
    full: FullArg,
    #[command(flatten)]
    result: ResultArgs<MeasureUdpReport>,
}

impl UdpArgs {
    pub(super) fn run(self) -> Outcome {
        // Invalid flags fail before the connection.
        self.udp.plan(&self.load, narrows_model::Family::Ipv4)?;
        let stop = stop_on_interrupt()?;
        let instruments = LiveInstruments { collect: !self.no_collect };
        let remote = self.remote.connect(false, instruments)?;
        let target = remote.target();
        let plan = self.udp.plan(&self.load, target.family)?;
        let name = stored::new_name().map_err(Failure::run)?;
        let mut style = style();
        style.full = self.full.full;
        let session = open_session(&remote, &stop, self.result.quiet)?;
        match self.result.format() {
            Format::Text => print(&text::header(&target, &plan, style))?,
            Format::Ndjson => print(&json::start(&plan).map_err(Failure::run)?)?,
            _ => {}
        }
        let mut ends = LiveEnds::new(&remote, session, instruments, None, stop);
        let mut live = Live::new(&plan, None);
        let mut failed = None;
        let run = measure::measure_udp(&mut ends, &plan, target, name, &mut |place, progress| {
            for view in live.push(&to_progress(place, progress)) {
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
        let Some(report) = udp::build(&run) else {
            return Err(match run.ending {
                Ending::Failed(why) => Failure::run(why),
                _ => Failure::run("nothing was measured"),
            });
        };
        let ledgers = ledgers(&run);
        print(&match self.result.format() {
            Format::Text if self.no_collect => text::summary(&report, style),
            Format::Text => {
                text::summary(&report, style) + "\n" + &narrows_render::ledger::text::ledgers(&ledgers, style)
            }
            Format::Ndjson => json::summary(&report).map_err(Failure::run)?,
            _ => self.result.write(&report, style)?,
        })?;
        if let Some(file) = &self.ledger {
            for ledger in &ledgers {
                let file = if ledgers.len() > 1 { beside(file, ledger.flow.direction().word()) } else { file.clone() };
                stored::write(&file, &narrows_render::ledger::svg::waterfall(ledger)).map_err(Failure::run)?;
            }
        }
        match (failed, run.ending) {
            (Some(why), _) => Err(why),
            (None, Ending::Failed(why)) => Err(Failure::run(why)),
            (None, _) => Ok(0),
        }
    }
}

/// `loss.svg` becomes `loss-down.svg`.
fn beside(file: &std::path::Path, word: &str) -> PathBuf {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let end = file.extension().map_or_else(String::new, |end| format!(".{}", end.to_string_lossy()));
    file.with_file_name(format!("{stem}-{word}{end}"))
}

/// A progress message of one end as the live view takes it.
fn to_progress(place: Place, progress: &TrialProgress) -> UdpProgress {
    let stream = |stream: &narrows_runner::StreamProgress| {
        Some(UdpStreamProgress { id: stream.id, flow: stream.flow, sample: stream.udp.clone()? })
    };
    UdpProgress { place, streams: progress.streams.iter().filter_map(stream).collect() }
}
