//! Runs as `narrows store export` writes them. A [`narrows_model::Run`] names itself; another record is written with its kind and with
//! what it is listed with, or it could not be taken in again.

use super::entry::put_run;
use super::kinds::{Kinds, named};
use super::{Error, Store};
use narrows_model::run::history::StoredRun;
use narrows_store::{KIND_OF_RUNS, compat};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::Path;

#[derive(Serialize, Deserialize)]
struct Exported {
    kind: String,
    entry: StoredRun,
    record: Map<String, Value>,
}

/// One line, without its end.
/// Errors: the record is damaged.
pub(super) fn line(entry: &StoredRun, kind: &str, json: Vec<u8>) -> Result<Vec<u8>, Error> {
    if kind == KIND_OF_RUNS {
        return Ok(json);
    }
    let damaged = |error: serde_json::Error| Error::Damaged(entry.id.clone(), error.to_string());
    let record = serde_json::from_slice(&json).map_err(damaged)?;
    serde_json::to_vec(&Exported { kind: kind.to_owned(), entry: entry.clone(), record }).map_err(damaged)
}

/// What a record of another kind than a run is listed with, if these bytes are one as [`line`] writes it.
pub(crate) fn entry(bytes: &[u8]) -> Option<StoredRun> {
    #[derive(Deserialize)]
    struct Head {
        #[allow(dead_code, reason = "only its presence counts")]
        kind: String,
        entry: StoredRun,
    }
    serde_json::from_slice::<Head>(bytes).ok().map(|head| head.entry)
}

/// Takes in one run or record: whether it was new, or what is wrong with it. `line`: its number, in a file of several.
pub(super) fn import(
    store: &mut Store,
    (bytes, path, line): (&[u8], &Path, Option<usize>),
    kinds: Kinds,
) -> Result<Result<bool, String>, Error> {
    let taken = if entry(bytes).is_some() { record(store, bytes, path, kinds)? } else { run(store, bytes, path)? };
    Ok(taken.map_err(|error| match line {
        None => error.to_string(),
        Some(line) => {
            let id = id(bytes).map(|id| format!(" (run {id})")).unwrap_or_default();
            let why = match error {
                // The line of the file is named; what was parsed has only one.
                Error::NoRun(_, why) => {
                    format!("not a narrows run: {}", why.replace(" at line 1 column ", " at column "))
                }
                error => error.to_string(),
            };
            format!("cannot import line {line} of {}{id}: {why}", path.display())
        }
    }))
}

/// Whether it was new, or what is wrong with it.
type Taken = Result<bool, Error>;

fn run(store: &mut Store, bytes: &[u8], path: &Path) -> Result<Taken, Error> {
    Ok(match compat::read(bytes, path) {
        Ok(run) if store.has(&run.id)? => Ok(false),
        Ok(run) => {
            put_run(store, &run)?;
            Ok(true)
        }
        Err(error) => Err(error),
    })
}

fn record(store: &mut Store, bytes: &[u8], path: &Path, kinds: Kinds) -> Result<Taken, Error> {
    let read = serde_json::from_slice::<Exported>(bytes).map_err(|error| error.to_string());
    let known = |it: Exported| {
        let kind = named(kinds, &it.kind, "").map_err(|_| format!("unknown kind `{}`; upgrade narrows", it.kind))?.word;
        let json = serde_json::to_vec(&it.record).map_err(|error| error.to_string())?;
        Ok::<_, String>((it.entry, kind, json))
    };
    Ok(match read.and_then(known) {
        Ok((entry, ..)) if store.has(&entry.id)? => Ok(false),
        Ok((entry, kind, json)) => {
            store.put(&entry, kind, &json)?;
            Ok(true)
        }
        Err(why) => Err(Error::NoRun(path.to_owned(), why)),
    })
}

/// The id in a line that is not a run.
fn id(bytes: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Named {
        id: Option<String>,
        entry: Option<Box<Named>>,
    }
    let named: Named = serde_json::from_slice(bytes).ok()?;
    named.id.or_else(|| named.entry?.id)
}

#[cfg(test)]
mod tests {
    use super::super::Filter;
    use super::super::foreign::{self, As};
    use super::super::kinds::{KINDS, OWN};
    use super::super::maintenance::{Imported, export, import};
    use super::*;
    use narrows_sys::files;

    fn with_every_kind(path: &Path) -> Store {
        let mut store = Store::open(path).expect("a store");
        for (at, word) in
            KINDS.iter().chain(&foreign::KINDS).map(|it| it.word).filter(|word| *word != KIND_OF_RUNS).enumerate()
        {
            let empty = StoredRun {
                id: format!("20260101-00000{at}-0000000{at}"),
                started_unix_us: 1_700_000_000_000_000 + at as u64,
                who: "me".to_owned(),
                client: "a".to_owned(),
                server: "b".to_owned(),
                server_name: String::new(),
                family: "ipv4".to_owned(),
                command: word.to_owned(),
                plan: String::new(),
                tags: vec!["tag".to_owned()],
                figures: Vec::new(),
                verdict: String::new(),
                made_by: "narrows".to_owned(),
                raw_bytes: 0,
                stored_bytes: 0,
            };
            // As `iperf3 -J` indents it.
            store.put(&empty, word, b"{\n  \"value\": 1.25,\n  \"list\": [1, 2]\n}").expect("stored");
        }
        store
    }

    #[test]
    fn every_kind_of_record_that_is_exported_is_imported_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let store = with_every_kind(&at("one.db"));
        let kinds = (KINDS.len() + foreign::KINDS.len() - 1) as u64;
        for to in ["all.jsonl", "files"] {
            assert_eq!(export(&store, &Filter::default(), &at(to)).expect("exported"), kinds);
            let mut other = Store::open(&at(&format!("{to}.db"))).expect("a store");
            let done = import(&mut other, Some(&at(to)), &As::default(), OWN).expect("imported");
            assert_eq!(done, Imported { new: kinds, ..Imported::default() }, "{to}");
            let again = import(&mut other, Some(&at(to)), &As::default(), OWN).expect("imported");
            assert_eq!(again, Imported { known: kinds, ..Imported::default() }, "{to}");
            for run in store.list(&Filter::default(), 0, 100).expect("a list") {
                let of = |store: &Store| store.json(&run.id).expect("read").expect("there");
                let value = |json: &[u8]| serde_json::from_slice::<Value>(json).expect("JSON");
                let ((kind, json), (other_kind, other_json)) = (of(&store), of(&other));
                assert_eq!((kind, value(&json)), (other_kind, value(&other_json)));
                let filter = Filter { id: Some(run.id.clone()), ..Filter::default() };
                let listed = other.list(&filter, 0, 1).expect("a list").pop().expect("there");
                assert_eq!((listed.tags, listed.who, listed.command), (run.tags, run.who, run.command));
            }
        }
    }

    #[test]
    fn a_line_that_is_no_run_is_named_with_its_number_and_its_run() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("x.jsonl");
        let entry = with_every_kind(&directory.path().join("one.db")).list(&Filter::default(), 0, 1).expect("a list");
        let unknown = serde_json::json!({"kind": "dream", "entry": entry[0], "record": {}});
        let lines = format!("\n{{\"id\":\"abc\",\"plan\":{{}}}}\n{unknown}\n");
        files::write_whole(&file, lines.as_bytes(), 0o600).expect("written");
        let mut store = Store::open(&directory.path().join("two.db")).expect("a store");
        let done = import(&mut store, Some(&file), &As::default(), OWN).expect("read");
        let said = done.failed.join("\n");
        let place =
            format!("cannot import line 2 of {} (run abc): not a narrows run: missing field `format`", file.display());
        assert!(said.starts_with(&place) && !said.contains("line 1 "), "{said}");
        assert!(said.contains("cannot import line 3 of ") && said.contains("unknown kind `dream`"), "{said}");
    }
}
