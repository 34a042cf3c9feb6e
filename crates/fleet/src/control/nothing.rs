//! Tests that find nothing at all: nobody may take their silence for good news.

use super::{BESIDE, Control, Kind, Name, Nothing, Place, SILENT_MS, Truth};
use crate::incident::Seen;
use crate::judge::TOKEN;
use crate::protocol::Found;
use narrows_model::run::mesh::MeshState;

/// Periods of a test without any result until it is an incident: one may be lost by chance.
const PERIODS: u64 = 2;
/// The last reason, in characters.
const WHY_MAX: usize = 120;

/// Why a test found nothing; `None`: it found something.
pub(super) fn nothing_of(found: &Found) -> Option<String> {
    match found {
        Found::Load(MeshState::Unreachable(why) | MeshState::Failed(why)) => Some(why.clone()),
        Found::Probe(path) if path.rtt_us.is_none() => {
            Some(path.remarks.first().cloned().unwrap_or_else(|| "no packet was answered".to_owned()))
        }
        _ => None,
    }
}

impl<T: Truth> Control<'_, T> {
    /// A test was missed, or found nothing. What is known otherwise does not count: a host without its agent, a path that worked before, what
    /// somebody paused, and the limit of a day.
    pub(super) fn came_to_nothing(&mut self, name: &Name, why: Option<String>, now_ms: u64) {
        let place = (name.mesh, name.test);
        let (test, hosts) = (self.test(place), [name.load.from, name.load.to]);
        let is_away = |host: &usize| self.is_silent(*host, now_ms) || self.sessions[*host].drained;
        let was_paused = now_ms < self.paused_until_ms.saturating_add(test.every_ms + self.patience_ms(place));
        if name.slot >= BESIDE
            || hosts.iter().any(is_away)
            || was_paused
            || self.is_used_up(place, 0, now_ms)
            || self.latest.dead_since(test.kind, name.load).is_some()
        {
            return;
        }
        let unknown = hosts.into_iter().find(|host| self.address(*host).is_none());
        let why = match (why, unknown) {
            (Some(why), _) => why,
            (None, Some(host)) => {
                format!("{} has no address that others can reach; write it into the file", self.names[host])
            }
            (None, None) => "it was missed".to_owned(),
        };
        let [from, to] = hosts.map(|host| self.names[host]);
        let last = format!("{from} to {to}: {}", why.chars().take(WHY_MAX).collect::<String>());
        let new = || Nothing { since_ms: now_ms, last_ms: now_ms, tests: 0, last: String::new() };
        let of = self.nothing.entry(place).or_insert_with(new);
        (of.last_ms, of.tests, of.last) = (now_ms, of.tests + 1, last);
    }

    /// Whether a test has carried what it may carry on a day. `under_way`: what is carried now.
    pub(super) fn is_used_up(&self, place: Place, under_way: u64, now_ms: u64) -> bool {
        let day = now_ms / super::DAY_MS;
        let carried = self.carried.get(&place).filter(|(of, _)| *of == day).map_or(0, |(_, bytes)| *bytes);
        let most = self.test(place).bytes_a_day.filter(|_| self.test(place).kind == Kind::Load);
        most.is_some_and(|most| carried.saturating_add(under_way) >= most)
    }

    /// Each test of the file, and whether it finds something; and tokens, and whether two agents have one.
    pub(super) fn finds(&self, now_ms: u64) -> Vec<(String, Seen)> {
        let seen = |place: Place| {
            let mesh = &self.fleet.meshes[place.0];
            let test = &mesh.tests[place.1];
            // Hours in which nothing is tried make no incident of the failures of one moment, nor does an outage of all agents.
            let least_ms = (PERIODS * test.every_ms).max(2 * SILENT_MS);
            let is_long = |of: &Nothing| of.last_ms + test.every_ms / 2 >= of.since_ms + least_ms;
            let found = match self.nothing.get(&place) {
                Some(of) if of.tests > 1 && is_long(of) => Seen::Bad(format!(
                    "it has no result for {} s: {} tests in a row came to nothing, the last {}",
                    now_ms.saturating_sub(of.since_ms) / 1_000,
                    of.tests,
                    of.last
                )),
                None if self.counts.get(&place).is_some_and(|it| it.done > 0) => Seen::Good,
                // It is not known yet.
                _ => Seen::Unknown,
            };
            let kind = test.kind.word();
            let like = mesh.tests.iter().filter(|it| it.kind == test.kind).count();
            let each = if like > 1 { format!(" ({})", test.word()) } else { String::new() };
            (format!("the {kind}{}{}{each}", crate::judge::TESTS, mesh.name), found)
        };
        let twice = self.names.iter().zip(&self.sessions).filter_map(|(name, session)| {
            let found = session.twice(now_ms)?.map_or(Seen::Good, Seen::Bad);
            Some((format!("{TOKEN}{name}"), found))
        });
        self.places().map(seen).chain(twice).collect()
    }
}
