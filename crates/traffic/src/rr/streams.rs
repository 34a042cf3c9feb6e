//! The streams of transactions of one end, for the sampler.

use super::answer::Answers;
use super::outcome::{Leaves, Outcome};
use super::tally::Tally;
use crate::common::sampler::{EndRule, Remarks, Streams};
use crate::common::timing::Timing;
use narrows_model::{Flow, Place, RrPlan, RrSample, RrStreamRecord};
use std::time::Instant;

/// See the module. The lists go by position.
pub(super) struct RrStreams<'a> {
    pub(super) place: Place,
    pub(super) plan: &'a RrPlan,
    pub(super) records: Vec<RrStreamRecord>,
    /// What the threads count.
    pub(super) tallies: &'a [Tally],
    /// What the accept path counts, in place of threads.
    pub(super) answers: Option<&'a Answers>,
}

impl Streams for RrStreams<'_> {
    type Sample = RrSample;
    type Left = Leaves;

    fn names(&self) -> Vec<(u32, Flow)> {
        self.records.iter().map(|record| (record.id, Flow::Up)).collect()
    }

    fn sends(&self, _: usize) -> bool {
        self.place == Place::Client
    }

    fn sample(&self, index: usize, at_us: u64) -> RrSample {
        match self.answers {
            Some(answers) => answers.sample(index, at_us),
            None => self.tallies[index].sample(at_us, true),
        }
    }

    fn end(&mut self, index: usize, left: Leaves, last: &mut RrSample, timing: Timing) -> Remarks {
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
        let remark = left.outcome.remark(id, timing, self.place == Place::Client);
        let notes = left.notes.into_iter().map(|note| format!("stream {id}: {note}"));
        let (loss, remark) = if left.outcome.is_loss() { (remark, None) } else { (None, remark) };
        Remarks { remarks: remark.into_iter().chain(notes).collect(), loss }
    }

    /// A requester ends a moment after the grace by itself, and reports what is missing.
    fn rule(&self) -> EndRule {
        let server = self.place == Place::Server;
        EndRule {
            end_us: Some(self.plan.duration_ms * 1000),
            graces: if server { 1 } else { 2 },
            when_idle: server,
            after_senders: false,
        }
    }

    fn arrived(&self) -> u64 {
        (0..self.records.len()).map(|index| self.sample(index, 0).transactions).sum()
    }

    fn first_arrival(&self) -> Option<Instant> {
        self.answers?.first()
    }

    fn close(&mut self) -> Vec<Leaves> {
        let Some(answers) = self.answers else { return Vec::new() };
        answers.close();
        for (index, record) in self.records.iter_mut().enumerate() {
            if let Some(ends) = answers.ends(index) {
                (record.local, record.remote) = ends;
            }
        }
        self.records.iter().map(|_| Leaves::of(Outcome::Complete, Vec::new())).collect()
    }
}
