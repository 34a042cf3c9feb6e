//! Connections that have not authenticated yet. Their number and time are bounded, so that silent connections cannot keep others
//! out: at the limit the oldest is closed.

use crate::lock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use tokio::task::AbortHandle;

/// Maximum number of unauthenticated connections.
pub(super) const MAX_PENDING: usize = 512;

/// All unauthenticated connections.
#[derive(Debug, Clone, Default)]
pub(super) struct Unauthenticated(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    next: u64,
    waiting: BTreeMap<u64, Option<AbortHandle>>,
}

/// The entry of one connection, removed on drop.
#[derive(Debug, Clone)]
pub(super) struct Pending(Arc<Place>);

#[derive(Debug)]
struct Place {
    id: u64,
    unauthenticated: Unauthenticated,
    asked: AtomicBool,
}

impl Unauthenticated {
    /// Registers a connection. At the limit the oldest one is closed.
    pub(super) fn enter(&self) -> Pending {
        let mut table = lock(&self.0);
        if table.waiting.len() >= MAX_PENDING
            && let Some((_, Some(oldest))) = table.waiting.pop_first()
        {
            oldest.abort();
        }
        let id = table.next;
        table.next += 1;
        table.waiting.insert(id, None);
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
        if let Some(entry) = lock(&self.0.unauthenticated.0).waiting.get_mut(&self.0.id) {
            *entry = Some(task);
        }
    }

    /// Removes the connection from the limit: it has authenticated.
    pub(super) fn admit(&self) {
        lock(&self.0.unauthenticated.0).waiting.remove(&self.0.id);
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
    async fn the_oldest_is_closed_and_the_admitted_stay() {
        let unauthenticated = Unauthenticated::default();
        let come = || {
            let pending = unauthenticated.enter();
            let task = tokio::spawn(std::future::pending::<()>());
            pending.is_served_by(task.abort_handle());
            (pending, task)
        };
        let (admitted, admitted_task) = come();
        admitted.admit();
        let (oldest, oldest_task) = come();
        let others: Vec<_> = (0..MAX_PENDING).map(|_| come()).collect();
        assert_eq!(unauthenticated.count(), MAX_PENDING);
        assert!(oldest_task.await.expect_err("aborted").is_cancelled());
        assert!(!admitted_task.is_finished() && admitted.may_stay());
        drop((others, oldest));
        assert_eq!(unauthenticated.count(), 0);
    }
}
