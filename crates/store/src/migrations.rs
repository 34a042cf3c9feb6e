//! The versions of the store's schema. A version is one line in [`VERSIONS`] and never changes once it was released.

use crate::database::sql::{Database, Result, values};

/// The steps, oldest first: the n-th leads to version n + 1.
pub(crate) const VERSIONS: &[&str] = &[VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5, VERSION_6, VERSION_7];

/// Runs with their headline figures, tags and bodies. A body has a table of its own, so that a list does not pass over it.
const VERSION_1: &str = "
    CREATE TABLE runs (
        number INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        started_unix_us INTEGER NOT NULL,
        who TEXT NOT NULL,
        client TEXT NOT NULL,
        server TEXT NOT NULL,
        server_name TEXT NOT NULL,
        family TEXT NOT NULL,
        command TEXT NOT NULL,
        plan TEXT NOT NULL,
        verdict TEXT NOT NULL,
        made_by TEXT NOT NULL,
        kind TEXT NOT NULL,
        raw_bytes INTEGER NOT NULL,
        stored_bytes INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX runs_by_time ON runs (started_unix_us);
    CREATE INDEX runs_by_server ON runs (server, started_unix_us);
    CREATE TABLE bodies (
        run INTEGER PRIMARY KEY REFERENCES runs (number) ON DELETE CASCADE,
        codec INTEGER NOT NULL,
        sha256 BLOB NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
    CREATE TABLE figures (
        run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
        place INTEGER NOT NULL,
        name TEXT NOT NULL,
        unit TEXT NOT NULL,
        value REAL NOT NULL,
        PRIMARY KEY (run, place)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE tags (
        tag TEXT NOT NULL,
        run INTEGER NOT NULL REFERENCES runs (number) ON DELETE CASCADE,
        PRIMARY KEY (tag, run)
    ) STRICT, WITHOUT ROWID;
";

/// Indexes for the other filters of a list, and for deleting a run.
const VERSION_2: &str = "
    CREATE INDEX runs_by_client ON runs (client, started_unix_us);
    CREATE INDEX runs_by_server_name ON runs (server_name, started_unix_us);
    CREATE INDEX tags_by_run ON tags (run);
";

/// Runs of the local store that wait for the store of this address.
const VERSION_3: &str = "
    CREATE TABLE waiting (
        run INTEGER PRIMARY KEY REFERENCES runs (number) ON DELETE CASCADE,
        store TEXT NOT NULL
    ) STRICT;
";

/// Deleted runs, for [`crate::Store::undo`]: what a list knows of each as JSON, and its body.
const VERSION_4: &str = "
    CREATE TABLE deleted (
        id TEXT PRIMARY KEY NOT NULL,
        since_unix_us INTEGER NOT NULL,
        entry TEXT NOT NULL,
        kind TEXT NOT NULL,
        codec INTEGER NOT NULL,
        sha256 BLOB NOT NULL,
        body BLOB NOT NULL
    ) STRICT;
";

/// Tests of fleets, by the names of their files. `fence`: how often it was given to an agent; `ended`: 0 not, 1 with a result, 2 missed.
const VERSION_5: &str = "
    CREATE TABLE fleet_tests (
        number INTEGER PRIMARY KEY,
        fleet TEXT NOT NULL,
        mesh TEXT NOT NULL,
        test TEXT NOT NULL,
        slot INTEGER NOT NULL,
        sender TEXT NOT NULL,
        receiver TEXT NOT NULL,
        due_ms INTEGER NOT NULL,
        fence INTEGER NOT NULL,
        until_ms INTEGER NOT NULL,
        ended INTEGER NOT NULL,
        result BLOB,
        UNIQUE (fleet, mesh, test, slot, sender, receiver)
    ) STRICT;
    CREATE INDEX fleet_tests_open ON fleet_tests (fleet, mesh, test, due_ms) WHERE ended = 0;
    CREATE INDEX fleet_tests_due ON fleet_tests (fleet, due_ms);
    CREATE TABLE fleets (fleet TEXT PRIMARY KEY, state BLOB NOT NULL) STRICT;
";

/// Tests of fleets by their paths, so that one path's are read at once; what is left of old ones, by day; and which controller leads.
/// `least`, `middle`, `most`: goodput in bit/s, or round-trip time in microseconds; 0 where all tests failed.
const VERSION_6: &str = "
    ALTER TABLE fleet_tests RENAME TO fleet_tests_before;
    DROP INDEX fleet_tests_open;
    DROP INDEX fleet_tests_due;
    CREATE TABLE fleet_tests (
        number INTEGER PRIMARY KEY,
        fleet TEXT NOT NULL,
        mesh TEXT NOT NULL,
        test TEXT NOT NULL,
        slot INTEGER NOT NULL,
        sender TEXT NOT NULL,
        receiver TEXT NOT NULL,
        due_ms INTEGER NOT NULL,
        fence INTEGER NOT NULL,
        until_ms INTEGER NOT NULL,
        ended INTEGER NOT NULL,
        result BLOB,
        UNIQUE (fleet, mesh, test, sender, receiver, slot)
    ) STRICT;
    INSERT INTO fleet_tests (fleet, mesh, test, slot, sender, receiver, due_ms, fence, until_ms, ended, result)
        SELECT fleet, mesh, test, slot, sender, receiver, due_ms, fence, until_ms, ended, result FROM fleet_tests_before;
    DROP TABLE fleet_tests_before;
    CREATE INDEX fleet_tests_open ON fleet_tests (fleet, mesh, test, due_ms) WHERE ended = 0;
    CREATE INDEX fleet_tests_due ON fleet_tests (fleet, due_ms);
    CREATE TABLE fleet_days (
        fleet TEXT NOT NULL,
        mesh TEXT NOT NULL,
        test TEXT NOT NULL,
        sender TEXT NOT NULL,
        receiver TEXT NOT NULL,
        day_ms INTEGER NOT NULL,
        tests INTEGER NOT NULL,
        failed INTEGER NOT NULL,
        least REAL NOT NULL,
        middle REAL NOT NULL,
        most REAL NOT NULL,
        sent INTEGER NOT NULL,
        lost_there INTEGER NOT NULL,
        lost_back INTEGER NOT NULL,
        PRIMARY KEY (fleet, mesh, test, sender, receiver, day_ms)
    ) STRICT;
    CREATE INDEX fleet_days_old ON fleet_days (fleet, day_ms);
    CREATE TABLE fleet_leaders (
        fleet TEXT PRIMARY KEY, controller TEXT NOT NULL, until_ms INTEGER NOT NULL
    ) STRICT;
";

/// What changed of the settings of a fleet's hosts.
const VERSION_7: &str = "
    CREATE TABLE fleet_notes (
        number INTEGER PRIMARY KEY,
        fleet TEXT NOT NULL,
        host TEXT NOT NULL,
        at_ms INTEGER NOT NULL,
        says TEXT NOT NULL
    ) STRICT;
    CREATE INDEX fleet_notes_of_host ON fleet_notes (fleet, host, at_ms);
    CREATE INDEX fleet_notes_old ON fleet_notes (fleet, at_ms);
";

/// The versions of a store, with the time and the program of each step.
const LIST: &str = "
    CREATE TABLE IF NOT EXISTS versions (
        version INTEGER PRIMARY KEY, since_unix_us INTEGER NOT NULL, made_by TEXT NOT NULL
    ) STRICT
";

/// The newest version that this program knows.
pub(crate) const fn newest() -> i64 {
    VERSIONS.len() as i64
}

/// The version of a store; 0 of an empty one.
pub(crate) fn version(database: &Database) -> Result<i64> {
    let tables = if database.is_file() {
        "SELECT count(*) FROM sqlite_schema WHERE name = 'versions'"
    } else {
        "SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'versions'"
    };
    if database.number(tables, vec![])? == 0 {
        return Ok(0);
    }
    database.number("SELECT coalesce(max(version), 0) FROM versions", vec![])
}

/// Brings a store to a version, forward only; all steps together or none. Two programs that open an old store do it once.
pub(crate) fn migrate(database: &Database, to: i64, now_unix_us: i64, made_by: &str) -> Result<()> {
    database.together(|| {
        if !database.is_file() {
            // Until the end of the transaction; the number is of narrows.
            database.batch("SELECT pg_advisory_xact_lock(7954772)")?;
        }
        database.schema(LIST)?;
        let from = version(database)?;
        for (step, number) in VERSIONS.iter().zip(1i64..).filter(|(_, number)| *number > from && *number <= to) {
            database.schema(step)?;
            database.rows("INSERT INTO versions VALUES (?, ?, ?)", values![number, now_unix_us, made_by.to_owned()])?;
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Filter, Store};
    use rusqlite::Connection;

    /// A store of each version, with a run as that version wrote it, is opened by this program and keeps the run.
    fn migrated(old: i64, path: &std::path::Path) {
        let database = crate::database::connect(path).unwrap();
        migrate(&database, old, 7, "narrows 0.0.1").unwrap();
        if old >= 1 {
            let sql = "INSERT INTO runs VALUES (1, 'a', 5, 'me', 'c', 's', '', 'ipv4', 'diagnose', 'p', 'healthy', 'n', 'run', 9, 9);
                INSERT INTO figures VALUES (1, 0, 'goodput', 'bits_per_second', 1e9);
                INSERT INTO tags VALUES ('t', 1)";
            database.batch(sql).unwrap();
        }
        assert_eq!(version(&database).unwrap(), old);
        let store = Store::open(path).unwrap();
        let runs = store.list(&Filter::default(), 0, 9).unwrap();
        assert_eq!(runs.len(), usize::from(old >= 1), "version {old}");
        assert!(runs.iter().all(|run| run.tags == ["t"] && run.figures[0].value == 1e9));
        assert_eq!(version(&database).unwrap(), newest());
    }

    #[test]
    fn each_earlier_version_is_migrated_with_its_runs() {
        for old in 0..=newest() {
            migrated(old, &tempfile::tempdir().unwrap().path().join("runs.db"));
        }
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn so_it_is_on_a_server() {
        let Some(server) = crate::server::Server::start() else { return };
        for old in 0..=newest() {
            migrated(old, &server.database(&format!("version_{old}")));
        }
    }

    #[test]
    fn a_newer_store_is_refused_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.db");
        drop(Store::open(&path).unwrap());
        let connection = Connection::open(&path).unwrap();
        connection.execute("INSERT INTO versions VALUES (99, 0, 'narrows 9.0.0')", []).unwrap();
        drop(connection);
        let error = Store::open(&path).unwrap_err().to_string();
        assert_eq!(
            error,
            format!(
                "cannot open the store {}: written by a newer narrows in version 99, this one knows up to {}; upgrade narrows",
                path.display(),
                newest()
            )
        );
    }
}
