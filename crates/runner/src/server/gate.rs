//! Who may put load on the path now, who waits, and who is turned away. No IO and no clock: sessions are numbers here.

use super::limits::Standing;
use std::collections::VecDeque;

/// Where a session stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    Admitted,
    /// From 1: its place in the queue.
    Queued(u32),
}

/// A fixed number of sessions run, a fixed number wait, the rest are refused. Clients with the token go first, and preempt
/// running clients without it.
#[derive(Debug)]
pub(super) struct Gate {
    parallel: usize,
    most_waiting: usize,
    running: Vec<(u64, Standing)>,
    waiting: VecDeque<(u64, Standing)>,
}

impl Gate {
    pub(super) fn new(parallel: usize, most_waiting: usize) -> Self {
        Self { parallel: parallel.max(1), most_waiting, running: Vec::new(), waiting: VecDeque::new() }
    }

    /// A session comes; `None`: the queue is full.
    pub(super) fn enter(&mut self, session: u64, standing: Standing) -> Option<Turn> {
        if self.running.len() < self.parallel {
            self.running.push((session, standing));
            return Some(Turn::Admitted);
        }
        // Each kind has the queue for itself, so that guests cannot fill it.
        if self.waiting.iter().filter(|(_, other)| *other == standing).count() >= self.most_waiting {
            return None;
        }
        let first_guest = self.waiting.iter().position(|(_, other)| *other == Standing::Open);
        match first_guest.filter(|_| standing == Standing::Trusted) {
            Some(place) => self.waiting.insert(place, (session, standing)),
            None => self.waiting.push_back((session, standing)),
        }
        self.turn(session)
    }

    /// A load of this host itself takes all places, so that no client's is beside it; `false`: somebody runs or waits.
    pub(super) fn enter_alone(&mut self, session: u64) -> bool {
        let is_free = self.running.is_empty() && self.waiting.is_empty();
        if is_free {
            self.running = vec![(session, Standing::Trusted); self.parallel];
        }
        is_free
    }

    /// The guest sessions to end for waiting clients with the token, newest first; includes those that are ending already.
    pub(super) fn in_the_way(&self) -> Vec<u64> {
        let of = |wanted| move |(_, standing): &&(u64, Standing)| *standing == wanted;
        let needed = self.waiting.iter().filter(of(Standing::Trusted)).count();
        self.running.iter().rev().filter(of(Standing::Open)).take(needed).map(|(session, _)| *session).collect()
    }

    /// Whether somebody else runs.
    pub(super) fn others_run(&self, session: u64) -> bool {
        self.running.iter().any(|(other, _)| *other != session)
    }

    /// A session goes, whether it ran or waited; others may move up.
    pub(super) fn leave(&mut self, session: u64) {
        self.running.retain(|(other, _)| *other != session);
        self.waiting.retain(|(other, _)| *other != session);
        while self.running.len() < self.parallel
            && let Some(next) = self.waiting.pop_front()
        {
            self.running.push(next);
        }
    }

    /// Where a session stands; `None` for one that is not here.
    pub(super) fn turn(&self, session: u64) -> Option<Turn> {
        if self.runs(session) {
            return Some(Turn::Admitted);
        }
        let place = self.waiting.iter().position(|(other, _)| *other == session)?;
        Some(Turn::Queued(u32::try_from(place + 1).unwrap_or(u32::MAX)))
    }

    pub(super) fn runs(&self, session: u64) -> bool {
        self.running.iter().any(|(other, _)| *other == session)
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
        assert_eq!(gate.enter(1, Standing::Open), Some(Turn::Admitted));
        assert_eq!(gate.enter(2, Standing::Open), Some(Turn::Queued(1)));
        assert_eq!(gate.enter(3, Standing::Open), Some(Turn::Queued(2)));
        assert_eq!(gate.enter(4, Standing::Open), None);
        gate.leave(1);
        assert_eq!((gate.turn(2), gate.turn(3)), (Some(Turn::Admitted), Some(Turn::Queued(1))));
    }

    #[test]
    fn a_load_of_the_host_itself_is_alone() {
        let mut gate = Gate::new(2, 5);
        assert!(gate.enter_alone(1));
        assert_eq!(gate.enter(2, Standing::Trusted), Some(Turn::Queued(1)));
        gate.leave(1);
        assert!(gate.runs(2) && !gate.enter_alone(3) && !gate.runs(3));
    }

    #[test]
    fn who_waits_may_leave() {
        let mut gate = Gate::new(1, 5);
        for session in 1..=3 {
            gate.enter(session, Standing::Trusted);
        }
        gate.leave(2);
        assert_eq!(gate.turn(3), Some(Turn::Queued(1)));
        assert_eq!(gate.turn(2), None);
        gate.leave(2);
        assert!(gate.runs(1) && gate.in_the_way().is_empty());
    }

    #[test]
    fn a_full_queue_of_guests_keeps_nobody_out_who_has_the_token() {
        let mut gate = Gate::new(1, 2);
        for guest in 1..=4 {
            gate.enter(guest, Standing::Open);
        }
        assert_eq!(gate.turn(4), None);
        assert_eq!(gate.enter(5, Standing::Trusted), Some(Turn::Queued(1)));
        assert_eq!(gate.enter(6, Standing::Trusted), Some(Turn::Queued(2)));
        assert_eq!(gate.enter(7, Standing::Trusted), None);
        assert_eq!((gate.in_the_way(), gate.turn(2)), (vec![1], Some(Turn::Queued(3))));
        gate.leave(1);
        assert_eq!((gate.turn(5), gate.in_the_way()), (Some(Turn::Admitted), vec![]));
    }

    #[test]
    fn a_second_token_holder_ends_the_guest_that_is_not_ending() {
        let mut gate = Gate::new(3, 4);
        for (session, standing) in [Standing::Open, Standing::Open, Standing::Trusted].into_iter().enumerate() {
            gate.enter(session as u64, standing);
        }
        gate.enter(3, Standing::Trusted);
        assert_eq!(gate.in_the_way(), [1]);
        gate.enter(4, Standing::Trusted);
        assert_eq!(gate.in_the_way(), [1, 0]);
        gate.leave(1);
        assert_eq!((gate.in_the_way(), gate.turn(3)), (vec![0], Some(Turn::Admitted)));
    }

    #[test]
    fn several_run_where_asked_for() {
        let mut gate = Gate::new(2, 0);
        assert_eq!(
            (gate.enter(1, Standing::Open), gate.enter(2, Standing::Trusted)),
            (Some(Turn::Admitted), Some(Turn::Admitted))
        );
        assert_eq!(gate.enter(3, Standing::Trusted), None);
    }
}
