//! The streams of transactions of one end, for the sampler.

use super::answer::Answers;
use super::requester::Left;
use super::tally::Tally;
use crate::common::outcome::{Outcome, Remarks, Timing};
use crate::common::sampler::Streams;
use narrows_model::{Place, RrSample, RrStreamRecord};
use std::time::Instant;

/// See the module. The lists go by position.
pub(super) struct RrStreams<'a> {
    pub(super) place: Place,
    pub(super) records: Vec<RrStreamRecord>,
    /// What the threads count.
    pub(super) tallies: &'a [Tally],
    /// What the accept path counts, in place of threads.
    pub(super) answers: Option<&'a Answers>,
}

impl Streams for RrStreams<'_> {
    type Sample = RrSample;
    type Left = Left;

    fn sample(&self, index: usize, at_us: u64) -> RrSample {
        match self.answers {
            Some(answers) => answers.sample(index, at_us),
            None => self.tallies[index].sample(at_us, true),
        }
    }

    fn end(&mut self, index: usize, left: Left, last: &mut RrSample, timing: Timing) -> Remarks {
        let record = &mut self.records[index];
        (record.transactions, record.failures) = (last.transactions, last.failures);
        record.latency_ns = left.latency.distribution();
        if left.connect.count() > 0 {
            record.connect_ns = left.connect.distribution();
        }
        if let Some(local) = left.local {
            record.local = local;
        }
        let id = record.id;
        let closed = match self.place {
            Place::Client => "lost the peer: it closed the connection",
            _ => "lost the peer: its requests ended",
        };
        let mut remarks = left.outcome.remarks(id, timing, closed);
        remarks.remarks.extend(left.notes.into_iter().map(|note| format!("stream {id}: {note}")));
        remarks
    }

    fn arrived(&self) -> u64 {
        (0..self.records.len()).map(|index| self.sample(index, 0).transactions).sum()
    }

    fn first_arrival(&self) -> Option<Instant> {
        self.answers?.first()
    }

    fn close(&mut self) -> Vec<Left> {
        let Some(answers) = self.answers else { return Vec::new() };
        answers.close();
        for (index, record) in self.records.iter_mut().enumerate() {
            if let Some(ends) = answers.ends(index) {
                (record.local, record.remote) = ends;
            }
        }
        self.records.iter().map(|_| Left::of(Outcome::Complete, Vec::new())).collect()
    }
}
