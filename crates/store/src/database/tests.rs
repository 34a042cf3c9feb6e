//! The store on disk: what it keeps, what it refuses, and several writers at once.

use super::*;
use crate::file::tests::run as model_run;
use narrows_model::Unit;

pub(super) fn entry(id: &str, at: u64, host: &str, value: f64) -> StoredRun {
    StoredRun {
        id: id.into(),
        started_unix_us: at,
        who: "me".into(),
        client: "here".into(),
        server: host.into(),
        server_name: String::new(),
        family: "ipv6".into(),
        command: "measure tcp".into(),
        plan: "p".into(),
        tags: vec![],
        figures: vec![Headline { name: "goodput up".into(), value, unit: Unit::BitsPerSecond }],
        verdict: "limited: tcp-receive-window".into(),
        made_by: "narrows 0.1.0".into(),
        raw_bytes: 0,
        stored_bytes: 0,
    }
}

pub(super) fn json(id: &str) -> Vec<u8> {
    serde_json::to_vec(&model_run(id)).unwrap()
}

pub(super) fn store() -> (tempfile::TempDir, Store) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open(&directory.path().join("runs.db")).unwrap();
    (directory, store)
}

fn ids(runs: &[StoredRun]) -> Vec<&str> {
    runs.iter().map(|run| run.id.as_str()).collect()
}

#[test]
fn a_run_is_put_found_replaced_and_deleted() {
    let (_directory, mut store) = store();
    for (at, id) in [(1, "a"), (3, "c"), (2, "b")] {
        store.put(&entry(id, at, "far", 1e9), KIND_OF_RUNS, &json(id)).unwrap();
    }
    let all = store.list(&Filter::default(), 0, 9).unwrap();
    assert_eq!(ids(&all), ["c", "b", "a"]);
    assert_eq!(all[0].figures[0].value, 1e9);
    assert!(all[0].raw_bytes > all[0].stored_bytes && all[0].stored_bytes > 100, "{:?}", all[0]);
    assert_eq!(ids(&store.list(&Filter::default(), 1, 1).unwrap()), ["b"]);
    let (kind, read) = store.json("b").unwrap().unwrap();
    assert_eq!(
        (kind.as_str(), serde_json::from_slice::<narrows_model::Run>(&read).unwrap()),
        (KIND_OF_RUNS, model_run("b"))
    );
    assert!(store.json("nosuch").unwrap().is_none());

    assert!(store.tag("b", "before", true).unwrap() && !store.tag("nosuch", "x", true).unwrap());
    store.put(&entry("b", 2, "far", 2e9), KIND_OF_RUNS, &json("b")).unwrap();
    let tagged = store.list(&Filter { tag: Some("before".into()), ..Filter::default() }, 0, 9).unwrap();
    assert_eq!((ids(&tagged), tagged[0].figures[0].value), (vec!["b"], 2e9));
    assert!(store.tag("b", "before", false).unwrap());
    assert_eq!(store.count(&Filter { tag: Some("before".into()), ..Filter::default() }).unwrap(), 0);

    assert_eq!(store.delete(&["b".into(), "nosuch".into()], false).unwrap().runs, 1);
    assert_eq!(store.count(&Filter::default()).unwrap(), 2);
    store.shrink().unwrap();
}

#[test]
fn each_part_of_a_filter_selects() {
    let (_directory, mut store) = store();
    store.put(&entry("a", 10, "far", 1.0), KIND_OF_RUNS, &json("a")).unwrap();
    store
        .put(
            &StoredRun { command: "diagnose".into(), verdict: "healthy".into(), ..entry("b", 20, "near", 2.0) },
            KIND_OF_RUNS,
            &json("b"),
        )
        .unwrap();
    let of = |filter: Filter| ids(&store.list(&filter, 0, 9).unwrap()).join(" ");
    let all = Filter::default();
    assert_eq!(of(Filter { host: Some("far".into()), ..all.clone() }), "a");
    assert_eq!(of(Filter { host: Some("here".into()), ..all.clone() }), "b a");
    assert_eq!(of(Filter { since_unix_us: Some(20), ..all.clone() }), "b");
    assert_eq!(of(Filter { before_unix_us: Some(20), ..all.clone() }), "a");
    assert_eq!(of(Filter { command: Some("measure".into()), ..all.clone() }), "a");
    assert_eq!(of(Filter { command: Some("meas".into()), ..all.clone() }), "");
    assert_eq!(of(Filter { verdict: Some("healthy".into()), ..all.clone() }), "b");
    for word in ["limited", "tcp-receive-window", "limited: tcp-receive-window"] {
        // The first word ends with a colon in the store.
        assert_eq!(of(Filter { verdict: Some(word.into()), ..all.clone() }), "a", "{word}");
    }
    let points = store.points(&Filter { host: Some("far".into()), ..all.clone() }, None, &[]).unwrap();
    assert_eq!(points.iter().map(|it| it.figure.value).collect::<Vec<_>>(), [1.0]);
    assert_eq!(store.points(&all, Some("goodput up"), &[]).unwrap().len(), 2);
    assert_eq!(store.points(&all, Some("loss"), &[]).unwrap(), []);
    let one = store.list(&all, 0, 1).unwrap().remove(0).id;
    store.tag(&one, "campaign:7", true).unwrap();
    assert_eq!(store.points(&all, Some("goodput up"), &["campaign:"]).unwrap().len(), 1);
    store.tag(&one, "campaign:7", false).unwrap();
}

#[test]
fn a_damaged_run_is_named_and_the_others_are_read() {
    let (directory, mut store) = store();
    for (at, id) in [(1, "a"), (2, "b"), (3, "c")] {
        store.put(&entry(id, at, "far", 1e9), KIND_OF_RUNS, &json(id)).unwrap();
    }
    let parse = |_: &str, json: &[u8]| {
        serde_json::from_slice::<narrows_model::Run>(json).map(drop).map_err(|it| it.to_string())
    };
    assert!(store.check(parse).unwrap().is_empty());
    let other = Connection::open(directory.path().join("runs.db")).unwrap();
    other.execute("UPDATE bodies SET body = zeroblob(length(body)) WHERE run = 2", []).unwrap();
    other.execute("DELETE FROM bodies WHERE run = 3", []).unwrap();
    let wrong = store.check(parse).unwrap();
    let said: Vec<_> = wrong.iter().map(|(id, why)| format!("{id}: {why}")).collect();
    assert_eq!(said, ["b: its checksum does not match", "c: it has no content, or too much"]);
    assert_eq!(
        store.json("b").unwrap_err().to_string(),
        "cannot read run b of the store: its checksum does not match; `narrows store check` lists damaged runs"
    );
    assert!(store.json("a").unwrap().is_some());
}

#[test]
fn what_another_program_wrote_is_read_in_parts() {
    let (directory, mut store) = store();
    store.put(&entry("a", 1, "far", 1.0), KIND_OF_RUNS, &json("a")).unwrap();
    store.tag("a", "t", true).unwrap();
    let other = Connection::open(directory.path().join("runs.db")).unwrap();
    other.execute("UPDATE runs SET plan = printf('%.*c', 10000, 'x')", []).unwrap();
    other.execute("UPDATE tags SET tag = printf('%.*c', 10000, 'x')", []).unwrap();
    other.execute("INSERT INTO figures VALUES (1, 7, printf('%.*c', 10000, 'x'), 'bits_per_second', 1.0)", []).unwrap();
    other.execute("INSERT INTO figures VALUES (1, 8, 'endless', 'bits_per_second', 9e999)", []).unwrap();
    let run = store.list(&Filter::default(), 0, 9).unwrap().pop().unwrap();
    assert_eq!((run.plan.len(), run.tags[0].len()), (4096, 256));
    assert_eq!(run.figures.last().unwrap().name.len(), 256, "the infinite one is left out");
    assert_eq!(store.points(&Filter::default(), Some("endless"), &[]).unwrap(), []);
    other.execute("UPDATE bodies SET body = zeroblob(268435457)", []).unwrap();
    let error = store.json("a").unwrap_err().to_string();
    assert!(error.starts_with("cannot read run a of the store: it has no content, or too much"), "{error}");
}

#[cfg(feature = "postgres")]
#[test]
fn a_run_that_may_have_passed_in_clear_is_tagged() {
    let Some(server) = crate::server::Server::start() else { return };
    let mut store = Store::open(&server.database("tagged")).unwrap();
    for (id, clear) in [("a", false), ("b", true)] {
        // As on another host without TLS.
        let sql::Database::Postgres(remote) = &mut store.database else { panic!("a server") };
        remote.clear = clear;
        store.put(&entry(id, 1, "far", 1.0), KIND_OF_RUNS, &json(id)).unwrap();
    }
    let tagged = Filter { tag: Some(TLS_NOT_REQUIRED.into()), ..Filter::default() };
    assert_eq!(ids(&store.list(&tagged, 0, 9).unwrap()), ["b"]);
}

#[test]
fn a_damaged_run_that_waits_stays_and_the_others_are_sent() {
    let (directory, mut local) = store();
    let far = directory.path().join("far.db");
    let mut to = Store::open(&far).unwrap();
    for (at, id) in [(1, "a"), (2, "b"), (3, "c")] {
        local.put_waiting(&entry(id, at, "far", 1e9), KIND_OF_RUNS, &json(id), &far).unwrap();
    }
    let other = Connection::open(directory.path().join("runs.db")).unwrap();
    other.execute("UPDATE bodies SET body = zeroblob(length(body)) WHERE run = 2", []).unwrap();
    assert_eq!((local.send(&mut to).unwrap(), local.send(&mut to).unwrap()), (2, 0));
    let ids = |store: &Store| {
        let runs = store.list(&Filter::default(), 0, 9).unwrap();
        runs.into_iter().map(|run| run.id).collect::<Vec<_>>()
    };
    assert_eq!((ids(&to), ids(&local)), (vec!["c".to_owned(), "a".to_owned()], vec!["b".to_owned()]));
}

#[test]
fn what_is_no_store_is_refused_with_the_remedy() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.db");
    narrows_sys::files::write_whole(&path, &[b'x'; 5000], 0o600).unwrap();
    let error = Store::open(&path).unwrap_err().to_string();
    assert!(error.starts_with(&format!("cannot open the store {}: ", path.display())), "{error}");
    assert!(error.contains("it is damaged; move it away"), "{error}");
    let error = Store::open(&directory.path().join("none/runs.db")).unwrap_err().to_string();
    assert!(error.contains("none/") && error.contains("No such file"), "{error}");
}

#[test]
fn a_full_disk_is_named_and_what_was_there_stays() {
    let (_directory, mut store) = store();
    store.put(&entry("a", 1, "far", 1e9), KIND_OF_RUNS, &json("a")).unwrap();
    let pages = store.database.number("PRAGMA page_count", vec![]).unwrap();
    // SQLite reports a file at its maximum as a full disk.
    store.database.number(&format!("PRAGMA max_page_count = {pages}"), vec![]).unwrap();
    let mut value = serde_json::to_value(model_run("b")).unwrap();
    let mut state = 1u64;
    let noise = (0..200_000).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b'a' + (state >> 60) as u8)
    });
    value["made_by"] = noise.collect::<String>().into();
    let error = store.put(&entry("b", 2, "far", 1e9), KIND_OF_RUNS, &serde_json::to_vec(&value).unwrap()).unwrap_err();
    assert!(error.to_string().contains("no space left"), "{error}");
    assert_eq!(ids(&store.list(&Filter::default(), 0, 9).unwrap()), ["a"]);
}

#[test]
fn only_the_owner_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let (directory, mut store) = store();
    store.put(&entry("a", 1, "far", 1e9), KIND_OF_RUNS, &json("a")).unwrap();
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.file_name());
    }
}

#[test]
fn several_programs_make_and_fill_it_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("runs.db");
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let path = &path;
            scope.spawn(move || {
                for n in 0..5 {
                    let id = format!("{writer}-{n}");
                    Store::open(path).unwrap().put(&entry(&id, n, "far", 1e9), KIND_OF_RUNS, &json(&id)).unwrap();
                }
            });
        }
    });
    assert_eq!(Store::open(&path).unwrap().count(&Filter::default()).unwrap(), 30);
}
