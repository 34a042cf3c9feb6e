//! The commands: one file each, with its flags and the call that does it.

mod advise;
pub(crate) mod audit;
pub(crate) mod diagnose;
pub(crate) mod generate;
pub(crate) mod lab;
pub(crate) mod line_rate;
pub(crate) mod list;
pub(crate) mod measure;
pub(crate) mod receive;
pub(crate) mod report;
pub(crate) mod rfc2544;
pub(crate) mod search;
pub(crate) mod serve;
pub(crate) mod snapshot;
pub(crate) mod sweep;
pub(crate) mod tune;
pub(crate) mod watch;

use crate::failure::Failure;
use crate::output::Format;
use narrows_model::run::{Ending, RunPlan};
use narrows_model::{MeasureUdpReport, Run};
use narrows_render::{self as render, Style};

/// A run in the form that was asked for, diagnosed by today's rules.
pub(crate) fn render_run(run: &Run, format: Format, style: Style) -> Result<String, Failure> {
    let nothing = || nothing_measured(run);
    match &run.plan {
        RunPlan::Diagnose(_) => {
            let report = narrows_runner::report(run).ok_or_else(nothing)?;
            match format {
                Format::Text => Ok(render::text::report(&report, style)),
                Format::Json => render::json::pretty(&report).map_err(Failure::run),
                Format::Markdown => Ok(render::markdown::report(&report)),
            }
        }
        RunPlan::MeasureTcp(_) => {
            let report = render::measure::build(run).ok_or_else(nothing)?;
            form(format, || render::measure::text::report(&report, style), || render::json::pretty(&report))
        }
        RunPlan::MeasureUdp(_) => {
            let report = render::udp::build(run).ok_or_else(nothing)?;
            form(format, || udp_text(run, &report, style), || render::json::pretty(&report))
        }
        RunPlan::MeasureRr(_) => {
            let report = narrows_runner::rr_report(run).ok_or_else(nothing)?;
            form(format, || render::rr::text::report(&report, style), || render::json::pretty(&report))
        }
        RunPlan::Search(_) => {
            let report = narrows_runner::search_report(run).ok_or_else(nothing)?;
            form(format, || render::search::text::report(&report, style), || render::json::pretty(&report))
        }
        RunPlan::Sweep(_) => {
            let report = narrows_runner::sweep_report(run).filter(|it| it.done > 0).ok_or_else(nothing)?;
            form(format, || render::sweep::text::report(&report, style), || render::json::pretty(&report))
        }
    }
}

/// What is no diagnosis has two forms.
fn form<E: std::fmt::Display>(
    format: Format,
    text: impl FnOnce() -> String,
    json: impl FnOnce() -> Result<String, E>,
) -> Result<String, Failure> {
    match format {
        Format::Text => Ok(text()),
        Format::Json => json().map_err(Failure::run),
        Format::Markdown => Err(Failure::usage("a measurement has no Markdown form; use text or json")),
    }
}

/// With its ledgers, where the counters for them were read.
fn udp_text(run: &Run, report: &MeasureUdpReport, style: Style) -> String {
    let counted = run.udp.first().is_some_and(|it| !it.trial.client.before.facts.is_empty());
    let mut text = render::udp::text::report(report, style);
    if counted {
        text += "\n";
        text += &render::ledger::text::ledgers(&narrows_runner::ledgers(run), style);
    }
    text
}

fn nothing_measured(run: &Run) -> Failure {
    match &run.ending {
        Ending::Failed(why) => Failure::run(why),
        Ending::Interrupted => Failure::run("interrupted before anything was measured"),
        Ending::Complete => Failure::run("the run holds no measurement"),
    }
}
