//! A stream whose data passes another protocol, message by message.

use super::worker::{Left, Worker};
use crate::common::connections::Layer;
use crate::common::limits::STALL;
use crate::common::outcome::Outcome;
use crate::common::sockets::waits;
use narrows_sys::clock;
use std::time::Instant;

/// Sends or receives until the trial or the data ends; calls `moving` once, with the time of the first message.
pub(super) fn run(worker: &Worker<'_>, mut layer: Box<dyn Layer>, sends: bool, moving: &dyn Fn(Instant)) -> Left {
    let (mut bytes, mut calls) = (0u64, 0u64);
    let mut moved_at = clock::now();
    let outcome = loop {
        if worker.is_over() {
            break worker.ended();
        }
        match if sends { layer.send() } else { layer.receive() } {
            // Whoever opened it says what that means.
            Ok(0) => break Outcome::Complete,
            Ok(moved) => {
                (bytes, calls) = (bytes + moved as u64, calls + 1);
                worker.counters.set(0, [bytes, calls]);
                // Where time ends it, the clock is read anyway.
                moved_at = clock::now();
                if calls == 1 {
                    moving(moved_at);
                }
            }
            Err(error) if waits(&error) => {
                if worker.total_bytes.is_some() && moved_at.elapsed() > STALL {
                    break Outcome::GaveUp(format!("no data moved for {} s", STALL.as_secs()));
                }
            }
            Err(error) => break Outcome::Broken(error),
        }
    };
    Left { outcome, method: layer.method(), layer: Some(layer) }
}
