//! `narrows rfc2544`: benchmarks a device under test by the procedures of RFC 2544 and its successors.

use super::{KINDS, advise};
use crate::failure::{Failure, Outcome};
use crate::flags::{ResultArgs, SaveArgs, WayArgs};
use crate::output::{print, style, written as in_format};
use crate::session::stop_on_interrupt;
use clap::{Args as ClapArgs, Subcommand};
use narrows_forwarding::data::ForwardingRecord;
use narrows_forwarding::data::ab::AbRecord;
use narrows_forwarding::data::ab_report::AbReport;
use narrows_forwarding::data::report::ForwardingReport;
use narrows_forwarding::plan_file::{self, PlanFile};
use narrows_forwarding::views::{mean_intervals, report, report_pair};
use narrows_forwarding::writing;
use narrows_forwarding_runner::files::{self, Kept};
use narrows_forwarding_runner::{self as forwarding, HostAccess, words};
use narrows_runner::remote::Options;
use narrows_runner::stored::maintenance::show;
use narrows_runner::stored::{self, Begun, StoreError};
use narrows_runner::trust;
use std::path::{Path, PathBuf};

/// Benchmark a device under test: throughput, latency, loss, back-to-back, with reconciled counters
#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    mut_arg("output", |it| it.help("Save the record to this file while measuring")),
    after_help = "Examples:\n  \
    narrows rfc2544 router.toml --dry-run            list the trials, send nothing\n  \
    narrows rfc2544 router.toml --html report.html -o router.json\n  \
    narrows rfc2544 --again router.json --format markdown\n  \
    narrows rfc2544 advise linux --role router       settings before a benchmark\n  \
    narrows rfc2544 advise router.toml --apply       apply them here; --undo rolls back\n  \
    narrows rfc2544 keys                             all keys of a plan\n\
    For isolated lab networks only (RFC 6815)."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// Plan file (TOML)
    #[arg(value_name = "PLAN", required_unless_present = "again")]
    plan: Option<PathBuf>,
    /// Print the trials and the total time; send nothing
    #[arg(long)]
    dry_run: bool,
    /// Report a saved benchmark (file or id)
    #[arg(long, value_name = "RUN", conflicts_with_all = ["plan", "dry_run", "output"])]
    again: Option<PathBuf>,
    /// Also write the report to this file (HTML)
    #[arg(long, value_name = "PATH")]
    html: Option<PathBuf>,
    /// Also write the plots to this directory (SVG)
    #[arg(long, value_name = "DIRECTORY")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    save: SaveArgs,
    #[command(flatten)]
    result: ResultArgs<ForwardingReport>,
    #[command(flatten)]
    way: WayArgs,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Print, apply or undo settings for a benchmark (switch, DUT, tester)
    Advise(advise::Args),
    /// List the keys of a plan with meaning and default
    Keys,
}

/// The files of a report.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReportFiles<'a> {
    /// The report as one page.
    pub(crate) html: Option<&'a Path>,
    /// A directory of pictures.
    pub(crate) svg: Option<&'a Path>,
    /// The record.
    pub(crate) output: Option<&'a Path>,
}

impl ReportFiles<'_> {
    /// Checks that all files can be written, before anything is measured.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.html.is_some() && self.html == self.output {
            return Err(Failure::usage("--html and --output name the same file"));
        }
        // The directory is created first, because the page may go into it.
        if let Some(directory) = self.svg {
            files::check_directory(directory).map_err(Failure::run)?;
        }
        for path in [self.html, self.output].into_iter().flatten() {
            stored::check(path).map_err(Failure::run)?;
        }
        Ok(())
    }

    /// Writes the report's files.
    pub(crate) fn write(&self, report: &ForwardingReport) -> Result<(), Failure> {
        if let Some(path) = self.html {
            stored::write(path, &writing::html::report(report)).map_err(Failure::run)?;
        }
        if let Some(directory) = self.svg {
            files::write_all(directory, &writing::svg::pictures(report)).map_err(Failure::run)?;
        }
        Ok(())
    }

    /// Writes the files of a comparison of two configurations.
    fn write_pair(&self, report: &AbReport) -> Result<(), Failure> {
        if let Some(path) = self.html {
            stored::write(path, &writing::ab::html(report, &mean_intervals(report))).map_err(Failure::run)?;
        }
        if let Some(directory) = self.svg {
            let picture = writing::ab::svg(report, &mean_intervals(report)).map(|svg| ("comparison".to_owned(), svg));
            files::write_all(directory, &picture.into_iter().collect::<Vec<_>>()).map_err(Failure::run)?;
        }
        Ok(())
    }
}

/// Reads and checks a plan.
pub(super) fn read_plan(path: &Path) -> Result<PlanFile, Failure> {
    let text = files::read_plan(path).map_err(Failure::run)?;
    let file =
        plan_file::parse(&text).map_err(|problems| Failure::usage(format!("{}:\n{problems}", path.display())))?;
    let mut problems = forwarding::check(&file.plan);
    problems.extend(file.ab.iter().flat_map(forwarding::check_pair));
    if problems.is_empty() {
        Ok(file)
    } else {
        Err(Failure::usage(format!("{}:\n{}", path.display(), problems.join("\n"))))
    }
}

/// A record of a file, or of the store by its id.
fn recorded(word: &Path) -> Result<Kept, Failure> {
    if files::is_there(word) || word.components().count() != 1 {
        return files::read_record(word).map_err(Failure::run);
    }
    let id = word.to_string_lossy();
    let store = stored::existing_store().map_err(Failure::run)?;
    let Some((run, content)) = store.map(|store| show(&store, &id, KINDS)).transpose().map_err(Failure::run)?.flatten()
    else {
        return files::read_record(word).map_err(Failure::run);
    };
    if content.get::<AbRecord>().is_some() {
        return content.take().map(Kept::Pair).ok_or_else(|| Failure::run(id));
    }
    let other = || Failure::usage(format!("cannot report {id}: it is a run of `narrows {}`", run.command));
    content.take().map(Kept::Plain).ok_or_else(other)
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        match self.what {
            Some(What::Advise(args)) => return args.run(),
            Some(What::Keys) => {
                print(&plan_file::reference())?;
                return Ok(0);
            }
            None => {}
        }
        let begun = Begun::now().map_err(Failure::run)?;
        let kept = match (&self.again, &self.plan) {
            (Some(again), _) => recorded(again)?,
            (None, Some(plan)) => match self.measure(plan)? {
                Some(kept) => kept,
                None => return Ok(0),
            },
            (None, None) => return Err(Failure::usage("no plan given; write narrows rfc2544 PLAN")),
        };
        // The report is printed even if a file cannot be written.
        let whole = self.result.output().map_or(Ok(()), |output| kept.write(output)).map_err(Failure::run);
        match kept {
            Kept::Plain(record) => {
                let report = report(&record);
                let written = whole.and(self.files_of_report().write(&report));
                print(&self.result.write(&report, style())?)?;
                self.keep(&begun, |begun| stored::keep_new(&*record, begun));
                written?;
                Ok(u8::from(record.ended.is_some()))
            }
            Kept::Pair(record) => {
                let report = report_pair(&record);
                let written = whole.and(self.files_of_report().write_pair(&report));
                print(&in_format(&report, self.result.format(), style())?)?;
                self.keep(&begun, |begun| stored::keep_new(&*record, begun));
                written?;
                Ok(u8::from(record.ended.is_some() || !record.remarks.is_empty()))
            }
        }
    }

    /// Puts what was measured into the store.
    fn keep(&self, begun: &Begun, put: impl FnOnce(&Begun) -> Result<(), StoreError>) {
        if self.again.is_none() {
            let _ = self.save.keep(begun, self.result.quiet, put);
        }
    }

    fn files_of_report(&self) -> ReportFiles<'_> {
        ReportFiles { html: self.html.as_deref(), svg: self.svg.as_deref(), output: self.result.output() }
    }

    /// The way to hosts that the plan names.
    fn hosts(&self) -> Result<HostAccess, Failure> {
        let token = trust::client_token(self.way.token_file()).map_err(Failure::run)?;
        let (spec, usual) = (self.way.spec(""), HostAccess::default());
        let options = Options { remote_command: self.way.remote_command().to_owned(), ..usual.options };
        Ok(HostAccess { port: spec.port, family: spec.family, token, options })
    }

    /// Measures, or with `--dry-run` prints the schedule and returns `None`.
    fn measure(&self, path: &Path) -> Result<Option<Kept>, Failure> {
        let file = read_plan(path)?;
        if self.dry_run {
            print(&file.ab.as_ref().map_or_else(|| words::schedule(&file.plan), words::schedule_pair))?;
            return Ok(None);
        }
        self.files_of_report().check()?;
        let hosts = self.hosts()?;
        let stop = stop_on_interrupt()?;
        let mut lines = words::Lines::new(&file.plan);
        let quiet = self.result.quiet;
        let mut watch = |event: forwarding::Event<'_>| {
            if let Some(line) = lines.next(&event).filter(|_| !quiet) {
                crate::failure::note!("{line}");
            }
        };
        let output = self.result.output();
        if let Some(ab) = &file.ab {
            // The record is saved after each run, because many runs take long.
            let mut keep = |record: &AbRecord| {
                // A failed write is tried again after the next run, and reported at the end.
                let _ = output.map(|output| files::write_record(output, record));
            };
            let record = forwarding::measure_pair(ab, &hosts, &stop, &mut watch, &mut keep).map_err(Failure::run)?;
            return Ok(Some(Kept::Pair(Box::new(record))));
        }
        let mut write = |part: &ForwardingRecord| -> Result<(), String> {
            let written = output.map_or(Ok(()), |output| files::write_record(output, part));
            written.map_err(|error| error.to_string())
        };
        let keep = output.is_some().then_some(&mut write as forwarding::Write<'_>);
        let record = forwarding::run_kept(&file.plan, &hosts, &stop, &mut watch, keep).map_err(Failure::run)?;
        Ok(Some(Kept::Plain(Box::new(record))))
    }
}
