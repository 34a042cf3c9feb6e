//! `narrows history`: the runs of the store: listed, shown, tagged, deleted; their figures over time.

use super::{join_intervals, render_run};
use crate::commands::KINDS;
use crate::failure::{Failure, Outcome};
use crate::flags::{FilterArgs, FormatArg, FullArg, known};
use crate::output::{print, printed, written};
use narrows_model::Run;
use narrows_model::run::history::{HistoryReport, StoredRun, TrendReport};
use narrows_model::run::mesh::MeshRecord;
use narrows_render::{Format, OfAnyRun, Style, history};
use narrows_runner::stored::{self, Filter, Store, maintenance};
use std::path::PathBuf;

/// List stored runs, and show their figures over time with change points
#[derive(Debug, clap::Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "Examples:\n  \
    narrows history --host server --since 7d\n  \
    narrows history --verdict tcp-receive-window --format csv\n  \
    narrows history trend --host server --command diagnose --svg trend.svg\n  \
    narrows history tag 20260101-120000-1a2b3c4d before-upgrade\n\
    A run is named by its id, by the beginning of it, or as last or last~2. All commands that measure save their runs, except with --no-save."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
    #[command(flatten)]
    filter: FilterArgs,
    /// Maximum number of runs
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Leave out this many newer runs
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u64,
    /// List only this figure of each run (default: text the first one, other formats all)
    #[arg(long, value_name = "NAME", add = known::figures())]
    figure: Option<String>,
    #[command(flatten)]
    format: FormatArg<HistoryReport>,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Show a run: what it is listed with, and its report
    Show {
        /// Run id
        #[arg(value_name = "ID", add = known::runs())]
        id: String,
        #[command(flatten)]
        format: FormatArg<OfAnyRun>,
        #[command(flatten)]
        full: FullArg,
    },
    /// Show figures over time, and where their level changed
    Trend(Box<TrendArgs>),
    /// Add tags to a run
    Tag {
        /// Run id
        #[arg(value_name = "ID", add = known::runs())]
        id: String,
        /// Tags
        #[arg(value_name = "TAG", required = true, value_parser = crate::flags::values::tag)]
        tags: Vec<String>,
    },
    /// Remove tags from a run
    Untag {
        /// Run id
        #[arg(value_name = "ID", add = known::runs())]
        id: String,
        /// Tags
        #[arg(value_name = "TAG", required = true)]
        tags: Vec<String>,
    },
    /// Delete runs; `narrows store undo` brings them back for a week
    Delete {
        /// Run ids
        #[arg(value_name = "ID", required_unless_present = "tag", add = known::runs())]
        ids: Vec<String>,
        /// Delete the runs with this tag
        #[arg(long, value_name = "TAG")]
        tag: Option<String>,
        /// Do not ask for confirmation
        #[arg(long, short = 'y')]
        yes: bool,
    },
}

/// Figures over time.
#[derive(Debug, clap::Args)]
struct TrendArgs {
    #[command(flatten)]
    filter: FilterArgs,
    /// Figure by name, as `history show` lists it (default: each run's first; `narrows compare --help` explains all)
    #[arg(long, value_name = "NAME", add = known::figures())]
    figure: Option<String>,
    /// Smallest change to report, in % of the level before it
    #[arg(long, value_name = "PERCENT", default_value = "1", value_parser = crate::flags::values::percent)]
    change: f64,
    /// Write a plot to this file (SVG)
    #[arg(long, value_name = "PATH")]
    svg: Option<PathBuf>,
    #[command(flatten)]
    format: FormatArg<TrendReport>,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        let mut store = maintenance::whole().map_err(Failure::run)?;
        match self.what {
            None => {
                let filter = self.filter.filter()?;
                let page = maintenance::page(&store, &filter, self.offset, self.limit, self.figure.as_deref())
                    .map_err(Failure::run)?;
                printed(&self.format.write(&page, crate::output::style())?)
            }
            Some(What::Show { id, format, full }) => show(&store, &named(&store, &id)?, format.format(), full.style()),
            Some(What::Trend(args)) => args.run(&store),
            Some(What::Tag { id, tags }) => {
                let id = named(&store, &id)?;
                tag(&mut store, &id, &tags, true)
            }
            Some(What::Untag { id, tags }) => {
                let id = named(&store, &id)?;
                tag(&mut store, &id, &tags, false)
            }
            Some(What::Delete { ids, tag, yes }) => {
                let mut filters = Vec::new();
                for word in &ids {
                    filters.push((Filter { id: Some(named(&store, word)?), ..Filter::default() }, String::new()));
                }
                filters.extend(tag.map(|tag| (Filter { tag: Some(tag.clone()), ..Filter::default() }, tag)));
                let mut runs: Vec<StoredRun> = Vec::new();
                for (filter, tag) in filters {
                    let found = store.list(&filter, 0, i64::MAX.unsigned_abs()).map_err(Failure::run)?;
                    if found.is_empty() {
                        return Err(Failure::run(format!(
                            "no run has the tag `{tag}`; `narrows history` lists the tags"
                        )));
                    }
                    runs.extend(found);
                }
                runs.sort_by(|a, b| (b.started_unix_us, &b.id).cmp(&(a.started_unix_us, &a.id)));
                runs.dedup_by(|a, b| a.id == b.id);
                super::store::deleted(&mut store, runs, yes, false)
            }
        }
    }
}

/// The id of the run that the user named.
fn named(store: &Store, word: &str) -> Result<String, Failure> {
    store.named(word).map_err(Failure::run)?.ok_or_else(|| unknown(store, word))
}

fn unknown(store: &Store, id: &str) -> Failure {
    Failure::run(format!("cannot find run `{id}` in {}; `narrows history` lists the runs", store.path().display()))
}

/// Shows a run of the store.
pub(super) fn shown(id: &str, format: Format, style: Style) -> Outcome {
    show(&maintenance::whole().map_err(Failure::run)?, id, format, style)
}

/// A mesh of the store.
pub(super) fn mesh_of(id: &str) -> Result<Box<MeshRecord>, Failure> {
    let store = maintenance::whole().map_err(Failure::run)?;
    let found = maintenance::show(&store, id, KINDS).map_err(Failure::run)?;
    let (_, content) = found.ok_or_else(|| unknown(&store, id))?;
    content.take::<MeshRecord>().ok_or_else(|| Failure::usage(format!("cannot use run {id}: it is not a mesh")))
}

fn show(store: &Store, id: &str, format: Format, style: Style) -> Outcome {
    let (run, content) =
        maintenance::show(store, id, KINDS).map_err(Failure::run)?.ok_or_else(|| unknown(store, id))?;
    if format == Format::Text {
        print(&(history::text::entry(&run, style) + "\n"))?;
    }
    if content.get::<Run>().is_none() {
        let report = content.report().ok_or_else(|| Failure::run("it holds no measurement"))?;
        return printed(&written(&*report, format, style)?);
    }
    let mut run = content.take::<Run>().ok_or_else(|| unknown(store, id))?;
    join_intervals(&mut run, format);
    printed(&render_run(&run, format, style)?)
}

fn tag(store: &mut Store, id: &str, tags: &[String], add: bool) -> Outcome {
    for tag in tags {
        if !store.tag(id, tag, add).map_err(Failure::run)? {
            return Err(unknown(store, id));
        }
    }
    Ok(0)
}

impl TrendArgs {
    fn run(&self, store: &Store) -> Outcome {
        let filter = self.filter.filter()?;
        let report =
            maintenance::trend(store, &filter, self.figure.as_deref(), self.change, KINDS).map_err(Failure::run)?;
        if let Some(name) = self.figure.as_ref().filter(|_| report.series.is_empty()) {
            return Err(Failure::run(format!(
                "cannot show the figure `{name}` over time: no run that matches has it; `narrows history show ID` lists the figures of a run"
            )));
        }
        if let Some(file) = &self.svg {
            stored::write(file, &history::svg::picture(&report)).map_err(Failure::run)?;
        }
        printed(&self.format.write(&report, crate::output::style())?)
    }
}
