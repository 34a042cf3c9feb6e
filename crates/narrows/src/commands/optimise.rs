//! `narrows optimise`: the shortest set of settings that gives the path its goodput.

use crate::failure::{Failure, Outcome};
use crate::flags::values::{duration, millis, percent};
use crate::flags::{DirectionArg, FormatArg, RemoteArgs, StreamsArg};
use crate::output::{print, style};
use crate::progress::Progress;
use crate::session::{Connection, INTERRUPTED, tuner};
use narrows_model::run::optimise::OptimiseReport;
use narrows_model::{self as model, Ending, Limit, Place, Plan as _, TcpPlan};
use narrows_render::optimise::files;
use narrows_runner::diagnosis::Pace;
use narrows_runner::optimise::{self, OptimisePlan};
use narrows_runner::stored;
use std::path::PathBuf;
use std::time::Duration;

/// Find the shortest set of settings that gives the goodput
///
/// Diagnoses the path, applies each proposed fix, measures in alternation without and with it, keeps what gains, and diagnoses again.
/// Then it tries safe settings of both hosts, and leaves out what gains nothing. At the end all changes are rolled back.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    narrows optimise server --token-file token    (server: narrows serve --allow-tune)\n  \
    narrows optimise server --time 10m -t 5s      longer loads for noisy paths\n  \
    narrows optimise server --direction down --keep\n  \
    narrows optimise server --write settings      sysctl.d, script, Ansible tasks\n\
    Needs root here for settings of this host. After a crash: `narrows tune undo all`. Details: docs/optimise.md.")]
pub(crate) struct Args {
    #[command(flatten)]
    remote: RemoteArgs,
    /// Maximum time, 30s to 1h
    #[arg(long, value_parser = duration, value_name = "TIME", default_value = "5m")]
    time: Duration,
    /// Test duration of each measurement, 1s to 60s
    #[arg(long, short = 't', value_parser = duration, value_name = "TIME", default_value = "3s")]
    duration: Duration,
    #[command(flatten)]
    direction: DirectionArg,
    #[command(flatten)]
    streams: StreamsArg,
    /// Smallest gain of a setting that is kept, in percent
    #[arg(long, value_parser = percent, value_name = "PERCENT", default_value = "2")]
    gain: f64,
    /// Keep the set in force
    #[arg(long)]
    keep: bool,
    /// Write the set as files into this directory
    #[arg(long, value_name = "DIR")]
    write: Option<PathBuf>,
    /// Suppress progress
    #[arg(long, short = 'q')]
    quiet: bool,
    #[command(flatten)]
    format: FormatArg<OptimiseReport>,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let mut plan = self.plan()?;
        if self.remote.iperf3()?.is_some() {
            return Err(Failure::usage(
                "cannot optimise with an iperf3 server: it does not report its host; run `narrows serve --allow-tune` there",
            ));
        }
        if let Some(directory) = &self.write {
            narrows_runner::optimise::check_directory(directory).map_err(Failure::run)?;
        }
        let connection = Connection::open(&self.remote, true, true)?;
        let own = tuner("optimise")?;
        let mut watch = Watch { progress: Progress::new(self.quiet, "  {msg}"), pace: Pace::default() };
        for undoing in own.recover().map_err(Failure::run)? {
            watch.progress.line(&format!("rolled back what a killed optimisation left: {}", undoing.entry.change.set));
        }
        let hello = connection.remote.hello();
        plan.tune_server = hello.permissions.tune;
        if !plan.tune_server {
            watch.progress.line(&format!("{} allows no changes (--allow-tune): only this host is changed", hello.host));
        }
        let target = connection.remote.target();
        let (id, _) = stored::new_name().map_err(Failure::run)?;
        let mut ends = connection.ends(Some(own), self.quiet)?;
        let report = optimise::optimise(&mut ends, &mut watch, &plan, target, &id);
        drop(ends);
        watch.progress.clear();
        print(&self.format.write(&report, style())?)?;
        if let Some(directory) = &self.write {
            for (name, text) in files(&report) {
                stored::write(&directory.join(name), &text).map_err(Failure::run)?;
            }
        }
        match report.ending {
            Ending::Complete => Ok(0),
            Ending::Interrupted => {
                crate::failure::note!("interrupted; the same command starts from the beginning");
                Ok(INTERRUPTED)
            }
            Ending::Failed(why) => Err(Failure::run(why)),
        }
    }

    fn plan(&self) -> Result<OptimisePlan, Failure> {
        let seconds = |time: Duration, min: u64, max: u64, name: &str| {
            let fits = (Duration::from_secs(min)..=Duration::from_secs(max)).contains(&time);
            fits.then_some(time).ok_or_else(|| {
                Failure::usage(format!("invalid --{name} of {} s: must be {min} to {max} s", time.as_secs_f64()))
            })
        };
        let time = seconds(self.time, 30, 3600, "time")?;
        let ms = millis(seconds(self.duration, 1, 60, "duration")?);
        let load = TcpPlan {
            streams: self.streams.streams,
            direction: self.direction.one("an optimisation")?,
            limit: Limit::DurationMs(ms),
            omit_ms: 2_000.min(ms / 3),
            interval_ms: 100,
            ..TcpPlan::default()
        };
        load.check().map_err(Failure::usage)?;
        Ok(OptimisePlan { load, time, gain_min: self.gain, keep: self.keep, tune_server: false })
    }
}

/// Lines of progress with the time left.
struct Watch {
    progress: Progress,
    pace: Pace,
}

impl optimise::Watch for Watch {
    fn line(&mut self, text: &str, left: Duration) {
        let left = if text.starts_with(' ') { String::new() } else { format!(" ({} s left at most)", left.as_secs()) };
        self.progress.line(&format!("{text}{left}"));
    }

    fn progress(&mut self, place: Place, progress: &model::Progress, _: Option<u64>) {
        if !self.progress.moves() {
            return;
        }
        if let Some(pace) = self.pace.take(place, progress, None) {
            self.progress.show(pace);
        }
    }
}
