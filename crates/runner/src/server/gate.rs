//! Who may put load on the path now, who waits, and who is turned away. No IO and no clock: sessions are numbers here.

use std::collections::VecDeque;

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    /// It may begin.
    Admitted,
    /// From 1: its place in the queue.
    Queued(u32),
}

/// So many sessions run, so many wait, the others are turned away.
#[derive(Debug)]
pub(super) struct Gate {
    parallel: usize,
    most_waiting: usize,
    running: Vec<u64>,
    waiting: VecDeque<u64>,
}

impl Gate {
    pub(super) fn new(parallel: usize, most_waiting: usize) -> Self {
        Self { parallel: parallel.max(1), most_waiting, running: Vec::new(), waiting: VecDeque::new() }
    }

    /// A session comes; `None`: the queue is full.
    pub(super) fn enter(&mut self, session: u64) -> Option<Turn> {
        if self.running.len() < self.parallel {
            self.running.push(session);
            return Some(Turn::Admitted);
        }
        if self.waiting.len() >= self.most_waiting {
            return None;
        }
        self.waiting.push_back(session);
        self.turn(session)
    }

    /// A session goes, whether it ran or waited; others may move up.
    pub(super) fn leave(&mut self, session: u64) {
        self.running.retain(|other| *other != session);
        self.waiting.retain(|other| *other != session);
        while self.running.len() < self.parallel
            && let Some(next) = self.waiting.pop_front()
        {
            self.running.push(next);
        }
    }

    /// Where a session stands; `None` for one that is not here.
    pub(super) fn turn(&self, session: u64) -> Option<Turn> {
        if self.running.contains(&session) {
            return Some(Turn::Admitted);
        }
        let place = self.waiting.iter().position(|other| *other == session)?;
        Some(Turn::Queued(u32::try_from(place + 1).unwrap_or(u32::MAX)))
    }

    pub(super) fn running(&self) -> &[u64] {
        &self.running
    }

    pub(super) fn parallel(&self) -> usize {
        self.parallel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_runs_the_others_wait_in_order() {
        let mut gate = Gate::new(1, 2);
        assert_eq!(gate.enter(1), Some(Turn::Admitted));
        assert_eq!(gate.enter(2), Some(Turn::Queued(1)));
        assert_eq!(gate.enter(3), Some(Turn::Queued(2)));
        assert_eq!(gate.enter(4), None);
        gate.leave(1);
        assert_eq!((gate.turn(2), gate.turn(3)), (Some(Turn::Admitted), Some(Turn::Queued(1))));
    }

    #[test]
    fn who_waits_may_leave() {
        let mut gate = Gate::new(1, 5);
        for session in 1..=3 {
            gate.enter(session);
        }
        gate.leave(2);
        assert_eq!(gate.turn(3), Some(Turn::Queued(1)));
        assert_eq!(gate.turn(2), None);
        gate.leave(2);
        assert_eq!(gate.running(), [1]);
    }

    #[test]
    fn several_run_where_asked_for() {
        let mut gate = Gate::new(2, 0);
        assert_eq!((gate.enter(1), gate.enter(2)), (Some(Turn::Admitted), Some(Turn::Admitted)));
        assert_eq!(gate.enter(3), None);
    }
}
