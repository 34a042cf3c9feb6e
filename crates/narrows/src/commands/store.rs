//! `narrows store`: the store as a whole: import, export, prune, undo, check, send.

use crate::commands::KINDS;
use crate::failure::{Failure, Outcome};
use crate::flags::{FilterArgs, confirmed, values};
use crate::output::{print, printed};
use narrows_model::Unit;
use narrows_model::run::history::{HistoryReport, StoredRun};
use narrows_model::words::show::plural;
use narrows_render::{Document as _, Format};
use narrows_runner::stored::foreign::As;
use narrows_runner::stored::maintenance::{self, Imported};
use narrows_runner::stored::{self, Store};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;

/// Import, export, prune, undo, check and send the store of runs
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    narrows store import old-runs/\n  \
    narrows store import --tag before iperf3.json\n  \
    narrows store export --since 30d runs.jsonl\n  \
    narrows store prune --older-than 365d\n  \
    narrows store undo\n  \
    narrows store check\n\
    The store is the file runs.db in the state directory, or what NARROWS_STORE names: another file, or
    postgres://USER:PASSWORD@HOST:PORT/DATABASE in a build with PostgreSQL.")]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, clap::Subcommand)]
enum What {
    /// Import run files, `iperf3 -J` reports and columns of numbers; the files stay
    Import {
        /// Files, or directories of files or of one directory per configuration (default: the runs of earlier versions)
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
        /// Tag imported results of other programs; repeatable
        #[arg(long = "tag", value_name = "TAG", value_parser = values::tag)]
        tags: Vec<String>,
        /// Figure that columns of numbers are
        #[arg(long, value_name = "NAME", default_value = "value")]
        name: String,
        /// Unit of columns of numbers: number, count, bytes, packets, bits_per_second, microseconds, fraction
        #[arg(long, value_name = "UNIT", default_value = "number", value_parser = unit)]
        unit: Unit,
    },
    /// Write runs to a directory, or to one file of JSON lines (.jsonl)
    Export {
        /// Directory, or file that ends with .jsonl
        #[arg(value_name = "PATH")]
        to: PathBuf,
        #[command(flatten)]
        filter: FilterArgs,
    },
    /// Delete old runs; with both conditions, only runs that meet both
    #[command(group(clap::ArgGroup::new("which").args(["keep", "older_than"]).required(true).multiple(true)))]
    Prune {
        /// Keep this many newest runs, however old
        #[arg(long, value_name = "N")]
        keep: Option<u64>,
        /// Delete runs older than this (12h, 30d, 8w)
        #[arg(long, value_name = "TIME", value_parser = values::age)]
        older_than: Option<Duration>,
        /// Do not ask for confirmation
        #[arg(long, short = 'y')]
        yes: bool,
        /// Free the space now: neither these runs nor those deleted before can be brought back
        #[arg(long)]
        for_good: bool,
    },
    /// Bring back the runs of the last deletion, up to a week later; repeat it for the deletion before
    Undo,
    /// Check the store and each run in it
    Check,
    /// Send the runs that were kept locally because PostgreSQL could not be reached
    Send,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        match self.what {
            What::Import { paths, tags, name, unit } => import(&paths, &As { name, unit, tags }),
            What::Export { to, filter } => {
                let store = maintenance::whole().map_err(Failure::run)?;
                let count = maintenance::export(&store, &filter.filter()?, &to).map_err(Failure::run)?;
                printed(&format!("wrote {} to {}", plural(count, "run"), to.display()))
            }
            What::Prune { keep, older_than, yes, for_good } => {
                let mut store = maintenance::whole().map_err(Failure::run)?;
                let before = older_than.map(maintenance::ago);
                let runs = maintenance::prunable(&store, keep, before).map_err(Failure::run)?;
                if runs.is_empty() && !for_good {
                    return printed("no runs to delete");
                }
                deleted(&mut store, runs, yes, for_good)
            }
            What::Undo => {
                let mut store = stored::store().map_err(Failure::run)?;
                match maintenance::undo(&mut store).map_err(Failure::run)? {
                    0 => Err(Failure::run("no deleted runs can be brought back: none were deleted in the last week")),
                    runs => printed(&format!("brought back {}", plural(runs as u64, "run"))),
                }
            }
            What::Check => {
                let store = maintenance::whole().map_err(Failure::run)?;
                let wrong = maintenance::check(&store, KINDS).map_err(Failure::run)?;
                let count = store.count(&stored::Filter::default()).map_err(Failure::run)?;
                for (id, why) in &wrong {
                    let what = if id.is_empty() { "the file".to_owned() } else { format!("run {id}") };
                    print(&format!("{what}: {why}"))?;
                }
                if wrong.is_empty() {
                    return printed(&format!("{}: {}, all readable", store.path().display(), plural(count, "run")));
                }
                Ok(1)
            }
            What::Send => {
                let (store, sent) = stored::opened().map_err(Failure::run)?;
                printed(&format!("sent {} to {}", plural(sent, "run"), store.path().display()))
            }
        }
    }
}

/// How many runs are listed before they are deleted.
const LISTED: usize = 20;

/// Lists runs, asks unless `yes`, and deletes them.
pub(super) fn deleted(store: &mut Store, runs: Vec<StoredRun>, yes: bool, for_good: bool) -> Outcome {
    let (ids, count): (Vec<String>, _) = (runs.iter().map(|run| run.id.clone()).collect(), runs.len());
    let shown: Vec<_> = runs.into_iter().take(LISTED).collect();
    let rest = count - shown.len();
    let page = HistoryReport { schema: String::new(), offset: 0, total: shown.len() as u64, runs: shown };
    if count > 0 && (yes || std::io::stdin().is_terminal()) {
        let listed = page.write(Format::Text, crate::output::style()).map_err(Failure::run)?;
        anstream::eprint!("{}", listed.unwrap_or_default());
        if rest > 0 {
            crate::failure::note!("and {} before them", plural(rest as u64, "older run"));
        }
    }
    confirmed(yes, &format!("delete {}{}", plural(count as u64, "run"), if for_good { " for good" } else { "" }))?;
    let gone = maintenance::delete(store, &ids, for_good).map_err(Failure::run)?;
    let back = if for_good { "" } else { "; for a week `narrows store undo` brings back what was deleted last" };
    printed(&format!("deleted {}{back}", plural(gone as u64, "run")))
}

fn unit(word: &str) -> Result<Unit, String> {
    let known = [
        ("number", Unit::Number),
        ("count", Unit::Count),
        ("bytes", Unit::Bytes),
        ("packets", Unit::Packets),
        ("bits_per_second", Unit::BitsPerSecond),
        ("microseconds", Unit::Microseconds),
        ("fraction", Unit::Fraction),
    ];
    let found = known.iter().find(|(name, _)| *name == word).map(|(_, unit)| *unit);
    found.ok_or_else(|| format!("use one of {}", known.map(|(name, _)| name).join(", ")))
}

fn import(paths: &[PathBuf], how: &As) -> Outcome {
    let mut store = stored::store().map_err(Failure::run)?;
    let places: Vec<Option<&PathBuf>> = if paths.is_empty() { vec![None] } else { paths.iter().map(Some).collect() };
    let mut done = Imported::default();
    for path in places {
        let part = maintenance::import(&mut store, path.map(PathBuf::as_path), how, KINDS).map_err(Failure::run)?;
        done.new += part.new;
        done.known += part.known;
        done.failed.extend(part.failed);
    }
    for why in &done.failed {
        crate::failure::note!("{why}");
    }
    print(&format!("imported {}; {} known already", plural(done.new, "run"), done.known))?;
    Ok(u8::from(!done.failed.is_empty()))
}
