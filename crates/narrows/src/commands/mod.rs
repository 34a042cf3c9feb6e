//! The commands: one file each, with its flags and the call that does it.

pub(crate) mod audit;
pub(crate) mod diagnose;
pub(crate) mod lab;
pub(crate) mod list;
pub(crate) mod load;
pub(crate) mod measure;
pub(crate) mod remote;
pub(crate) mod report;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod snapshot;
pub(crate) mod tune;
pub(crate) mod udp_load;

use crate::failure::Failure;
use crate::output::Format;
use narrows_model::Run;
use narrows_model::run::{Ending, RunPlan};
use narrows_render::Style;

/// A run in the form that was asked for, diagnosed by today's rules.
pub(crate) fn render_run(run: &Run, format: Format, style: Style) -> Result<String, Failure> {
    if matches!(run.plan, RunPlan::MeasureTcp(_)) {
        let report = narrows_render::measure::build(run).ok_or_else(|| nothing_measured(run))?;
        return match format {
            Format::Text => Ok(narrows_render::measure::text::report(&report, style)),
            Format::Json => narrows_render::json::pretty(&report).map_err(Failure::run),
            Format::Markdown => Err(Failure::usage("a measurement has no Markdown form; use text or json")),
        };
    }
    let report = narrows_runner::report(run).ok_or_else(|| nothing_measured(run))?;
    match format {
        Format::Text => Ok(narrows_render::text::report(&report, style)),
        Format::Json => narrows_render::json::pretty(&report).map_err(Failure::run),
        Format::Markdown => Ok(narrows_render::markdown::report(&report)),
    }
}

fn nothing_measured(run: &Run) -> Failure {
    match &run.ending {
        Ending::Failed(why) => Failure::run(why),
        Ending::Interrupted => Failure::run("interrupted before anything was measured"),
        Ending::Complete => Failure::run("the run holds no measurement"),
    }
}
