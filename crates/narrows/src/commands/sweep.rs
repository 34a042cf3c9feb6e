//! `narrows sweep`: a table over sizes, protocols and directions.

use super::load::{DirectionWord, duration, millis, size};
use super::remote::{RemoteArgs, open_session, stop_on_interrupt};
use super::udp_load::rate;
use crate::failure::{Failure, Outcome};
use crate::output::{print, style};
use clap::ValueEnum;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use narrows_model::run::Ending;
use narrows_model::{Direction, Run, SweepCell, SweepPlan, SweepProtocol, SweepRecord, UdpRate};
use narrows_render::sweep::{csv, progress, svg, text};
use narrows_render::{Style, json};
use narrows_runner::live::{LiveEnds, LiveInstruments};
use narrows_runner::sweep::{self, Watch};
use narrows_runner::{stored, sweep_report};
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Measure a table over sizes, protocols and directions
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    narrows sweep server --token-file token\n  \
    narrows sweep server --size 64,512,1472 --protocol udp --duration 2s --svg sweep.svg\n  \
    narrows sweep server --direction up,down,both --repetitions 5 --no-search --csv sweep.csv\n  \
    narrows sweep server --resume sweep.run.json        goes on after Ctrl-C; flags of the plan may be left out\n\
    The lossless rate is found by a quick search for each size of UDP: trials of 1 s, 25 s at most, bounds within 2 %; \
    none is needed where a trial of 2 s or more loses nothing. The NDR proper is found by `narrows search`.")]
pub(crate) struct Args {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    plan: PlanArgs,
    /// Form of the result
    #[arg(long, value_enum, default_value = "text")]
    format: Form,
    /// Draw the rates over the sizes into this file (SVG)
    #[arg(long, value_name = "PATH")]
    svg: Option<PathBuf>,
    /// Write the table into this file as comma-separated values
    #[arg(long, value_name = "PATH")]
    csv: Option<PathBuf>,
    /// Keep the sweep in this file, written after each point (default: the state directory)
    #[arg(long, short = 'o', value_name = "PATH")]
    output: Option<PathBuf>,
    /// Go on with an interrupted sweep: its file, or its id in the state directory
    #[arg(long, value_name = "RUN")]
    resume: Option<PathBuf>,
    /// Show every size in the comparison of both directions
    #[arg(long)]
    full: bool,
    /// No progress on stderr
    #[arg(long, short = 'q')]
    quiet: bool,
}

/// The plan. What is not given is that of the sweep that goes on, or the default.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Points")]
struct PlanArgs {
    /// Bytes of a datagram's payload, or of a message of TCP: a list [default: 64,128,256,512,1024,1280,1448,2048,4096,8192,8948]
    #[arg(long, short = 'l', value_parser = size, value_delimiter = ',', value_name = "SIZES")]
    size: Option<Vec<u64>>,
    /// What carries the data: a list [default: udp,tcp]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "PROTOCOLS")]
    protocol: Option<Vec<ProtocolWord>>,
    /// Which way the data goes: a list [default: up,down]
    #[arg(long, short = 'd', value_enum, value_delimiter = ',', value_name = "DIRECTIONS")]
    direction: Option<Vec<DirectionWord>>,
    /// Length of each trial [default: 10s]
    #[arg(long, short = 't', value_parser = duration, value_name = "TIME")]
    duration: Option<Duration>,
    /// Leave the first part of each trial out [default: 0s]
    #[arg(long, short = 'O', value_parser = duration, value_name = "TIME")]
    omit: Option<Duration>,
    /// How often the whole table is measured; its figures are medians [default: 1]
    #[arg(long, value_name = "N")]
    repetitions: Option<u32>,
    /// Streams in each direction [default: 1]
    #[arg(long, short = 'P', value_name = "N")]
    streams: Option<u32>,
    /// Rate of UDP in each direction, all streams together: payload as 100M, datagrams as 50kpps, or max [default: max]
    #[arg(long, short = 'b', value_parser = rate, value_name = "RATE")]
    rate: Option<UdpRate>,
    /// Do not search the highest lossless rate of UDP
    #[arg(long)]
    no_search: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ProtocolWord {
    /// Datagrams
    Udp,
    /// Messages over a connection, each sent at once (TCP_NODELAY)
    Tcp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// Tables for a terminal
    Text,
    /// One object; the schema is in docs/
    Json,
    /// Comma-separated values
    Csv,
}

impl PlanArgs {
    /// A plan with what was given.
    fn over(&self, plan: &SweepPlan) -> Result<SweepPlan, Failure> {
        let sizes = |sizes: &Vec<u64>| {
            let bytes = |bytes: &u64| {
                u32::try_from(*bytes).map_err(|_| Failure::usage(format!("a size of {bytes} bytes is too large")))
            };
            sizes.iter().map(bytes).collect::<Result<Vec<u32>, Failure>>()
        };
        let protocol = |word: &ProtocolWord| match word {
            ProtocolWord::Udp => SweepProtocol::Udp,
            ProtocolWord::Tcp => SweepProtocol::Tcp,
        };
        let plan = SweepPlan {
            sizes: self.size.as_ref().map_or_else(|| Ok(plan.sizes.clone()), sizes)?,
            protocols: self
                .protocol
                .as_ref()
                .map_or_else(|| plan.protocols.clone(), |words| words.iter().map(protocol).collect()),
            directions: self.direction.as_ref().map_or_else(
                || plan.directions.clone(),
                |words| words.iter().map(|word| Direction::from(*word)).collect(),
            ),
            streams: self.streams.unwrap_or(plan.streams),
            rate: self.rate.unwrap_or(plan.rate),
            trial_ms: self.duration.map_or(plan.trial_ms, millis),
            omit_ms: self.omit.map_or(plan.omit_ms, millis),
            repetitions: self.repetitions.unwrap_or(plan.repetitions),
            search_lossless: plan.search_lossless && !self.no_search,
        };
        plan.check().map_err(Failure::usage)?;
        Ok(plan)
    }
}

/// The flags in which two plans differ.
fn differences(a: &SweepPlan, b: &SweepPlan) -> Vec<&'static str> {
    let flags = [
        ("--size", a.sizes == b.sizes),
        ("--protocol", a.protocols == b.protocols),
        ("--direction", a.directions == b.directions),
        ("--duration", a.trial_ms == b.trial_ms),
        ("--omit", a.omit_ms == b.omit_ms),
        ("--repetitions", a.repetitions == b.repetitions),
        ("--streams", a.streams == b.streams),
        ("--rate", a.rate == b.rate),
        ("--no-search", a.search_lossless == b.search_lossless),
    ];
    flags.into_iter().filter_map(|(flag, same)| (!same).then_some(flag)).collect()
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let begun = self.resume.as_deref().map(|word| self.begun(word)).transpose()?;
        if let Some((run, file)) = &begun
            && run.sweep.as_ref().is_some_and(|record| record.remaining().is_empty())
        {
            return self.finish(run, file, None);
        }
        let plan = match &begun {
            Some(_) => None,
            None => Some(self.plan.over(&SweepPlan::default())?),
        };
        let stop = stop_on_interrupt()?;
        let instruments = LiveInstruments { collect: true };
        let remote = self.remote.connect(false, instruments)?;
        let target = remote.target();
        if let Some((run, _)) = &begun
            && run.target.family != target.family
        {
            return Err(Failure::usage("the sweep was begun over the other IP version: name that one with -4 or -6"));
        }
        let name = stored::new_name().map_err(Failure::run)?;
        let session = open_session(&remote, &stop, self.quiet)?;
        let mut ends = LiveEnds::new(&remote, session, instruments, None, stop);
        let (mut run, file) = match (begun, plan) {
            (Some(begun), _) => begun,
            (None, plan) => {
                let file = stored::place(self.output.clone(), &name.0).map_err(Failure::run)?;
                (sweep::begin(&mut ends, &plan.unwrap_or_default(), target, name), file)
            }
        };
        // A place that cannot be written is said now, and not after the first point.
        stored::save(&run, &file).map_err(Failure::run)?;
        let mut teller = Teller::new(self.quiet, file.clone());
        if let Some(record) = &run.sweep {
            teller.line(&progress::ahead(record, sweep::expected_ms(record)));
        }
        sweep::go_on(&mut ends, &mut run, &mut teller);
        drop(ends);
        teller.measured_last(&run);
        self.finish(&run, &file, teller.unsaved)
    }

    /// The sweep to go on with, and the file that it is kept in from now on.
    fn begun(&self, word: &Path) -> Result<(Run, PathBuf), Failure> {
        let run = stored::load(word).map_err(Failure::run)?;
        let Some(record) = &run.sweep else {
            return Err(Failure::usage(format!("{} is no sweep: there is nothing to go on with", word.display())));
        };
        if run.target.asked != self.remote.host() {
            return Err(Failure::usage(format!(
                "the sweep in {} is one of {}, not of {}",
                word.display(),
                run.target.asked,
                self.remote.host()
            )));
        }
        record.plan.check().map_err(|why| Failure::usage(format!("{}: {why}", word.display())))?;
        let wanted = self.plan.over(&record.plan)?;
        let differences = differences(&record.plan, &wanted);
        if !differences.is_empty() {
            return Err(Failure::usage(format!(
                "the sweep in {} was begun with another {}: leave that out to go on with it, or leave out --resume to begin anew",
                word.display(),
                differences.join(" and ")
            )));
        }
        let file = match &self.output {
            Some(file) => file.clone(),
            None => stored::file(word).map_err(Failure::run)?,
        };
        Ok((run, file))
    }

    /// Prints what there is, and how to go on.
    fn finish(&self, run: &Run, file: &Path, unsaved: Option<String>) -> Outcome {
        let report = sweep_report(run).filter(|report| report.done > 0);
        if let Some(report) = &report {
            let style = Style { full: self.full, ..style() };
            print(&match self.format {
                Form::Text => text::report(report, style),
                Form::Json => json::pretty(report).map_err(Failure::run)?,
                Form::Csv => csv::table(report),
            })?;
            for (file, what) in [(&self.csv, csv::table as fn(&_) -> String), (&self.svg, svg::picture)] {
                if let Some(file) = file {
                    stored::write(file, &what(report)).map_err(Failure::run)?;
                }
            }
        }
        let left = run.sweep.as_ref().map_or(0, |record| record.remaining().len());
        let file = file.display();
        match unsaved {
            Some(why) => anstream::eprintln!("the sweep could not be kept: {why}"),
            None if self.quiet => {}
            None if left > 0 => anstream::eprintln!("kept as {file}; go on with --resume {file}"),
            None => anstream::eprintln!("kept as {file}"),
        }
        match (&run.ending, report) {
            (Ending::Failed(why), _) => Err(Failure::run(why)),
            (_, None) => Err(super::nothing_measured(run)),
            (_, Some(_)) => Ok(0),
        }
    }
}

/// Tells a line a point, and keeps the sweep on disk.
struct Teller {
    quiet: bool,
    bar: ProgressBar,
    file: PathBuf,
    style: Style,
    unsaved: Option<String>,
}

impl Teller {
    fn new(quiet: bool, file: PathBuf) -> Self {
        let moving = !quiet && std::io::stderr().is_terminal();
        let target = if moving { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        if let Ok(style) = ProgressStyle::with_template("{msg}") {
            bar.set_style(style);
        }
        let color = moving && std::env::var_os("NO_COLOR").is_none();
        Self { quiet, bar, file, style: Style { color, ..style() }, unsaved: None }
    }

    fn line(&self, text: &str) {
        if !self.quiet {
            self.bar.suspend(|| anstream::eprint!("{text}"));
        }
    }

    fn save(&mut self, run: &Run) {
        self.unsaved = stored::save(run, &self.file).err().map(|error| error.to_string());
    }

    /// The end of the sweep: how it ended is kept, too.
    fn measured_last(&mut self, run: &Run) {
        self.bar.finish_and_clear();
        self.save(run);
    }
}

impl Watch for Teller {
    fn begins(&mut self, record: &SweepRecord, cell: SweepCell) {
        let done = record.points.len() + 1;
        self.bar.set_message(format!("[{done}/{}] {} …", record.plan.cells().count(), progress::what(cell)));
        self.bar.tick();
    }

    fn measured(&mut self, run: &Run) {
        self.save(run);
        if let Some(record) = &run.sweep {
            self.line(&progress::line(record, self.style));
        }
    }
}
