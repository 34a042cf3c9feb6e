//! The CPU of a worker. Generators that run at the same time in one process (both directions, an overload and what remains of it)
//! spread their workers: two on one CPU would alternate in slices of milliseconds, in which frames are due and do not leave.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};

/// Workers on each CPU.
static TAKEN: Mutex<BTreeMap<u32, u32>> = Mutex::new(BTreeMap::new());

/// A worker's CPU, until it is dropped.
#[derive(Debug)]
pub(super) struct CpuSlot(u32);

fn taken() -> MutexGuard<'static, BTreeMap<u32, u32>> {
    match TAKEN.lock() {
        Ok(taken) => taken,
        Err(broken) => broken.into_inner(),
    }
}

impl CpuSlot {
    /// The first of the CPUs that has the fewest workers; `None` where there is none to choose.
    pub(super) fn take(cpus: &[u32]) -> Option<Self> {
        let mut taken = taken();
        let cpu = *cpus.iter().min_by_key(|cpu| taken.get(cpu).copied().unwrap_or(0))?;
        *taken.entry(cpu).or_default() += 1;
        Some(Self(cpu))
    }

    pub(super) const fn cpu(&self) -> u32 {
        self.0
    }
}

impl Drop for CpuSlot {
    fn drop(&mut self) {
        let mut taken = taken();
        if let Some(workers) = taken.get_mut(&self.0) {
            *workers = workers.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_are_spread_and_give_their_place_back() {
        // CPUs that no other test has.
        let cpus = [9_001, 9_002, 9_003];
        let take = || CpuSlot::take(&cpus).expect("some");
        let first = take();
        let others = [take(), take()];
        assert_eq!([&first, &others[0], &others[1]].map(CpuSlot::cpu), cpus);
        assert_eq!(take().cpu(), 9_001, "all have one, and the one taken is given back at once");
        drop(others);
        assert_eq!(take().cpu(), 9_002);
        assert!(CpuSlot::take(&[]).is_none());
    }
}
