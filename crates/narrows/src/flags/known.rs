//! What a shell completes beside flags and paths: causes, kept runs, and the hosts that they measured.

use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use narrows_model::run::history::Headline;
use narrows_runner::{known, stored};
use narrows_views::figures;
use std::ffi::OsStr;

/// Runs offered, newest first. Each file is read while the user waits.
const MAX_RUNS: usize = 50;

/// The causes of a diagnosis.
pub(crate) fn causes() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        known::causes().into_iter().map(|(id, about)| CompletionCandidate::new(id).help(Some(about.into()))).collect()
    })
}

/// The hosts of the newest kept runs.
pub(crate) fn hosts() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let mut hosts: Vec<String> = stored::newest(MAX_RUNS).into_iter().map(|run| run.host).collect();
        hosts.sort_unstable();
        hosts.dedup();
        hosts.into_iter().map(CompletionCandidate::new).collect()
    })
}

/// The figures of the newest kept runs.
pub(crate) fn figures() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let about = |it: Headline| {
            let help = figures::known(&it.name, it.unit).map(|it| it.about.into());
            CompletionCandidate::new(it.name).help(help)
        };
        stored::figures(MAX_RUNS).into_iter().map(about).collect()
    })
}

/// The ids of the newest kept runs, and files.
pub(crate) fn runs() -> ArgValueCompleter {
    ArgValueCompleter::new(|current: &OsStr| {
        let begun = current.to_string_lossy();
        let kept = stored::newest(MAX_RUNS).into_iter().filter(|run| run.id.starts_with(&*begun));
        let mut found: Vec<_> = kept.map(|run| CompletionCandidate::new(run.id).help(Some(run.host.into()))).collect();
        found.extend(PathCompleter::file().complete(current));
        found
    })
}
