//! Runs on disk: in the store of the state directory, by id, or in files that the user names.

mod entry;
pub(crate) mod exported;
pub mod foreign;
mod kinds;
pub mod maintenance;
mod record;
pub mod spool;

use crate::state;
pub use entry::{keep, keep_new};
pub(crate) use kinds::listed;
pub use kinds::{KINDS, Kinds, OWN};
use narrows_model::Run;
use narrows_model::run::history::Headline;
use narrows_store::Error;
pub use narrows_store::{Error as StoreError, Filter, Store};
pub use record::{Content, Kind, Record, of, plan_hash};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use thiserror::Error;

/// Why a run cannot be loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The user's word is neither a file nor the id of a run.
    #[error("cannot find run `{}`: neither a file nor a run id in {}", .0.display(), .1.display())]
    Unknown(PathBuf, PathBuf),
    /// The run is of another command.
    #[error("cannot read {0} as a run: it is a record of `narrows {1}`; show it with `narrows history show {0}`")]
    Other(String, &'static str),
    /// The file or the store cannot be read.
    #[error(transparent)]
    Stored(#[from] Error),
}

/// Where a stored run is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    File(PathBuf),
    /// In the store, under this id.
    Id(String),
}

/// The directory of runs of earlier versions: `runs/` in the state directory.
pub(crate) fn directory() -> Result<PathBuf, Error> {
    state::directory().map(|state| state.join("runs")).ok_or(Error::NoPlace)
}

/// The file of the local store: `runs.db` in the state directory.
fn local_file() -> Result<PathBuf, Error> {
    state::directory().map(|state| state.join("runs.db")).ok_or(Error::NoPlace)
}

/// The variable that chooses the store.
pub(crate) const STORE: &str = "NARROWS_STORE";

/// The store that the user chose: a file, or the address of a PostgreSQL server, which can have a password in it.
fn chosen() -> Option<PathBuf> {
    std::env::var_os(STORE).filter(|word| !word.is_empty()).map(PathBuf::from)
}

/// The address of the chosen server.
fn server() -> Option<PathBuf> {
    chosen().filter(|it| narrows_store::is_address(it))
}

/// Where the store is, for the user: its file, or its address without the password.
pub fn place() -> Result<PathBuf, Error> {
    chosen().map_or_else(local_file, |chosen| Ok(narrows_store::shown(&chosen)))
}

/// Where the store is, for who opens it: its file, whose directory is made, or its address.
/// Errors: there is no place for it.
pub fn address() -> Result<PathBuf, Error> {
    let place = chosen().map_or_else(local_file, Ok)?;
    if let Some(directory) = place.parent().filter(|_| !narrows_store::is_address(&place)) {
        narrows_sys::files::make_directory(directory)?;
    }
    Ok(place)
}

/// The store, which is made if there is none.
pub fn store() -> Result<Store, Error> {
    opened().map(|(store, _)| store)
}

/// Opens the store; also returns how many waiting runs were moved into it.
pub fn opened() -> Result<(Store, u64), Error> {
    let mut store = chosen().map_or_else(local, |chosen| Store::open(&chosen))?;
    let may_wait = server().is_some() && local_file().is_ok_and(|it| narrows_sys::files::exists(&it));
    let sent = if may_wait { local()?.send(&mut store)? } else { 0 };
    *why() = None;
    spool::recover(&mut store, entry::put_run)?;
    Ok((store, sent))
}

/// The store of the state directory.
fn local() -> Result<Store, Error> {
    let file = local_file()?;
    if let Some(directory) = file.parent() {
        narrows_sys::files::make_directory(directory)?;
    }
    Store::open(&file)
}

/// Why runs wait in the local store, if some of this process do, and since when.
static WAITING: Mutex<Option<(Instant, String)>> = Mutex::new(None);

fn why() -> MutexGuard<'static, Option<(Instant, String)>> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the user must know about runs that could not be put into the store.
pub fn waiting() -> Option<String> {
    let (_, why) = why().clone()?;
    let file = local_file().ok()?;
    Some(format!(
        "kept in {} until the next command that reaches the store, or `narrows store send`: {why}",
        file.display()
    ))
}

/// The store where there is one.
pub fn existing_store() -> Result<Option<Store>, Error> {
    let is_there = server().is_some() || narrows_sys::files::exists(&place()?);
    is_there.then(store).transpose()
}

/// Where a run is: in a file of this name, else in the store, else in the directory of earlier versions.
pub fn find(word: &Path) -> Result<Source, LoadError> {
    if narrows_sys::files::exists(word) || word.components().count() != 1 {
        return Ok(Source::File(word.to_owned()));
    }
    let id = word.to_string_lossy();
    if let Some(id) = existing_store()?.map(|store| store.named(&id)).transpose()?.flatten() {
        return Ok(Source::Id(id));
    }
    let by_id = directory()?.join(narrows_store::file_name(&id));
    if narrows_sys::files::exists(&by_id) {
        Ok(Source::File(by_id))
    } else {
        Err(LoadError::Unknown(word.to_owned(), place()?))
    }
}

pub fn load(word: &Path, kinds: Kinds) -> Result<Run, LoadError> {
    match find(word)? {
        Source::File(file) => Ok(narrows_store::load(&file)?),
        Source::Id(id) => {
            let found = existing_store()?.map(|store| store.json(&id)).transpose()?.flatten();
            let Some((word, json)) = found else { return Err(LoadError::Unknown(word.to_owned(), place()?)) };
            let kind = kinds::named(kinds, &word, &id)?;
            let run = (kind.read)(&json, &id)?.take();
            Ok(*run.ok_or(LoadError::Other(id, kind.command))?)
        }
    }
}

/// A run of the store for its inventory. Errors: a sentence; records of most other commands have none.
pub(crate) fn with_inventory(id: &str, kinds: Kinds) -> Result<Run, String> {
    load(Path::new(id), kinds).map_err(|error| match error {
        LoadError::Other(id, _) => format!("the parameters of the hosts were not recorded in run {id}"),
        error => error.to_string(),
    })
}

/// A record is no larger.
const RECORD_BYTES_MAX: u64 = 256 << 20;

/// The record of a file that holds another one than a run, as `mesh --output` writes it; `None`: this program does not know it.
pub fn of_file(file: &Path, kinds: Kinds) -> Option<Content> {
    let json = narrows_sys::files::read(file, RECORD_BYTES_MAX).ok()?;
    // A record with a schema is of the kind that this names; of others the fields tell.
    let value: serde_json::Value = serde_json::from_slice(&json).ok()?;
    let schema = value.get("schema").and_then(serde_json::Value::as_str);
    let named = schema.map(|it| it.split('/').next().unwrap_or_default().trim_start_matches("narrows."));
    let is_of = |kind: &&Kind| kind.word != narrows_store::KIND_OF_RUNS && named.is_none_or(|word| word == kind.word);
    let mut others = kinds.iter().copied().flatten().filter(is_of);
    others.find_map(|kind| (kind.read)(&json, &file.to_string_lossy()).ok())
}

/// A kept run: its id and its host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub id: String,
    /// The host that it measured, in the user's words.
    pub host: String,
}

/// The figures of the newest runs by name, each once with one of its values; none where the store cannot be read.
pub fn figures(limit: usize) -> Vec<Headline> {
    let store = existing_store().ok().flatten();
    let listed = store.and_then(|store| store.list(&Filter::default(), 0, limit as u64).ok()).unwrap_or_default();
    let mut figures: Vec<Headline> = listed.into_iter().flat_map(|run| run.figures).collect();
    figures.sort_by(|a, b| a.name.cmp(&b.name));
    figures.dedup_by(|a, b| a.name == b.name);
    figures
}

/// The newest runs of the state directory, newest first; those that cannot be read are left out.
pub fn newest(limit: usize) -> Vec<Kept> {
    let store = existing_store().ok().flatten();
    let listed = store.and_then(|store| store.list(&Filter::default(), 0, limit as u64).ok()).unwrap_or_default();
    let mut newest: Vec<Kept> = listed.into_iter().map(|run| Kept { id: run.id, host: run.server }).collect();
    let Ok(directory) = directory() else { return newest };
    let names = narrows_sys::files::list(&directory).unwrap_or_default();
    let kept = |name: &String| {
        let id = name.strip_suffix(narrows_store::id::ENDING)?.to_owned();
        Some(Kept { id, host: narrows_store::host(&directory.join(name)).ok()? })
    };
    // The names are sorted, and an id begins with its date.
    let files = names.iter().rev().filter_map(kept).take(limit.saturating_sub(newest.len()));
    for run in files.collect::<Vec<_>>() {
        if newest.iter().all(|other| other.id != run.id) {
            newest.push(run);
        }
    }
    newest
}

/// Writes text that the user asked for to a file, for those to read whom the umask lets.
pub fn write(path: &Path, text: &str) -> Result<(), narrows_sys::Error> {
    narrows_sys::files::write_whole(path, text.as_bytes(), 0o666)
}

/// Checks that [`write()`] can write the file, before anything is measured.
pub fn check(path: &Path) -> Result<(), narrows_sys::Error> {
    narrows_sys::files::check_writable(path)
}

/// Saves a run to a file, which is replaced atomically.
pub fn save(run: &Run, file: &Path) -> Result<(), Error> {
    narrows_store::save(run, file)
}

/// The id of a new run, and the name and version of this program.
pub fn new_name() -> Result<(String, String), Error> {
    Ok((Begun::now()?.id, MADE_BY.to_owned()))
}

/// A run that begins now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    pub id: String,
    /// Microseconds since the Unix epoch.
    pub unix_us: u64,
    /// Its tags in the store.
    pub tags: Vec<String>,
}

impl Begun {
    /// With a new id.
    pub fn now() -> Result<Self, Error> {
        let unix_us = narrows_sys::clock::unix_us();
        Ok(Self { id: narrows_store::new_id(unix_us)?, unix_us, tags: Vec::new() })
    }
}

/// The name and version of this program.
const MADE_BY: &str = concat!("narrows ", env!("CARGO_PKG_VERSION"));
