//! A store on a PostgreSQL server: a connection in a thread of its own, since its client must not block a thread of an async runtime.

use super::sql::{Cells, Fault, Result, Value};
use postgres::config::{Host, SslMode};
use postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, Config, Statement};
use std::collections::HashMap;
use std::error::Error as StdError;
use std::fmt::Write as _;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU8};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How long to wait for the server: for the connection, for acknowledged data, for another program's lock.
const PATIENCE: Duration = Duration::from_secs(10);

/// No statement of a store takes longer. A server that is stopped, but whose kernel still acknowledges, would hold up its user for ever.
const ANSWERS: Duration = Duration::from_secs(120);

/// Nor a step of the schema.
const LONG: Duration = Duration::from_secs(3_600);

/// How many statements are kept prepared.
const PREPARED_MAX: usize = 64;

/// Work for the thread.
type Job = Box<dyn FnOnce(&mut Session) + Send>;

/// The connection; it is closed with the last job.
pub(crate) struct Remote {
    jobs: Sender<Job>,
    /// Whether what is stored there may pass a network in clear.
    pub(crate) clear: bool,
    answers: Duration,
    /// Whether the server has not answered yet what was given up: nobody waits for the same again.
    is_stuck: Arc<AtomicBool>,
}

/// Who asks waits, has an answer, or has given up.
const WAITS: u8 = 0;
const ANSWERED: u8 = 1;
const GIVEN_UP: u8 = 2;

struct Session {
    client: Client,
    prepared: HashMap<String, Statement>,
    /// Whether a transaction has begun: without its connection it has failed.
    within: bool,
}

impl Remote {
    /// Connects to the server of this address.
    pub(crate) fn open(address: &str) -> Result<Self> {
        let wrong = |error: postgres::Error| {
            let Fault(why) = error.into();
            Fault(format!("{why}; check NARROWS_STORE=postgres://USER:PASSWORD@HOST:PORT/DATABASE and the server"))
        };
        let (mut config, clear) = configured(address).map_err(wrong)?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(PATIENCE / 2);
        }
        config
            .tcp_user_timeout(PATIENCE)
            .keepalives_idle(PATIENCE)
            .keepalives_interval(PATIENCE / 2)
            .application_name("narrows");
        let (jobs, todo) = channel::<Job>();
        let (opened, answer) = channel();
        std::thread::spawn(move || {
            let connect = || -> Result<Client> {
                let mut client = config.connect(super::tls::connector().map_err(Fault)?).map_err(wrong)?;
                client.batch_execute(&format!("SET lock_timeout = '{}s'", PATIENCE.as_secs()))?;
                Ok(client)
            };
            match connect() {
                Ok(client) => {
                    let mut session = Session { client, prepared: HashMap::new(), within: false };
                    let _ = opened.send(Ok(()));
                    for job in todo {
                        // The server was started again. If it is not there yet, the job says so.
                        if session.client.is_closed()
                            && !session.within
                            && let Ok(client) = connect()
                        {
                            session = Session { client, prepared: HashMap::new(), within: false };
                        }
                        job(&mut session);
                    }
                }
                Err(fault) => drop(opened.send(Err(fault))),
            }
        });
        answer.recv_timeout(ANSWERS).map_err(|_| silent(ANSWERS))??;
        Ok(Self { jobs, clear, answers: ANSWERS, is_stuck: Arc::default() })
    }

    fn ask<T: Send + 'static>(&self, what: impl FnOnce(&mut Session) -> Result<T> + Send + 'static) -> Result<T> {
        self.ask_within(self.answers, what)
    }

    fn ask_within<T: Send + 'static>(
        &self,
        answers: Duration,
        what: impl FnOnce(&mut Session) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        if self.is_stuck.load(Relaxed) {
            return Err(silent(answers));
        }
        let (done, answer) = channel();
        let is_stuck = self.is_stuck.clone();
        let state = Arc::new(AtomicU8::new(WAITS));
        let its = state.clone();
        let job = move |session: &mut Session| {
            if its.load(Acquire) == GIVEN_UP {
                is_stuck.store(false, Relaxed);
                return;
            }
            let found = what(session);
            if its.compare_exchange(WAITS, ANSWERED, AcqRel, Acquire).is_ok() {
                let _ = done.send(found);
                return;
            }
            if session.within {
                // Nobody ends what it began.
                session.within = false;
                let _ = session.client.batch_execute("ROLLBACK");
            }
            is_stuck.store(false, Relaxed);
        };
        self.jobs.send(Box::new(job)).map_err(|_| gone())?;
        match answer.recv_timeout(answers) {
            Err(RecvTimeoutError::Timeout) => {
                // Before anybody can see that it was given up: what is done then takes it back.
                self.is_stuck.store(true, Relaxed);
                if state.compare_exchange(WAITS, GIVEN_UP, AcqRel, Acquire).is_ok() {
                    return Err(silent(answers));
                }
                self.is_stuck.store(false, Relaxed);
                answer.recv().map_err(|_| gone())?
            }
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
            Ok(found) => found,
        }
    }

    pub(crate) fn rows(&self, sql: &str, values: Vec<Value>) -> Result<Vec<Cells>> {
        let sql = sql.to_owned();
        self.ask(move |session| {
            let query = match session.prepared.get(&sql) {
                Some(query) => query.clone(),
                None => session.client.prepare(&numbered(&sql))?,
            };
            let values: Vec<Cell> = values.into_iter().map(Cell).collect();
            let values: Vec<&(dyn ToSql + Sync)> = values.iter().map(|it| it as _).collect();
            let rows = session.client.query(&query, &values)?;
            if session.prepared.len() >= PREPARED_MAX {
                session.prepared.clear();
            }
            session.prepared.insert(sql, query);
            let cells = |row: &postgres::Row| -> Result<Cells> {
                Ok(Cells((0..row.len()).map(|at| Ok(row.try_get::<_, Cell>(at)?.0)).collect::<Result<_>>()?))
            };
            rows.iter().map(cells).collect()
        })
    }

    pub(crate) fn batch(&self, sql: &str) -> Result<()> {
        self.batch_within(self.answers, sql)
    }

    /// The same of what may take its time, as a step of the schema does with many rows.
    pub(crate) fn long_batch(&self, sql: &str) -> Result<()> {
        self.batch_within(LONG, sql)
    }

    fn batch_within(&self, answers: Duration, sql: &str) -> Result<()> {
        let sql = sql.to_owned();
        self.ask_within(answers, move |session| {
            let is_end = ["COMMIT", "ROLLBACK"].contains(&sql.as_str());
            session.within &= !is_end;
            session.client.batch_execute(&sql)?;
            session.within |= sql == "BEGIN";
            Ok(())
        })
    }
}

/// The connection's options, and whether runs may pass a network in clear. A server on another host must speak TLS unless the address says
/// otherwise: with libpq's default, a man in the middle strips TLS by changing one byte. Certificates are always verified in full, so
/// `verify-ca` and `verify-full` are the same as `require`.
fn configured(address: &str) -> std::result::Result<(Config, bool), postgres::Error> {
    let (place, options) = address.split_once('?').unwrap_or((address, ""));
    let explicit = options.split('&').any(|option| option.starts_with("sslmode="));
    let options: Vec<&str> = options
        .split('&')
        .map(|option| match option {
            "sslmode=verify-ca" | "sslmode=verify-full" => "sslmode=require",
            other => other,
        })
        .collect();
    let mut config: Config = format!("{place}?{}", options.join("&")).parse()?;
    let here = |ip: &IpAddr| ip.to_canonical().is_loopback();
    let named = config.get_hosts().iter().any(|host| match host {
        Host::Tcp(name) => name != "localhost" && !name.parse().is_ok_and(|ip| here(&ip)),
        Host::Unix(_) => false,
    });
    let remote = named || !config.get_hostaddrs().iter().all(here);
    if remote && !explicit {
        config.ssl_mode(SslMode::Require);
    }
    let clear = remote && config.get_ssl_mode() != SslMode::Require;
    Ok((config, clear))
}

fn silent(answers: Duration) -> Fault {
    Fault(format!("the server does not answer within {} s", answers.as_secs()))
}

fn gone() -> Fault {
    Fault("the connection has ended".to_owned())
}

/// `?` and `?N` as `$N`. No statement of the store has a question mark elsewhere.
fn numbered(sql: &str) -> String {
    let (mut out, mut next) = (String::new(), 1);
    let mut parts = sql.split('?');
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        out.push('$');
        if !part.starts_with(|c: char| c.is_ascii_digit()) {
            let _ = write!(out, "{next}");
            next += 1;
        }
        out.push_str(part);
    }
    out
}

/// The step to a version of the schema, as PostgreSQL has it: texts sort by their bytes, as in SQLite.
pub(crate) fn schema(step: &str) -> String {
    [
        ("number INTEGER PRIMARY KEY", "number BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"),
        ("INTEGER", "BIGINT"),
        ("TEXT", "TEXT COLLATE \"C\""),
        ("BLOB", "BYTEA"),
        ("REAL", "DOUBLE PRECISION"),
        (" STRICT, WITHOUT ROWID", ""),
        (" STRICT", ""),
    ]
    .iter()
    .fold(step.to_owned(), |step, (here, there)| step.replace(here, there))
}

/// A value on its way.
#[derive(Debug)]
struct Cell(Value);

impl ToSql for Cell {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut postgres::types::private::BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match &self.0 {
            Value::Null => Ok(IsNull::Yes),
            Value::Integer(number) => number.to_sql(kind, out),
            Value::Real(number) => number.to_sql(kind, out),
            // A text of PostgreSQL cannot hold it.
            Value::Text(word) => word.replace('\0', "\u{fffd}").to_sql(kind, out),
            Value::Blob(bytes) => bytes.to_sql(kind, out),
        }
    }

    fn accepts(kind: &Type) -> bool {
        [Type::INT8, Type::FLOAT8, Type::TEXT, Type::BYTEA].contains(kind)
    }

    to_sql_checked!();
}

impl<'a> FromSql<'a> for Cell {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> std::result::Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(match *kind {
            Type::INT4 => Value::Integer(i32::from_sql(kind, raw)?.into()),
            Type::INT8 => Value::Integer(i64::from_sql(kind, raw)?),
            Type::FLOAT8 => Value::Real(f64::from_sql(kind, raw)?),
            Type::BYTEA => Value::Blob(Vec::from_sql(kind, raw)?),
            _ => Value::Text(String::from_sql(kind, raw)?),
        }))
    }

    fn from_sql_null(_: &Type) -> std::result::Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Self(Value::Null))
    }

    fn accepts(kind: &Type) -> bool {
        <Self as ToSql>::accepts(kind) || *kind == Type::INT4
    }
}

impl From<postgres::Error> for Fault {
    fn from(error: postgres::Error) -> Self {
        if let Some(it) = error.as_db_error() {
            return Self(format!("{} (SQLSTATE {})", it.message(), it.code().code()));
        }
        let mut words = error.to_string();
        let mut source = error.source();
        while let Some(it) = source {
            let why = it.to_string();
            if !words.contains(&why) {
                let _ = write!(words, ": {why}");
            }
            source = it.source();
        }
        if words.contains("certificate") {
            words += "; name its authority's file in SSL_CERT_FILE, or append ?sslmode=disable to the address";
        }
        if words.contains("does not support TLS") {
            words += "; turn on `ssl` at the server, or append ?sslmode=disable to the address where nobody else can read or \
                      change what passes between both";
        }
        Self(words)
    }
}

#[cfg(test)]
mod tests {
    use super::{Duration, Fault, Relaxed, Remote, SslMode, configured};

    #[test]
    fn a_server_that_says_nothing_holds_up_nobody_and_leaves_no_transaction() {
        let Some(server) = crate::server::Server::start() else { return };
        let mut remote = Remote::open(server.database("silent").to_str().expect("an address")).expect("a connection");
        remote.batch("CREATE TABLE held (number BIGINT)").expect("a table");
        for statement in ["BEGIN", "INSERT INTO held VALUES (1)"] {
            remote.batch(statement).expect("done");
        }
        remote.answers = Duration::from_millis(300);
        let Err(Fault(why)) = remote.batch("SELECT pg_sleep(2)") else { panic!("it waited") };
        assert!(why.contains("does not answer"), "{why}");
        let Err(Fault(why)) = remote.batch("SELECT 1") else { panic!("it was asked") };
        assert!(why.contains("does not answer"), "{why}");
        while remote.is_stuck.load(Relaxed) {
            narrows_sys::clock::sleep(Duration::from_millis(20));
        }
        remote.answers = Duration::from_secs(60);
        remote.batch("INSERT INTO held VALUES (2)").expect("by itself");
        let rows = remote.rows("SELECT number FROM held", Vec::new()).expect("rows");
        let numbers: Vec<i64> = rows.into_iter().map(|mut row| row.integer().expect("a number")).collect();
        assert_eq!(numbers, [2], "what was begun is undone");
    }

    #[test]
    fn a_server_beyond_this_host_must_speak_tls() {
        for (address, want) in [
            ("postgres://ann@db.example/runs", SslMode::Require),
            ("postgres://ann:pw@192.0.2.7:5432/runs?connect_timeout=3", SslMode::Require),
            ("postgres://ann@localhost,db.example/runs", SslMode::Require),
            ("postgres://ann@localhost/runs?hostaddr=192.0.2.7", SslMode::Require),
            ("postgres://ann@db.example/runs?sslmode=verify-full", SslMode::Require),
            ("postgres://ann@localhost/runs?connect_timeout=3&sslmode=require", SslMode::Require),
            ("postgres://ann@db.example/runs?sslmode=disable", SslMode::Disable),
            ("postgres://ann@db.example/runs?sslmode=prefer", SslMode::Prefer),
            ("postgres://ann@[::1]/runs", SslMode::Prefer),
            ("postgres://ann@localhost:5432/runs", SslMode::Prefer),
            ("postgres://ann@%2Frun%2Fpostgresql/runs", SslMode::Prefer),
        ] {
            let (config, clear) = configured(address).unwrap();
            assert_eq!(config.get_ssl_mode(), want, "{address}");
            assert_eq!(clear, address.contains("db.example/runs?sslmode=") && want != SslMode::Require, "{address}");
        }
    }

    #[test]
    fn parameters_are_numbered() {
        assert_eq!(super::numbered("a = ? AND b = ? LIMIT ?"), "a = $1 AND b = $2 LIMIT $3");
        assert_eq!(super::numbered("a = ?2, b = ?14"), "a = $2, b = $14");
    }
}
