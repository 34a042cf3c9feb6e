//! `narrows sweep`: a table over sizes, protocols and directions.

mod over;

use crate::commands::KINDS;
use crate::failure::{Failure, Outcome};
use crate::flags::values::plan_bytes;
use crate::flags::{
    DirectionListArg, DurationArg, FullArg, Given, OmitArg, RateArg, RemoteArgs, ResultArgs, SaveArgs, SizeListArg,
    StreamsArg, SvgArg, words,
};
use crate::output::{Wanted, print, style, write_files};
use crate::progress::{Progress, SavedRun};
use crate::session::{Connection, INTERRUPTED};
use narrows_model::run::Ending;
use narrows_model::{Direction, Run, SweepCell, SweepPlan, SweepProtocol, SweepRecord, SweepReport};
use narrows_render::Style;
use narrows_render::sweep::{csv, progress, svg};
use narrows_runner::stored::{self, Source};
use narrows_runner::{sweep, sweep_report};
use std::path::{Path, PathBuf};

/// Measure a table over sizes, protocols and directions
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("svg", |it| it.help("Write a plot of rate over size to this file (SVG)")),
    mut_arg("output", |it| it.help("Save the sweep to this file after each point")),
    mut_arg("full", |it| it.help("Show all sizes in the comparison of directions")),
    after_help = "Examples:\n  \
    narrows sweep server --token-file token\n  \
    narrows sweep server --size 64,1472 --protocol udp -t 2s --svg sweep.svg\n  \
    narrows sweep server -d up,down --repetitions 5 --csv sweep.csv\n  \
    narrows sweep server --resume sweep.run.json     continue after Ctrl-C\n  \
    narrows sweep server --over window=32k,128k,512k,1M,8M --svg window.svg\n  \
    narrows sweep server --over server:tcp_rmem=64k,1M --over streams=1,4\n\
    The lossless UDP rate of each size is the result of a short search: trials of 1 s, 25 s at most, width 2 %. No \
    search is needed if a trial of 2 s or more loses nothing. `narrows search` measures the NDR."
)]
pub(crate) struct Args {
    #[command(flatten)]
    remote: RemoteArgs,
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    svg: SvgArg,
    /// Write the table to this file (CSV)
    #[arg(long, value_name = "PATH")]
    csv: Option<PathBuf>,
    /// Show the influence of NAME=VALUES; twice: of two
    ///
    /// The form is [HOST:]NAME[@DEVICE]=VALUES. NAME is streams, congestion-control or window; a parameter such as tcp_rmem (a size is its maximum) or
    /// net.core.rmem_default; mtu, qdisc or an offload, with the device: client:gro@eth0=on,off. HOST is client, server or both. Runs are
    /// in random order, with one protocol (TCP by default) in one direction (up by default), 3 of each combination by default.
    #[arg(long, value_name = "PARAMETER", conflicts_with_all = ["resume", "output"], help_heading = "Points")]
    over: Vec<String>,
    /// With --over: random seed; the same command with the seed continues
    #[arg(long, value_name = "N", requires = "over", help_heading = "Points", hide_short_help = true, value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Resume an interrupted sweep: its file or run id
    #[arg(long, value_name = "RUN")]
    resume: Option<PathBuf>,
    #[command(flatten)]
    full: FullArg,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    result: ResultArgs<SweepReport>,
}

/// The plan.
#[derive(Debug, clap::Args)]
#[command(
    next_help_heading = "Points",
    mut_arg("omit", |it| it.help("Exclude this time of each trial [default: 0s]").hide_short_help(true)),
    mut_arg("direction", |it| it.hide_possible_values(true).help("Directions: up, down, both")),
    mut_arg("streams", |it| it.hide_short_help(true)),
    mut_arg("rate", |it| {
        it.default_value("max").help(
            "UDP rate per direction: 100M (payload), 50kpps (datagrams) or max",
        )
    })
)]
struct PlanArgs {
    #[command(flatten)]
    given: Given,
    #[command(flatten)]
    size: SizeListArg,
    /// Protocols: udp, tcp
    #[arg(
        long,
        hide_possible_values = true,
        value_enum,
        value_delimiter = ',',
        value_name = "PROTOCOLS",
        default_value = "udp,tcp"
    )]
    protocol: Vec<ProtocolWord>,
    #[command(flatten)]
    direction: DirectionListArg,
    #[command(flatten)]
    duration: DurationArg,
    #[command(flatten)]
    omit: OmitArg,
    /// Repetitions of the whole table; results are medians
    #[arg(long, visible_alias = "repeat", value_name = "N", default_value_t = 1, hide_short_help = true)]
    repetitions: u32,
    #[command(flatten)]
    streams: StreamsArg,
    #[command(flatten)]
    rate: RateArg,
    /// Do not search for the lossless UDP rate
    #[arg(long, hide_short_help = true)]
    no_search: bool,
}

words! {
    /// The protocol of a point.
    ProtocolWord for SweepProtocol {
        /// UDP datagrams
        Udp,
        /// TCP messages, sent without delay (TCP_NODELAY)
        Tcp,
    }
}

impl PlanArgs {
    /// The plan, not checked: where a sweep goes on, only what was given counts.
    fn plan(&self) -> Result<SweepPlan, Failure> {
        Ok(SweepPlan {
            sizes: self.size.size.iter().map(|bytes| plan_bytes("size", *bytes)).collect::<Result<_, _>>()?,
            protocols: self.protocol.iter().map(|word| SweepProtocol::from(*word)).collect(),
            directions: self.direction.direction.iter().map(|word| Direction::from(*word)).collect(),
            streams: self.streams.streams,
            rate: self.rate.rate,
            trial_ms: self.duration.ms(),
            omit_ms: self.omit.ms().unwrap_or(0),
            repetitions: self.repetitions,
            search_lossless: !self.no_search,
        })
    }

    /// The flags that ask for another plan than this one.
    fn differences(&self, begun: &SweepPlan) -> Result<Vec<&'static str>, Failure> {
        let plan = self.plan()?;
        let same = [
            ("--size", plan.sizes == begun.sizes),
            ("--protocol", plan.protocols == begun.protocols),
            ("--direction", plan.directions == begun.directions),
            ("--duration", plan.trial_ms == begun.trial_ms),
            ("--omit", plan.omit_ms == begun.omit_ms),
            ("--repetitions", plan.repetitions == begun.repetitions),
            ("--streams", plan.streams == begun.streams),
            ("--rate", plan.rate == begun.rate),
            ("--no-search", plan.search_lossless == begun.search_lossless),
        ];
        let given = |flag: &str| self.given.has(&flag.trim_start_matches('-').replace('-', "_"));
        Ok(same.into_iter().filter_map(|(flag, same)| (!same && given(flag)).then_some(flag)).collect())
    }
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        if !self.over.is_empty() {
            return self.over();
        }
        let begun = self.resume.as_deref().map(|word| self.begun(word)).transpose()?;
        if let Some((run, source)) = &begun
            && run.sweep.as_ref().is_some_and(|record| record.remaining().is_empty())
        {
            return self.finish(run, &self.saved(source.clone()));
        }
        let plan = match &begun {
            Some(_) => None,
            None => {
                let plan = self.plan.plan()?;
                plan.check().map_err(Failure::usage)?;
                Some(plan)
            }
        };
        let connection = Connection::open(&self.remote, false, true)?;
        let target = connection.remote.target();
        if let Some((run, _)) = &begun
            && run.target.family != target.family
        {
            return Err(Failure::usage(
                "cannot resume the sweep: it uses the other IP version; select it with -4 or -6",
            ));
        }
        let name = stored::new_name().map_err(Failure::run)?;
        let mut ends = connection.ends(None, self.result.quiet)?;
        let (mut run, mut saved) = match (begun, plan) {
            (Some((run, source)), _) => (run, self.saved(source)),
            (None, plan) => {
                let saved = self.save.run_file(self.result.output())?;
                (sweep::begin(&mut ends, &plan.unwrap_or_default(), target, name), saved)
            }
        };
        // A file that cannot be written fails now, not after the first point.
        saved.save(&run);
        if let Some(why) = saved.failure() {
            return Err(Failure::run(why));
        }
        let mut watch = Watch { progress: Progress::new(self.result.quiet, "{msg}"), saved };
        if let Some(record) = &run.sweep {
            watch.progress.line(&progress::ahead(record, sweep::expected_ms(record)));
        }
        sweep::go_on(&mut ends, &mut run, &mut watch);
        drop(ends);
        watch.progress.clear();
        // How the sweep ended is saved as well.
        watch.saved.save(&run);
        self.finish(&run, &watch.saved)
    }

    /// Where the rest of a sweep is saved: where it was, or in the file that the user names.
    fn saved(&self, source: Source) -> SavedRun {
        let file = match source {
            Source::File(file) => Some(file),
            Source::Id(_) => None,
        };
        self.save.saved(self.result.output().map(Path::to_owned).or(file))
    }

    /// The sweep to resume, and where it is.
    fn begun(&self, word: &Path) -> Result<(Run, Source), Failure> {
        let run = stored::load(word, KINDS).map_err(Failure::run)?;
        let Some(record) = &run.sweep else {
            return Err(Failure::usage(format!("cannot resume {}: not a sweep", word.display())));
        };
        if run.target.asked != self.remote.host() {
            return Err(Failure::usage(format!(
                "cannot resume {}: it is a sweep of {}, not of {}",
                word.display(),
                run.target.asked,
                self.remote.host()
            )));
        }
        record.plan.check().map_err(|why| Failure::usage(format!("{}: {why}", word.display())))?;
        let differences = self.plan.differences(&record.plan)?;
        if !differences.is_empty() {
            return Err(Failure::usage(format!(
                "cannot resume {} with another {}: drop that flag, or drop --resume to start a new sweep",
                word.display(),
                differences.join(" and ")
            )));
        }
        Ok((run, stored::find(word).map_err(Failure::run)?))
    }

    /// Prints the report, and how to resume.
    fn finish(&self, run: &Run, saved: &SavedRun) -> Outcome {
        let report = sweep_report(run).filter(|report| report.done > 0);
        if let Some(report) = &report {
            print(&self.result.write(report, self.full.style())?)?;
        }
        let left = run.sweep.as_ref().map_or(0, |record| record.remaining().len());
        let next = match saved.word() {
            Some(word) if left > 0 => format!("; continue with --resume {word}"),
            _ => String::new(),
        };
        let place = saved.report("sweep", self.result.quiet, &next);
        let files = |report| {
            let files: [Wanted<'_>; 2] = [
                (self.csv.as_deref(), &|| Ok(csv::table(report))),
                (self.svg.svg.as_deref(), &|| Ok(svg::picture(report))),
            ];
            write_files(saved.id(), &files)
        };
        let place = place.and(report.as_ref().map_or(Ok(()), files));
        match (&run.ending, report) {
            (Ending::Failed(why), _) => Err(Failure::run(why)),
            (Ending::Interrupted, None) => Err(Failure::interrupted()),
            (Ending::Interrupted, _) => place.map(|()| INTERRUPTED),
            (_, None) => Err(super::nothing_measured(run)),
            (_, Some(_)) => place.map(|()| 0),
        }
    }
}

/// Shows a line for each point, and saves the sweep after it.
struct Watch {
    progress: Progress,
    saved: SavedRun,
}

impl sweep::Watch for Watch {
    fn begins(&mut self, record: &SweepRecord, cell: SweepCell) {
        let done = record.points.len() + 1;
        self.progress.show(format!("[{done}/{}] {} …", record.plan.cells().count(), progress::what(cell)));
    }

    fn measured(&mut self, run: &Run) {
        self.saved.save(run);
        if let Some(record) = &run.sweep {
            let color = self.progress.moves() && std::env::var_os("NO_COLOR").is_none();
            self.progress.line(&progress::line(record, Style { color, ..style() }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Alone {
        #[command(flatten)]
        plan: PlanArgs,
    }

    fn flags(words: &[&str]) -> PlanArgs {
        Alone::parse_from([&["sweep"], words].concat()).plan
    }

    #[test]
    fn without_flags_the_plan_is_the_default_one() {
        assert_eq!(flags(&[]).plan().ok(), Some(SweepPlan::default()));
    }

    #[test]
    fn only_flags_that_were_given_can_differ_from_a_begun_sweep() {
        let begun = SweepPlan { streams: 3, trial_ms: 100, search_lossless: false, ..SweepPlan::default() };
        let differences = |words: &[&str]| flags(words).differences(&begun).expect("sizes");
        assert_eq!(differences(&[]), [""; 0]);
        assert_eq!(differences(&["-P", "3", "--no-search", "-t", "100ms"]), [""; 0]);
        assert_eq!(differences(&["-P", "1", "-t", "10s"]), ["--duration", "--streams"]);
    }
}
