//! The report of `narrows optimise` as text and Markdown.

mod files;
#[cfg(test)]
mod tests;

pub use files::{File, files};

use crate::words::clean;
use narrows_model::Ending;
use narrows_model::run::optimise::{OptimiseGain, OptimiseReport, OptimiseTrial};
use narrows_model::words::units;
use std::fmt::Write as _;

pub fn text(report: &OptimiseReport) -> String {
    written(report, &Form { heading: |title| title.to_owned(), fence: "", indent: "  ", bullet: "  " })
}

/// For a ticket or a wiki.
pub fn markdown(report: &OptimiseReport) -> String {
    written(report, &Form { heading: |title| format!("## {title}\n"), fence: "```\n", indent: "", bullet: "- " })
}

/// How the parts are set.
struct Form {
    heading: fn(&str) -> String,
    fence: &'static str,
    indent: &'static str,
    bullet: &'static str,
}

fn written(report: &OptimiseReport, form: &Form) -> String {
    let mut out = format!("{}\n", headline(report));
    let mut section = |title: &str, body: &str| {
        let _ = write!(out, "\n{}\n{body}", (form.heading)(title));
    };
    let code = |text: &str| {
        let lines: String = text.lines().map(|line| format!("{}{line}\n", form.indent)).collect();
        format!("{}{lines}{}", form.fence, form.fence)
    };
    for (place, settings) in files::hosts(report) {
        let commands: String = settings
            .iter()
            .map(|it| {
                let before = it.before.as_ref().map_or_else(String::new, |it| format!("; before: {it}"));
                format!("{}    # {}{}\n", clean(&it.set.to_string()), clean(&it.origin), clean(&before))
            })
            .collect();
        section(&format!("Commands at {place}"), &code(&commands));
        if let Some(file) = files::sysctl_d(&settings) {
            section(&format!("/etc/sysctl.d/90-narrows.conf at {place}"), &code(&file));
        }
        if let Some(file) = files::script(&settings) {
            section(&format!("Script at {place}"), &code(&file));
        }
        section(&format!("Ansible tasks for {place}"), &code(&files::ansible(&settings)));
    }
    let tried: String = report
        .tried
        .iter()
        .map(|it| {
            let gain = it.gain.as_ref().map_or_else(String::new, |gain| format!("{}: ", ratio(gain)));
            let settings: String = it.what.iter().map(|what| tried_setting(report, it, what, form)).collect();
            format!("{}{gain}{} ({})\n{settings}", form.bullet, clean(&it.outcome), clean(&it.origin))
        })
        .collect();
    if !tried.is_empty() {
        section("Tried", &tried);
    }
    let advice: String = report.advice.iter().map(|it| format!("{}{}\n", form.bullet, clean(it))).collect();
    if !advice.is_empty() {
        section("Not applied", &advice);
    }
    let verdict = report.verdict.as_ref().map_or_else(String::new, |it| format!("Last diagnosis: {}\n", clean(it)));
    let state = match (report.kept, report.settings.is_empty(), &report.ending) {
        (true, ..) => "The settings are in force (`narrows tune list` at each host).",
        (false, _, Ending::Failed(_)) => "See above for what could not be done.",
        (false, true, _) => "Nothing is changed.",
        (false, false, _) => "All changes are rolled back.",
    };
    let _ = write!(
        out,
        "\n{verdict}Stopped: {}. {state}\nRuns: {} with tag {}\n",
        clean(&report.stopped),
        report.runs,
        clean(&report.tag)
    );
    out
}

/// A setting that was tried. What gained in a group may have been dropped, or replaced, by a later trial.
fn tried_setting(report: &OptimiseReport, trial: &OptimiseTrial, what: &str, form: &Form) -> String {
    let joined = ["kept", "needed"].contains(&trial.outcome.as_str());
    let in_set = report.settings.iter().any(|it| format!("{}: {}", it.at, it.set) == what);
    let later = if joined && !in_set { "  (not in the final set)" } else { "" };
    format!("{}{}{}{later}\n", if form.indent.is_empty() { "  " } else { form.indent }, form.bullet, clean(what))
}

fn headline(report: &OptimiseReport) -> String {
    let server = clean(&report.server);
    let count = match report.settings.len() {
        0 => return format!("{server}, {}: no setting gains", report.direction.word()),
        1 => "1 setting".to_owned(),
        more => format!("{more} settings"),
    };
    match &report.gain {
        None => format!("{server}, {}: {count}; the gain of the whole set was not measured", report.direction.word()),
        Some(gain) => {
            let shift = gain.shift_interval_bps.map_or_else(String::new, |[low, high]| {
                format!(
                    ", shift {} (Hodges-Lehmann, {} to {})",
                    units::bps(gain.shift_bps),
                    units::bps(low),
                    units::bps(high)
                )
            });
            let [before, after] = [&gain.before_bps, &gain.after_bps].map(|it| units::bps(mean(it)));
            format!(
                "{server}, {}: {before} -> {after} with {count}\n{} (95 % intervals){shift}",
                report.direction.word(),
                ratio(gain)
            )
        }
    }
}

fn ratio(gain: &OptimiseGain) -> String {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let [low, high] = gain.interval.map(percent);
    format!("{:+.1} % ({low:+.1} to {high:+.1} %)", percent(gain.ratio))
}

#[allow(clippy::cast_precision_loss)] // a few runs
fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
