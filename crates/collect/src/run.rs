//! Runs the collectors of one class, times each and reports what is missing.

use crate::collector::{Class, Collector, Context, Sink};
use crate::{COLLECTORS, Host};
use narrows_model::{CollectorRun, Snapshot};
use narrows_sys::clock;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// The inventory of a host before a test: parameters, hardware, and the current counters.
///
/// Without a peer the interface is that of the default route; a recorded host knows its peer.
pub fn inventory(host: &dyn Host, peer: Option<IpAddr>) -> Snapshot {
    run(host, peer, |collector| collector.class.runs_in(Class::Inventory))
}

/// The cumulative counters of a host: cheap enough for right before and after each trial.
pub fn counters(host: &dyn Host, peer: Option<IpAddr>) -> Snapshot {
    run(host, peer, |collector| collector.class.runs_in(Class::Counters))
}

/// The CPU quota of this process, and how often it was used up.
pub fn cpu_quota(host: &dyn Host) -> Snapshot {
    run(host, None, |collector| collector.id == "cgroup")
}

fn run(host: &dyn Host, peer: Option<IpAddr>, wanted: impl Fn(&Collector) -> bool) -> Snapshot {
    let context = Context::new(host, peer);
    let mut snapshot = Snapshot {
        host: host.word("/proc/sys/kernel/hostname").unwrap_or_default(),
        taken_unix_us: host.taken_unix_us(),
        ..Snapshot::default()
    };
    for collector in COLLECTORS.iter().filter(|collector| wanted(collector)) {
        let start = clock::now();
        let facts = run_one(collector, &context, &mut snapshot);
        let duration_us = clock::micros_since(start);
        snapshot.collectors.push(CollectorRun { collector: collector.id.to_owned(), duration_us, facts });
    }
    snapshot.seal();
    snapshot
}

/// Runs one collector: each key that it provides becomes a fact or an absence. Returns the number of facts.
fn run_one(collector: &'static Collector, context: &Context<'_>, snapshot: &mut Snapshot) -> u32 {
    let (facts_before, absent_before) = (snapshot.facts.len(), snapshot.absent.len());
    let mut sink = Sink::new(collector, snapshot);
    let outcome = (collector.can_run)(context).and_then(|()| (collector.collect)(context, &mut sink));
    let facts = sink.facts();
    let Err(why) = outcome else {
        return facts;
    };
    let given: BTreeSet<String> = snapshot.facts.iter().skip(facts_before).map(|fact| fact.key.clone()).collect();
    let told: BTreeSet<String> = snapshot.absent.iter().skip(absent_before).map(|absent| absent.what.clone()).collect();
    let mut sink = Sink::new(collector, snapshot);
    for key in collector.provides.iter().filter(|key| !told.contains(key.name)) {
        if !given.iter().any(|name| key.name == name || key.covers(name)) {
            sink.absent(key.name, &why);
        }
    }
    facts
}
