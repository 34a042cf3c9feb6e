//! Cores that belong to the hosts of a lab, and on which the path does not run.
//!
//! Where a fault steers all that a host receives to one core, a path that runs there too would wait for its own packets to be
//! received, and slow down instead of overflowing the host's queue.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The cores, as many times as they were reserved.
#[derive(Debug, Default)]
pub struct Reserved {
    cores: Mutex<Vec<usize>>,
    changes: AtomicU64,
}

impl Reserved {
    fn cores(&self) -> MutexGuard<'_, Vec<usize>> {
        self.cores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps the path off a core.
    pub fn take(&self, core: usize) {
        self.cores().push(core);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Lets it run there again, once as often as it was kept off.
    pub fn give_back(&self, core: usize) {
        let mut cores = self.cores();
        if let Some(at) = cores.iter().position(|taken| *taken == core) {
            cores.swap_remove(at);
        }
        drop(cores);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// How often it changed: cheap enough to be asked for every batch of packets.
    #[must_use]
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Of `all`, those that are free; all of them where none is.
    #[must_use]
    pub fn free_of(&self, all: &[u32]) -> Vec<u32> {
        let cores = self.cores();
        let free: Vec<u32> = all.iter().copied().filter(|core| !cores.contains(&(*core as usize))).collect();
        if free.is_empty() { all.to_vec() } else { free }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_core_is_free_when_all_have_given_it_back() {
        let reserved = Reserved::default();
        reserved.take(1);
        reserved.take(1);
        assert_eq!((reserved.free_of(&[0, 1, 2]), reserved.changes()), (vec![0, 2], 2));
        assert_eq!(reserved.free_of(&[1]), [1], "it has to run somewhere");
        reserved.give_back(1);
        assert_eq!(reserved.free_of(&[0, 1]), [0]);
        reserved.give_back(1);
        reserved.give_back(7);
        assert_eq!(reserved.free_of(&[0, 1]), [0, 1]);
    }
}
