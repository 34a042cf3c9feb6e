//! Writes the frames of one worker in sequence, where no XDP program does.

use super::broadcast::{BROADCAST, numbered};
use super::clock as clock_of_stamps;
use super::pace::{Pace, Share};
use super::tally::{Counts, Tally};
use narrows_model::load::frames::{BROADCAST_STREAM, GeneratePlan, Walk};
use narrows_sys::clock;
use narrows_wire::frame::{Flows, Signature, Template};
use std::sync::Arc;
use std::time::Duration;

/// The state of a worker that writes frames itself.
#[derive(Debug)]
pub(super) struct FrameWriter {
    share: Share,
    templates: Vec<Template>,
    flows: Flows,
    stamp_every: u32,
    broadcast_every: u32,
    clock: u16,
    tally: Arc<Tally>,
    /// Once it is known.
    start_ns: Option<u64>,
    pace: Pace,
    pub(super) counts: Counts,
}

impl FrameWriter {
    pub(super) fn new(plan: &GeneratePlan, share: Share, tally: Arc<Tally>) -> Self {
        Self {
            share,
            templates: plan.format.sizes.iter().map(|size| Template::build(&plan.format, *size)).collect(),
            flows: Flows::of(&plan.format),
            stamp_every: plan.stamp_every,
            broadcast_every: plan.broadcast_every,
            clock: clock_of_stamps::id(),
            tally,
            start_ns: None,
            pace: Pace::new(share),
            counts: Counts::default(),
        }
    }

    /// How many frames are due now; `None`: there will be no more.
    pub(super) fn due(&mut self, now_ns: u64) -> Option<u64> {
        let left = self.share.limit.saturating_sub(self.counts.handed);
        self.start_ns = self.start_ns.or_else(|| self.tally.asked_start());
        let Some(since) = self.start_ns.and_then(|start| now_ns.checked_sub(start)) else { return Some(0) };
        let due = self.pace.due(since, left);
        self.counts.skipped = self.pace.skipped;
        due.filter(|_| left > 0).map(|due| due.min(left))
    }

    /// Waits until shortly before the next frame is due, but no longer than a moment.
    pub(super) fn rest(&self, now_ns: u64) {
        let Some(start) = self.start_ns else {
            clock::sleep(Duration::from_micros(50));
            return;
        };
        let until_start = start.saturating_sub(now_ns);
        let wait = until_start.max(self.pace.wait_ns(now_ns.saturating_sub(start)));
        // A sleep overruns by about 60 us, so shorter waits spin.
        if wait > 200_000 {
            clock::sleep(Duration::from_nanos((wait - 100_000).min(20_000_000)));
        }
    }

    /// Writes the frame that is `ahead` of the next one; gives its length.
    pub(super) fn write(&self, ahead: u64, now_ns: u64, into: &mut [u8]) -> usize {
        let sequence = self.counts.handed + ahead;
        let template = &self.templates[(sequence % self.templates.len() as u64) as usize];
        let length = template.bytes.len().min(into.len());
        let head = template.head_bytes().min(length);
        into[..head].copy_from_slice(&template.bytes[..head]);
        let stamped = self.stamp_every > 0 && sequence.is_multiple_of(u64::from(self.stamp_every));
        let time = if stamped { Signature::stamp(now_ns) } else { 0 };
        let (number, to_all) = numbered(sequence, self.broadcast_every);
        let flow = match self.flows.walk {
            Walk::Odometer => self.flows.nth(self.share.flows.0 + number % self.share.flows.1.max(1)),
            Walk::Random { .. } => self.flows.at(number),
        };
        let stream = if to_all { BROADCAST_STREAM } else { self.share.stream };
        let signature = Signature { stream, clock: self.clock, sequence: number, time };
        template.write_flow(&mut into[..length], &flow, &signature);
        if to_all && let Some(destination) = into[..length].first_chunk_mut() {
            *destination = BROADCAST;
        }
        length
    }

    /// This many frames were handed over.
    pub(super) const fn sent(&mut self, frames: u64, now_ns: u64) {
        if frames == 0 {
            return;
        }
        self.pace.left(frames);
        self.counts.handed += frames;
        if self.counts.first_ns == 0 {
            self.counts.first_ns = now_ns;
        }
        self.counts.last_ns = now_ns;
    }
}
