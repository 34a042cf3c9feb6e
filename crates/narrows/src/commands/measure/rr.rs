//! `narrows measure rr` and `narrows measure crr`.

use crate::failure::{Failure, Outcome};
use crate::flags::values::{plan_bytes, size};
use crate::flags::{
    DirectionWord, DurationArg, FullArg, IntervalArg, OmitArg, RemoteArgs, ResultArgs, StreamsArg, TransactionRateArg,
    slow_start_ms,
};
use crate::output::{print, style};
use crate::session::{open_session, stop_on_interrupt};
use clap::Args;
use narrows_model::RrReport;
use narrows_model::load::tcp::{Limit, TcpPlan};
use narrows_model::{Ending, Place, RrPlan, Transaction};
use narrows_render::Format;
use narrows_render::rr::{Live, json, text};
use narrows_runner::live::{LiveEnds, LiveInstruments};
use narrows_runner::{TrialProgress, measure, stored};

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    narrows measure rr server\n  \
    narrows measure rr server --udp --request 64 --response 64 --outstanding 16\n  \
    narrows measure rr server --rate 1000 --loaded          latency of the idle and of the loaded path, side by side")]
pub(super) struct RrArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    /// Over UDP instead of TCP
    #[arg(long)]
    udp: bool,
    /// Requests that each stream has on their way
    #[arg(long, default_value_t = 1, value_name = "N")]
    outstanding: u32,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    narrows measure crr server\n  \
    narrows measure crr server --streams 4 --request 200 --response 10k")]
pub(super) struct CrrArgs {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Load", mut_arg("streams", |it| it.help("Requesters at the same time")))]
struct Common {
    /// Bytes of a request (1; over UDP 20, which its header takes)
    #[arg(long, value_parser = size, value_name = "SIZE")]
    request: Option<u64>,
    /// Bytes of a response (1; over UDP 20)
    #[arg(long, value_parser = size, value_name = "SIZE")]
    response: Option<u64>,
    #[command(flatten)]
    streams: StreamsArg,
    #[command(flatten)]
    rate: TransactionRateArg,
    #[command(flatten)]
    duration: DurationArg,
    #[command(flatten)]
    omit: OmitArg,
    #[command(flatten)]
    interval: IntervalArg,
    /// Measure the idle path first, then once more while TCP streams load it
    #[arg(long)]
    loaded: bool,
    /// Which way the load goes
    #[arg(long, value_enum, default_value = "both", requires = "loaded")]
    load_direction: DirectionWord,
    /// Streams of the load in each direction
    #[arg(long, default_value_t = 4, value_name = "N", requires = "loaded")]
    load_streams: u32,
    #[command(flatten)]
    full: FullArg,
    #[command(flatten)]
    result: ResultArgs<RrReport>,
}

impl RrArgs {
    pub(super) fn run(self) -> Outcome {
        let transaction = if self.udp { Transaction::Udp } else { Transaction::Tcp };
        let plan = self.common.plan(transaction, self.outstanding)?;
        self.common.run(&self.remote, &plan)
    }
}

impl CrrArgs {
    pub(super) fn run(self) -> Outcome {
        let plan = self.common.plan(Transaction::TcpConnect, 1)?;
        self.common.run(&self.remote, &plan)
    }
}

impl Common {
    fn plan(&self, transaction: Transaction, outstanding: u32) -> Result<RrPlan, Failure> {
        let least = if transaction == Transaction::Udp { RrPlan::LEAST_UDP_BYTES } else { 1 };
        let bytes = |what: &str, given: Option<u64>| plan_bytes(what, given.unwrap_or(least.into()));
        let duration_ms = self.duration.ms();
        let omit_ms = self.omit.ms().unwrap_or(if self.loaded { slow_start_ms(duration_ms) } else { 0 });
        let load = self.loaded.then(|| TcpPlan {
            streams: self.load_streams,
            direction: self.load_direction.into(),
            limit: Limit::DurationMs(duration_ms),
            omit_ms,
            interval_ms: self.interval.ms(),
            ..TcpPlan::default()
        });
        let plan = RrPlan {
            transaction,
            streams: self.streams.streams,
            outstanding,
            request_bytes: bytes("request", self.request)?,
            response_bytes: bytes("response", self.response)?,
            duration_ms,
            omit_ms,
            interval_ms: self.interval.ms(),
            rate_per_s: self.rate.rate,
            load,
        };
        plan.check().map_err(Failure::usage)?;
        Ok(plan)
    }

    fn run(&self, remote: &RemoteArgs, plan: &RrPlan) -> Outcome {
        let stop = stop_on_interrupt()?;
        let instruments = LiveInstruments { collect: true };
        let remote = remote.connect(false, instruments)?;
        let target = remote.target();
        let name = stored::new_name().map_err(Failure::run)?;
        let mut style = style();
        style.full = self.full.full;
        let session = open_session(&remote, &stop, self.result.quiet)?;
        let mut ends = LiveEnds::new(&remote, session, instruments, None, stop);
        let mut failed = None;
        let mut say = |line: Result<String, Failure>| {
            if let Err(why) = line.and_then(|line| print(&line)) {
                failed.get_or_insert(why);
            }
        };
        // The first of two trials has no load. The second begins when the time restarts.
        let (mut phase, mut live, mut last_us) = (plan.clone(), None, 0);
        phase.load = None;
        let run = measure::measure_rr(&mut ends, plan, target.clone(), name, &mut |place, progress| {
            if place != Place::Client {
                return;
            }
            if live.is_some() && progress.at_us < last_us {
                (phase, live) = (plan.clone(), None);
            }
            last_us = progress.at_us;
            let live = live.get_or_insert_with(|| {
                match self.result.format() {
                    Format::Text => say(Ok(text::header(&target, &phase, style))),
                    Format::Ndjson => say(json::start(&phase).map_err(Failure::run)),
                    _ => {}
                }
                Live::new(&phase)
            });
            for view in live.push(samples(progress)) {
                match self.result.format() {
                    Format::Text if !self.result.quiet && text::shown(&view, &phase, style) => {
                        say(Ok(text::interval(&view, style)));
                    }
                    Format::Ndjson => say(json::interval(&view).map_err(Failure::run)),
                    _ => {}
                }
            }
        });
        drop(ends);
        if let Some(file) = self.result.output() {
            stored::save(&run, file).map_err(Failure::run)?;
        }
        let Some(report) = narrows_runner::rr_report(&run) else {
            return Err(match run.ending {
                Ending::Failed(why) => Failure::run(why),
                _ => Failure::run("nothing was measured"),
            });
        };
        match self.result.format() {
            Format::Text => {
                for phase in &report.phases {
                    print(&text::summary(phase, style))?;
                }
                if let Some(view) = &report.under_load {
                    print(&text::under_load(view, style))?;
                }
            }
            Format::Ndjson => {
                for phase in &report.phases {
                    print(&json::summary(&report.run, phase).map_err(Failure::run)?)?;
                }
                if let Some(view) = &report.under_load {
                    print(&json::under_load(view).map_err(Failure::run)?)?;
                }
            }
            _ => print(&self.result.write(&report, style)?)?,
        }
        match (failed, run.ending) {
            (Some(why), _) => Err(why),
            (None, Ending::Failed(why)) => Err(Failure::run(why)),
            (None, _) => Ok(0),
        }
    }
}

fn samples(progress: &TrialProgress) -> impl Iterator<Item = (u32, narrows_model::RrSample)> + '_ {
    progress.streams.iter().filter_map(|stream| Some((stream.id, stream.rr?)))
}
