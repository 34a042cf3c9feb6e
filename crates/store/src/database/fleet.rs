//! The tests of fleets: each is made once, or named as missed.

use super::sql::{Cells, Fault, Value, values};
use super::{Result, Store};
use crate::Error;
use narrows_fleet::plan::Fleet;
use narrows_fleet::schedule::{Name, Planned};
use narrows_fleet::truth::{DAYS_KEPT_MS, Due, Ended, Lease, NOTES_MAX, Note, Point, Taken, Truth, day_of};
use narrows_mesh::Load;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// The tests of one fleet in a store. There they have the names of its file, so that its lines may change their order.
#[derive(Debug)]
pub struct FleetTests<'a> {
    store: &'a mut Store,
    fleet: &'a Fleet,
    hosts: Vec<&'a str>,
}

/// Ends of a test: none, a result, missed.
const OPEN: i64 = 0;
const RESULT: i64 = 1;
const MISSED: i64 = 2;

const NAMES: &str = "mesh, test, slot, sender, receiver";
const IS: &str = "fleet = ? AND mesh = ? AND test = ? AND slot = ? AND sender = ? AND receiver = ?";

const OF_PATH: &str = "fleet = ? AND mesh = ? AND test = ? AND sender = ? AND receiver = ?";
/// The place of the slot among a name's columns.
const SLOT: usize = 3;
const FIGURES: &str = "day_ms, tests, failed, least, middle, most, sent, lost_there, lost_back";

/// What is known of a day.
fn figures(row: &mut Cells) -> std::result::Result<Point, Fault> {
    let [due_ms, tests, failed] = [row.integer()?, row.integer()?, row.integer()?].map(i64::unsigned_abs);
    let figures = [row.real()?, row.real()?, row.real()?];
    let packets = [row.integer()?, row.integer()?, row.integer()?].map(i64::unsigned_abs);
    Ok(Point { due_ms, tests, failed, figures: (failed < tests).then_some(figures), packets })
}

/// What is known of a test by when it was due, how it ended, and its result; `None`: it has no end.
fn single(row: &mut Cells) -> std::result::Result<Option<Point>, Fault> {
    let (due_ms, ended, result) = (row.integer()?.unsigned_abs(), row.integer()?, row.blob()?);
    Ok((ended != OPEN).then(|| Point::of(due_ms, (ended == RESULT).then_some(&result))))
}

impl Store {
    /// The tests of a fleet.
    pub fn tests_of<'a>(&'a mut self, fleet: &'a Fleet) -> FleetTests<'a> {
        FleetTests { store: self, fleet, hosts: fleet.hosts.keys().map(String::as_str).collect() }
    }
}

const fn integer(number: u64) -> i64 {
    if number > i64::MAX as u64 { i64::MAX } else { number as i64 }
}

impl FleetTests<'_> {
    /// A name as the columns have it, behind that of the fleet.
    fn columns(&self, name: &Name) -> Vec<Value> {
        let mesh = &self.fleet.meshes[name.mesh];
        values![
            self.fleet.name.clone(),
            mesh.name.clone(),
            mesh.tests[name.test].word(),
            integer(name.slot),
            self.hosts[name.load.from].to_owned(),
            self.hosts[name.load.to].to_owned()
        ]
    }

    /// A path of a test as the columns have it.
    fn path(&self, name: &Name) -> Vec<Value> {
        let mut columns = self.columns(name);
        columns.remove(SLOT);
        columns
    }

    /// Adds to what is known of a path's day.
    fn fold_day(&self, path: &[String; 4], day: &Point) -> std::result::Result<(), Fault> {
        let mut of = values![self.fleet.name.clone()];
        of.extend(path.iter().cloned().map(Value::from));
        of.push(integer(day.due_ms).into());
        let sql = format!("SELECT {FIGURES} FROM fleet_days WHERE {OF_PATH} AND day_ms = ?");
        let known = self.store.database.rows(&sql, of.clone())?.pop();
        let known = known.map(|mut row| figures(&mut row)).transpose()?;
        let Point { tests, failed, figures, packets, .. } = known.map_or_else(|| day.clone(), |known| known.and(day));
        let [least, middle, most] = figures.unwrap_or_default();
        let [tests, failed] = [tests, failed].map(integer);
        let [sent, lost_there, lost_back] = packets.map(integer);
        let sql = format!(
            "INSERT INTO fleet_days (fleet, mesh, test, sender, receiver, {FIGURES}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
             ON CONFLICT (fleet, mesh, test, sender, receiver, day_ms) DO UPDATE SET tests = excluded.tests, failed = excluded.failed,
             least = excluded.least, middle = excluded.middle, most = excluded.most, sent = excluded.sent,
             lost_there = excluded.lost_there, lost_back = excluded.lost_back"
        );
        let values = [of, values![tests, failed, least, middle, most, sent, lost_there, lost_back]].concat();
        self.store.database.rows(&sql, values).map(drop)
    }

    /// The name of a row; `None` where the file has that mesh, test or host no more.
    fn named(&self, row: &mut Cells) -> std::result::Result<Option<Name>, Fault> {
        let (mesh, test, slot) = (row.text()?, row.text()?, row.integer()?.unsigned_abs());
        let (from, to) = (row.text()?, row.text()?);
        let place = |host: &str| self.hosts.binary_search(&host).ok();
        Ok((|| {
            let mesh = self.fleet.meshes.iter().position(|it| it.name == mesh)?;
            let test = self.fleet.meshes[mesh].tests.iter().position(|it| it.word() == test)?;
            Some(Name { mesh, test, slot, load: Load { from: place(&from)?, to: place(&to)? } })
        })())
    }

    /// Rows that begin with a name, each with what else it has; those of what is in the file no more are left out.
    fn rows<R>(
        &self,
        sql: &str,
        values: Vec<Value>,
        more: impl Fn(&mut Cells) -> std::result::Result<R, Fault>,
    ) -> Result<Vec<(Name, R)>> {
        let read = || {
            let mut found = Vec::new();
            for mut row in self.store.database.rows(sql, values)? {
                let name = self.named(&mut row)?;
                let more = more(&mut row)?;
                found.extend(name.map(|name| (name, more)));
            }
            Ok(found)
        };
        read().map_err(self.store.failed("write to"))
    }

    /// How many rows a statement with RETURNING gives.
    fn count(&self, sql: &str, values: Vec<Value>) -> Result<usize> {
        self.store.database.rows(sql, values).map(|rows| rows.len()).map_err(self.store.failed("write to"))
    }
}

impl Truth for FleetTests<'_> {
    type Error = Error;

    fn plan(&mut self, tests: &[Planned]) -> Result<usize> {
        let sql = format!(
            "INSERT INTO fleet_tests (fleet, {NAMES}, due_ms, fence, until_ms, ended) VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, 0)
             ON CONFLICT DO NOTHING RETURNING number"
        );
        let all = || {
            let mut new = 0;
            for test in tests {
                let mut values = self.columns(&test.name);
                values.push(integer(test.due_ms).into());
                new += self.store.database.rows(&sql, values)?.len();
            }
            Ok(new)
        };
        self.store.database.together(all).map_err(self.store.failed("write to"))
    }

    fn planned(&mut self) -> Result<Option<u64>> {
        let sql = "SELECT due_ms FROM fleet_tests WHERE fleet = ? ORDER BY due_ms DESC LIMIT 1";
        let read = || {
            let row = self.store.database.rows(sql, values![self.fleet.name.clone()])?.pop();
            Ok(row.map(|mut row| row.integer()).transpose()?.map(i64::unsigned_abs))
        };
        read().map_err(self.store.failed("read"))
    }

    fn lease(&mut self, names: &[Name], now_ms: u64, until_ms: u64) -> Result<Vec<Option<Lease>>> {
        // Of two who ask at the same time one changes the row first, and the other one sees that nobody's lease has ended.
        let sql = format!(
            "UPDATE fleet_tests SET fence = fence + 1, until_ms = ? WHERE {IS} AND ended = {OPEN} AND until_ms <= ? RETURNING fence"
        );
        let all = || {
            let give = |name: &Name| {
                let values = [values![integer(until_ms)], self.columns(name), values![integer(now_ms)]].concat();
                let row = self.store.database.rows(&sql, values)?.pop();
                let fence = row.map(|mut row| row.integer()).transpose()?;
                Ok(fence.map(|fence| Lease { name: *name, fence: fence.unsigned_abs(), until_ms }))
            };
            names.iter().map(give).collect()
        };
        self.store.database.together(all).map_err(self.store.failed("write to"))
    }

    fn end(&mut self, results: &[(Lease, Vec<u8>)]) -> Result<Vec<Taken>> {
        let store = format!(
            "UPDATE fleet_tests SET ended = {RESULT}, result = ? WHERE {IS} AND fence = ? AND fence > 0 AND ended = {OPEN} RETURNING number"
        );
        let has = format!("SELECT number FROM fleet_tests WHERE {IS} AND fence = ? AND ended = {RESULT}");
        let end = |(lease, result): &(Lease, Vec<u8>)| {
            let name = [self.columns(&lease.name), values![integer(lease.fence)]].concat();
            if !self.store.database.rows(&store, [values![result.clone()], name.clone()].concat())?.is_empty() {
                return Ok(Taken::Stored);
            }
            let is_again = !self.store.database.rows(&has, name)?.is_empty();
            Ok(if is_again { Taken::Again } else { Taken::TooLate })
        };
        if results.is_empty() {
            return Ok(Vec::new());
        }
        let all = || results.iter().map(end).collect();
        self.store.database.together(all).map_err(self.store.failed("write to"))
    }

    fn miss(&mut self, mesh: usize, test: usize, due_before_ms: u64, now_ms: u64) -> Result<Vec<Name>> {
        let sql = format!(
            "UPDATE fleet_tests SET ended = {MISSED}
             WHERE fleet = ? AND mesh = ? AND test = ? AND ended = {OPEN} AND due_ms < ? AND until_ms <= ? RETURNING {NAMES}"
        );
        let of = &self.fleet.meshes[mesh];
        let (mesh, test) = (of.name.clone(), of.tests[test].word());
        let values = values![self.fleet.name.clone(), mesh, test, integer(due_before_ms), integer(now_ms)];
        let mut missed: Vec<Name> = self.rows(&sql, values, |_| Ok(()))?.into_iter().map(|(name, ())| name).collect();
        missed.sort_unstable();
        Ok(missed)
    }

    fn miss_all(&mut self, due_before_ms: u64, now_ms: u64) -> Result<()> {
        // By the index of what is open, which is little; that of all times is not for this.
        let sql = format!(
            "UPDATE fleet_tests SET ended = {MISSED} WHERE fleet = ? AND ended = {OPEN} AND +due_ms < ? AND until_ms <= ? RETURNING fleet"
        );
        self.count(&sql, values![self.fleet.name.clone(), integer(due_before_ms), integer(now_ms)]).map(drop)
    }

    fn reopen(&mut self, now_ms: u64) -> Result<()> {
        let sql = format!(
            "UPDATE fleet_tests SET ended = {OPEN}, until_ms = 0 WHERE fleet = ? AND ended = {MISSED} AND due_ms > ? RETURNING number"
        );
        self.count(&sql, values![self.fleet.name.clone(), integer(now_ms)]).map(drop)
    }

    fn open(&mut self, due_ms: RangeInclusive<u64>) -> Result<Vec<(Planned, Option<Lease>)>> {
        let sql = format!(
            "SELECT {NAMES}, due_ms, fence, until_ms FROM fleet_tests
             WHERE fleet = ? AND ended = {OPEN} AND due_ms >= ? AND due_ms <= ?"
        );
        let more = |row: &mut Cells| {
            let [due_ms, fence, until_ms] = [row.integer()?, row.integer()?, row.integer()?].map(i64::unsigned_abs);
            Ok((due_ms, fence, until_ms))
        };
        let [from, to] = [*due_ms.start(), *due_ms.end()].map(integer);
        let open = |(name, (due_ms, fence, until_ms)): (Name, (u64, u64, u64))| {
            (Planned { due_ms, name }, (fence > 0).then_some(Lease { name, fence, until_ms }))
        };
        let rows = self.rows(&sql, values![self.fleet.name.clone(), from, to], more)?;
        let mut found: Vec<_> = rows.into_iter().map(open).collect();
        found.sort_by_key(|(planned, _)| *planned);
        Ok(found)
    }

    fn results(&mut self, mesh: usize, test: usize, due_ms: RangeInclusive<u64>) -> Result<Vec<Ended>> {
        let sql = format!(
            "SELECT {NAMES}, due_ms, result FROM fleet_tests
             WHERE fleet = ? AND mesh = ? AND test = ? AND ended = {RESULT} AND due_ms >= ? AND due_ms <= ? ORDER BY due_ms, number"
        );
        let of = &self.fleet.meshes[mesh];
        let (mesh, test) = (of.name.clone(), of.tests[test].word());
        let more = |row: &mut Cells| Ok((row.integer()?.unsigned_abs(), row.blob()?));
        let [from, to] = [*due_ms.start(), *due_ms.end()].map(integer);
        let rows = self.rows(&sql, values![self.fleet.name.clone(), mesh, test, from, to], more)?;
        Ok(rows.into_iter().map(|(name, (due_ms, result))| (due_ms, name, result)).collect())
    }

    fn series(&mut self, mesh: usize, test: usize, load: Load, since_ms: u64) -> Result<Vec<Due>> {
        let path = self.path(&Name { mesh, test, slot: 0, load });
        let sql = format!(
            "SELECT due_ms, ended, COALESCE(result, ?) FROM fleet_tests
             WHERE {OF_PATH} AND due_ms >= ? AND ended <> {OPEN} ORDER BY due_ms, number"
        );
        let read = || {
            let values = [values![Vec::new()], path, values![integer(since_ms)]].concat();
            let due = |mut row: Cells| {
                let (due_ms, ended, result) = (row.integer()?.unsigned_abs(), row.integer()?, row.blob()?);
                Ok((due_ms, (ended == RESULT).then_some(result)))
            };
            self.store.database.rows(&sql, values)?.into_iter().map(due).collect::<std::result::Result<_, Fault>>()
        };
        read().map_err(self.store.failed("read"))
    }

    fn days(&mut self, mesh: usize, test: usize, load: Load, since_ms: u64) -> Result<Vec<Point>> {
        let path = self.path(&Name { mesh, test, slot: 0, load });
        let sql = format!("SELECT {FIGURES} FROM fleet_days WHERE {OF_PATH} AND day_ms >= ? ORDER BY day_ms");
        let read = || {
            let values = [path, values![integer(day_of(since_ms))]].concat();
            self.store
                .database
                .rows(&sql, values)?
                .into_iter()
                .map(|mut row| figures(&mut row))
                .collect::<std::result::Result<_, Fault>>()
        };
        read().map_err(self.store.failed("read"))
    }

    fn fold(&mut self, before_ms: u64, most: usize) -> Result<usize> {
        let tests = "SELECT number, mesh, test, sender, receiver, due_ms, ended, COALESCE(result, ?) FROM fleet_tests
             WHERE fleet = ? AND due_ms < ? ORDER BY due_ms LIMIT ?";
        let all = || {
            let values = values![Vec::new(), self.fleet.name.clone(), integer(before_ms), integer(most as u64)];
            let rows = self.store.database.rows(tests, values)?;
            let count = rows.len();
            let mut days: BTreeMap<([String; 4], u64), Point> = BTreeMap::new();
            for mut row in rows {
                let number = row.integer()?;
                let path = [row.text()?, row.text()?, row.text()?, row.text()?];
                self.store.database.rows("DELETE FROM fleet_tests WHERE number = ?", values![number])?;
                let Some(point) = single(&mut row)?.filter(|it| it.tests > 0) else { continue };
                let day = Point { due_ms: day_of(point.due_ms), ..point };
                let of = days.entry((path, day.due_ms));
                of.and_modify(|it| *it = it.and(&day)).or_insert(day);
            }
            for ((path, _), day) in days {
                self.fold_day(&path, &day)?;
            }
            let old = integer(before_ms.saturating_sub(DAYS_KEPT_MS));
            for of in ["fleet_days WHERE fleet = ? AND day_ms", "fleet_notes WHERE fleet = ? AND at_ms"] {
                let values = values![self.fleet.name.clone(), old];
                self.store.database.rows(&format!("DELETE FROM {of} < ?"), values)?;
            }
            Ok(count)
        };
        self.store.database.together(all).map_err(self.store.failed("write to"))
    }

    fn note(&mut self, host: usize, at_ms: u64, says: &[String]) -> Result<()> {
        let sql = "INSERT INTO fleet_notes (fleet, host, at_ms, says) VALUES (?, ?, ?, ?)";
        let all = || {
            for says in says {
                let (fleet, host) = (self.fleet.name.clone(), self.hosts[host].to_owned());
                self.store.database.rows(sql, values![fleet, host, integer(at_ms), says.clone()])?;
            }
            Ok(())
        };
        self.store.database.together(all).map_err(self.store.failed("write to"))
    }

    fn notes(&mut self, hosts: [usize; 2], since_ms: u64) -> Result<Vec<Note>> {
        let sql = "SELECT at_ms, host, says FROM fleet_notes WHERE fleet = ? AND host IN (?, ?) AND at_ms >= ?
             ORDER BY at_ms DESC, number DESC LIMIT ?";
        let [a, b] = hosts.map(|host| self.hosts[host].to_owned());
        let note = |mut row: Cells| {
            let (at_ms, host) = (row.integer()?.unsigned_abs(), row.text()?);
            Ok((at_ms, hosts[usize::from(host != self.hosts[hosts[0]])], row.text()?))
        };
        let read = || {
            let most = integer(NOTES_MAX as u64);
            let rows =
                self.store.database.rows(sql, values![self.fleet.name.clone(), a, b, integer(since_ms), most])?;
            rows.into_iter().rev().map(note).collect::<std::result::Result<_, Fault>>()
        };
        read().map_err(self.store.failed("read"))
    }

    fn lead(&mut self, controller: &str, now_ms: u64, until_ms: u64) -> Result<bool> {
        let sql = "INSERT INTO fleet_leaders (fleet, controller, until_ms) VALUES (?, ?, ?)
             ON CONFLICT (fleet) DO UPDATE SET controller = excluded.controller, until_ms = excluded.until_ms
             WHERE fleet_leaders.controller = excluded.controller OR fleet_leaders.until_ms <= ? RETURNING fleet";
        let lasts_ms = until_ms.saturating_sub(now_ms);
        // Controllers on several machines have one clock: that of their server.
        let now = "SELECT (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT";
        let now_ms = match self.store.database.is_file() {
            true => now_ms,
            false => self.store.database.number(now, Vec::new()).map_err(self.store.failed("read"))?.unsigned_abs(),
        };
        let until_ms = integer(now_ms.saturating_add(lasts_ms));
        let values = values![self.fleet.name.clone(), controller.to_owned(), until_ms, integer(now_ms)];
        self.count(sql, values).map(|count| count > 0)
    }

    fn keep(&mut self, state: &[u8]) -> Result<()> {
        let sql = "INSERT INTO fleets (fleet, state) VALUES (?, ?) ON CONFLICT (fleet) DO UPDATE SET state = excluded.state RETURNING fleet";
        self.count(sql, values![self.fleet.name.clone(), state.to_vec()]).map(drop)
    }

    fn kept(&mut self) -> Result<Option<Vec<u8>>> {
        let sql = "SELECT state FROM fleets WHERE fleet = ?";
        let read = || {
            let row = self.store.database.rows(sql, values![self.fleet.name.clone()])?.pop();
            row.map(|mut row| row.blob()).transpose()
        };
        read().map_err(self.store.failed("read"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_fleet::truth;

    fn check(store: &std::path::Path) {
        let fleet = truth::of_ten_hosts();
        let mut store = Store::open(store).expect("a store");
        truth::conforms(&mut store.tests_of(&fleet));
        // Another fleet of the same hosts has tests of its own.
        let other = Fleet { name: "other".to_owned(), ..fleet };
        truth::conforms(&mut store.tests_of(&other));
        // What its file has no more is named as missed.
        let test = Planned { due_ms: 7, name: Name { mesh: 0, test: 0, slot: 6_000, load: Load { from: 0, to: 1 } } };
        assert_eq!(store.tests_of(&other).plan(&[test]).expect("planned"), 1);
        let without = Fleet { meshes: Vec::new(), ..other };
        store.tests_of(&without).miss_all(8, 8).expect("missed");
        let other = Fleet { name: "other".to_owned(), ..truth::of_ten_hosts() };
        assert_eq!(store.tests_of(&other).open(0..=100).expect("open"), []);
    }

    #[test]
    fn sqlite_conforms() {
        check(&tempfile::tempdir().expect("a directory").path().join("runs.db"));
    }

    #[cfg(feature = "postgres")]
    #[test]
    fn postgres_conforms() {
        let Some(mut server) = crate::server::Server::start() else { return };
        let address = server.database("fleet");
        check(&address);
        // A server that crashed and was started again is asked again, by the same store.
        let fleet = Fleet { name: "third".to_owned(), ..truth::of_ten_hosts() };
        let mut store = Store::open(&address).expect("a store");
        let test = Planned { due_ms: 7, name: Name { mesh: 0, test: 0, slot: 0, load: Load { from: 0, to: 1 } } };
        let mut tests = store.tests_of(&fleet);
        assert_eq!(tests.plan(&[test]).expect("planned"), 1);
        server.stop();
        assert!(tests.planned().is_err() && tests.plan(&[test]).is_err(), "it is away");
        server.go_on();
        assert_eq!(tests.planned().expect("it is back"), Some(7));
        assert_eq!(tests.plan(&[test]).expect("planned"), 0);
    }
}
