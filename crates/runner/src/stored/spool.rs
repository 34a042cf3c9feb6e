//! Long measurements on disk: written while they run, made whole after a crash, and shown in parts.

use crate::measure::Watch;
use crate::reports::Reports;
use crate::state;
use narrows_model::run::{Ending, Purpose, RunPlan, TrialRecord};
use narrows_model::{LoadPlan, Place, Progress, Run, Trial};
use narrows_store::spool::{Cover, Entry, Spool, read};
use narrows_store::{Error, Store, id};
use narrows_sys::files;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The end of the name of a spool, after the id of its run.
const ENDING: &str = ".samples.zst";
/// As long as the run is not in the store.
const PART: &str = ".part.zst";
/// If it cannot be read.
const DAMAGED: &str = ".damaged.zst";
/// Intervals of a trial that are shown, if a part is asked for or text is written.
const ROWS: u64 = 120;

fn directory() -> Result<PathBuf, Error> {
    state::directory().map(|state| state.join("samples")).ok_or(Error::NoPlace)
}

/// The file of a run; an id from a file or a shared store never leaves the directory.
fn file_of(id: &str, ending: &str) -> Result<PathBuf, Error> {
    Ok(directory()?.join(format!("{}{ending}", id::safe(id))))
}

/// Passes a measurement on to who shows it, and writes it to disk.
pub struct Spooled<'a> {
    inner: &'a mut dyn Watch,
    samples: &'a mut Samples,
}

/// The samples of a measurement on their way to disk.
pub struct Samples {
    spool: Option<Spool>,
    failed: Option<Error>,
}

impl Samples {
    /// Of the run of this id; `save`: whether anything is written.
    pub fn new(id: &str, save: bool) -> Self {
        let spool = || {
            files::make_directory(&directory()?)?;
            Ok(Spool::new(file_of(id, PART)?))
        };
        let spool = save.then(spool).transpose();
        // Without a state directory nothing is saved, which whoever saves the run says.
        let (spool, failed) = spool.map_or_else(|error| (None, Some(error)), |spool| (spool, None));
        Self { spool, failed: failed.filter(|error| !matches!(error, Error::NoPlace)) }
    }

    /// Passes the measurement on to who shows it.
    pub fn beside<'a>(&'a mut self, inner: &'a mut dyn Watch) -> Spooled<'a> {
        Spooled { inner, samples: self }
    }

    fn put(&mut self, entry: impl FnOnce() -> Entry) {
        if let Some(error) = self.spool.as_mut().and_then(|spool| spool.put(&entry()).err()) {
            (self.spool, self.failed) = (None, Some(error));
        }
    }

    /// The run is over, and in the store if it is to be: the samples stay on disk where its records have not all of them. Gives what
    /// kept them from being written.
    pub fn finish(mut self, run: &Run) -> Option<Error> {
        let kept = |trial: &TrialRecord| trial.trial.client.end().host().len() + trial.trial.server.end().host().len();
        let kept = run.trials.iter().map(kept).sum::<usize>() as u64;
        let ended = self
            .spool
            .take()
            .map(|it| if it.reports() > kept { it.finish(&file_of(&run.id, ENDING)?) } else { it.discard() });
        self.failed.or_else(|| ended?.err())
    }
}

impl Watch for Spooled<'_> {
    fn planned(&mut self, run: &Run) {
        self.samples.put(|| Entry::Run(Box::new(run.clone())));
    }

    fn begins(&mut self, plan: &LoadPlan) {
        self.samples.put(|| Entry::Trial(plan.clone()));
        self.inner.begins(plan);
    }

    fn progress(&mut self, place: Place, progress: &Progress) {
        self.samples.put(|| Entry::Report(place, progress.clone()));
        self.inner.progress(place, progress);
    }

    fn ended(&mut self, trial: &Trial) {
        self.inner.ended(trial);
    }
}

/// Takes the measurements into the store whose programs were killed, by this function.
pub(super) fn recover(store: &mut Store, put: fn(&mut Store, &Run) -> Result<(), Error>) -> Result<(), Error> {
    for name in files::list(&directory()?).unwrap_or_default() {
        let Some(id) = name.strip_suffix(PART) else { continue };
        let path = directory()?.join(&name);
        // Who still writes it has it locked.
        let Some(_locked) = files::try_lock(&path)? else { continue };
        let known = store.has(id)?;
        match if known { Ok(None) } else { killed(&path) } {
            Ok(run) => run.iter().try_for_each(|run| put(store, run))?,
            // It must not keep the store from being opened.
            Err(_) => {
                files::rename(&path, &file_of(id, DAMAGED)?)?;
                continue;
            }
        }
        files::rename(&path, &file_of(id, ENDING)?)?;
    }
    Ok(())
}

/// What a killed program had measured; `None` where it was killed before it had begun.
fn killed(path: &std::path::Path) -> Result<Option<Run>, Error> {
    let mut run = None;
    let mut plans: Vec<LoadPlan> = Vec::new();
    let mut reports: BTreeMap<(u32, Place), Reports> = BTreeMap::new();
    read(
        path,
        |_| true,
        |trial, entry| match entry {
            Entry::Run(header) => run = Some(*header),
            Entry::Trial(plan) => plans.push(plan),
            Entry::Report(place, progress) => reports.entry((trial, place)).or_default().push(progress),
        },
    )?;
    let Some(mut run) = run else { return Ok(None) };
    for (nth, plan) in (0..).zip(plans) {
        let mut of = |place: Place| {
            let reports = reports.remove(&(nth, place)).unwrap_or_default().into_kept();
            plan.partial_record(
                place,
                &reports,
                "narrows was killed: only the reports of this end are known".to_owned(),
            )
        };
        let (client, server) = (of(Place::Client), of(Place::Server));
        let elapsed_us = client.flow_time_us();
        let at_us = run.elapsed_us;
        run.elapsed_us += elapsed_us;
        let trial = Trial { plan, client, server, elapsed_us };
        run.trials.push(TrialRecord { purpose: Purpose::Measure, at_us, trial });
    }
    run.ending = Ending::Failed("narrows was killed; this is what was measured until then".to_owned());
    Ok(Some(run))
}

/// Deletes the samples of a run.
pub(super) fn delete(id: &str) -> Result<(), Error> {
    let path = file_of(id, ENDING)?;
    if files::exists(&path) { Ok(files::remove(&path)?) } else { Ok(()) }
}

/// Cuts each trial of a measurement to a time range, microseconds since the trial began, at the resolution at which it was
/// sampled but in a readable number of intervals. Returns whether it is a measurement with data in that range.
pub fn zoom(run: &mut Run, from_us: u64, to_us: u64) -> Result<bool, Error> {
    if !matches!(run.plan, RunPlan::Measure(_)) {
        return Ok(false);
    }
    let path = file_of(&run.id, ENDING).ok().filter(|path| files::exists(path));
    let mut any = false;
    for (nth, TrialRecord { trial, .. }) in (0..).zip(&mut run.trials) {
        let mut reports: BTreeMap<Place, Reports> = BTreeMap::new();
        // The samples next to both ends, too: which of them count is the record's to say.
        let more_us = trial.plan.times_mut().map_or(0, |[interval_ms, _]| interval_ms.saturating_mul(1_000));
        let span = from_us.saturating_sub(more_us)..=to_us.saturating_add(more_us);
        if let Some(path) = &path {
            let wanted = |it: Cover| it.trial == nth && it.to_us >= *span.start() && it.from_us <= *span.end();
            read(path, wanted, |_, entry| match entry {
                Entry::Report(place, progress) if span.contains(&progress.at_us) => {
                    reports.entry(place).or_default().push(progress);
                }
                _ => {}
            })?;
        }
        for (place, record) in [(Place::Client, &mut trial.client), (Place::Server, &mut trial.server)] {
            record.cut(&reports.remove(&place).unwrap_or_default().into_kept(), from_us, to_us);
        }
        trial.elapsed_us = trial.client.flow_time_us();
        any |= trial.elapsed_us > 0;
        if let Some([_, omit_ms]) = trial.plan.times_mut() {
            *omit_ms = 0;
        }
    }
    coarsen(run);
    Ok(any)
}

/// Lengthens the intervals of a measurement until there are no more than one can look at; whether that was needed.
pub fn coarsen(run: &mut Run) -> bool {
    let mut longer = false;
    for TrialRecord { trial, .. } in &mut run.trials {
        let shown_ms = trial.client.flow_time_us() / 1_000;
        if let Some([interval_ms, _]) = trial.plan.times_mut() {
            // 1, 2, 5, 10, ... times as long.
            let steps = (0..12).flat_map(|power| [1, 2, 5].map(|digit| digit * 10_u64.pow(power)));
            let fits = |step: &u64| shown_ms / interval_ms.saturating_mul(*step).max(1) <= ROWS;
            let step = steps.into_iter().find(fits).unwrap_or(1);
            *interval_ms = interval_ms.saturating_mul(step);
            longer |= step > 1;
        }
    }
    longer
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_never_leaves_the_directory() {
        let Ok(directory) = directory() else {
            return println!("NOT CHECKED: paths, since there is no state directory");
        };
        for id in ["../../x", "/etc/x", "..", "a/b"] {
            for ending in [ENDING, PART, DAMAGED] {
                let file = file_of(id, ending).expect("a place");
                assert_eq!(file.parent(), Some(directory.as_path()), "{id}");
                let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
                assert!(name.ends_with(ending) && !name.starts_with('.'), "{name}");
            }
        }
    }
}
