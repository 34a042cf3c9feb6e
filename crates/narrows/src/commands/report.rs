//! `narrows report`: a stored run, rendered and diagnosed again.

use crate::commands::KINDS;
use crate::failure::{Failure, Outcome};
use crate::flags::values::duration;
use crate::flags::{FormatArg, FullArg, SvgArg, known};
use crate::output::{printed, written};
use narrows_model::Run;
use narrows_model::run::RunPlan;
use narrows_model::run::mesh::MeshRecord;
use narrows_model::words::units;
use narrows_render::picture::picture;
use narrows_render::{Format, OfAnyRun};
use narrows_runner::stored::{LoadError, spool};
use narrows_runner::{report, stored};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The command whose records are meshes.
const MESH: &str = "mesh";

/// Render a stored run again
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("svg", |it| {
        it.help("Write a picture of the diagnosis to this file (SVG)").conflicts_with_all(["why_not", "diff"])
    }),
    mut_arg("full", |it| it.help("Show all parameters, look-alikes and the arithmetic of each ceiling")),
    after_help = "Examples:\n  \
    narrows report 20260101-120000-1a2b3c4d --format markdown\n  \
    narrows report 20260101-120000-1a2b3c4d --why-not tcp-receive-window\n  \
    narrows report before.run.json --diff after.run.json\n  \
    narrows report 20260101-120000-1a2b3c4d --from 180m --to 190m"
)]
pub(crate) struct Args {
    /// Run file or run id; `last`: the newest
    #[arg(add = known::runs())]
    run: PathBuf,
    #[command(flatten)]
    format: FormatArg<OfAnyRun>,
    #[command(flatten)]
    full: FullArg,
    #[command(flatten)]
    svg: SvgArg,
    /// Of a measurement, show only what is from this time of each trial on
    #[arg(long, value_name = "TIME", value_parser = duration)]
    from: Option<Duration>,
    /// Of a measurement, show only what is up to this time of each trial
    #[arg(long, value_name = "TIME", value_parser = duration)]
    to: Option<Duration>,
    /// Show the evidence for and against this cause
    #[arg(long, value_name = "CAUSE", add = known::causes())]
    why_not: Option<String>,
    /// Compare with this run (file or id)
    #[arg(long, value_name = "RUN2", conflicts_with = "why_not", add = known::runs())]
    diff: Option<PathBuf>,
}

/// The mesh of a file or of the store.
fn mesh_at(word: &Path) -> Result<Box<MeshRecord>, Failure> {
    let none = || Failure::usage(format!("cannot compare {}: it is not a mesh", word.display()));
    match stored::load(word, KINDS) {
        Err(LoadError::Other(id, MESH)) => super::history::mesh_of(&id),
        Ok(_) | Err(LoadError::Other(..)) => Err(none()),
        Err(error) => match stored::of_file(word, KINDS) {
            Some(content) => content.take::<MeshRecord>().ok_or_else(none),
            None => Err(Failure::run(error)),
        },
    }
}

impl Args {
    /// Whether the whole run is to be shown as it is.
    const fn is_plain(&self) -> bool {
        let part = self.from.is_some() || self.to.is_some();
        !part && self.why_not.is_none() && self.diff.is_none() && self.svg.svg.is_none()
    }

    /// Leaves the part of a measurement that was asked for.
    fn zoom(&self, run: &mut Run) -> Result<(), Failure> {
        if self.from.is_none() && self.to.is_none() {
            return Ok(());
        }
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let (from_us, to_us) = (self.from.map_or(0, micros), self.to.map_or(u64::MAX, micros));
        if from_us >= to_us {
            return Err(Failure::usage("--to must be later than --from"));
        }
        if !matches!(run.plan, RunPlan::Measure(_)) {
            let why = "only measurements have parts (narrows measure tcp, udp, rr, crr)";
            return Err(Failure::usage(format!("cannot show a part of run {}: {why}", run.id)));
        }
        if spool::zoom(run, from_us, to_us).map_err(Failure::run)? {
            return Ok(());
        }
        let why =
            format!("it has no two samples in that time; its longest trial took {}", units::micros(run.elapsed_us));
        Err(Failure::usage(format!("cannot show that part of run {}: {why}", run.id)))
    }

    /// What changed from one mesh to another, in a line each.
    fn meshes(&self) -> Outcome {
        if self.format.format() != Format::Text || self.from.is_some() || self.to.is_some() || self.svg.svg.is_some() {
            return Err(Failure::usage(
                "cannot compare meshes with these flags: --diff of two meshes only prints lines of text",
            ));
        }
        let (first, second) = (&self.run, self.diff.as_ref().unwrap_or(&self.run));
        let [before, now] = [first, second].map(|word| mesh_at(word).map(|it| narrows_runner::mesh_report(&it)));
        let (before, now) = (before?, now?);
        if now.interrupted {
            let (first, second) = (first.display(), second.display());
            return Err(Failure::usage(format!("cannot compare {first}: {second} was interrupted, see --resume")));
        }
        let changes = narrows_views::mesh::changes(&before, &now);
        printed(&if changes.is_empty() { "nothing changed\n".to_owned() } else { changes.join("\n") + "\n" })
    }

    /// The command that compares the figures of any two runs.
    fn compare(&self) -> String {
        let other = self.diff.as_ref().unwrap_or(&self.run);
        format!("`narrows compare {} {}`", self.run.display(), other.display())
    }

    /// A record of another command has no diagnosis that could be compared.
    fn other(&self, id: &str, command: &str) -> Failure {
        let what = format!("it is a record of `narrows {command}`, not a diagnosis");
        Failure::usage(format!("cannot compare run {id}: {what}; use {}", self.compare()))
    }

    pub(crate) fn run(self) -> Outcome {
        let mut run = match stored::load(&self.run, KINDS) {
            // A record of another command has a report, too, but no causes and no parts.
            Err(LoadError::Other(id, _)) if self.is_plain() => {
                return super::history::shown(&id, self.format.format(), self.full.style());
            }
            Err(LoadError::Other(_, MESH)) if self.diff.is_some() => return self.meshes(),
            Err(LoadError::Other(id, command)) if self.diff.is_some() => return Err(self.other(&id, command)),
            Err(error) => match stored::of_file(&self.run, KINDS) {
                Some(content) if self.is_plain() => {
                    let report = content.report().ok_or_else(|| Failure::run("it holds no measurement"))?;
                    return printed(&written(&*report, self.format.format(), self.full.style())?);
                }
                Some(content) if self.diff.is_some() && content.get::<MeshRecord>().is_some() => return self.meshes(),
                _ => return Err(Failure::run(error)),
            },
            Ok(run) => run,
        };
        self.zoom(&mut run)?;
        let style = self.full.style();
        if let Some(id) = &self.why_not {
            let weighed = narrows_views::weigh(&run, 0, id).ok_or_else(|| {
                let known = "see `narrows list causes`";
                Failure::usage(format!("cannot explain cause `{id}`: the run has no such cause; {known}"))
            })?;
            return printed(&narrows_render::diagnosis::weighed(id, &weighed, style));
        }
        if let Some(other) = &self.diff {
            let other = stored::load(other, KINDS).map_err(|error| match error {
                LoadError::Other(id, command) => self.other(&id, command),
                error => Failure::run(error),
            })?;
            let diff = narrows_views::diff::of_runs(&run, &other).map_err(|run| {
                let why = match run.plan {
                    RunPlan::Diagnose(_) => "it holds no measurement".to_owned(),
                    _ => {
                        format!("it is not a diagnosis; give two runs of `narrows diagnose`, or use {}", self.compare())
                    }
                };
                Failure::usage(format!("cannot compare run {}: {why}", run.id))
            })?;
            return printed(&written(&diff, self.format.format(), style)?);
        }
        if let Some(file) = &self.svg.svg {
            let picture = report(&run)
                .as_ref()
                .map(picture)
                .ok_or_else(|| Failure::run(format!("cannot draw run {}: nothing was diagnosed in it", run.id)))?;
            stored::write(file, &picture).map_err(Failure::run)?;
        }
        super::join_intervals(&mut run, self.format.format());
        let text = super::render_run(&run, self.format.format(), style)?;
        printed(&text)
    }
}
