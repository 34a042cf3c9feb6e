//! Outcomes that the controller has not acknowledged, on disk: neither it nor the agent may be there for days.

use narrows_fleet::protocol::{OUTCOMES_MAX, Outcome, Ticket};
use narrows_sys::files;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Outcomes that are kept; then the oldest are given up.
const KEPT_MAX: usize = 20_000;
/// Of one.
const OUTCOME_MAX_BYTES: u64 = 1 << 20;

pub(super) struct Spool {
    directory: PathBuf,
    /// By the names of their files, which are in the order of time.
    waiting: BTreeMap<u64, Outcome>,
    next: u64,
    /// Why the last one could not be written.
    pub(super) trouble: Option<String>,
    /// Whether the disk took the last one.
    pub(super) is_kept: bool,
}

impl Spool {
    /// Opens it with what an earlier agent left there. Files that are none are removed.
    /// Errors: the directory cannot be made.
    pub(super) fn open(directory: PathBuf) -> Result<Self, String> {
        files::make_directory(&directory).map_err(|error| error.to_string())?;
        let names = files::list(&directory).map_err(|error| error.to_string())?;
        let mut waiting = BTreeMap::new();
        for name in names {
            let file = directory.join(&name);
            let number = name.strip_suffix(".json").and_then(|it| it.parse().ok());
            let read = || serde_json::from_slice(&files::read(&file, OUTCOME_MAX_BYTES).ok()?).ok();
            match number.and_then(|number: u64| Some((number, read()?))) {
                Some((number, outcome)) => _ = waiting.insert(number, outcome),
                None => _ = files::remove(&file),
            }
        }
        let next = waiting.keys().next_back().map_or(0, |last| last + 1);
        Ok(Self { directory, waiting, next, trouble: None, is_kept: true })
    }

    /// Those that wait longest.
    pub(super) fn first(&self) -> Vec<Outcome> {
        self.waiting.values().take(OUTCOMES_MAX).cloned().collect()
    }

    pub(super) fn tickets(&self) -> impl Iterator<Item = &Ticket> {
        self.waiting.values().map(|outcome| &outcome.ticket)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Keeps an outcome; where the disk does not take it, in memory.
    pub(super) fn put(&mut self, outcome: Outcome) {
        let number = self.next;
        self.next += 1;
        let bytes = serde_json::to_vec(&outcome).unwrap_or_default();
        let file = self.file(number);
        self.trouble = files::write_whole(&file, &bytes, 0o600).err().map(|error| error.to_string());
        self.is_kept = self.trouble.is_none();
        self.waiting.insert(number, outcome);
        while self.waiting.len() > KEPT_MAX
            && let Some((oldest, _)) = self.waiting.pop_first()
        {
            let _ = files::remove(&self.file(oldest));
        }
    }

    /// Forgets what was acknowledged.
    pub(super) fn taken(&mut self, tickets: &[Ticket]) {
        let is_taken = |(number, outcome): (&u64, &Outcome)| tickets.contains(&outcome.ticket).then_some(*number);
        let numbers: Vec<u64> = self.waiting.iter().filter_map(is_taken).collect();
        for number in numbers {
            self.waiting.remove(&number);
            let _ = files::remove(&self.file(number));
        }
    }

    fn file(&self, number: u64) -> PathBuf {
        self.directory.join(format!("{number}.json"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_fleet::protocol::Found;
    use narrows_model::run::mesh::MeshState;

    fn outcome(slot: u64) -> Outcome {
        let [mesh, test, from, to] = ["m", "t", "a", "b"].map(str::to_owned);
        let ticket = Ticket { mesh, test, slot, from, to, fence: 1 };
        Outcome { ticket, found: Found::Load(MeshState::Failed("why".to_owned())) }
    }

    #[test]
    fn what_is_not_acknowledged_is_there_after_a_restart_in_its_order() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = place.path().join("spool");
        let mut spool = Spool::open(directory.clone()).expect("a spool");
        (0..12).for_each(|slot| spool.put(outcome(slot)));
        spool.taken(&[outcome(3).ticket, outcome(99).ticket]);
        files::write_whole(&directory.join("13.json"), b"{\"half", 0o600).expect("written");
        drop(spool);
        let mut spool = Spool::open(directory.clone()).expect("a spool");
        let slots: Vec<u64> = spool.first().iter().map(|it| it.ticket.slot).collect();
        assert_eq!(slots, [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]);
        spool.put(outcome(12));
        assert_eq!(spool.first().last().map(|it| it.ticket.slot), Some(12));
        let all: Vec<Ticket> = spool.tickets().cloned().collect();
        spool.taken(&all);
        assert!(spool.is_empty() && files::list(&directory).expect("listed").is_empty());
    }

    #[test]
    fn a_disk_that_takes_nothing_loses_nothing_while_the_agent_lives() {
        let place = tempfile::tempdir().expect("a directory");
        let directory = place.path().join("spool");
        let mut spool = Spool::open(directory.clone()).expect("a spool");
        files::remove_tree(&directory).expect("removed");
        spool.put(outcome(1));
        assert!(spool.trouble.is_some() && spool.first().len() == 1);
    }
}
