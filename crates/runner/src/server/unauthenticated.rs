//! Connections that have not yet shown that they belong here: bounded in number and in time, so that a thousand silent ones
//! keep nobody out. When there are too many, the oldest is closed.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::AbortHandle;

/// The most connections that wait to show what they are.
pub(super) const MOST: usize = 512;

/// All connections that have not shown it yet.
#[derive(Debug, Clone, Default)]
pub(super) struct Guests(Arc<Mutex<Table>>);

#[derive(Debug, Default)]
struct Table {
    next: u64,
    waiting: BTreeMap<u64, Option<AbortHandle>>,
}

/// One connection's place in the table; it leaves it when dropped.
#[derive(Debug, Clone)]
pub(super) struct Guest(Arc<Place>);

#[derive(Debug)]
struct Place {
    id: u64,
    guests: Guests,
    asked: AtomicBool,
}

impl Guests {
    fn with<T>(&self, act: impl FnOnce(&mut Table) -> T) -> T {
        // Nothing can go wrong in between: a poisoned table is as good as another.
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A connection came. Where too many wait, the oldest is closed.
    pub(super) fn enter(&self) -> Guest {
        self.with(|table| {
            if table.waiting.len() >= MOST
                && let Some((_, Some(oldest))) = table.waiting.pop_first()
            {
                oldest.abort();
            }
            let id = table.next;
            table.next += 1;
            table.waiting.insert(id, None);
            Guest(Arc::new(Place { id, guests: self.clone(), asked: AtomicBool::new(false) }))
        })
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.with(|table| table.waiting.len())
    }
}

impl Guest {
    /// The task to end when the connection must go.
    pub(super) fn is_served_by(&self, task: AbortHandle) {
        self.0.guests.with(|table| {
            if let Some(entry) = table.waiting.get_mut(&self.0.id) {
                *entry = Some(task);
            }
        });
    }

    /// It has shown that it belongs here, and is closed by nobody but itself.
    pub(super) fn admit(&self) {
        self.0.guests.with(|table| table.waiting.remove(&self.0.id));
    }

    /// It asked for something that everybody may have: it may stay, but goes where too many others wait.
    pub(super) fn has_asked(&self) {
        self.0.asked.store(true, Ordering::Relaxed);
    }

    /// Whether it may stay beyond its first seconds.
    pub(super) fn may_stay(&self) -> bool {
        self.0.asked.load(Ordering::Relaxed) || self.0.guests.with(|table| !table.waiting.contains_key(&self.0.id))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.guests.with(|table| table.waiting.remove(&self.id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_goes_and_the_admitted_stay() {
        let guests = Guests::default();
        let come = || {
            let guest = guests.enter();
            let task = tokio::spawn(std::future::pending::<()>());
            guest.is_served_by(task.abort_handle());
            (guest, task)
        };
        let (admitted, admitted_task) = come();
        admitted.admit();
        let (oldest, oldest_task) = come();
        let others: Vec<_> = (0..MOST).map(|_| come()).collect();
        assert_eq!(guests.count(), MOST);
        assert!(oldest_task.await.expect_err("aborted").is_cancelled());
        assert!(!admitted_task.is_finished() && admitted.may_stay());
        drop((others, oldest));
        assert_eq!(guests.count(), 0);
    }
}
