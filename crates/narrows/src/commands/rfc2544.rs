//! `narrows rfc2544`: a device under test, by the procedures of RFC 2544 and its successors.

use super::advise;
use crate::failure::{Failure, Outcome};
use crate::flags::output::{OutputArg, QuietArg};
use crate::flags::remote::WayArgs;
use crate::output::{formats, print, style, written as in_format};
use crate::session::stop_on_interrupt;
use clap::{Args as ClapArgs, Subcommand};
use narrows_model::forwarding::ForwardingRecord;
use narrows_model::forwarding::ab::AbRecord;
use narrows_model::forwarding::ab_report::AbReport;
use narrows_model::forwarding::report::ForwardingReport;
use narrows_render::{self as render, Format};
use narrows_runner::forwarding::files::{self, Kept};
use narrows_runner::forwarding::{self, PlanFile, words};
use std::path::{Path, PathBuf};

/// Benchmark a device under test: throughput, latency, loss, back-to-back, with its counters reconciled
#[derive(Debug, ClapArgs)]
#[command(
    args_conflicts_with_subcommands = true,
    mut_arg("output", |it| it.help("Keep everything that was measured in this file, while it is measured")),
    mut_arg("quiet", |it| it.help("No line for each trial")),
    after_help = "Examples:\n  \
    narrows rfc2544 router.toml --dry-run            every trial and the total time; nothing is sent\n  \
    narrows rfc2544 router.toml --html report.html -o router.json\n  \
    narrows rfc2544 --again router.json --format markdown\n  \
    narrows rfc2544 advise linux --role router       what to set so that nothing but test frames moves\n  \
    narrows rfc2544 advise router.toml --apply       set it on this tester; --undo sets it back\n  \
    narrows rfc2544 keys                             every key of a plan\n\
    Use it on a lab's own devices only (RFC 6815)."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    /// The plan (TOML)
    #[arg(value_name = "PLAN", required_unless_present = "again")]
    plan: Option<PathBuf>,
    /// Print every trial and the total time, and send nothing
    #[arg(long)]
    dry_run: bool,
    /// Report a benchmark again that was kept with --output
    #[arg(long, value_name = "PATH", conflicts_with_all = ["plan", "dry_run", "output"])]
    again: Option<PathBuf>,
    /// Form of the report
    #[arg(long, value_parser = formats::<ForwardingReport>(), default_value = "text")]
    format: Format,
    /// Write the report as one page into this file as well
    #[arg(long, value_name = "PATH")]
    html: Option<PathBuf>,
    /// Write the pictures into this directory as well (SVG)
    #[arg(long, value_name = "DIRECTORY")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArg,
    #[command(flatten)]
    quiet: QuietArg,
    #[command(flatten)]
    way: WayArgs,
}

#[derive(Debug, Subcommand)]
enum What {
    /// What to set on switch, device and tester before a benchmark; of a Linux host narrows sets it, and sets it back
    Advise(advise::Args),
    /// Every key of a plan, what it is, and what is taken without it
    Keys,
}

/// Where results go beside the terminal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places<'a> {
    /// The report as one page.
    pub(crate) html: Option<&'a Path>,
    /// A directory of pictures.
    pub(crate) svg: Option<&'a Path>,
    /// The record.
    pub(crate) output: Option<&'a Path>,
}

impl Places<'_> {
    /// Looks whether all of it can be written in the end, before anything is measured.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.html.is_some() && self.html == self.output {
            return Err(Failure::usage("--html and --output name the same file"));
        }
        // First the directory, which is made: the page may go into it.
        if let Some(directory) = self.svg {
            files::check_directory(directory).map_err(Failure::run)?;
        }
        for path in [self.html, self.output].into_iter().flatten() {
            files::check_output(path).map_err(Failure::run)?;
        }
        Ok(())
    }

    /// Writes the report's files.
    pub(crate) fn write(&self, report: &ForwardingReport) -> Result<(), Failure> {
        if let Some(path) = self.html {
            files::write(path, &render::forwarding::html::report(report)).map_err(Failure::run)?;
        }
        if let Some(directory) = self.svg {
            files::write_all(directory, &render::forwarding::svg::pictures(report)).map_err(Failure::run)?;
        }
        Ok(())
    }

    /// The same of two configurations.
    fn write_pair(&self, report: &AbReport) -> Result<(), Failure> {
        if let Some(path) = self.html {
            files::write(path, &render::forwarding::ab::html(report)).map_err(Failure::run)?;
        }
        if let Some(directory) = self.svg {
            let picture = render::forwarding::ab::svg(report).map(|svg| ("comparison".to_owned(), svg));
            files::write_all(directory, &picture.into_iter().collect::<Vec<_>>()).map_err(Failure::run)?;
        }
        Ok(())
    }
}

/// A plan that is sound as a whole.
pub(super) fn read_plan(path: &Path) -> Result<PlanFile, Failure> {
    let text = files::read_plan(path).map_err(Failure::run)?;
    let file =
        forwarding::parse(&text).map_err(|problems| Failure::usage(format!("{}:\n{problems}", path.display())))?;
    let mut troubles = forwarding::check(&file.plan);
    troubles.extend(file.ab.iter().flat_map(forwarding::check_pair));
    if troubles.is_empty() {
        Ok(file)
    } else {
        Err(Failure::usage(format!("{}:\n{}", path.display(), troubles.join("\n"))))
    }
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        match self.what {
            Some(What::Advise(args)) => return args.run(),
            Some(What::Keys) => {
                print(&forwarding::reference())?;
                return Ok(0);
            }
            None => {}
        }
        let kept = match (&self.again, &self.plan) {
            (Some(again), _) => files::read_record(again).map_err(Failure::run)?,
            (None, Some(plan)) => match self.measure(plan)? {
                Some(kept) => kept,
                None => return Ok(0),
            },
            (None, None) => return Err(Failure::usage("name a plan")),
        };
        // What cannot be written does not keep what was measured from the terminal.
        let whole = self.output.output.as_deref().map_or(Ok(()), |output| kept.write(output)).map_err(Failure::run);
        match kept {
            Kept::Plain(record) => {
                let report = render::forwarding::build(&record, forwarding::derive(&record));
                let written = whole.and(self.places().write(&report));
                print(&in_format(&report, self.format, style())?)?;
                written?;
                Ok(u8::from(record.ended.is_some()))
            }
            Kept::Pair(record) => {
                let report = render::forwarding::ab::build(&record, forwarding::derive_pair(&record));
                let written = whole.and(self.places().write_pair(&report));
                print(&in_format(&report, self.format, style())?)?;
                written?;
                Ok(u8::from(record.ended.is_some() || !record.remarks.is_empty()))
            }
        }
    }

    fn places(&self) -> Places<'_> {
        Places { html: self.html.as_deref(), svg: self.svg.as_deref(), output: self.output.output.as_deref() }
    }

    /// `None`: nothing was to be measured.
    fn measure(&self, path: &Path) -> Result<Option<Kept>, Failure> {
        let file = read_plan(path)?;
        if self.dry_run {
            print(&file.ab.as_ref().map_or_else(|| words::schedule(&file.plan), words::schedule_pair))?;
            return Ok(None);
        }
        self.places().check()?;
        let reach = self.way.reach()?;
        let stop = stop_on_interrupt()?;
        let mut lines = words::Lines::new(&file.plan);
        let quiet = self.quiet.quiet;
        let mut watch = |event: forwarding::Event<'_>| {
            if let Some(line) = lines.next(&event).filter(|_| !quiet) {
                eprintln!("{line}");
            }
        };
        let output = self.output.output.as_deref();
        if let Some(ab) = &file.ab {
            // Many runs take long: what was measured is kept after each.
            let mut keep = |record: &AbRecord| {
                // What cannot be written now is tried again with more, and told in the end.
                let _ = output.map(|output| files::write_record(output, record));
            };
            let record = forwarding::measure_pair(ab, &reach, &stop, &mut watch, &mut keep).map_err(Failure::run)?;
            return Ok(Some(Kept::Pair(Box::new(record))));
        }
        let mut write = |part: &ForwardingRecord| -> Result<(), String> {
            let written = output.map_or(Ok(()), |output| files::write_record(output, part));
            written.map_err(|error| error.to_string())
        };
        let keep = output.is_some().then_some(&mut write as forwarding::Write<'_>);
        let record = forwarding::run_kept(&file.plan, &reach, &stop, &mut watch, keep).map_err(Failure::run)?;
        Ok(Some(Kept::Plain(Box::new(record))))
    }
}
