//! Records into the store.

use super::kinds::listed;
use super::record::Record;
use super::{Begun, Error, MADE_BY, Store, local, server, store, why};
use narrows_model::Run;
use narrows_model::run::history::StoredRun;
use narrows_sys::clock;
use serde::Serialize;
use std::time::Duration;

/// Puts a record that knows its id and time into the store, or replaces it there, with tags; all or nothing. Call it after every step of a
/// run.
pub fn keep<By, R: Record<By>>(record: &R, tags: &[String]) -> Result<(), Error> {
    put_new(&StoredRun { who: who(), tags: tags.to_vec(), ..record.listed() }, record)
}

/// Puts a record that has just been made into the store.
pub fn keep_new<By, R: Record<By>>(record: &R, begun: &Begun) -> Result<(), Error> {
    let entry = StoredRun {
        id: begun.id.clone(),
        started_unix_us: begun.unix_us,
        who: who(),
        tags: begun.tags.clone(),
        made_by: MADE_BY.to_owned(),
        ..record.listed()
    };
    put_new(&entry, record)
}

/// Puts a run into this store.
pub(super) fn put_run(store: &mut Store, run: &Run) -> Result<(), Error> {
    let entry = StoredRun { who: who(), ..listed(run) };
    store.put(&entry, Run::KIND, &json(&entry, run)?)
}

fn json(entry: &StoredRun, record: &impl Serialize) -> Result<Vec<u8>, Error> {
    serde_json::to_vec(record).map_err(|error| Error::Encode(entry.id.clone(), error.to_string()))
}

/// A server that failed is asked again after so long: a measurement does not wait for it again and again.
const AGAIN: Duration = Duration::from_secs(60);

/// Puts what was just measured. If a server does not take it, it waits in the local store, as what follows soon does.
fn put_new<By, R: Record<By>>(entry: &StoredRun, record: &R) -> Result<(), Error> {
    let (kind, json) = (R::KIND, json(entry, record)?);
    let Some(server) = server() else { return store()?.put(entry, kind, &json) };
    let has_failed = why().as_ref().is_some_and(|(since, _)| since.elapsed() < AGAIN);
    if !has_failed {
        match store().and_then(|mut store| store.put(entry, kind, &json)) {
            Err(error) => *why() = Some((clock::now(), error.to_string())),
            done => return done,
        }
    }
    local()?.put_waiting(entry, kind, &json, &server)
}

/// The user, by the environment.
fn who() -> String {
    let named = ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|word| !word.is_empty()));
    named.unwrap_or_else(|| if narrows_sys::process::is_root() { "root".to_owned() } else { String::new() })
}
