//! The connections of a server without a token, and their windows. Where all places are taken, the oldest connection of the source that has most of them
//! is closed, so that strangers cannot keep others out.

use crate::lock;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use tokio::task::AbortHandle;

/// Connections at the same time …
const MAX_CONNECTIONS: usize = 512;
/// … and of one source: the load of a test, and probes that come and go.
const MAX_OF_SOURCE: usize = 256;
/// No window is smaller than HTTP/2's own (RFC 9113 section 6.9.2).
const LEAST_WINDOW: u32 = 65_535;

/// Receive windows, in bytes: what a client can have waiting here.
#[derive(Debug, Clone, Copy)]
pub(super) struct Windows {
    /// Of a connection, where there are few.
    pub(super) each: u32,
    /// Of all of them; those of one source have half of it.
    pub(super) all: u32,
}

#[derive(Debug, Clone)]
pub(super) struct Places {
    windows: Windows,
    table: Arc<Mutex<Table>>,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    taken: BTreeMap<u64, Taken>,
}

#[derive(Debug)]
struct Taken {
    source: IpAddr,
    window: u32,
    task: Option<AbortHandle>,
}

/// The place of one connection, free again on drop.
#[derive(Debug)]
pub(super) struct Place {
    places: Places,
    pub(super) id: u64,
    /// Its receive window.
    pub(super) window: u32,
}

impl Places {
    pub(super) fn new(windows: Windows) -> Self {
        Self { windows, table: Arc::default() }
    }

    /// A place, unless its source has too many.
    pub(super) fn take(&self, source: IpAddr) -> Option<Place> {
        let mut table = lock(&self.table);
        let mut counts: HashMap<IpAddr, usize> = HashMap::new();
        table.taken.values().for_each(|of| *counts.entry(of.source).or_default() += 1);
        if counts.get(&source).is_some_and(|count| *count >= MAX_OF_SOURCE) {
            return None;
        }
        if table.taken.len() >= MAX_CONNECTIONS {
            let most = counts.iter().max_by_key(|(_, count)| **count).map(|(source, _)| *source)?;
            let oldest = table.taken.iter().find(|(_, of)| of.source == most).map(|(id, _)| *id)?;
            if let Some(task) = table.taken.remove(&oldest).and_then(|of| of.task) {
                task.abort();
            }
        }
        let windows = |of: Option<IpAddr>| -> u32 {
            table.taken.values().filter(|it| of.is_none_or(|of| it.source == of)).map(|it| it.window).sum()
        };
        // No source takes more than half of all, and the last ones of many sources have small ones.
        let Windows { each, all } = self.windows;
        let share = (all / 2).saturating_sub(windows(Some(source))) / 16;
        let left = all.saturating_sub(windows(None)) / 16;
        let window = share.min(left).clamp(LEAST_WINDOW, each);
        let id = table.next;
        table.next += 1;
        table.taken.insert(id, Taken { source, window, task: None });
        Some(Place { places: self.clone(), id, window })
    }

    /// Sets the task that is aborted to close a connection. Where it is to be closed already, or is over, that is now.
    pub(super) fn is_served_by(&self, id: u64, task: AbortHandle) {
        match lock(&self.table).taken.get_mut(&id) {
            Some(taken) => taken.task = Some(task),
            None => task.abort(),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.places.table).taken.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    const WINDOW: u32 = 4 << 20;
    const ALL_WINDOWS: u32 = 128 << 20;

    fn none_taken() -> Places {
        Places::new(Windows { each: WINDOW, all: ALL_WINDOWS })
    }

    #[test]
    fn connections_are_limited_by_source_and_their_windows_in_all() {
        let places = none_taken();
        let of = |host: u8| places.take([192, 0, 2, host].into());
        let first: Vec<_> = (0..MAX_OF_SOURCE).map_while(|_| of(1)).collect();
        assert!(first.len() == MAX_OF_SOURCE && of(1).is_none());
        assert!(first[0].window == WINDOW && first[15].window > WINDOW / 4 && first[255].window == LEAST_WINDOW);
        let second = of(2).expect("a place");
        assert!(second.window > WINDOW / 4 * 3, "the first source leaves half of all: {}", second.window);
        let others: Vec<_> = (3..=5).flat_map(|host| (0..85).map(move |_| host)).map_while(of).collect();
        assert_eq!(1 + others.len(), MAX_CONNECTIONS - MAX_OF_SOURCE);
        let of_all: u64 = first.iter().chain([&second]).chain(&others).map(|place| u64::from(place.window)).sum();
        let most = u64::from(ALL_WINDOWS) + MAX_CONNECTIONS as u64 * u64::from(LEAST_WINDOW);
        assert!(of_all <= most, "{of_all}");
        drop((first, second, others));
        assert!(lock(&places.table).taken.is_empty());
        assert_eq!(of(1).expect("a place").window, WINDOW);
    }

    #[tokio::test]
    async fn two_sources_with_all_places_keep_nobody_out() {
        let places = none_taken();
        let come = |host: u8| {
            let place = places.take([192, 0, 2, host].into()).expect("a place");
            let (id, task) = (place.id, tokio::spawn(pending::<()>()));
            places.is_served_by(id, task.abort_handle());
            (place, task)
        };
        let (mut first, mut second): (Vec<_>, Vec<_>) = (0..MAX_OF_SOURCE).map(|_| (come(1), come(2))).unzip();
        let third: Vec<_> = (0..16).map(|_| come(3)).collect();
        assert_eq!(lock(&places.table).taken.len(), MAX_CONNECTIONS);
        tokio::task::yield_now().await;
        let ended = |all: &[(Place, tokio::task::JoinHandle<()>)]| all.iter().filter(|it| it.1.is_finished()).count();
        assert_eq!((ended(&first) + ended(&second), ended(&third)), (16, 0));
        assert_eq!((ended(&first[8..]), ended(&second[8..])), (0, 0), "the oldest go, of whoever has most");
        // A connection that was closed before its task was known ends with it.
        let (gone, task) = first.swap_remove(0);
        assert!(task.await.expect_err("aborted").is_cancelled());
        let late = tokio::spawn(pending::<()>());
        places.is_served_by(gone.id, late.abort_handle());
        assert!(late.await.expect_err("aborted").is_cancelled());
        second.clear();
    }
}
