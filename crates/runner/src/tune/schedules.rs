//! Random schedules of several processes that change, undo, crash at any step and come back, while others change the same settings: at the
//! end every setting has its first value, or somebody else's, which was named.

use super::error::TuneError;
use super::host::Host;
use super::journal::{Entry, Maker};
use super::knob::Knob;
use super::{Tuner, Undone};
use narrows_model::{Place, Setting};
use narrows_sys::files::Locked;
use narrows_sys::network_id::NetworkId;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// A host in memory.
#[derive(Default)]
struct State {
    values: BTreeMap<String, String>,
    entries: BTreeMap<String, Entry>,
    alive: BTreeSet<u32>,
    /// Steps until the acting process dies.
    steps: Option<u32>,
}

type Shared = Arc<Mutex<State>>;

/// The host as one process sees it.
struct Process(Shared, u32);

struct Value<'a>(Shared, &'a str, &'a str);

/// One step of a process: the last one fails, and so do all that it would make to clean up.
fn step<T>(state: &Shared, act: impl FnOnce(&mut State) -> T) -> Result<T, TuneError> {
    let mut state = state.lock().expect("no panic");
    match &mut state.steps {
        Some(0) => return Err(TuneError::BadEntry(PathBuf::new(), "dead".to_owned())),
        Some(steps) => *steps -= 1,
        None => {}
    }
    Ok(act(&mut state))
}

impl Knob for Value<'_> {
    fn what(&self) -> String {
        self.1.to_owned()
    }
    fn target(&self) -> String {
        self.2.to_owned()
    }
    fn check(&self) -> Result<(), TuneError> {
        Ok(())
    }
    fn current(&self) -> Result<String, TuneError> {
        step(&self.0, |state| state.values[self.1].clone())
    }
    /// In two steps, as a queueing discipline is removed and made.
    fn write(&self, note: &str) -> Result<(), TuneError> {
        step(&self.0, |state| state.values.insert(self.1.to_owned(), "half".to_owned()))?;
        step(&self.0, |state| state.values.insert(self.1.to_owned(), note.to_owned())).map(drop)
    }
}

impl Host for Process {
    fn knob<'a>(&self, setting: &'a Setting) -> Box<dyn Knob + 'a> {
        let Setting::Sysctl { key, value } = setting else { panic!("only these") };
        Box::new(Value(self.0.clone(), key, value))
    }
    fn maker(&self, role: &str) -> Maker {
        Maker { pid: self.1, started_ticks: None, role: role.to_owned() }
    }
    fn lives(&self, maker: &Maker) -> bool {
        self.0.lock().expect("no panic").alive.contains(&maker.pid)
    }
    fn network(&self) -> Result<NetworkId, TuneError> {
        Ok(NetworkId { inode: 1, cookie: Some(1) })
    }
    fn lock(&self) -> Result<Option<Locked>, TuneError> {
        Ok(None)
    }
    fn write(&self, entry: &Entry) -> Result<(), TuneError> {
        step(&self.0, |state| state.entries.insert(entry.change.id.clone(), entry.clone())).map(drop)
    }
    fn remove(&self, id: &str) -> Result<(), TuneError> {
        step(&self.0, |state| state.entries.remove(id)).map(drop)
    }
    fn read(&self, id: &str) -> Result<Entry, TuneError> {
        step(&self.0, |state| state.entries.get(id).cloned())?
            .ok_or(TuneError::NoSuchChange(id.to_owned(), PathBuf::new()))
    }
    fn entries(&self) -> Result<(Vec<Entry>, Vec<TuneError>), TuneError> {
        // The ids begin with the time in hexadecimal digits of one length, and end with a serial number of any.
        let mut entries: Vec<_> = step(&self.0, |state| state.entries.values().cloned().collect())?;
        entries.sort_by_key(super::journal::order);
        Ok((entries, Vec::new()))
    }
    fn directory(&self) -> PathBuf {
        PathBuf::new()
    }
}

/// The numbers of splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

/// One schedule; what is wrong at its end.
fn run(seed: u64) -> Result<(), String> {
    let mut random = Random(seed);
    let state = Shared::default();
    let keys = ["a", "b"];
    for key in keys {
        state.lock().expect("no panic").values.insert(key.to_owned(), "first".to_owned());
    }
    let mut next_pid = 0;
    let mut born = |state: &Shared| {
        next_pid += 1;
        state.lock().expect("no panic").alive.insert(next_pid);
        (next_pid, Tuner { host: Box::new(Process(state.clone(), next_pid)), role: "serve" }, Vec::<String>::new())
    };
    let mut processes: Vec<_> = (0..3).map(|_| born(&state)).collect();
    let (mut foreign, mut named) = (BTreeMap::<String, bool>::new(), BTreeSet::new());
    let mut history = Vec::new();
    let mut note = |key: &Setting, outcome: &Result<Undone, TuneError>| {
        if let (Setting::Sysctl { key, .. }, Ok(Undone::ChangedByOthers { .. })) = (key, outcome) {
            named.insert(key.clone());
        }
    };
    for number in 0..4 + random.below(12) {
        let who = random.below(3) as usize;
        let key = keys[random.below(2) as usize];
        let crash = random.below(4) == 0;
        let after = random.below(9) as u32;
        state.lock().expect("no panic").steps = crash.then_some(after);
        let (_, tuner, made) = &mut processes[who];
        let act = random.below(5);
        history.push(format!("{who} does {act} to {key}, dies {:?}", crash.then_some(after)));
        match act {
            0 | 1 => {
                let set = Setting::Sysctl { key: key.to_owned(), value: format!("set {number}") };
                if let Ok(change) = tuner.apply(&set, Place::Server) {
                    made.push(change.id);
                }
            }
            2 if !made.is_empty() => {
                let id = made.remove(random.below(made.len() as u64) as usize);
                let set = state.lock().expect("no panic").entries.get(&id).map(|entry| entry.change.set.clone());
                let outcome = tuner.undo(&id);
                set.iter().for_each(|set| note(set, &outcome));
            }
            3 if !made.is_empty() && random.below(3) == 0 => drop(tuner.keep(&made[0])),
            4 if random.below(2) == 0 => {
                let mut state = state.lock().expect("no panic");
                let value = format!("foreign {number}");
                state.values.insert(key.to_owned(), value.clone());
                let of_key = |entry: &Entry| matches!(&entry.change.set, Setting::Sysctl { key: of, .. } if of == key);
                foreign.insert(value, state.entries.values().any(of_key));
            }
            _ => {}
        }
        if crash {
            state.lock().expect("no panic").steps = None;
            state.lock().expect("no panic").alive.remove(&processes[who].0);
            processes[who] = born(&state);
            for undoing in processes[who].1.recover().map_err(|error| error.to_string())? {
                note(&undoing.entry.change.set, &undoing.outcome);
            }
        }
    }
    state.lock().expect("no panic").steps = None;
    for undoing in processes[0].1.undo_all().map_err(|error| error.to_string())? {
        note(&undoing.entry.change.set, &undoing.outcome);
        undoing.outcome.map_err(|error| format!("{error}: {history:#?}"))?;
    }
    let state = state.lock().expect("no panic");
    for (key, value) in &state.values {
        // What somebody else set stays; where it was set over a change, it was named.
        let is_theirs = foreign.get(value).is_some_and(|over| !over || named.contains(key));
        if value != "first" && !is_theirs {
            return Err(format!("{key} is left at `{value}`: {history:#?}"));
        }
    }
    if state.entries.is_empty() {
        Ok(())
    } else {
        Err(format!("the journal keeps {} entries: {history:#?}", state.entries.len()))
    }
}

#[test]
fn whatever_happens_the_first_values_come_back() {
    // NARROWS_SCHEDULES=100000 for more.
    let many = std::env::var("NARROWS_SCHEDULES").ok().and_then(|number| number.parse().ok()).unwrap_or(10_000);
    for seed in 0..many {
        if let Err(why) = run(seed) {
            panic!("schedule {seed}: {why}");
        }
    }
}
