//! Agents that answer by a model of a network, and messages that are lost, late and repeated.

use narrows_fleet::control::{Control, Has};
use narrows_fleet::incident::Message;
use narrows_fleet::plan::Fleet;
use narrows_fleet::protocol::{Admits, Agent, Clock, Found, Order, Outcome, Poll, Settings, Ticket, What};
use narrows_fleet::truth::Memory;
use narrows_model::run::mesh::{MeshPath, MeshState};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A small generator (xorshift64, G. Marsaglia 2003), so that a failure can be repeated.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    pub(crate) fn part(&mut self) -> f64 {
        self.below(1_000_000) as f64 / 1e6
    }

    pub(crate) fn is(&mut self, part: f64) -> bool {
        self.part() < part
    }
}

/// What is wrong with the network.
#[derive(Default)]
pub(crate) struct Faults {
    /// What a host sends, as a part of what it should.
    pub(crate) sends: BTreeMap<usize, f64>,
    /// What paths from one group to another carry.
    pub(crate) trunk: BTreeMap<[usize; 2], f64>,
    /// Part of the packets that a host loses when it receives.
    pub(crate) loses: BTreeMap<usize, f64>,
    /// Hosts whose queue is so short that their loads push packets of probes out of it.
    pub(crate) short: BTreeSet<usize>,
    /// By how much all loads carry less.
    pub(crate) all: Option<f64>,
    /// Round trips of one host, microseconds.
    pub(crate) far: BTreeMap<usize, f64>,
    /// By how much clocks are behind, ms.
    pub(crate) behind: BTreeMap<usize, u64>,
    /// Groups between which nothing passes.
    pub(crate) cut: Option<[usize; 2]>,
    /// Who has no CPU time.
    pub(crate) starved: BTreeSet<usize>,
    /// Who cannot be connected to.
    pub(crate) closed: BTreeSet<usize>,
    /// Whose agent is away.
    pub(crate) away: BTreeSet<usize>,
    /// Part of the messages that are lost, or come once more later.
    pub(crate) messages: f64,
    /// Part of the loads that carry half, for no reason.
    pub(crate) dips: f64,
    /// Hosts on which a setting was changed.
    pub(crate) set: BTreeSet<usize>,
    /// Whether traces show the router of each group.
    pub(crate) traced: bool,
}

#[derive(Default)]
pub(crate) struct Stub {
    pub(crate) started: u64,
    pub(crate) working: BTreeMap<Ticket, (u64, Order)>,
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) admits: Admits,
    /// Whether the controller asked for its settings.
    pub(crate) wanted: bool,
    /// An old poll.
    pub(crate) old: Option<Poll>,
}

impl Stub {
    pub(crate) fn poll(&self) -> Poll {
        let word = str::to_owned;
        let started = self.started.to_string();
        let agent = Agent { version: word("1"), port: 5221, fingerprint: word("f"), stamp: 5222, started };
        let outcomes: Vec<Outcome> = self.outcomes.iter().take(3).cloned().collect();
        let working = self.working.keys().chain(self.outcomes.iter().map(|it| &it.ticket)).cloned().collect();
        Poll { agent, outcomes, working, admitted: self.admits.version, clock: None, settings: Settings::default() }
    }
}

pub(crate) struct World {
    pub(crate) groups: Vec<usize>,
    pub(crate) stubs: Vec<Stub>,
    pub(crate) random: Random,
    pub(crate) faults: Faults,
    pub(crate) now_ms: u64,
    pub(crate) messages: Vec<(u64, Message)>,
    /// Whether a load runs, and how many hosts are in one now.
    pub(crate) loads: bool,
    pub(crate) in_loads: usize,
    /// When a load last ran at each host.
    busy: BTreeMap<usize, u64>,
    /// Probes that lost packets to a load of one of their hosts.
    pub(crate) pushed_out: usize,
}

pub(crate) const BEGIN_MS: u64 = 1_700_000_000_000;

pub(crate) fn fleet(hosts: usize, groups: usize) -> Fleet {
    let hosts: String =
        (0..hosts).map(|nth| format!("hosts.h{nth:03} = {{ group = 'g{}' }}\n", nth % groups)).collect();
    let tests = "[[mesh.test]]\nkind = 'load'\nevery = '10m'\n[[mesh.test]]\nkind = 'probe'\nevery = '1m'\n";
    Fleet::read(&format!("name = 's'\n{hosts}[[mesh]]\nname = 'all'\ndesign = 'regular'\n{tests}")).expect("a fleet")
}

/// No secret, but as long as one.
pub(crate) fn secret(of: &str) -> String {
    let sum = of.bytes().fold(7_u128, |sum, byte| sum.wrapping_mul(0x0100_0000_01b3) ^ u128::from(byte));
    format!("{sum:032x}")
}

pub(crate) fn place(name: &str) -> usize {
    name.trim_start_matches('h').parse().expect("a host")
}

impl World {
    pub(crate) fn new(fleet: &Fleet, seed: u64) -> Self {
        let number = |host: &narrows_fleet::plan::Host| host.group.trim_start_matches('g').parse().expect("a group");
        Self::of(fleet, fleet.hosts.values().map(number).collect(), seed)
    }

    pub(crate) fn of(fleet: &Fleet, groups: Vec<usize>, seed: u64) -> Self {
        Self {
            groups,
            stubs: fleet.hosts.values().map(|_| Stub::default()).collect(),
            random: Random(seed),
            faults: Faults::default(),
            now_ms: BEGIN_MS,
            messages: Vec::new(),
            loads: false,
            in_loads: 0,
            busy: BTreeMap::new(),
            pushed_out: 0,
        }
    }

    /// An exchange of messages, which may be lost on each way.
    pub(crate) fn exchange(&mut self, control: &mut Control<'_, Memory>, host: usize) {
        let from = IpAddr::from([192, 0, 2, u8::try_from(host).expect("few hosts")]);
        let (mut poll, loss, now_ms) = (self.stubs[host].poll(), self.faults.messages, self.now_ms);
        let sack = host.is_multiple_of(5) != self.faults.set.contains(&host);
        let mut settings = Settings::of(BTreeMap::from([("tcp.sack".to_owned(), sack.to_string())]));
        settings.all = settings.all.filter(|_| self.stubs[host].wanted);
        poll.settings = settings;
        let behind_ms = self.faults.behind.get(&host).copied().unwrap_or(0);
        poll.clock = Some(Clock { at_unix_ms: now_ms - behind_ms, error_us: None });
        if self.random.is(loss)
            && let Some(old) = self.stubs[host].old.replace(poll.clone())
        {
            control.poll(host, Some(from), old, now_ms).expect("polled");
        }
        if self.random.is(loss) {
            return;
        }
        let (has, taken): (Has, _) = control.poll(host, Some(from), poll, now_ms).expect("polled").expect("sound");
        let reply = control.reply(host, &has, &secret, now_ms).unwrap_or_default();
        if self.random.is(loss) {
            return;
        }
        let stub = &mut self.stubs[host];
        stub.outcomes.retain(|outcome| !taken.contains(&outcome.ticket));
        stub.wanted = reply.wants_settings;
        if let Some(admits) = reply.admits {
            stub.admits = admits;
        }
        for order in reply.orders {
            // Its lease would end before.
            if order.in_ms + order.lasts_ms > order.ends_in_ms {
                continue;
            }
            if !stub.outcomes.iter().any(|it| it.ticket == order.ticket) {
                stub.working.entry(order.ticket.clone()).or_insert((now_ms + order.in_ms, order));
            }
        }
    }

    /// A second.
    pub(crate) fn step(&mut self, control: &mut Control<'_, Memory>) {
        self.now_ms += 1_000;
        let now_ms = self.now_ms;
        let messages = control.tick(now_ms).expect("a tick");
        self.messages.extend(messages.into_iter().map(|message| (now_ms, message)));
        control.keep().expect("kept");
        let changed = control.changed();
        let mut busy: BTreeSet<usize> = BTreeSet::new();
        for host in 0..self.stubs.len() {
            if self.faults.away.contains(&host) {
                self.stubs[host].working.clear();
                self.stubs[host].started = now_ms;
                continue;
            }
            for (at, order) in self.stubs[host].working.values().cloned().collect::<Vec<_>>() {
                let runs = at <= now_ms && now_ms < at + order.lasts_ms;
                if runs && !matches!(order.what, What::Probe { .. }) {
                    let both = [place(&order.ticket.from), place(&order.ticket.to)];
                    assert!(both.iter().all(|it| busy.insert(*it)), "two loads at one host: {both:?}");
                }
                if now_ms >= at + order.lasts_ms {
                    let found = self.found(host, &order);
                    self.stubs[host].working.remove(&order.ticket);
                    self.stubs[host].outcomes.push(Outcome { ticket: order.ticket, found });
                }
            }
            self.loads = !busy.is_empty();
            let stub = &self.stubs[host];
            let works = !stub.working.is_empty() || !stub.outcomes.is_empty();
            if works || now_ms / 1_000 % 20 == host as u64 % 20 || changed.contains(&host) {
                self.exchange(control, host);
            }
        }
        self.in_loads = busy.len();
        self.busy.extend(busy.into_iter().map(|host| (host, now_ms)));
    }

    pub(crate) fn run(&mut self, control: &mut Control<'_, Memory>, minutes: u64) {
        (0..minutes * 60).for_each(|_| self.step(control));
    }

    pub(crate) fn found(&mut self, host: usize, order: &Order) -> Found {
        let (from, to) = (place(&order.ticket.from), place(&order.ticket.to));
        match order.what {
            What::Diagnose { .. } => Found::Diagnosis(Ok(format!("limited at h{from:03}"))),
            What::Load { down } => {
                let other = if host == from { to } else { from };
                assert_eq!(down, host == to);
                if self.faults.closed.contains(&other) {
                    return Found::Load(MeshState::Unreachable("connection refused".to_owned()));
                }
                let is_let_in = self.stubs[other].admits.passes.iter().any(|it| order.token.ends_with(it.as_str()));
                if self.faults.away.contains(&other) || !is_let_in {
                    return Found::Load(MeshState::Failed("it does not answer".to_owned()));
                }
                if self.is_cut(from, to) {
                    return Found::Load(MeshState::Unreachable("connection timed out".to_owned()));
                }
                Found::Load(self.carried(from, to))
            }
            What::Probe { .. } if self.faults.away.contains(&to) || self.is_cut(from, to) => {
                let remarks = vec!["no packet was answered".to_owned()];
                Found::Probe(MeshPath { remarks, ..MeshPath::default() })
            }
            What::Probe { .. } => {
                let mut packets = Some([43, self.lost(to), self.lost(from)]);
                let since_ms = self.now_ms - order.lasts_ms;
                let is_beside = |host: &usize| {
                    self.faults.short.contains(host) && self.busy.get(host).is_some_and(|at_ms| *at_ms >= since_ms)
                };
                if [from, to].iter().any(is_beside) {
                    packets = Some([43, 9, 9]);
                    self.pushed_out += 1;
                }
                let of = |host: &usize| self.faults.far.get(host).copied();
                let groups: BTreeSet<usize> = [from, to].map(|host| self.groups[host]).into();
                let hops = groups.iter().filter(|_| self.faults.traced).map(|it| format!("10.0.{it}.1")).collect();
                let least = of(&from).or_else(|| of(&to)).unwrap_or(90.0) + 20.0 * self.random.part();
                Found::Probe(MeshPath {
                    rtt_us: Some([least, least + 10.0, least + 30.0]),
                    packets,
                    hops,
                    ..MeshPath::default()
                })
            }
        }
    }

    pub(crate) fn is_cut(&self, from: usize, to: usize) -> bool {
        let [a, b] = [self.groups[from], self.groups[to]];
        self.faults.cut.is_some_and(|cut| cut == [a, b] || cut == [b, a])
    }

    pub(crate) fn lost(&mut self, host: usize) -> u64 {
        let part = self.faults.loses.get(&host).copied().unwrap_or(0.0);
        (0..43).filter(|_| self.random.is(part)).count() as u64
    }

    pub(crate) fn carried(&mut self, from: usize, to: usize) -> MeshState {
        let dip = if self.random.is(self.faults.dips) { 0.5 } else { 1.0 };
        let noise = 0.97 + 0.03 * self.random.part();
        let faults = &self.faults;
        let trunk = [self.groups[from], self.groups[to]];
        let part = |part: Option<&f64>| part.copied().unwrap_or(1.0);
        let part = part(faults.sends.get(&from)).min(part(faults.trunk.get(&trunk))).min(part(faults.all.as_ref()));
        let is_starved = |host: usize| faults.starved.contains(&host);
        let busy = [from, to].map(|host| Some(if is_starved(host) { 0.99 } else { 0.2 }));
        let slow = if is_starved(from) || is_starved(to) { 0.4 } else { 1.0 };
        MeshState::Measured { goodput_bps: 940e6 * part * dip * slow * noise, retransmits: None, busy }
    }

    /// What was reported since a time, in the order of words: `began host h001 (sending)`.
    pub(crate) fn reported(&self, since_ms: u64) -> Vec<String> {
        let words = |(_, message): &(u64, Message)| match message {
            Message::Began(it) => {
                // What is slow is diagnosed; of what arrives nowhere there is nothing to diagnose.
                assert!(it.verdict.is_some() || !it.says.starts_with("carries") || self.faults.cut.is_some(), "{it:?}");
                format!("began {}", it.element)
            }
            Message::Over { incident, .. } => format!("over {}", incident.element),
        };
        let mut reported: Vec<String> = self.messages.iter().filter(|(at, _)| *at >= since_ms).map(words).collect();
        reported.sort_unstable();
        reported
    }
}
