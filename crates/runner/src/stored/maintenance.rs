//! The store as a whole: runs taken in, written out, deleted, checked; and the figures over time.

pub use super::foreign::Imported;
use super::foreign::{self, As};
use super::kinds::{Kinds, OWN, named};
use super::{Content, Error, Filter, Store, directory, exported, with_inventory};
use narrows_model::run::history::{HistoryReport, SCHEMA, StoredRun, TrendReport};
use narrows_store::{KIND_OF_RUNS, LARGEST, file_name, id::ENDING};
use narrows_sys::files;
use narrows_views::history;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Takes in runs: a run file, JSON lines as written by [`export`], or the run files of a directory; without a path those of the state
/// directory that earlier versions wrote. The files stay.
pub fn import(store: &mut Store, path: Option<&Path>, how: &As, kinds: Kinds) -> Result<Imported, Error> {
    let is_own = path.is_none();
    let mut done = Imported::default();
    let path = path.map_or_else(directory, |path| Ok(path.to_owned()))?;
    match files::list(&path) {
        Ok(names) => {
            for name in &names {
                // The name is the id: what is there is not read again.
                if name.strip_suffix(ENDING).map(|id| store.has(id)).transpose()? == Some(true) {
                    done.known += 1;
                } else if name.ends_with(ENDING) || !is_own {
                    import_in(store, &path, name, (how, kinds), &mut done)?;
                }
            }
        }
        Err(_) if files::exists(&path) => import_file(store, &path, &file_of(&path), None, (how, kinds), &mut done)?,
        Err(error) => done.failed.push(error.to_string()),
    }
    Ok(done)
}

/// The maximum number of files of a configuration.
const FILES_MAX: usize = 10_000;

fn file_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A file of a directory, or the files of a configuration: a directory in it.
fn import_in(store: &mut Store, path: &Path, name: &str, how: (&As, Kinds), done: &mut Imported) -> Result<(), Error> {
    let place = path.join(name);
    let Ok(files) = files::list(&place) else {
        return import_file(store, &place, name, None, how, done);
    };
    if files.len() > FILES_MAX {
        done.failed.push(format!("cannot import {}: it has more than {FILES_MAX} files; split it", place.display()));
        return Ok(());
    }
    for file in files {
        import_file(store, &place.join(&file), &format!("{name}/{file}"), Some(name), how, done)?;
    }
    Ok(())
}

/// Whether a file is a run of narrows, by its content: JSON that begins with the format.
fn is_run(bytes: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Head {
        #[allow(dead_code, reason = "only its presence counts")]
        format: u64,
    }
    let line = bytes.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty()).unwrap_or_default();
    serde_json::from_slice::<Head>(line).is_ok() || serde_json::from_slice::<Head>(bytes).is_ok()
}

fn import_file(
    store: &mut Store,
    path: &Path,
    name: &str,
    of: Option<&str>,
    (how, kinds): (&As, Kinds),
    done: &mut Imported,
) -> Result<(), Error> {
    let bytes = match files::read(path, LARGEST) {
        Ok(bytes) => bytes,
        Err(error) => {
            done.failed.push(error.to_string());
            return Ok(());
        }
    };
    let is_lines = path.extension().is_some_and(|it| it == "jsonl" || it == "ndjson");
    let is_own = path.to_string_lossy().ends_with(ENDING) || is_run(&bytes) || exported::entry(&bytes).is_some();
    if !is_lines && !is_own {
        return foreign::import(store, path, name, of, how, done);
    }
    let lines: Vec<(&[u8], Option<usize>)> = if is_lines {
        bytes.split(|byte| *byte == b'\n').zip((1..).map(Some)).collect()
    } else {
        vec![(bytes.as_slice(), None)]
    };
    for (line, at) in lines.into_iter().filter(|(line, _)| !line.trim_ascii().is_empty()) {
        match exported::import(store, (line, path, at), kinds)? {
            Ok(true) => done.new += 1,
            Ok(false) => done.known += 1,
            Err(why) => done.failed.push(why),
        }
    }
    Ok(())
}

/// The store with the runs of earlier versions taken in, for those who list it.
/// Errors: the store cannot be opened or written.
pub fn whole() -> Result<Store, Error> {
    let mut store = super::store()?;
    // What cannot be read there is named by `narrows store import`. Another store takes them in only if the user asks.
    let _ = (super::chosen().is_none() && files::exists(&directory()?))
        .then(|| import(&mut store, None, &As::default(), OWN))
        .transpose()?;
    Ok(store)
}

/// Writes runs that match to a directory, one file each, or into one file of JSON lines; how many there were.
/// Errors: a run is damaged, or a file cannot be written.
pub fn export(store: &Store, filter: &Filter, to: &Path) -> Result<u64, Error> {
    let mut runs = store.list(filter, 0, i64::MAX.unsigned_abs())?;
    runs.reverse();
    let is_lines = to.extension().is_some_and(|it| it == "jsonl" || it == "ndjson");
    if !is_lines {
        files::make_public_directory(to)?;
    }
    let (mut lines, mut count) = (Vec::new(), 0);
    for run in &runs {
        let Some((kind, json)) = store.json(&run.id)? else { continue };
        count += 1;
        let json = exported::line(run, &kind, json)?;
        if is_lines {
            lines.extend(json);
            lines.push(b'\n');
            continue;
        }
        let name = match kind.as_str() {
            KIND_OF_RUNS => file_name(&run.id),
            kind => file_name(&run.id).replace(ENDING, &format!(".{kind}.json")),
        };
        files::write_whole(&to.join(name), &json, 0o600)?;
    }
    if is_lines {
        files::write_whole(to, &lines, 0o600)?;
    }
    Ok(count)
}

/// Deletes runs; how many there were. [`undo`] brings them back for a week, unless this is `for_good`.
pub fn delete(store: &mut Store, ids: &[String], for_good: bool) -> Result<usize, Error> {
    let deleted = store.delete(ids, for_good)?;
    for id in &deleted.forgotten {
        super::spool::delete(id)?;
    }
    for id in ids {
        // Else it would be imported again.
        let file: PathBuf = directory()?.join(file_name(id));
        if files::exists(&file) {
            files::remove(&file)?;
        }
    }
    store.shrink()?;
    Ok(deleted.runs)
}

/// Brings back the runs of the last deletion; how many there were.
pub fn undo(store: &mut Store) -> Result<usize, Error> {
    store.undo()
}

/// The runs that a pruning deletes, newest first: those that meet each condition that is given, not among the newest `keep`, begun
/// before a time.
pub fn prunable(store: &Store, keep: Option<u64>, before_unix_us: Option<u64>) -> Result<Vec<StoredRun>, Error> {
    if keep.is_none() && before_unix_us.is_none() {
        return Ok(Vec::new());
    }
    let mut runs = store.list(&Filter::default(), keep.unwrap_or(0), i64::MAX.unsigned_abs())?;
    runs.retain(|run| before_unix_us.is_none_or(|before| run.started_unix_us < before));
    Ok(runs)
}

/// The time so long ago, microseconds since the Unix epoch.
pub fn ago(time: Duration) -> u64 {
    let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    narrows_sys::clock::unix_us().saturating_sub(us)
}

/// Checks the store and each run in it; what is wrong, by run.
pub fn check(store: &Store, kinds: Kinds) -> Result<BTreeMap<String, String>, Error> {
    let why = |error: Error| match error {
        Error::Damaged(_, why) => why,
        error => error.to_string(),
    };
    store.check(|word, json| {
        let read = named(kinds, word, "it").and_then(|kind| (kind.read)(json, "it"));
        read.map(drop).map_err(why)
    })
}

/// A page of the list.
pub fn page(
    store: &Store,
    filter: &Filter,
    offset: u64,
    limit: u64,
    figure: Option<&str>,
) -> Result<HistoryReport, Error> {
    let (total, mut runs) = (store.count(filter)?, store.list(filter, offset, limit)?);
    if let Some(name) = figure {
        runs.iter_mut().for_each(|run| run.figures.retain(|it| it.name == name));
    }
    Ok(HistoryReport { schema: SCHEMA.to_owned(), offset, total, runs })
}

/// The first letters of tags of runs that were made under settings of their own: they are no points of a series of ordinary runs.
const VARIED: [&str; 2] = ["campaign:", "optimise:"];

/// Figures over time, with what changed in the inventory around each change point.
pub fn trend(
    store: &Store,
    filter: &Filter,
    figure: Option<&str>,
    change_min: f64,
    kinds: Kinds,
) -> Result<TrendReport, Error> {
    let without: &[&str] = if filter.tag.is_some() { &[] } else { &VARIED };
    let points = store.points(filter, figure, without)?.into_iter().map(|it| (it.run, it.figure)).collect();
    let mut report = history::trend(points, change_min);
    for change in report.series.iter_mut().flat_map(|it| &mut it.changes) {
        let [before, after] = change.between.each_ref().map(|id| with_inventory(id, kinds));
        history::inventory(change, before.and_then(|before| Ok([before, after?])));
    }
    Ok(report)
}

/// A run as it is listed, and its content; `None` where there is none of this id.
/// Errors: the store cannot be read, or the run is damaged.
pub fn show(store: &Store, id: &str, kinds: Kinds) -> Result<Option<(StoredRun, Content)>, Error> {
    let Some((word, json)) = store.json(id)? else { return Ok(None) };
    let Some(entry) = store.list(&Filter { id: Some(id.to_owned()), ..Filter::default() }, 0, 1)?.pop() else {
        return Ok(None);
    };
    let content = (named(kinds, &word, id)?.read)(&json, id)?;
    Ok(Some((entry, content)))
}
