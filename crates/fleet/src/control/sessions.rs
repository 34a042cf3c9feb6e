//! What is known of agents.

use super::{Agent, Clock, Settings};
use crate::judge::CLOCK_MS;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// Polls by which a clock is judged.
pub(super) const CLOCKS: usize = 3;

/// What is known of the agents of a fleet, by their names.
#[derive(Debug, Default)]
pub struct Sessions(pub(super) BTreeMap<String, Session>);

/// The place of an agent.
#[derive(Debug, Default)]
pub(super) struct Session {
    /// With the address that it comes from, where that is known.
    pub(super) agent: Option<(Agent, Option<IpAddr>)>,
    pub(super) heard_ms: u64,
    /// Whether an earlier controller heard of it.
    pub(super) was_heard: bool,
    /// Since when this process of it is known.
    pub(super) began_ms: u64,
    /// Since when it is expected.
    pub(super) since_ms: u64,
    /// It gets no tests.
    pub(super) drained: bool,
    /// By how much its clock is behind, ms, at its last polls; and what its kernel says of it.
    pub(super) behind_ms: VecDeque<i64>,
    pub(super) clock: Option<Clock>,
    pub(super) settings: Settings,
    /// Those from which they differ, where that was not kept yet; when such was kept last.
    pub(super) noted: Option<BTreeMap<String, String>>,
    pub(super) noted_ms: u64,
    /// When its last load was over.
    pub(super) loaded_ms: u64,
}

impl Session {
    /// Whether its clock is further away than the controller's by more than polls can tell.
    pub(super) fn is_clock_off(&self) -> bool {
        self.behind_ms().is_some_and(|ms| ms.unsigned_abs() > CLOCK_MS)
    }

    /// By how much its clock is behind, ms: a poll that took long on its way tells too much. `None`: it is not known yet.
    pub(super) fn behind_ms(&self) -> Option<i64> {
        if self.behind_ms.len() < CLOCKS { None } else { self.behind_ms.iter().copied().min_by_key(|it| it.abs()) }
    }

    /// What is left of it at a time; of a clock that was set back all of it may be later.
    pub(super) fn by(mut self, now_ms: u64) -> Self {
        if self.heard_ms.max(self.since_ms) > now_ms {
            self.behind_ms.clear();
        }
        for at_ms in
            [&mut self.heard_ms, &mut self.began_ms, &mut self.since_ms, &mut self.noted_ms, &mut self.loaded_ms]
        {
            *at_ms = now_ms.min(*at_ms);
        }
        self
    }
}

/// A host and its agent.
#[derive(Debug, Clone, Copy)]
pub struct Member<'a> {
    pub name: &'a str,
    /// `None`: it was never heard of.
    pub version: Option<&'a str>,
    /// Where it comes from, where that is known.
    pub from: Option<IpAddr>,
    pub heard_ms: u64,
    pub drained: bool,
    /// By how much its clock is behind the controller's, ms, where that is known; and by how much it may be out as its kernel says.
    pub behind_ms: Option<i64>,
    pub clock_error_us: Option<u64>,
    /// When the last of its loads ended that carried something, and the last of its probes that was answered.
    pub last_ms: [Option<u64>; 2],
}
