//! A fleet in simulated time: the real controller, agents that answer by a model of a network, messages that are lost, late and repeated.

use narrows_fleet::control::{Control, Has};
use narrows_fleet::incident::Message;
use narrows_fleet::plan::Fleet;
use narrows_fleet::protocol::{Admits, Agent, Clock, Found, Order, Outcome, Poll, Settings, Ticket, What};
use narrows_fleet::truth::{End, Memory};
use narrows_model::run::mesh::{MeshPath, MeshState};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// A small generator (xorshift64, G. Marsaglia 2003), so that a failure can be repeated.
struct Random(u64);

impl Random {
    fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % most
    }

    fn part(&mut self) -> f64 {
        self.below(1_000_000) as f64 / 1e6
    }

    fn is(&mut self, part: f64) -> bool {
        self.part() < part
    }
}

/// What is wrong with the network.
#[derive(Default)]
struct Faults {
    /// What a host sends, as a part of what it should.
    sends: BTreeMap<usize, f64>,
    /// What paths from one group to another carry.
    trunk: BTreeMap<[usize; 2], f64>,
    /// Part of the packets that a host loses when it receives.
    loses: BTreeMap<usize, f64>,
    /// By how much all loads carry less.
    all: Option<f64>,
    /// Round trips of one host, microseconds.
    far: BTreeMap<usize, f64>,
    /// By how much clocks are behind, ms.
    behind: BTreeMap<usize, u64>,
    /// Groups between which nothing passes.
    cut: Option<[usize; 2]>,
    /// Who has no CPU time.
    starved: BTreeSet<usize>,
    /// Who cannot be connected to.
    closed: BTreeSet<usize>,
    /// Whose agent is away.
    away: BTreeSet<usize>,
    /// Part of the messages that are lost, or come once more later.
    messages: f64,
    /// Part of the loads that carry half, for no reason.
    dips: f64,
}

#[derive(Default)]
struct Stub {
    started: u64,
    working: BTreeMap<Ticket, (u64, Order)>,
    outcomes: Vec<Outcome>,
    admits: Admits,
    /// Whether the controller asked for its settings.
    wanted: bool,
    /// An old poll.
    old: Option<Poll>,
}

impl Stub {
    fn poll(&self) -> Poll {
        let word = str::to_owned;
        let started = self.started.to_string();
        let agent = Agent { version: word("1"), port: 5221, fingerprint: word("f"), stamp: 5222, started };
        let outcomes: Vec<Outcome> = self.outcomes.iter().take(3).cloned().collect();
        let working = self.working.keys().chain(self.outcomes.iter().map(|it| &it.ticket)).cloned().collect();
        Poll { agent, outcomes, working, admitted: self.admits.version, clock: None, settings: Settings::default() }
    }
}

struct World {
    groups: Vec<usize>,
    stubs: Vec<Stub>,
    random: Random,
    faults: Faults,
    now_ms: u64,
    messages: Vec<(u64, Message)>,
    /// Whether a load runs.
    loads: bool,
}

const BEGIN_MS: u64 = 1_700_000_000_000;

fn fleet(hosts: usize, groups: usize) -> Fleet {
    let hosts: String =
        (0..hosts).map(|nth| format!("hosts.h{nth:03} = {{ group = 'g{}' }}\n", nth % groups)).collect();
    let tests = "[[mesh.test]]\nkind = 'load'\nevery = '10m'\n[[mesh.test]]\nkind = 'probe'\nevery = '1m'\n";
    Fleet::read(&format!("name = 's'\n{hosts}[[mesh]]\nname = 'all'\ndesign = 'regular'\n{tests}")).expect("a fleet")
}

/// No secret, but as long as one.
fn secret(of: &str) -> String {
    let sum = of.bytes().fold(7_u128, |sum, byte| sum.wrapping_mul(0x0100_0000_01b3) ^ u128::from(byte));
    format!("{sum:032x}")
}

fn place(name: &str) -> usize {
    name.trim_start_matches('h').parse().expect("a host")
}

impl World {
    fn new(fleet: &Fleet, seed: u64) -> Self {
        let number = |host: &narrows_fleet::plan::Host| host.group.trim_start_matches('g').parse().expect("a group");
        Self {
            groups: fleet.hosts.values().map(number).collect(),
            stubs: fleet.hosts.values().map(|_| Stub::default()).collect(),
            random: Random(seed),
            faults: Faults::default(),
            now_ms: BEGIN_MS,
            messages: Vec::new(),
            loads: false,
        }
    }

    /// An exchange of messages, which may be lost on each way.
    fn exchange(&mut self, control: &mut Control<'_, Memory>, host: usize) {
        let from = IpAddr::from([192, 0, 2, u8::try_from(host).expect("few hosts")]);
        let (mut poll, loss, now_ms) = (self.stubs[host].poll(), self.faults.messages, self.now_ms);
        let mut settings = Settings::of(BTreeMap::from([("tcp.sack".to_owned(), host.is_multiple_of(5).to_string())]));
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
    fn step(&mut self, control: &mut Control<'_, Memory>) {
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
    }

    fn run(&mut self, control: &mut Control<'_, Memory>, minutes: u64) {
        (0..minutes * 60).for_each(|_| self.step(control));
    }

    fn found(&mut self, host: usize, order: &Order) -> Found {
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
                let packets = Some([43, self.lost(to), self.lost(from)]);
                let of = |host: &usize| self.faults.far.get(host).copied();
                let least = of(&from).or_else(|| of(&to)).unwrap_or(90.0) + 20.0 * self.random.part();
                Found::Probe(MeshPath {
                    rtt_us: Some([least, least + 10.0, least + 30.0]),
                    packets,
                    ..MeshPath::default()
                })
            }
        }
    }

    fn is_cut(&self, from: usize, to: usize) -> bool {
        let [a, b] = [self.groups[from], self.groups[to]];
        self.faults.cut.is_some_and(|cut| cut == [a, b] || cut == [b, a])
    }

    fn lost(&mut self, host: usize) -> u64 {
        let part = self.faults.loses.get(&host).copied().unwrap_or(0.0);
        (0..43).filter(|_| self.random.is(part)).count() as u64
    }

    fn carried(&mut self, from: usize, to: usize) -> MeshState {
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
    fn reported(&self, since_ms: u64) -> Vec<String> {
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

#[test]
fn faults_are_found_within_three_rounds_each_with_one_message_and_one_recovery() {
    let fleet = fleet(40, 3);
    let mut world = World::new(&fleet, 11);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    world.run(&mut control, 30);
    assert_eq!(world.reported(0), Vec::<String>::new());
    let settings = control.record(world.now_ms).members.into_iter().map(|it| it.host.settings()["tcp.sack"].clone());
    assert!(settings.enumerate().all(|(nth, it)| it == nth.is_multiple_of(5).to_string()), "each has its own");
    // They begin in the middle of a round of loads.
    while !world.loads {
        world.step(&mut control);
    }
    (0..40).for_each(|_| world.step(&mut control));
    world.faults.sends = BTreeMap::from([(3, 0.3), (8, 0.5), (21, 0.4)]);
    world.faults.trunk = BTreeMap::from([([0, 1], 0.35), ([2, 0], 0.6)]);
    world.faults.loses = BTreeMap::from([(14, 0.1), (30, 0.2)]);
    let since = world.now_ms;
    world.run(&mut control, 32);
    let mut wanted = [
        "host h003 (sending)",
        "host h008 (sending)",
        "host h014 (receiving)",
        "host h021 (sending)",
        "host h030 (receiving)",
        "the paths from group g0 to group g1",
        "the paths from group g2 to group g0",
    ]
    .map(|it| format!("began {it}"));
    wanted.sort_unstable();
    assert_eq!(world.reported(since), wanted);
    world.run(&mut control, 60);
    assert_eq!(world.reported(since), wanted, "nothing is reported twice");
    world.faults = Faults::default();
    let since = world.now_ms;
    world.run(&mut control, 40);
    assert_eq!(world.reported(since), wanted.map(|it| it.replace("began", "over")));
    let counts: Vec<_> = control.counts().map(|(_, counts)| counts).collect();
    assert!(counts.iter().all(|it| it.done > 0 && it.failed == 0 && it.missed == 0), "{counts:?}");
}

#[test]
fn what_arrives_nowhere_any_more_is_an_incident_and_a_site_that_is_silent_is_one() {
    let fleet = fleet(24, 3);
    let mut world = World::new(&fleet, 5);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    world.run(&mut control, 30);
    world.faults.cut = Some([0, 2]);
    world.run(&mut control, 35);
    assert_eq!(world.reported(0), ["began the paths between group g0 and group g2"]);
    let since = world.now_ms;
    world.faults.cut = None;
    world.run(&mut control, 35);
    assert_eq!(world.reported(since), ["over the paths between group g0 and group g2"]);
    // Those of a whole group, and one of another.
    let since = world.now_ms;
    world.faults.away = (0..24).filter(|host| host % 3 == 1).chain([5]).collect();
    world.run(&mut control, 20);
    assert_eq!(world.reported(since), ["began agent h005", "began the agents of group g1"]);
    let since = world.now_ms;
    world.faults.away.clear();
    world.run(&mut control, 40);
    assert_eq!(world.reported(since), ["over agent h005", "over the agents of group g1"]);
    let since = world.now_ms;
    world.faults.behind = BTreeMap::from([(3, 5_000)]);
    world.run(&mut control, 20);
    world.faults.behind = (0..24).map(|host| (host, 5_000)).collect();
    world.run(&mut control, 20);
    world.faults.behind.clear();
    world.run(&mut control, 20);
    let both = ["the clock of h003", "the controller's clock"];
    let wanted: Vec<String> = ["began", "over"].iter().flat_map(|it| both.map(|of| format!("{it} {of}"))).collect();
    assert_eq!(world.reported(since), wanted);
    // The controller's own network; then it is stopped for an hour.
    let since = world.now_ms;
    world.faults.away = (0..24).collect();
    world.run(&mut control, 10);
    assert_eq!(world.reported(since), ["began all agents"]);
    world.faults.away.clear();
    world.run(&mut control, 20);
    let since = world.now_ms;
    world.now_ms += 3_600_000;
    world.run(&mut control, 30);
    assert_eq!(world.reported(since), Vec::<String>::new());
}

#[test]
fn what_is_worse_than_it_was_is_an_incident_where_no_other_path_shows_it() {
    for hosts in [2, 12] {
        let fleet = fleet(hosts, if hosts == 2 { 1 } else { 3 });
        let mut world = World::new(&fleet, 9);
        let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
        world.run(&mut control, 100);
        assert_eq!(world.reported(0), Vec::<String>::new());
        let truth = control.into_truth();
        // Another controller knows what was usual.
        let mut control = Control::new(&fleet, truth, world.now_ms);
        world.run(&mut control, 3);
        let since = world.now_ms;
        world.faults.all = Some(0.5);
        world.run(&mut control, 45);
        let element = if hosts == 2 { "the path between h000 and h001" } else { "all paths" };
        assert_eq!(world.reported(since), [format!("began {element}")], "{hosts}");
        world.run(&mut control, 120);
        let since = world.now_ms;
        world.faults.all = None;
        world.run(&mut control, 45);
        assert_eq!(world.reported(since), [format!("over {element}")], "{hosts}: it became usual");
        // A host that is further away than it was.
        let since = world.now_ms;
        world.faults.far = BTreeMap::from([(1, 20_000.0)]);
        world.run(&mut control, 20);
        let element = if hosts == 2 { "the path between h000 and h001" } else { "host h001" };
        assert_eq!(world.reported(since), [format!("began {element}")], "{hosts}");
        if hosts > 2 {
            continue;
        }
        // For longer than another controller looks back.
        world.run(&mut control, 7 * 60);
        let since = world.now_ms;
        let mut control = Control::new(&fleet, control.into_truth(), world.now_ms);
        world.run(&mut control, 60);
        assert_eq!(world.reported(since), Vec::<String>::new(), "it is as far away as before");
        world.faults.far.clear();
        world.run(&mut control, 20);
        assert_eq!(world.reported(since), [format!("over {element}")]);
    }
}

#[test]
fn what_is_silent_stays_so_for_another_controller() {
    let fleet = fleet(12, 3);
    let mut world = World::new(&fleet, 3);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    world.run(&mut control, 5);
    world.faults.away = (0..12).filter(|host| host % 3 == 1).chain([5]).collect();
    world.run(&mut control, 10);
    assert_eq!(world.reported(0), ["began agent h005", "began the agents of group g1"]);
    let since = world.now_ms;
    let mut control = Control::new(&fleet, control.into_truth(), world.now_ms);
    world.run(&mut control, 10);
    // It is stopped for a while.
    world.now_ms += 600_000;
    world.run(&mut control, 10);
    assert_eq!(world.reported(since), Vec::<String>::new());
    world.faults.away.clear();
    world.run(&mut control, 5);
    assert_eq!(world.reported(since), ["over agent h005", "over the agents of group g1"]);
}

#[test]
fn quiet_hours_with_agents_that_go_dips_and_starved_hosts_report_agents_only() {
    for seed in [1, 2] {
        let fleet = fleet(12, 2);
        let mut world = World::new(&fleet, seed);
        let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
        world.faults.dips = 0.01;
        for hour in 0..12 {
            let host = world.random.below(12) as usize;
            if hour % 3 == 0 {
                world.faults.away.insert(host);
                world.run(&mut control, 7);
                world.faults.away.clear();
            } else {
                world.faults.starved.insert(host);
                world.run(&mut control, 25);
                world.faults.starved.clear();
            }
            world.run(&mut control, 20);
        }
        let reported = world.reported(0);
        let others: Vec<&String> = reported.iter().filter(|it| !it.contains(" agent ")).collect();
        assert_eq!(others, Vec::<&String>::new(), "seed {seed}");
        assert!((2..=8).contains(&reported.len()), "four times one went: seed {seed}: {reported:?}");
    }
}

#[test]
fn who_can_connect_opens_the_loads_of_both_directions() {
    let fleet = fleet(6, 1);
    let mut world = World::new(&fleet, 4);
    let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
    world.faults.closed = BTreeSet::from([2, 5]);
    world.run(&mut control, 40);
    let record = control.record(world.now_ms);
    let state = |from: usize, to: usize| record.loads.iter().find(|it| (it.from, it.to) == (from, to)).expect("a load");
    assert!(matches!(state(1, 2).state, MeshState::Measured { .. }) && state(1, 2).opened_by_receiver);
    assert!(matches!(state(2, 1).state, MeshState::Measured { .. }) && !state(2, 1).opened_by_receiver);
    let both = [state(2, 5), state(5, 2)];
    assert!(both.iter().all(|it| matches!(it.state, MeshState::Unreachable(_))), "{both:?}");
    assert_eq!(world.reported(0), Vec::<String>::new());
}

#[test]
fn whatever_dies_each_planned_test_ran_once_or_is_named_as_missed() {
    for seed in 1..4 {
        let fleet = fleet(10, 2);
        let mut world = World::new(&fleet, seed);
        world.faults.messages = 0.2;
        let mut control = Control::new(&fleet, Memory::default(), BEGIN_MS);
        for _ in 0..40 {
            match world.random.below(4) {
                0 => {
                    let host = world.random.below(10) as usize;
                    world.faults.away.insert(host);
                }
                1 => world.faults.away.clear(),
                2 => {
                    // Another controller takes over, after a while.
                    let truth = control.into_truth();
                    world.now_ms += 1_000 * world.random.below(100);
                    control = Control::new(&fleet, truth, world.now_ms);
                }
                _ => {}
            }
            world.run(&mut control, 2);
        }
        world.faults = Faults::default();
        world.run(&mut control, 30);
        let late = world.now_ms - 15 * 60_000;
        let truth = control.into_truth();
        let (mut ran, mut missed) = (0, 0);
        for (name, due_ms, end) in truth.ends() {
            match end {
                Some(End::Result(_)) => ran += 1,
                Some(End::Missed) => missed += 1,
                None => assert!(due_ms > late, "seed {seed}: {name:?} has no end"),
            }
        }
        assert!(ran > 1_000 && missed > 0, "seed {seed}: {ran} {missed}");
    }
}
