//! The report of `narrows optimise`.

mod files;
#[cfg(test)]
mod tests;

pub use files::{File, files};

use crate::doc::{Doc, Pair, Sentence};
use crate::format::document;
use narrows_model::Ending;
use narrows_model::run::optimise::{OptimiseGain, OptimiseReport, OptimiseTrial, OptimisedSetting};
use narrows_model::words::units;

document!(OptimiseReport, "an optimisation", |it, _| doc(it));

pub(crate) fn doc(report: &OptimiseReport) -> Doc {
    let (headline, gain) = headline(report);
    let doc = Doc::new("Settings for a path").headline(&headline);
    let doc = gain.iter().fold(doc, |doc, gain| doc.plain(gain));
    let doc = files::hosts(report).fold(doc, |doc, (place, settings)| {
        let file = |doc: Doc, title: &str, text: Option<String>| match text {
            Some(text) => doc.heading(title).commands("", text.lines().map(str::to_owned)),
            None => doc,
        };
        let doc =
            doc.heading(&format!("Commands at {place}")).commands("", settings.iter().map(|it| command(report, it)));
        let doc = file(doc, &format!("/etc/sysctl.d/90-narrows.conf at {place}"), files::sysctl_d(&settings));
        let doc = file(doc, &format!("Script at {place}"), files::script(&settings));
        file(doc, &format!("Ansible tasks for {place}"), Some(files::ansible(&settings)))
    });
    let tried: Vec<Pair> = report.tried.iter().flat_map(|it| tried(report, it)).collect();
    let doc = if tried.is_empty() { doc } else { doc.heading("Tried").pairs(tried) };
    let advice = report.advice.iter().map(|it| Sentence::listed(it));
    let doc = if report.advice.is_empty() { doc } else { doc.heading("Not applied").sentences(advice) };
    let state = match (report.kept, report.settings.is_empty(), &report.ending) {
        (true, ..) => "The settings are in force (`narrows tune list` at each host).",
        (false, _, Ending::Failed(_)) => "See above for what could not be done.",
        (false, true, _) => "Nothing is changed.",
        (false, false, _) => "All changes are rolled back.",
    };
    let verdict = match &report.verdict {
        Some(it) => Some(format!("Last diagnosis: {it}")),
        None if report.settings.is_empty() => None,
        None => Some("The path was not diagnosed again with these settings.".to_owned()),
    };
    let verdict = verdict.map(|it| Sentence::new(&it));
    let stopped = Sentence::new(&format!("Stopped: {}. {state}", report.stopped));
    let runs = Sentence::new(&format!("Runs: {} with tag {}", report.runs, report.tag));
    doc.heading("How it ended").sentences(verdict.into_iter().chain([stopped, runs]))
}

/// A command, where it comes from, whether it is needed is known, and the value before.
fn command(report: &OptimiseReport, it: &OptimisedSetting) -> String {
    let alone = if alone(report, it) { "" } else { "; gain not known alone" };
    let before = it.before.as_ref().map_or_else(String::new, |it| format!("; before: {it}"));
    format!("{}    # {}{alone}{before}", it.set, it.origin)
}

/// Whether what this setting gains by itself was measured: it was added, or left out, alone.
fn alone(report: &OptimiseReport, it: &OptimisedSetting) -> bool {
    let of = |trial: &OptimiseTrial| trial.gain.is_some() && trial.what == [format!("{}: {}", it.at, it.set)];
    report.settings.len() == 1 || report.tried.iter().any(of)
}

/// What was tried at once: the gain, what followed from it, and its settings. What gained in a group may have been dropped, or replaced, by
/// a later trial.
fn tried(report: &OptimiseReport, trial: &OptimiseTrial) -> Vec<Pair> {
    let gain = trial.gain.as_ref().map_or_else(|| "no gain measured".to_owned(), ratio);
    let joined = ["kept", "needed"].contains(&trial.outcome.as_str());
    let setting = |what: &String| {
        let in_set = report.settings.iter().any(|it| format!("{}: {}", it.at, it.set) == *what);
        let later = if joined && !in_set { "  (not in the final set)" } else { "" };
        Pair::new("", &format!("{what}{later}"))
    };
    let outcome = Pair::new(&gain, &format!("{} ({})", trial.outcome, trial.origin));
    std::iter::once(outcome).chain(trial.what.iter().map(setting)).collect()
}

/// What was found, and the gain with its intervals.
fn headline(report: &OptimiseReport) -> (String, Option<String>) {
    let of = format!("{}, {}", report.server, report.direction.word());
    let count = match report.settings.len() {
        0 => return (format!("{of}: no setting gains"), None),
        1 => "1 setting".to_owned(),
        more => format!("{more} settings"),
    };
    let count = match report.settings.iter().filter(|it| !alone(report, it)).count() {
        0 => count,
        some => format!("{count} ({some} of them only tried together: the time ended)"),
    };
    let Some(gain) = &report.gain else {
        return (format!("{of}: {count}; the gain of the whole set was not measured"), None);
    };
    let shift = gain.shift_interval_bps.map_or_else(String::new, |[low, high]| {
        let [shift, low, high] = [gain.shift_bps, low, high].map(units::bps);
        format!(", shift {shift} (Hodges-Lehmann, {low} to {high})")
    });
    let [before, after] = [&gain.before_bps, &gain.after_bps].map(|it| units::bps(mean(it)));
    let gain = format!("{} (95 % intervals){shift}", ratio(gain));
    (format!("{of}: {before} -> {after} with {count}"), Some(gain))
}

fn ratio(gain: &OptimiseGain) -> String {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let [low, high] = gain.interval.map(percent);
    format!("{:+.1} % ({low:+.1} to {high:+.1} %)", percent(gain.ratio))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}
