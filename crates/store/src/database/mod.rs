//! The store: all runs in one SQLite file, or in a PostgreSQL database. A run that was put is on the disk: in WAL mode with
//! `synchronous=FULL` each commit of SQLite is synced, and neither a killed process nor a power failure loses it.

mod deleted;
pub(crate) mod fleet;
mod named;
#[cfg(feature = "postgres")]
mod remote;
mod rows;
pub(crate) mod sql;
#[cfg(feature = "postgres")]
mod tls;

use crate::filter::{self, Filter};
use crate::{Error, body, migrations};
use narrows_model::run::history::{Headline, StoredRun};
use narrows_sys::{clock, files};
use rows::{FIGURE, RUN, body_of, content, figure_of, run_of};
use rusqlite::{Connection, ErrorCode};
use sql::{Cells, Database, Fault, Value, values};
pub use sql::{is_address, shown};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long to wait for another process that writes.
const BUSY: Duration = Duration::from_secs(10);

/// The kind of a [`narrows_model::Run`], whose files name themselves.
pub const KIND_OF_RUNS: &str = "run";

/// A figure of one run, for a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The run; its figures are left out.
    pub run: StoredRun,
    pub figure: Headline,
}

pub struct Store {
    database: Database,
    /// As it may be shown.
    path: PathBuf,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store").field("path", &self.path).finish_non_exhaustive()
    }
}

type Result<T> = std::result::Result<T, Error>;

/// Connects to a database as it is.
pub(crate) fn connect(path: &Path) -> sql::Result<Database> {
    if is_address(path) { server(&path.to_string_lossy()) } else { file(path) }
}

fn file(path: &Path) -> sql::Result<Database> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    // Only a new file obeys: the space of deleted runs can be given back.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    // Where the file system has no shared memory, the answer is another mode, which is as safe and slower.
    write_ahead(&connection)?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(Database::Sqlite(connection))
}

#[cfg(feature = "postgres")]
fn server(address: &str) -> sql::Result<Database> {
    remote::Remote::open(address).map(Database::Postgres)
}

#[cfg(not(feature = "postgres"))]
fn server(_: &str) -> sql::Result<Database> {
    let why = "this narrows is built without PostgreSQL; install one built with `--features postgres`, or set NARROWS_STORE \
               to a file";
    Err(Fault(why.to_owned()))
}

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
    /// Opens the store, which is made or migrated if necessary: a file, or the address of a PostgreSQL server
    /// (`postgres://user:password@host:port/database`). Only its owner can read the file, since runs contain inventories.
    /// Errors: the file cannot be opened or locked, is damaged, or was written by a newer version. The server cannot be
    /// reached.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = shown(path);
        let failed = |Fault(cause)| Error::Store { operation: "open", path: shown.clone(), cause };
        if !is_address(path) && !files::exists(path) {
            files::write_if_absent(path, b"", 0o600)?;
        }
        let database = connect(path).map_err(failed)?;
        let (version, known) = (migrations::version(&database).map_err(failed)?, migrations::newest());
        if version > known {
            return Err(Error::StoreTooNew { path: shown, version, known });
        }
        if version < known {
            let now = i64::try_from(clock::unix_us()).unwrap_or(i64::MAX);
            let made_by = concat!("narrows ", env!("CARGO_PKG_VERSION"));
            migrations::migrate(&database, known, now, made_by).map_err(failed)?;
        }
        Ok(Self { database, path: shown })
    }

    /// The file, or the address without its password.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn failed(&self, operation: &'static str) -> impl Fn(Fault) -> Error + use<> {
        let path = self.path.clone();
        move |Fault(cause)| Error::Store { operation, path: path.clone(), cause }
    }

    /// Puts a run, or replaces the one of this id; its tags stay. `kind`: what its JSON is. The sizes of `run` are set here.
    pub fn put(&mut self, run: &StoredRun, kind: &str, json: &[u8]) -> Result<()> {
        self.database.together(|| put_in(&self.database, run, kind, json).map(drop)).map_err(self.failed("write to"))
    }

    /// As [`Self::put`]; the run waits here for the store of this address, see [`Self::send`].
    pub fn put_waiting(&mut self, run: &StoredRun, kind: &str, json: &[u8], store: &Path) -> Result<()> {
        let put = || {
            let number = put_in(&self.database, run, kind, json)?;
            let sql = "INSERT INTO waiting VALUES (?1, ?2) ON CONFLICT (run) DO UPDATE SET store = ?2";
            self.database.rows(sql, values![number, shown(store).display().to_string()]).map(drop)
        };
        self.database.together(put).map_err(self.failed("write to"))
    }

    /// Moves the runs that wait here for another store into it; returns how many were sent. This store is locked for each run: what another
    /// program puts there after it saw none waiting is newer.
    /// Errors: the store cannot be read here or written there. What was not sent stays here, as a damaged run does.
    pub fn send(&mut self, to: &mut Self) -> Result<u64> {
        let place = to.path.display().to_string();
        let sql = "SELECT id FROM runs JOIN waiting ON run = number WHERE store = ? ORDER BY number LIMIT 1";
        let next = || self.database.rows(sql, values![place.clone()]);
        let mut sent = 0;
        while !next().map_err(self.failed("read"))?.is_empty() {
            let one = || {
                let Some(id) = next()?.first_mut().map(Cells::text).transpose()? else { return Ok(0) };
                let why = |error: Error| Fault(error.to_string());
                let run = self.list(&Filter { id: Some(id.clone()), ..Filter::default() }, 0, 1).map_err(why)?.pop();
                let json = match self.json(&id) {
                    // It waits no more, and is here for `narrows store check`.
                    Err(Error::Damaged(..)) => {
                        let sql = "DELETE FROM waiting WHERE run IN (SELECT number FROM runs WHERE id = ?)";
                        return self.database.rows(sql, values![id]).map(|_| 0);
                    }
                    json => json.map_err(why)?,
                };
                if let (Some(run), Some((kind, json))) = (run, json) {
                    to.put(&run, &kind, &json).map_err(why)?;
                }
                self.database.rows("DELETE FROM runs WHERE id = ?", values![id]).map(|_| 1)
            };
            sent += self.database.together(one).map_err(self.failed("send from"))?;
        }
        Ok(sent)
    }

    /// Puts runs, all or none.
    pub fn put_all(&mut self, mut runs: impl Iterator<Item = (StoredRun, &'static str, Vec<u8>)>) -> Result<()> {
        let put = || runs.try_for_each(|(run, kind, json)| put_in(&self.database, &run, kind, &json).map(drop));
        self.database.together(put).map_err(self.failed("write to"))
    }

    /// The kind of a record and its JSON; `None` if this id is unknown.
    /// Errors: the store cannot be read, or the run is damaged.
    pub fn json(&self, id: &str) -> Result<Option<(String, Vec<u8>)>> {
        let found = || {
            let mut rows = self.database.rows(&content(), values![id.to_owned()])?;
            rows.first_mut().map(|row| Ok((row.text()?, body_of(row)?))).transpose()
        };
        let Some((word, body)) = found().map_err(self.failed("read"))? else { return Ok(None) };
        let damaged = |why: String| Error::Damaged(id.to_owned(), why);
        let body = body.ok_or_else(|| damaged("it has no content, or too much".to_owned()))?;
        Ok(Some((word, body::decode(&body).map_err(damaged)?)))
    }

    /// Whether there is a run of this id.
    pub fn has(&self, id: &str) -> Result<bool> {
        let found = self.database.rows("SELECT 1 FROM runs WHERE id = ?", values![id.to_owned()]);
        found.map(|rows| !rows.is_empty()).map_err(self.failed("read"))
    }

    /// Runs that match, newest first, from the `offset`-th on.
    pub fn list(&self, filter: &Filter, offset: u64, limit: u64) -> Result<Vec<StoredRun>> {
        const NEWEST: &str = "ORDER BY started_unix_us DESC, number DESC";
        let (conditions, values): (Vec<_>, Vec<_>) = filter.by_index().into_iter().unzip();
        let of_each = conditions.iter().map(|it| format!("SELECT number, started_unix_us FROM runs WHERE {it}"));
        let matching = of_each.collect::<Vec<_>>().join(" UNION ");
        let number = |value: u64| Value::Integer(i64::try_from(value).unwrap_or(i64::MAX));
        let values = values.into_iter().flatten().chain([number(limit), number(offset)]).collect();
        let page = format!("SELECT number FROM ({matching} {NEWEST} LIMIT ? OFFSET ?) AS page");
        let sql = format!("SELECT number, {RUN} FROM runs WHERE number IN ({page}) {NEWEST}");
        let list = || -> sql::Result<Vec<StoredRun>> {
            let found = self.database.rows(&sql, values)?;
            let mut runs: Vec<(i64, StoredRun)> =
                found.into_iter().map(|mut row| Ok((row.integer()?, run_of(&mut row)?))).collect::<sql::Result<_>>()?;
            // A server may be far away: not a question per run.
            for part in runs.chunks_mut(PART) {
                let numbers: Vec<String> = part.iter().map(|(number, _)| number.to_string()).collect();
                let numbers = numbers.join(", ");
                let mut part: BTreeMap<i64, &mut StoredRun> = part.iter_mut().map(|(at, run)| (*at, run)).collect();
                let tags = format!(
                    "SELECT run, substr(tag, 1, 256) FROM tags WHERE run IN ({numbers}) ORDER BY tag LIMIT {LINES_MAX}"
                );
                for mut row in self.database.rows(&tags, vec![])? {
                    let (number, tag) = (row.integer()?, row.text()?);
                    part.entry(number).and_modify(|run| run.tags.push(tag));
                }
                let figures = format!(
                    "SELECT run, {FIGURE} FROM figures WHERE run IN ({numbers}) ORDER BY place LIMIT {LINES_MAX}"
                );
                for mut row in self.database.rows(&figures, vec![])? {
                    let (number, figure) = (row.integer()?, figure_of(&mut row)?);
                    part.entry(number).and_modify(|run| run.figures.extend(figure));
                }
            }
            Ok(runs.into_iter().map(|(_, run)| run).collect())
        };
        list().map_err(self.failed("read"))
    }

    /// How many runs match.
    pub fn count(&self, filter: &Filter) -> Result<u64> {
        let (condition, values) = filter.sql();
        let count = self.database.number(&format!("SELECT count(*) FROM runs WHERE {condition}"), values);
        Ok(count.map_err(self.failed("read"))?.unsigned_abs())
    }

    /// A figure of the runs that match, in the order of time: of this name, or the first one of each run; none of runs with a tag that
    /// begins with one of `without`.
    pub fn points(&self, filter: &Filter, figure: Option<&str>, without: &[&str]) -> Result<Vec<Point>> {
        let (mut condition, mut values) = filter.sql();
        for prefix in without {
            condition += " AND NOT EXISTS (SELECT 1 FROM tags WHERE run = number AND tag LIKE ?)";
            values.push(Value::Text(format!("{prefix}%")));
        }
        values.extend(figure.map(|name| Value::Text(name.to_owned())));
        let which = if figure.is_some() { "name = ?" } else { "place = 0" };
        let sql = format!(
            "SELECT {RUN}, {FIGURE} FROM runs JOIN figures ON run = number WHERE {condition} AND {which}
            ORDER BY started_unix_us, number"
        );
        let point = |mut row: Cells| {
            let run = run_of(&mut row)?;
            Ok(figure_of(&mut row)?.map(|figure| Point { run, figure }))
        };
        let points = self.database.rows(&sql, values);
        let points = points.and_then(|rows| rows.into_iter().filter_map(|row| point(row).transpose()).collect());
        points.map_err(self.failed("read"))
    }

    /// Adds or removes a tag of a run; `false` if this id is unknown.
    pub fn tag(&mut self, id: &str, tag: &str, add: bool) -> Result<bool> {
        if !self.has(id)? {
            return Ok(false);
        }
        let sql = if add {
            "INSERT INTO tags SELECT ?1, number FROM runs WHERE id = ?2 ON CONFLICT DO NOTHING"
        } else {
            "DELETE FROM tags WHERE tag = ?1 AND run = (SELECT number FROM runs WHERE id = ?2)"
        };
        self.database.rows(sql, values![tag.to_owned(), id.to_owned()]).map_err(self.failed("write to"))?;
        Ok(true)
    }

    /// Gives the space of deleted runs back to the file system; a server does so by itself.
    pub fn shrink(&mut self) -> Result<()> {
        let shrink = || {
            ["PRAGMA incremental_vacuum", "PRAGMA wal_checkpoint(TRUNCATE)"]
                .iter()
                .try_for_each(|sql| self.database.rows(sql, vec![]).map(drop))
        };
        if self.database.is_file() { shrink().map_err(self.failed("shrink")) } else { Ok(()) }
    }

    /// Checks the file and each run; what is wrong, by run, and that of the file itself under an empty id. `readable` parses a record of a kind.
    pub fn check(
        &self,
        readable: impl Fn(&str, &[u8]) -> std::result::Result<(), String>,
    ) -> Result<BTreeMap<String, String>> {
        let mut wrong = BTreeMap::new();
        let texts = |sql| self.database.rows(sql, vec![])?.iter_mut().map(Cells::text).collect::<sql::Result<Vec<_>>>();
        match self.database.is_file().then(|| texts("PRAGMA integrity_check(20)")) {
            None => {}
            Some(Ok(says)) if says == ["ok"] => {}
            Some(Ok(says)) => drop(wrong.insert(String::new(), says.join("; "))),
            Some(Err(Fault(why))) => drop(wrong.insert(String::new(), why)),
        }
        for id in texts("SELECT id FROM runs ORDER BY started_unix_us").map_err(self.failed("read"))? {
            let why = match self.json(&id) {
                Ok(Some((kind, json))) => readable(&kind, &json).err(),
                Ok(None) => Some("it is gone".to_owned()),
                Err(Error::Damaged(_, why)) => Some(why),
                Err(error) => Some(error.to_string()),
            };
            wrong.extend(why.map(|why| (id, why)));
        }
        Ok(wrong)
    }
}

/// Tag of a run that was stored over a network by a connection whose address allows it to be in clear.
pub const TLS_NOT_REQUIRED: &str = "tls-not-required";

/// Puts a run; its number.
fn put_in(database: &Database, run: &StoredRun, kind: &str, json: &[u8]) -> sql::Result<i64> {
    let body = body::encode(json).map_err(|why| Fault(Error::Encode(run.id.clone(), why).to_string()))?;
    put_body(database, run, kind, json.len(), body)
}

/// As [`put_in`], with its body as it is stored. `raw_bytes`: its size as JSON.
fn put_body(database: &Database, run: &StoredRun, kind: &str, raw_bytes: usize, body: body::Body) -> sql::Result<i64> {
    let size = |bytes: usize| i64::try_from(bytes).unwrap_or(i64::MAX);
    let number = database.number(
        "INSERT INTO runs (id, started_unix_us, who, client, server, server_name, family, command, plan, verdict, made_by,
            kind, raw_bytes, stored_bytes)
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)
        ON CONFLICT (id) DO UPDATE SET started_unix_us = ?2, who = ?3, client = ?4, server = ?5, server_name = ?6,
            family = ?7, command = ?8, plan = ?9, verdict = ?10, made_by = ?11, kind = ?12, raw_bytes = ?13,
            stored_bytes = ?14
        RETURNING number",
        values![
            run.id.clone(),
            i64::try_from(run.started_unix_us).unwrap_or(i64::MAX),
            run.who.clone(),
            run.client.clone(),
            run.server.clone(),
            run.server_name.clone(),
            run.family.clone(),
            run.command.clone(),
            run.plan.clone(),
            run.verdict.clone(),
            run.made_by.clone(),
            kind.to_owned(),
            size(raw_bytes),
            size(body.bytes.len()),
        ],
    )?;
    let sql =
        "INSERT INTO bodies VALUES (?1, ?2, ?3, ?4) ON CONFLICT (run) DO UPDATE SET codec = ?2, sha256 = ?3, body = ?4";
    database.rows(sql, values![number, body.codec, body.sha256, body.bytes])?;
    database.rows("DELETE FROM deleted WHERE id = ?", values![run.id.clone()])?;
    database.rows("DELETE FROM figures WHERE run = ?", values![number])?;
    for (place, figure) in (0i64..).zip(run.figures.iter().filter(|it| it.value.is_finite())) {
        let values = values![number, place, figure.name.clone(), filter::unit_word(figure.unit), figure.value];
        database.rows("INSERT INTO figures VALUES (?, ?, ?, ?, ?)", values)?;
    }
    let clear = database.clear().then(|| TLS_NOT_REQUIRED.to_owned());
    for tag in run.tags.iter().chain(&clear) {
        database.rows("INSERT INTO tags VALUES (?, ?) ON CONFLICT DO NOTHING", values![tag.clone(), number])?;
    }
    Ok(number)
}

/// Runs whose tags and figures are read together.
const PART: usize = 500;

/// Tags and figures of so many runs at most: others may write to a database, too.
const LINES_MAX: usize = 100_000;

#[cfg(test)]
mod tests;
