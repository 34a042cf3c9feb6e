//! What is given to agents: tests, and whom to let in.

use super::{
    AGAIN_MS, AROUND_MS, Admits, Control, Has, Kind, LEAD_MS, Load, Name, Order, Place, Planned, Reply, Running,
    Secrets, SocketAddr, TRACED_EACH, Ticket, Truth, What,
};
use crate::schedule::is_quiet;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;

/// Orders in one reply; the others come with the next.
const ORDERS_MAX: usize = 500;
/// Tests of one kind that are given together, at most.
const GIVEN_MAX: usize = 2_000;

impl<T: Truth> Control<'_, T> {
    /// Gives what is due and whose hosts are free.
    pub(super) fn give(&mut self, now_ms: u64) -> Result<(), T::Error> {
        if now_ms < self.paused_until_ms {
            return Ok(());
        }
        let mut running: Vec<Name> = self.running.keys().filter(|name| self.is_load(name)).copied().collect();
        let mut busy: BTreeSet<usize> = running.iter().flat_map(|name| [name.load.from, name.load.to]).collect();
        let mut wanted: BTreeMap<Place, Vec<(u64, Planned)>> = BTreeMap::new();
        let mut due: Vec<&(u64, Planned)> =
            self.due.iter().take_while(|(at_ms, _)| *at_ms <= now_ms + LEAD_MS).collect();
        // Of the same priority what is due earlier is first, as it is.
        due.sort_by_key(|(_, it)| Reverse(self.test((it.name.mesh, it.name.test)).priority));
        for entry in due {
            let Name { mesh, test, load: Load { from, to }, .. } = entry.1.name;
            let place = (mesh, test);
            let is_late = entry.1.due_ms + self.patience_ms(place) < now_ms;
            if is_late || !self.is_there(from, now_ms) || !self.is_there(to, now_ms) {
                continue;
            }
            let given = wanted.entry(place).or_default();
            if given.len() >= GIVEN_MAX {
                continue;
            }
            let is_asked = self.rounds.get(&(place, entry.1.name.slot)).is_some_and(|round| round.is_asked);
            if !is_asked && is_quiet(self.test(place), now_ms) {
                continue;
            }
            if self.is_load(&entry.1.name) {
                let under_way = running.iter().filter(|name| (name.mesh, name.test) == place);
                let under_way = under_way.map(|name| self.expected_bytes(name)).fold(0, u64::saturating_add);
                if self.is_used_up(place, under_way, now_ms) || busy.contains(&from) || busy.contains(&to) {
                    continue;
                }
                let is_full = |most: NonZeroUsize| self.crowd(entry.1.name.load, &running) >= most.get();
                if self.fleet.concurrent.is_some_and(is_full) {
                    continue;
                }
                if !self.alone.is_empty() && running.iter().any(|other| self.disturb(&entry.1.name, other)) {
                    continue;
                }
                busy.extend([from, to]);
                running.push(entry.1.name);
            }
            given.push(*entry);
        }
        for (place, entries) in wanted {
            let names: Vec<Name> = entries.iter().map(|(_, planned)| planned.name).collect();
            let lasts_ms = names.iter().map(|name| self.lasts_ms(name)).fold(self.test(place).lasts_ms, u64::max);
            let until_ms = now_ms + LEAD_MS + lasts_ms + AROUND_MS;
            let leases = self.truth.lease(&names, now_ms, until_ms)?;
            for ((at_ms, planned), lease) in entries.into_iter().zip(leases) {
                self.due.remove(&(at_ms, planned));
                let Some(lease) = lease else {
                    self.due.insert((now_ms + AGAIN_MS, planned));
                    continue;
                };
                let opener = self.opener(planned.name.load);
                self.begins(Running { lease, opener, due_ms: planned.due_ms });
            }
        }
        Ok(())
    }

    /// How many of these loads pass the router of a path that most of them pass.
    fn crowd(&self, load: Load, running: &[Name]) -> usize {
        let over = |hop: &String| running.iter().filter(|it| self.latest.hops(it.load).contains(hop)).count();
        self.latest.hops(load).iter().map(over).max().unwrap_or(0)
    }

    /// The bytes that a load is expected to carry.
    pub(super) fn expected_bytes(&self, name: &Name) -> u64 {
        let expect_bps = u128::from(self.test((name.mesh, name.test)).expect_bps);
        u64::try_from(expect_bps * u128::from(self.lasts_ms(name)) / 8_000).unwrap_or(u64::MAX)
    }

    /// Whether two loads may not run together: one of them is to run alone, and they share a router.
    fn disturb(&self, one: &Name, other: &Name) -> bool {
        let is_alone = self.alone.contains(one) || self.alone.contains(other);
        is_alone && self.latest.share(one.load, other.load)
    }

    pub(super) fn is_load(&self, name: &Name) -> bool {
        self.test((name.mesh, name.test)).kind == Kind::Load
    }

    /// The sender, unless only the receiver is known to reach the other one.
    pub(super) fn opener(&self, Load { from, to }: Load) -> usize {
        let reached = |a, b| !self.unreached.contains(&[a, b]);
        if !reached(from, to) && reached(to, from) { to } else { from }
    }

    /// The other end of a test, as its opener sees it.
    pub(super) fn other(name: &Name, opener: usize) -> usize {
        if opener == name.load.from { name.load.to } else { name.load.from }
    }

    /// What an agent should have that it has not; `None`: nothing.
    pub fn reply(&self, host: usize, has: &Has, secrets: Secrets<'_>, now_ms: u64) -> Option<Reply> {
        let admits = self.admits(host, secrets);
        // Where probes come from that an earlier controller gave, their agents say when they poll: until then those stay who may come.
        let is_known = |it: &Running| self.is_load(&it.lease.name) || self.sessions[it.opener].agent.is_some();
        let begins = now_ms < self.began_ms + AROUND_MS;
        // Before it took over what is in hand, it knows nothing of that.
        let knows =
            self.next_hour.is_some() && (!begins || self.running_of(host).filter(|it| it.opener != host).all(is_known));
        let mine = self.running_of(host).filter(|it| it.opener == host);
        let orders = mine.filter_map(|it| self.order(it, has, secrets, now_ms)).take(ORDERS_MAX).collect();
        let admits = (knows && admits.version != has.admitted).then_some(admits);
        let reply = Reply { taken: Vec::new(), orders, admits, wants_settings: !has.settings };
        (!reply.orders.is_empty() || reply.admits.is_some() || reply.wants_settings).then_some(reply)
    }

    fn order(&self, running: &Running, has: &Has, secrets: Secrets<'_>, now_ms: u64) -> Option<Order> {
        let Running { lease, opener, due_ms } = running;
        let ticket = self.ticket(lease);
        if has.working.contains(&ticket) {
            return None;
        }
        let test = self.test((lease.name.mesh, lease.name.test));
        let other = Self::other(&lease.name, *opener);
        let (agent, _) = self.sessions[other].agent.as_ref()?;
        let secret = secrets(&self.pass(running));
        let down = *opener == lease.name.load.to;
        let what = match test.kind {
            Kind::Load if Self::is_diagnosis(&lease.name) => What::Diagnose { down },
            Kind::Load => What::Load { down },
            Kind::Probe => {
                // Each path in a slot of its own: routers answer a host once a second.
                let Load { from, to } = lease.name.load;
                let turn = lease.name.slot.wrapping_add((31 * from + to) as u64);
                // What is in the store has no routers but where they were looked for.
                let is_new = self.fleet.concurrent.is_some() && now_ms < self.began_ms + 2 * test.every_ms;
                let is_unknown = is_new && self.latest.hops(lease.name.load).is_empty();
                let trace = turn.is_multiple_of(TRACED_EACH) || is_unknown || !self.latest.has_path(lease.name.load);
                What::Probe { stamp: agent.stamp, trace }
            }
        };
        Some(Order {
            ticket,
            what,
            in_ms: due_ms.saturating_sub(now_ms),
            lasts_ms: self.lasts_ms(&lease.name),
            ends_in_ms: lease.until_ms.saturating_sub(now_ms),
            to: SocketAddr::new(self.address(other)?, agent.port),
            token: format!("narrows1.{}.{secret}", agent.fingerprint),
        })
    }

    /// What a pass is for: a load, and the process of the host that lets it in.
    fn pass(&self, running: &Running) -> String {
        let other = Self::other(&running.lease.name, running.opener);
        let started = self.sessions[other].agent.as_ref().map_or("", |(agent, _)| agent.started.as_str());
        let ticket = self.ticket(&running.lease);
        let Ticket { mesh, test, slot, from, to, fence } = ticket;
        [mesh, test, slot.to_string(), from, to, fence.to_string(), started.to_owned()].join("\0")
    }

    /// Whom a host lets in now.
    fn admits(&self, host: usize, secrets: Secrets<'_>) -> Admits {
        let (mut passes, mut peers) = (Vec::new(), Vec::new());
        for running in self.running_of(host).filter(|it| it.opener != host) {
            if self.is_load(&running.lease.name) {
                passes.push(secrets(&self.pass(running)));
            } else {
                // It may come from where it is loaded, or from where the controller sees it.
                peers.extend(self.sessions[running.opener].agent.as_ref().and_then(|(_, from)| *from));
                peers.extend(self.address(running.opener));
            }
        }
        Admits::of(passes, peers)
    }
}
