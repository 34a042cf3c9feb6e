//! Connections that have not authenticated yet. Their number and time are bounded, in all and for each source, so that silent connections
//! cannot keep others out: at a limit the oldest of the source that has most of them is closed.

use crate::lock;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::task::AbortHandle;

/// Maximum number of unauthenticated connections.
pub(super) const MAX_PENDING: usize = 512;
const MAX_OF_SOURCE: usize = 256;

#[derive(Debug, Clone, Default)]
pub(super) struct Unauthenticated(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    next: u64,
    waiting: BTreeMap<u64, Waiting>,
}

#[derive(Debug)]
struct Waiting {
    source: IpAddr,
    task: Option<AbortHandle>,
    /// Sessions of a guest that it serves; with any, it is not closed for others. A new one may come before the last one is closed.
    kept: usize,
}

/// Keeps the connection of a guest open until it is dropped.
#[derive(Debug)]
pub(super) struct Kept(Pending);

impl Drop for Kept {
    fn drop(&mut self) {
        self.0.of_entry(|entry| entry.kept = entry.kept.saturating_sub(1));
    }
}

/// The entry of one connection, removed on drop.
#[derive(Debug, Clone)]
pub(crate) struct Pending(Arc<Place>);

#[derive(Debug)]
struct Place {
    id: u64,
    unauthenticated: Unauthenticated,
    asked: AtomicBool,
}

impl Unauthenticated {
    /// Registers a connection. At a limit another one is closed.
    pub(super) fn enter(&self, source: IpAddr) -> Pending {
        let mut table = lock(&self.0);
        let mut counts: BTreeMap<IpAddr, usize> = BTreeMap::new();
        let open = |entry: &Waiting| entry.kept == 0;
        table.waiting.values().filter(|entry| open(entry)).for_each(|of| *counts.entry(of.source).or_default() += 1);
        let crowded = counts.get(&source).is_some_and(|count| *count >= MAX_OF_SOURCE).then_some(source);
        let most = || counts.iter().max_by_key(|(_, count)| **count).map(|(source, _)| *source);
        let from = crowded.or_else(|| most().filter(|_| counts.values().sum::<usize>() >= MAX_PENDING));
        let is_from = |entry: &Waiting, from| open(entry) && entry.source == from;
        let oldest = from.and_then(|from| table.waiting.iter().find(|(_, it)| is_from(it, from)).map(|(id, _)| *id));
        if let Some(oldest) = oldest.and_then(|id| table.waiting.remove(&id)?.task) {
            oldest.abort();
        }
        let id = table.next;
        table.next += 1;
        table.waiting.insert(id, Waiting { source, task: None, kept: 0 });
        Pending(Arc::new(Place { id, unauthenticated: self.clone(), asked: AtomicBool::new(false) }))
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        lock(&self.0).waiting.len()
    }
}

impl Pending {
    /// Sets the task that is aborted to close the connection.
    pub(super) fn is_served_by(&self, task: AbortHandle) {
        self.of_entry(|entry| entry.task = Some(task));
    }

    /// Removes the connection from the limit: it has authenticated.
    pub(crate) fn admit(&self) {
        lock(&self.0.unauthenticated.0).waiting.remove(&self.0.id);
    }

    /// Keeps the connection open, whatever others come, as long as what is returned lives.
    pub(super) fn keep(&self) -> Kept {
        self.of_entry(|entry| entry.kept += 1);
        Kept(self.clone())
    }

    fn of_entry(&self, act: impl FnOnce(&mut Waiting)) {
        lock(&self.0.unauthenticated.0).waiting.get_mut(&self.0.id).map(act);
    }

    /// Notes a request that needs no authentication. The connection may stay, but can still be closed at the limit.
    pub(super) fn has_asked(&self) {
        self.0.asked.store(true, Ordering::Relaxed);
    }

    /// Whether the connection may stay after the first seconds.
    pub(super) fn may_stay(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed) || !lock(&self.0.unauthenticated.0).waiting.contains_key(&self.0.id)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        lock(&self.unauthenticated.0).waiting.remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_guests_connection_is_kept_as_long_as_its_session_and_no_longer() {
        let unauthenticated = Unauthenticated::default();
        let come = || {
            let pending = unauthenticated.enter([192, 0, 2, 1].into());
            let task = tokio::spawn(std::future::pending::<()>());
            pending.is_served_by(task.abort_handle());
            (pending, task)
        };
        let (guest, task) = come();
        let session = guest.keep();
        let flood: Vec<_> = (0..2 * MAX_OF_SOURCE).map(|_| come()).collect();
        assert!(!task.is_finished() && unauthenticated.count() == MAX_OF_SOURCE + 1);
        // The next session of the same connection, while the first one is closed.
        let next = guest.keep();
        drop(session);
        let others: Vec<_> = (0..2).map(|_| come()).collect();
        assert!(!task.is_finished(), "it serves the next session");
        drop(next);
        let more: Vec<_> = (0..2).map(|_| come()).collect();
        assert!(task.await.expect_err("aborted").is_cancelled());
        drop((flood, others, more));
    }

    #[tokio::test]
    async fn the_oldest_of_the_largest_source_is_closed_and_the_admitted_stay() {
        let unauthenticated = Unauthenticated::default();
        let come = |host: u8| {
            let pending = unauthenticated.enter([192, 0, 2, host].into());
            let task = tokio::spawn(std::future::pending::<()>());
            pending.is_served_by(task.abort_handle());
            (pending, task)
        };
        let (admitted, admitted_task) = come(1);
        admitted.admit();
        let (quiet, quiet_task) = come(2);
        let (oldest, oldest_task) = come(3);
        let others: Vec<_> = (0..MAX_OF_SOURCE).map(|_| come(3)).collect();
        assert!(oldest_task.await.expect_err("aborted").is_cancelled());
        let more: Vec<_> = (0..MAX_OF_SOURCE).map(|_| come(4)).collect();
        assert_eq!(unauthenticated.count(), MAX_PENDING);
        assert!(!quiet_task.is_finished(), "one connection of a source is never the first to go");
        assert!(!admitted_task.is_finished() && admitted.may_stay());
        drop((others, more, oldest, quiet));
        assert_eq!(unauthenticated.count(), 0);
    }
}
