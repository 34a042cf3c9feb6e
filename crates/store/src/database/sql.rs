//! What the store asks of a database: SQL that SQLite and PostgreSQL both know, values and transactions.

#[cfg(feature = "postgres")]
use super::remote::Remote;
pub(crate) use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use std::path::{Path, PathBuf};

/// Why a database did not do it, and the remedy.
#[derive(Debug)]
pub(crate) struct Fault(pub(crate) String);

pub(crate) type Result<T> = std::result::Result<T, Fault>;

pub(crate) enum Database {
    Sqlite(Connection),
    #[cfg(feature = "postgres")]
    Postgres(Remote),
}

impl Database {
    /// Whether what is written may pass a network in clear.
    pub(crate) fn clear(&self) -> bool {
        match self {
            Self::Sqlite(_) => false,
            #[cfg(feature = "postgres")]
            Self::Postgres(remote) => remote.clear,
        }
    }

    /// The rows of one statement. Its parameters are `?` or `?N`.
    pub(crate) fn rows(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Cells>> {
        match self {
            Self::Sqlite(connection) => {
                let mut query = connection.prepare_cached(sql)?;
                let columns = query.column_count();
                let cells =
                    |row: &rusqlite::Row<'_>| (0..columns).map(|at| row.get(at)).collect::<rusqlite::Result<_>>();
                let rows = query.query_map(params_from_iter(values), |row| Ok(Cells(cells(row)?)))?;
                Ok(rows.collect::<rusqlite::Result<_>>()?)
            }
            #[cfg(feature = "postgres")]
            Self::Postgres(remote) => remote.rows(sql, values),
        }
    }

    pub(crate) fn batch(&self, sql: &str) -> Result<()> {
        match self {
            Self::Sqlite(connection) => Ok(connection.execute_batch(sql)?),
            #[cfg(feature = "postgres")]
            Self::Postgres(remote) => remote.batch(sql),
        }
    }

    /// A step to a version of the schema, written for SQLite.
    pub(crate) fn schema(&self, step: &str) -> Result<()> {
        match self {
            Self::Sqlite(_) => self.batch(step),
            #[cfg(feature = "postgres")]
            Self::Postgres(remote) => remote.long_batch(&super::remote::schema(step)),
        }
    }

    /// The whole number that a query gives.
    pub(crate) fn number(&self, sql: &str, values: Vec<Value>) -> Result<i64> {
        self.rows(sql, values)?.first_mut().map_or_else(|| Err(wrong("there")), Cells::integer)
    }

    /// Does all of it or nothing.
    pub(crate) fn together<T>(&self, what: impl FnOnce() -> Result<T>) -> Result<T> {
        // SQLite: who will write waits for the lock at the beginning, not in the middle, where it would fail.
        self.batch(if self.is_file() { "BEGIN IMMEDIATE" } else { "BEGIN" })?;
        let done = what().and_then(|done| self.batch("COMMIT").map(|()| done));
        if done.is_err() {
            // Of a broken connection the server rolls back by itself.
            let _ = self.batch("ROLLBACK");
        }
        done
    }

    /// Whether it is a file of SQLite.
    pub(crate) const fn is_file(&self) -> bool {
        matches!(self, Self::Sqlite(_))
    }
}

/// A row: its cells from left to right.
pub(crate) struct Cells(pub(crate) std::collections::VecDeque<Value>);

impl Cells {
    pub(crate) fn text(&mut self) -> Result<String> {
        if let Some(Value::Text(word)) = self.0.pop_front() { Ok(word) } else { Err(wrong("text")) }
    }

    pub(crate) fn integer(&mut self) -> Result<i64> {
        if let Some(Value::Integer(number)) = self.0.pop_front() { Ok(number) } else { Err(wrong("a whole number")) }
    }

    pub(crate) fn real(&mut self) -> Result<f64> {
        if let Some(Value::Real(number)) = self.0.pop_front() { Ok(number) } else { Err(wrong("a number")) }
    }

    pub(crate) fn blob(&mut self) -> Result<Vec<u8>> {
        if let Some(Value::Blob(bytes)) = self.0.pop_front() { Ok(bytes) } else { Err(wrong("bytes")) }
    }
}

fn wrong(kind: &str) -> Fault {
    Fault(format!("a value is not {kind}; check it with `narrows store check`"))
}

/// Values of the list, which become [`Value`]s.
macro_rules! values {
    ($($value:expr),* $(,)?) => { vec![$($crate::database::sql::Value::from($value)),*] };
}
pub(crate) use values;

/// Whether this is the address of a PostgreSQL server.
pub fn is_address(store: &Path) -> bool {
    address(store).is_some()
}

fn address(store: &Path) -> Option<&str> {
    let rest = store.to_str()?;
    rest.strip_prefix("postgres://").or_else(|| rest.strip_prefix("postgresql://"))
}

/// What may be shown of a store: its file, or its address without password and options.
pub fn shown(store: &Path) -> PathBuf {
    let Some(rest) = address(store) else { return store.to_owned() };
    let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
    let (user, place) = place.rsplit_once('@').map_or((None, place), |(who, place)| (who.split(':').next(), place));
    let authority = place.split('/').next().unwrap_or_default();
    // What follows the colon of an incomplete address can be a password.
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    if options.contains('@') || !port.trim_end_matches(']').bytes().all(|it| it.is_ascii_hexdigit()) {
        return "postgres://…".into();
    }
    let user = user.map_or(String::new(), |user| format!("{user}@"));
    format!("postgres://{user}{place}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_password_is_shown() {
        for (store, want) in [
            ("/var/lib/runs.db", "/var/lib/runs.db"),
            ("postgres://ann:secret@db:5432/runs?connect_timeout=3", "postgres://ann@db:5432/runs"),
            ("postgresql://ann:se@cr/et@db/runs", "postgres://ann@db/runs"),
            ("postgres://ann@[2001:db8::7]:5432/runs", "postgres://ann@[2001:db8::7]:5432/runs"),
            ("postgres://ann@%2Frun%2Fpostgresql/runs", "postgres://ann@%2Frun%2Fpostgresql/runs"),
            ("postgres://db/runs?user=ann&password=secret", "postgres://db/runs"),
            ("postgres://ann:secret", "postgres://…"),
            ("postgres://ann:12?34@db/runs", "postgres://…"),
        ] {
            assert_eq!(shown(Path::new(store)), Path::new(want));
        }
    }
}
