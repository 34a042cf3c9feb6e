//! The store: all runs in one SQLite file. A run that was put is on the disk: in WAL mode with `synchronous=FULL` each commit is
//! synced, and neither a killed process nor a power failure loses it.

use crate::filter::{self, Filter};
use crate::{Error, body, migrations};
use narrows_model::run::history::{Headline, StoredRun};
use narrows_sys::{clock, files};
use rusqlite::types::Value as Sql;
use rusqlite::{Connection, ErrorCode, OptionalExtension as _, Row, Transaction, TransactionBehavior, params};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for another process that writes.
const BUSY: Duration = Duration::from_secs(10);

/// What the JSON of a stored run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A [`narrows_model::Run`].
    Run,
    /// A forwarding benchmark.
    Forwarding,
    /// A forwarding benchmark of two configurations.
    ForwardingPair,
    /// A report of raw frames.
    Frames,
    /// A test of responsiveness.
    Responsiveness,
    /// A report of a STAMP session.
    Stamp,
    /// A trace.
    Trace,
    /// A report of `iperf3 -J`.
    Iperf3,
    /// A number of a file of another program.
    Number,
    /// A run of another program.
    Command,
}

const KINDS: [(Kind, &str); 10] = [
    (Kind::Run, "run"),
    (Kind::Forwarding, "forwarding"),
    (Kind::ForwardingPair, "forwarding-pair"),
    (Kind::Frames, "frames"),
    (Kind::Responsiveness, "responsiveness"),
    (Kind::Stamp, "stamp"),
    (Kind::Trace, "trace"),
    (Kind::Iperf3, "iperf3"),
    (Kind::Number, "number"),
    (Kind::Command, "command"),
];

impl Kind {
    /// The names of all kinds.
    pub fn words() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|(_, word)| *word)
    }

    /// Its name, as in the store.
    #[must_use]
    pub fn word(self) -> &'static str {
        KINDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, word)| word)
    }
}

/// A figure of one run, for a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The run; its figures are left out.
    pub run: StoredRun,
    /// The figure.
    pub figure: Headline,
}

/// The store, open.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
}

type Result<T> = std::result::Result<T, Error>;

/// Turns the write-ahead log on. A new file must be had alone for it, and SQLite does not wait for that by itself: it could be a deadlock
/// (sqlite3_busy_handler).
fn write_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let began = clock::now();
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && began.elapsed() < BUSY => {
                clock::sleep(Duration::from_millis(10));
            }
            done => return done,
        }
    }
}

impl Store {
    /// Opens the store, which is made or migrated if necessary. Only its owner can read it, since runs contain inventories.
    ///
    /// # Errors
    /// The file cannot be opened or locked, is damaged, or was written by a newer version.
    pub fn open(path: &Path) -> Result<Self> {
        if !files::exists(path) {
            files::write_if_absent(path, b"", 0o600)?;
        }
        let failed = |error: rusqlite::Error| Error::sqlite("open", path, &error);
        let mut connection = Connection::open(path).map_err(failed)?;
        connection.busy_timeout(BUSY).map_err(failed)?;
        // Only a new file obeys: the space of deleted runs can be given back.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(failed)?;
        // Where the file system has no shared memory, the answer is another mode, which is as safe and slower.
        write_ahead(&connection).map_err(failed)?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(failed)?;
        connection.pragma_update(None, "foreign_keys", true).map_err(failed)?;
        let (version, known) = (migrations::version(&connection).map_err(failed)?, migrations::newest());
        if version > known {
            return Err(Error::StoreTooNew { path: path.to_owned(), version, known });
        }
        if version < known {
            let now = i64::try_from(clock::unix_us()).unwrap_or(i64::MAX);
            let made_by = concat!("narrows ", env!("CARGO_PKG_VERSION"));
            migrations::migrate(&mut connection, known, now, made_by).map_err(failed)?;
        }
        Ok(Self { connection, path: path.to_owned() })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, operation: &'static str) -> impl Fn(rusqlite::Error) -> Error + use<> {
        let path = self.path.clone();
        move |error| Error::sqlite(operation, &path, &error)
    }

    /// Puts a run, or replaces the one of this id; its tags stay. `json`: the run itself. The sizes of `run` are set here.
    ///
    /// # Errors
    /// The run cannot be written.
    pub fn put(&mut self, run: &StoredRun, kind: Kind, json: &[u8]) -> Result<()> {
        let failed = self.failed("write to");
        let body = body::encode(json).map_err(|why| Error::Encode(run.id.clone(), why))?;
        let mut put = || {
            let write = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            put_in(&write, run, (kind, json.len()), &body)?;
            write.commit()
        };
        put().map_err(failed)
    }

    /// Puts runs, all or none.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub fn put_all(&mut self, runs: impl Iterator<Item = (StoredRun, Kind, Vec<u8>)>) -> Result<()> {
        let failed = self.failed("write to");
        let write = self.connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(&failed)?;
        for (run, kind, json) in runs {
            let body = body::encode(&json).map_err(|why| Error::Encode(run.id.clone(), why))?;
            put_in(&write, &run, (kind, json.len()), &body).map_err(&failed)?;
        }
        write.commit().map_err(failed)
    }

    /// The JSON of a run and what it is; `None` if this id is unknown.
    ///
    /// # Errors
    /// The store cannot be read, or the run is damaged.
    pub fn json(&self, id: &str) -> Result<Option<(Kind, Vec<u8>)>> {
        let sql = "SELECT kind, codec, sha256, body FROM runs LEFT JOIN bodies ON run = number WHERE id = ?";
        let found: Option<(String, Option<body::Body>)> = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut query| query.query_row([id], |row| Ok((row.get(0)?, body_of(row)?))).optional())
            .map_err(self.failed("read"))?;
        let Some((word, body)) = found else { return Ok(None) };
        let damaged = |why: String| Error::Damaged(id.to_owned(), why);
        let kind = KINDS.iter().find(|(_, it)| *it == word).map(|(kind, _)| *kind);
        let kind = kind.ok_or_else(|| damaged(format!("it is of the unknown kind `{word}`; upgrade narrows")))?;
        let body = body.ok_or_else(|| damaged("it has no content".to_owned()))?;
        Ok(Some((kind, body::decode(&body).map_err(damaged)?)))
    }

    /// Whether there is a run of this id.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn has(&self, id: &str) -> Result<bool> {
        let found = self.connection.prepare_cached("SELECT 1 FROM runs WHERE id = ?");
        found.and_then(|mut query| query.exists([id])).map_err(self.failed("read"))
    }

    /// Runs that match, newest first, from the `offset`-th on.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn list(&self, filter: &Filter, offset: u64, limit: u64) -> Result<Vec<StoredRun>> {
        let (condition, mut values) = filter.sql();
        let number = |value: u64| Sql::Integer(i64::try_from(value).unwrap_or(i64::MAX));
        values.extend([number(limit), number(offset)]);
        let sql = format!(
            "SELECT {RUN} FROM runs WHERE {condition} ORDER BY started_unix_us DESC, number DESC LIMIT ? OFFSET ?"
        );
        let list = || -> rusqlite::Result<Vec<StoredRun>> {
            let mut query = self.connection.prepare_cached(&sql)?;
            let found = query.query_map(rusqlite::params_from_iter(values), |row| Ok((row.get(0)?, run_of(row)?)))?;
            let mut runs: Vec<(i64, StoredRun)> = found.collect::<rusqlite::Result<_>>()?;
            for (number, run) in &mut runs {
                let mut query = self.connection.prepare_cached("SELECT tag FROM tags WHERE run = ? ORDER BY tag")?;
                run.tags = query.query_map([&*number], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
                let sql = "SELECT name, value, unit FROM figures WHERE run = ? ORDER BY place";
                let mut query = self.connection.prepare_cached(sql)?;
                run.figures = query.query_map([&*number], |row| figure_of(row, 0))?.collect::<rusqlite::Result<_>>()?;
            }
            Ok(runs.into_iter().map(|(_, run)| run).collect())
        };
        list().map_err(self.failed("read"))
    }

    /// How many runs match.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn count(&self, filter: &Filter) -> Result<u64> {
        let (condition, values) = filter.sql();
        let count = self
            .connection
            .prepare_cached(&format!("SELECT count(*) FROM runs WHERE {condition}"))
            .and_then(|mut query| query.query_row(rusqlite::params_from_iter(values), |row| row.get::<_, i64>(0)));
        Ok(count.map_err(self.failed("read"))?.unsigned_abs())
    }

    /// A figure of the runs that match, in the order of time: of this name, or the first one of each run.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn points(&self, filter: &Filter, figure: Option<&str>) -> Result<Vec<Point>> {
        let (condition, mut values) = filter.sql();
        let which = match figure {
            Some(name) => {
                values.push(Sql::Text(name.to_owned()));
                "name = ?"
            }
            None => "place = 0",
        };
        let sql = format!(
            "SELECT {RUN}, name, value, unit FROM runs JOIN figures ON run = number WHERE {condition} AND {which}
            ORDER BY started_unix_us, number"
        );
        let points = || -> rusqlite::Result<Vec<Point>> {
            let mut query = self.connection.prepare_cached(&sql)?;
            let found = query.query_map(rusqlite::params_from_iter(values), |row| {
                Ok(Point { run: run_of(row)?, figure: figure_of(row, COLUMNS)? })
            })?;
            found.collect()
        };
        points().map_err(self.failed("read"))
    }

    /// Adds or removes a tag of a run; `false` if this id is unknown.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn tag(&mut self, id: &str, tag: &str, add: bool) -> Result<bool> {
        if !self.has(id)? {
            return Ok(false);
        }
        let sql = if add {
            "INSERT OR IGNORE INTO tags SELECT ?2, number FROM runs WHERE id = ?1"
        } else {
            "DELETE FROM tags WHERE tag = ?2 AND run = (SELECT number FROM runs WHERE id = ?1)"
        };
        self.connection.execute(sql, (id, tag)).map_err(self.failed("write to"))?;
        Ok(true)
    }

    /// Deletes runs, all or none; how many there were.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn delete(&mut self, ids: &[String]) -> Result<usize> {
        let failed = self.failed("write to");
        let mut delete = || -> rusqlite::Result<usize> {
            let write = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let mut deleted = 0;
            for id in ids {
                deleted += write.prepare_cached("DELETE FROM runs WHERE id = ?")?.execute([id])?;
            }
            write.commit()?;
            Ok(deleted)
        };
        delete().map_err(failed)
    }

    /// Gives the space of deleted runs back to the file system.
    ///
    /// # Errors
    /// The store cannot be written.
    pub fn shrink(&mut self) -> Result<()> {
        let shrink = || -> rusqlite::Result<()> {
            let mut query = self.connection.prepare("PRAGMA incremental_vacuum")?;
            let mut rows = query.query([])?;
            while rows.next()?.is_some() {}
            self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        };
        shrink().map_err(self.failed("shrink"))
    }

    /// Checks the file and each run; what is wrong, by run, and that of the file itself under an empty id. `readable` parses a run.
    ///
    /// # Errors
    /// The store cannot be read at all.
    pub fn check(
        &self,
        readable: impl Fn(Kind, &[u8]) -> std::result::Result<(), String>,
    ) -> Result<BTreeMap<String, String>> {
        let failed = self.failed("read");
        let mut wrong = BTreeMap::new();
        let whole = || -> rusqlite::Result<Vec<String>> {
            let mut query = self.connection.prepare("PRAGMA integrity_check(20)")?;
            query.query_map([], |row| row.get(0))?.collect()
        };
        match whole() {
            Ok(says) if says == ["ok"] => {}
            Ok(says) => drop(wrong.insert(String::new(), says.join("; "))),
            Err(error) => drop(wrong.insert(String::new(), error.to_string())),
        }
        let ids = || -> rusqlite::Result<Vec<String>> {
            let mut query = self.connection.prepare("SELECT id FROM runs ORDER BY started_unix_us")?;
            query.query_map([], |row| row.get(0))?.collect()
        };
        for id in ids().map_err(failed)? {
            let why = match self.json(&id) {
                Ok(Some((kind, json))) => readable(kind, &json).err(),
                Ok(None) => Some("it is gone".to_owned()),
                Err(Error::Damaged(_, why)) => Some(why),
                Err(error) => Some(error.to_string()),
            };
            wrong.extend(why.map(|why| (id, why)));
        }
        Ok(wrong)
    }
}

fn put_in(
    write: &Transaction<'_>,
    run: &StoredRun,
    (kind, raw): (Kind, usize),
    body: &body::Body,
) -> rusqlite::Result<()> {
    let size = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
    let number: i64 = write
        .prepare_cached(
            "INSERT INTO runs (id, started_unix_us, who, client, server, server_name, family, command, plan, verdict, made_by,
                kind, raw_bytes, stored_bytes)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
            ON CONFLICT (id) DO UPDATE SET started_unix_us = ?2, who = ?3, client = ?4, server = ?5, server_name = ?6,
                family = ?7, command = ?8, plan = ?9, verdict = ?10, made_by = ?11, kind = ?12, raw_bytes = ?13,
                stored_bytes = ?14
            RETURNING number",
        )?
        .query_row(
            params![
                run.id,
                i64::try_from(run.started_unix_us).unwrap_or(i64::MAX),
                run.who,
                run.client,
                run.server,
                run.server_name,
                run.family,
                run.command,
                run.plan,
                run.verdict,
                run.made_by,
                kind.word(),
                size(raw),
                size(body.bytes.len()),
            ],
            |row| row.get(0),
        )?;
    write.prepare_cached("INSERT OR REPLACE INTO bodies VALUES (?, ?, ?, ?)")?.execute(params![
        number,
        body.codec,
        body.sha256,
        body.bytes
    ])?;
    write.prepare_cached("DELETE FROM figures WHERE run = ?")?.execute([number])?;
    for (place, figure) in (0i64..).zip(run.figures.iter().filter(|it| it.value.is_finite())) {
        write.prepare_cached("INSERT INTO figures VALUES (?, ?, ?, ?, ?)")?.execute(params![
            number,
            place,
            figure.name,
            filter::unit_word(figure.unit),
            figure.value
        ])?;
    }
    for tag in &run.tags {
        write.prepare_cached("INSERT OR IGNORE INTO tags VALUES (?, ?)")?.execute(params![tag, number])?;
    }
    Ok(())
}

/// The columns of [`run_of`], and how many.
const RUN: &str = "number, id, started_unix_us, who, client, server, server_name, family, command, plan, verdict, made_by, raw_bytes, \
                   stored_bytes";
const COLUMNS: usize = 14;

fn run_of(row: &Row<'_>) -> rusqlite::Result<StoredRun> {
    let size = |at: usize| row.get::<_, i64>(at).map(i64::unsigned_abs);
    Ok(StoredRun {
        id: row.get(1)?,
        started_unix_us: size(2)?,
        who: row.get(3)?,
        client: row.get(4)?,
        server: row.get(5)?,
        server_name: row.get(6)?,
        family: row.get(7)?,
        command: row.get(8)?,
        plan: row.get(9)?,
        verdict: row.get(10)?,
        made_by: row.get(11)?,
        raw_bytes: size(12)?,
        stored_bytes: size(13)?,
        tags: Vec::new(),
        figures: Vec::new(),
    })
}

/// Name, value and unit from this column on.
fn figure_of(row: &Row<'_>, at: usize) -> rusqlite::Result<Headline> {
    let unit: String = row.get(at + 2)?;
    Ok(Headline { name: row.get(at)?, value: row.get(at + 1)?, unit: filter::unit(&unit) })
}

/// A body from the second column on; `None` where the run has none.
fn body_of(row: &Row<'_>) -> rusqlite::Result<Option<body::Body>> {
    let Some(codec) = row.get(1)? else { return Ok(None) };
    Ok(Some(body::Body { codec, sha256: row.get(2)?, bytes: row.get(3)? }))
}

#[cfg(test)]
mod tests;
