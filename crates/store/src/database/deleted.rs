//! Deleted runs, which can be brought back for a week.

use super::rows::{body_of, content};
use super::sql::{self, Fault, values};
use super::{Store, put_body};
use crate::{Error, Filter, LARGEST};
use narrows_model::run::history::StoredRun;
use narrows_sys::clock;

/// How long a deleted run is kept.
const KEPT_US: u64 = 7 * 24 * 3600 * 1_000_000;

/// What a deletion did.
#[derive(Debug, PartialEq, Eq)]
pub struct Deleted {
    /// How many runs there were.
    pub runs: usize,
    /// Runs that nothing brings back any more.
    pub forgotten: Vec<String>,
}

fn texts(mut rows: Vec<sql::Cells>) -> sql::Result<Vec<String>> {
    rows.iter_mut().map(sql::Cells::text).collect()
}

fn time(us: u64) -> i64 {
    i64::try_from(us).unwrap_or(i64::MAX)
}

impl Store {
    /// Deletes runs, all or none. For a week [`Self::undo`] brings them back, unless this is `for_good`, which forgets those that were
    /// deleted before, too.
    pub fn delete(&mut self, ids: &[String], for_good: bool) -> Result<Deleted, Error> {
        self.delete_at(ids, for_good, clock::unix_us())
    }

    fn delete_at(&mut self, ids: &[String], for_good: bool, now_unix_us: u64) -> Result<Deleted, Error> {
        let database = &self.database;
        let keep = |id: &String| {
            let filter = Filter { id: Some(id.clone()), ..Filter::default() };
            let entry = self.list(&filter, 0, 1).map_err(|error| Fault(error.to_string()))?;
            let mut rows = database.rows(&content(), values![id.clone()])?;
            let (Some(entry), Some(row)) = (entry.first(), rows.first_mut()) else { return Ok(()) };
            let kind = row.text()?;
            let Some(body) = body_of(row)? else { return Ok(()) };
            let entry = serde_json::to_string(entry).map_err(|error| Fault(error.to_string()))?;
            database.rows("DELETE FROM deleted WHERE id = ?", values![id.clone()])?;
            let row = values![id.clone(), time(now_unix_us), entry, kind, body.codec, body.sha256, body.bytes];
            database.rows("INSERT INTO deleted VALUES (?, ?, ?, ?, ?, ?, ?)", row).map(drop)
        };
        let one = |deleted: usize, id: &String| {
            if !for_good {
                keep(id)?;
            }
            Ok::<_, Fault>(
                deleted + database.rows("DELETE FROM runs WHERE id = ? RETURNING id", values![id.clone()])?.len(),
            )
        };
        let forgotten = if for_good { i64::MAX } else { time(now_unix_us.saturating_sub(KEPT_US)) };
        let all = || {
            let sql = "DELETE FROM deleted WHERE since_unix_us < ? RETURNING id";
            let mut forgotten = texts(database.rows(sql, values![forgotten])?)?;
            let runs = ids.iter().try_fold(0, one)?;
            forgotten.extend(ids.iter().filter(|_| for_good).cloned());
            Ok(Deleted { runs, forgotten })
        };
        database.together(all).map_err(self.failed("write to"))
    }

    /// Brings back what the last deletion took, with its tags; how many runs there were. The next call brings back what the one before
    /// took. A run that was put again meanwhile stays as it is.
    pub fn undo(&mut self) -> Result<usize, Error> {
        self.undo_at(clock::unix_us())
    }

    fn undo_at(&mut self, now_unix_us: u64) -> Result<usize, Error> {
        let database = &self.database;
        let all = || -> sql::Result<usize> {
            let kept = time(now_unix_us.saturating_sub(KEPT_US));
            // What another program made too large stays where it is, and in nobody's way.
            let deleted = format!("FROM deleted WHERE length(body) <= {LARGEST} AND");
            let last = format!("SELECT coalesce(max(since_unix_us), 0) {deleted} since_unix_us >= ?");
            let last = database.number(&last, values![kept])?;
            let ids = texts(database.rows(&format!("SELECT id {deleted} since_unix_us = ?"), values![last])?)?;
            let mut back = 0;
            // One at a time: a body may be large.
            for id in ids {
                let sql = "DELETE FROM deleted WHERE id = ? RETURNING entry, kind, codec, sha256, body";
                let mut rows = database.rows(sql, values![id.clone()])?;
                let Some(row) = rows.first_mut() else { continue };
                let entry: StoredRun = serde_json::from_str(&row.text()?)
                    .map_err(|error| Fault(format!("the deleted run {id} cannot be read: {error}")))?;
                let kind = row.text()?;
                let Some(body) = body_of(row)? else { continue };
                put_body(database, &entry, &kind, usize::try_from(entry.raw_bytes).unwrap_or(usize::MAX), body)?;
                back += 1;
            }
            Ok(back)
        };
        database.together(all).map_err(self.failed("write to"))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{entry, json, store};
    use super::*;
    use crate::KIND_OF_RUNS;
    use rusqlite::Connection;

    #[test]
    fn what_was_deleted_comes_back_for_a_week() {
        let (directory, mut store) = store();
        let all = Filter::default();
        for (at, id) in [(1, "a"), (2, "b"), (3, "c"), (4, "d")] {
            store.put(&entry(id, at, "far", 1e9), KIND_OF_RUNS, &json(id)).unwrap();
        }
        store.tag("b", "before", true).unwrap();
        let before = store.list(&all, 0, 9).unwrap();
        let delete = |store: &mut Store, ids: &[&str], for_good, at| {
            let ids: Vec<String> = ids.iter().map(|it| (*it).to_owned()).collect();
            store.delete_at(&ids, for_good, at).unwrap().runs
        };
        let count = |store: &Store| store.count(&all).unwrap();
        assert_eq!(delete(&mut store, &["a", "b", "nosuch"], false, KEPT_US), 2);
        assert_eq!(delete(&mut store, &["c"], false, KEPT_US + 5), 1);
        // Nothing but an undo sees them.
        assert_eq!((count(&store), store.has("a").unwrap(), store.json("a").unwrap().is_none()), (1, false, true));
        assert_eq!(store.list(&Filter { tag: Some("before".into()), ..Filter::default() }, 0, 9).unwrap(), []);
        assert_eq!((store.undo_at(2 * KEPT_US).unwrap(), count(&store)), (1, 2), "the last deletion first");
        assert_eq!((store.undo_at(2 * KEPT_US).unwrap(), count(&store)), (2, 4));
        assert_eq!(store.undo_at(2 * KEPT_US).unwrap(), 0);
        assert_eq!(store.list(&all, 0, 9).unwrap(), before, "tags, figures and sizes as well");
        assert!(store.json("a").unwrap().is_some());
        // A run that came in again is not overwritten.
        delete(&mut store, &["a"], false, 5);
        store.put(&entry("a", 1, "near", 2e9), KIND_OF_RUNS, &json("a")).unwrap();
        assert_eq!((store.undo_at(6).unwrap(), count(&store)), (0, 4));
        assert_eq!(store.list(&Filter { id: Some("a".into()), ..Filter::default() }, 0, 9).unwrap()[0].server, "near");
        // After a week, and for good.
        delete(&mut store, &["a"], false, 5);
        assert_eq!(store.undo_at(KEPT_US + 6).unwrap(), 0);
        delete(&mut store, &["b"], false, 5);
        assert_eq!((delete(&mut store, &["c"], true, 6), store.undo_at(7).unwrap(), count(&store)), (1, 0, 1));
        // A body that another program made too large hides no earlier deletion.
        store.put(&entry("e", 5, "far", 1e9), KIND_OF_RUNS, &json("e")).unwrap();
        assert_eq!((delete(&mut store, &["d"], false, 8), delete(&mut store, &["e"], false, 9)), (1, 1));
        let other = Connection::open(directory.path().join("runs.db")).unwrap();
        other.execute("UPDATE deleted SET body = zeroblob(268435457) WHERE id = 'e'", []).unwrap();
        assert_eq!((store.undo_at(10).unwrap(), store.has("d").unwrap()), (1, true));
    }
}
