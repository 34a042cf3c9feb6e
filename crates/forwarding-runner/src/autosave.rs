//! Saves a record while it grows, so that a crash in hour three loses minutes: after each row, and between trials every few seconds.

use narrows_forwarding::data::ForwardingRecord;
use narrows_sys::clock;
use std::time::{Duration, Instant};

/// Writes a record, whole; why it could not.
pub type Write<'a> = &'a mut dyn FnMut(&ForwardingRecord) -> Result<(), String>;

/// The shortest time between two writings within a row.
const EVERY: Duration = Duration::from_secs(5);
/// Within a row, writing takes at most one part in this many of the time.
const SHARE: u32 = 50;

pub(super) struct Autosave<'a> {
    write: Option<Write<'a>>,
    began: Instant,
    last: Instant,
    pause: Duration,
    reported: Option<String>,
}

impl<'a> Autosave<'a> {
    pub(super) fn new(write: Option<Write<'a>>) -> Self {
        let now = clock::now();
        Self { write, began: now, last: now, pause: EVERY, reported: None }
    }

    /// Whether it is time again, within a row.
    pub(super) fn is_due(&self) -> bool {
        self.write.is_some() && self.last.elapsed() >= self.pause
    }

    /// Saves the record so far, marked as partial, during `row` of `rows`. Returns a message if the write failed; the benchmark
    /// continues, and the same failure is reported once.
    pub(super) fn part(&mut self, record: &mut ForwardingRecord, row: usize, rows: usize) -> Option<String> {
        let write = self.write.as_mut()?;
        let began = clock::now();
        let whole = record.ended.is_some();
        if !whole {
            record.ended = Some(under_way(self.began.elapsed(), row, rows));
        }
        let written = write(record);
        if !whole {
            record.ended = None;
        }
        self.last = clock::now();
        self.pause = EVERY.max(began.elapsed() * SHARE);
        let failed = written.err();
        let says = failed.clone().filter(|_| failed != self.reported);
        self.reported = failed;
        says.map(|why| format!("cannot save the record: {why}; the benchmark continues"))
    }
}

/// The `ended` text of a partial record, so that a later reader knows that it is partial.
fn under_way(after: Duration, row: usize, rows: usize) -> String {
    let seconds = after.as_secs();
    format!(
        "partial record, saved {}:{:02}:{:02} after the start, in row {row} of {rows}; the benchmark was cut off or \
        is still running",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_forwarding::data::TesterMaximum;

    fn record() -> ForwardingRecord {
        let file = narrows_forwarding::plan_file::parse(include_str!("demo.toml")).expect("a plan");
        ForwardingRecord::of(file.plan)
    }

    #[test]
    fn a_part_says_that_it_is_one_and_the_record_does_not() {
        let mut kept = Vec::new();
        let mut write = |record: &ForwardingRecord| {
            kept.push(record.clone());
            Ok(())
        };
        let mut keeper = Autosave::new(Some(&mut write));
        let mut whole = record();
        assert_eq!(keeper.part(&mut whole, 2, 4), None);
        assert_eq!(whole.ended, None);
        whole.ended = Some("interrupted".to_owned());
        whole.tester.push(TesterMaximum { traffic: 0, size: Some(64), pps: 1e6, method: "loop".to_owned() });
        assert_eq!(keeper.part(&mut whole, 2, 4), None);
        let [part, last] = &kept[..] else { panic!("{kept:?}") };
        let says = part.ended.as_deref().expect("it says so");
        assert!(says.starts_with("partial record, saved 0:00:0") && says.contains("in row 2 of 4"), "{says}");
        assert_eq!(*last, whole);
    }

    #[test]
    fn a_failure_is_told_once_and_again_when_it_is_another() {
        let mut answers = ["disk full", "disk full", "", "disk full", "read-only"].into_iter();
        let mut write = |_: &ForwardingRecord| match answers.next() {
            Some("") | None => Ok(()),
            Some(why) => Err(why.to_owned()),
        };
        let mut keeper = Autosave::new(Some(&mut write));
        let mut record = record();
        let told: Vec<bool> = (0..5).map(|_| keeper.part(&mut record, 1, 1).is_some()).collect();
        assert_eq!(told, [true, false, false, true, true]);
    }

    #[test]
    fn without_a_place_nothing_is_due() {
        let mut keeper = Autosave::new(None);
        assert!(!keeper.is_due());
        assert_eq!(keeper.part(&mut record(), 1, 1), None);
    }

    #[test]
    fn hours_are_told() {
        assert!(under_way(Duration::from_secs(3 * 3600 + 62), 1, 2).contains("saved 3:01:02 after"));
    }
}
