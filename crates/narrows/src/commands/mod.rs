//! The commands: one file each, with its own flags and the call that runs it.

#[cfg(feature = "forwarding")]
mod advise;
pub(crate) mod audit;
pub(crate) mod campaign;
pub(crate) mod compare;
pub(crate) mod completion;
pub(crate) mod connections;
pub(crate) mod diagnose;
pub(crate) mod fleet;
pub(crate) mod generate;
pub(crate) mod helper;
pub(crate) mod history;
pub(crate) mod lab;
pub(crate) mod line_rate;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod measure;
pub(crate) mod mesh;
pub(crate) mod optimise;
pub(crate) mod receive;
pub(crate) mod report;
#[cfg(feature = "forwarding")]
pub(crate) mod rfc2544;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod snapshot;
pub(crate) mod store;
pub(crate) mod sweep;
pub(crate) mod trace;
pub(crate) mod trust;
pub(crate) mod tune;
pub(crate) mod watch;

use crate::failure::Failure;
use crate::output::written;
use narrows_model::Run;
use narrows_model::run::Ending;
use narrows_render::{Format, Style};
use narrows_runner::stored::{self, Kinds, spool};

/// The kinds of records that this build knows.
pub(crate) const KINDS: Kinds = &[
    &stored::KINDS,
    #[cfg(feature = "forwarding")]
    &narrows_forwarding_runner::KINDS,
];

/// The grammar of the command line, for the commands that describe it: it is set first of all.
pub(crate) static GRAMMAR: std::sync::OnceLock<fn() -> clap::Command> = std::sync::OnceLock::new();

/// The report of a run in a format, diagnosed by today's rules.
pub(crate) fn render_run(run: &Run, format: Format, style: Style) -> Result<String, Failure> {
    let report = narrows_runner::document(run).ok_or_else(|| nothing_measured(run))?;
    written(&*report, format, style)
}

/// Joins the intervals of a long measurement for those who read it.
pub(crate) fn join_intervals(run: &mut Run, format: Format) {
    if matches!(format, Format::Text | Format::Markdown) && spool::coarsen(run) {
        let id = &run.id;
        crate::failure::note!("intervals are joined; `narrows report {id} --from 10m --to 20m` shows a part in detail");
    }
}

fn nothing_measured(run: &Run) -> Failure {
    match &run.ending {
        Ending::Failed(why) => Failure::run(why),
        Ending::Interrupted => Failure::run("interrupted before anything was measured"),
        Ending::Complete => Failure::run("the run holds no measurement"),
    }
}
