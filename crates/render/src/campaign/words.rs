//! The sentences of a campaign.

use crate::compare::words::{figure, plain, share};
use narrows_model::run::campaign::{CampaignEffect, CampaignReport, CampaignTerm, EffectVerdict};

/// A level, with an ellipsis for the words that all levels of its factor begin with.
fn short(level: &str, all: &[String]) -> String {
    let same = level.char_indices().map(|(at, c)| at + c.len_utf8());
    let same = same.take_while(|at| all.iter().all(|other| other.get(..*at) == level.get(..*at)));
    let words = same.filter(|at| level[..*at].ends_with(' ')).last();
    words.map_or_else(|| level.to_owned(), |at| format!("…{}", &level[at..]))
}

/// Levels, one of each factor.
pub(super) fn levels<'a>(report: &'a CampaignReport, of: &'a [String]) -> impl Iterator<Item = (&'a str, String)> {
    report.factors.iter().zip(of).map(|(factor, level)| (factor.name.as_str(), short(level, &factor.levels)))
}

fn sentence(report: &CampaignReport, of: &[String]) -> String {
    levels(report, of).map(|(name, level)| format!("{name}={level}")).collect::<Vec<_>>().join(", ")
}

pub(super) fn title(report: &CampaignReport) -> String {
    let done = report.runs.len();
    match report.mean {
        Some(mean) => format!(
            "{}: {done} of {} runs, mean {} {}",
            report.name,
            report.planned,
            report.figure,
            figure(report.unit, mean)
        ),
        None => format!("{}: {done} of {} runs, nothing was measured", report.name, report.planned),
    }
}

/// `gro: on → off`, `gro=off × rmem=16777216`.
pub(super) fn terms(terms: &[CampaignTerm]) -> String {
    let of = |it: &CampaignTerm| [it.baseline.clone(), it.level.clone()];
    match terms {
        [one] => format!("{}: {} → {}", one.factor, short(&one.baseline, &of(one)), short(&one.level, &of(one))),
        more => {
            more.iter().map(|it| format!("{}={}", it.factor, short(&it.level, &of(it)))).collect::<Vec<_>>().join(" × ")
        }
    }
}

pub(super) fn verdict(of: &CampaignEffect, report: &CampaignReport) -> String {
    match of.verdict {
        EffectVerdict::Nothing => format!("{} (within {})", short_verdict(of), plain(report.margin)),
        _ => short_verdict(of).to_owned(),
    }
}

pub(super) const fn short_verdict(of: &CampaignEffect) -> &'static str {
    match of.verdict {
        EffectVerdict::Raises => "raises",
        EffectVerdict::Lowers => "lowers",
        EffectVerdict::Nothing => "does nothing",
        EffectVerdict::CannotTell if of.interval.is_none() => "too few runs",
        EffectVerdict::CannotTell => "cannot tell",
        EffectVerdict::Aliased => "aliased",
    }
}

/// The best combination, and the factors that do nothing.
pub(super) fn findings(report: &CampaignReport) -> impl Iterator<Item = String> {
    let best = report.best.as_ref().map(|it| {
        let gain = match (it.gain, it.gain_interval) {
            (Some(gain), Some([low, high])) => {
                format!(", {} ({} to {}) against the baseline", share(gain), share(low), share(high))
            }
            (Some(gain), None) => format!(", {} against the baseline", share(gain)),
            (None, _) => String::new(),
        };
        format!("Best: {}: {}{gain}", sentence(report, &it.levels), figure(report.unit, it.mean))
    });
    let idle = (!report.idle.is_empty())
        .then(|| format!("Does nothing (within {}): {}", plain(report.margin), report.idle.join(", ")));
    best.into_iter().chain(idle)
}

/// Runs that failed, and what else limits the results.
pub(super) fn notes(report: &CampaignReport) -> impl Iterator<Item = String> {
    let failed = report.runs.iter().filter_map(|run| {
        let why = run.failed.as_ref()?;
        let (step, all, id) = (run.step, report.planned, &run.id);
        Some(format!("run {step} of {all}, {id} ({}, {}) failed: {why}", run.host, sentence(report, &run.levels)))
    });
    report.warnings.iter().cloned().chain(failed)
}

/// How the verdicts come about.
pub(super) fn method(report: &CampaignReport) -> String {
    format!(
        "effects: least squares with blocks and hosts, averaged over the other factors; raises, lowers: p of no effect at {}, \
         corrected for the number of effects (Holm); does nothing: any effect is within {} of the mean, by two one-sided t-tests",
        plain(report.level),
        plain(report.margin)
    )
}
