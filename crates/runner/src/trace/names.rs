//! The names of the hops, looked up beside the trace: a resolver that does not answer must not delay probes.

use crate::lock;
use narrows_model::TraceRecord;
use narrows_sys::{clock, names};
use narrows_traffic::Stop;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Lookups at a time.
const WORKERS: usize = 4;
/// How often a wait looks for them.
const POLL: Duration = Duration::from_millis(20);
/// Names that are looked up.
const MAX: usize = 512;

type Found = Arc<Mutex<BTreeMap<IpAddr, Option<String>>>>;

/// The names so far.
pub(super) struct Names {
    wanted: BTreeSet<IpAddr>,
    found: Found,
    to: Option<Sender<IpAddr>>,
}

impl Names {
    /// `on`: whether names are looked up at all.
    pub(super) fn new(on: bool) -> Self {
        let found = Found::default();
        let to = on.then(|| {
            let (to, from) = channel();
            let from = Arc::new(Mutex::new(from));
            for _ in 0..WORKERS {
                let (from, found) = (Arc::clone(&from), Arc::clone(&found));
                // Without a thread names stay unknown. They end with the process: a lookup cannot be ended.
                let _ = std::thread::Builder::new().name("narrows-names".to_owned()).spawn(move || work(&from, &found));
            }
            to
        });
        Self { wanted: BTreeSet::new(), found, to }
    }

    /// Looks up what is new.
    pub(super) fn look(&mut self, record: &TraceRecord) {
        let Some(to) = &self.to else { return };
        for address in record.probes.iter().filter_map(|it| it.answer.as_ref()).map(|it| it.from) {
            if self.wanted.len() < MAX && self.wanted.insert(address) {
                let _ = to.send(address);
            }
        }
    }

    /// Waits until all were found, or the time is over.
    pub(super) fn wait(&self, time: Duration, stop: &Stop) {
        let start = clock::now();
        while lock(&self.found).len() < self.wanted.len() && start.elapsed() < time && !stop.is_set() {
            clock::sleep(POLL);
        }
    }

    pub(super) fn known(&self) -> BTreeMap<IpAddr, String> {
        lock(&self.found).iter().filter_map(|(address, name)| Some((*address, name.clone()?))).collect()
    }
}

fn work(from: &Mutex<Receiver<IpAddr>>, found: &Found) {
    loop {
        let next = lock(from).recv();
        let Ok(address) = next else { return };
        let name = names::name_of(address);
        lock(found).insert(address, name);
    }
}
