//! Cores that are reserved for the hosts of a lab: the path does not run on them.
//!
//! A fault may steer all that a host receives to one core. If the path ran there too, it would wait for its own packets to be
//! received, and slow down instead of overflowing the host's queue.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The cores, each with the number of reservations.
#[derive(Debug, Default)]
pub struct Reserved {
    cores: Mutex<Vec<usize>>,
    changes: AtomicU64,
}

impl Reserved {
    fn cores(&self) -> MutexGuard<'_, Vec<usize>> {
        self.cores.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self, core: usize) {
        self.cores().push(core);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// Releases one reservation of a core.
    pub fn give_back(&self, core: usize) {
        let mut cores = self.cores();
        if let Some(at) = cores.iter().position(|taken| *taken == core) {
            cores.swap_remove(at);
        }
        drop(cores);
        self.changes.fetch_add(1, Ordering::Release);
    }

    /// The number of changes so far: cheap enough to read for every batch of packets.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The cores of `all` that are not reserved; all of them if every one is.
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
    fn a_core_is_free_after_its_last_release() {
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
