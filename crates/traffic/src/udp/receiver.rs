//! A receiving stream: its loop, and what it leaves behind.

use super::counters::Counters;
use super::outcome::Outcome;
use super::receiving::Receiving;
use super::stream::UdpStream;
use crate::common::threads::Control;
use narrows_model::{Place, UdpPlan, UdpReceived};
use narrows_sys::{tcp, thread};
use std::time::Instant;

/// Everything a receiving thread needs.
pub(crate) struct Receiver<'a> {
    pub(crate) stream: &'a UdpStream,
    pub(crate) plan: &'a UdpPlan,
    pub(crate) place: Place,
    pub(crate) counters: &'a Counters,
    pub(crate) control: &'a Control<'a>,
}

/// What a receiving stream leaves behind.
pub(crate) struct Received {
    pub(crate) received: UdpReceived,
    /// The largest that arrived.
    pub(crate) datagram_bytes: Option<u32>,
    pub(crate) method: &'static str,
    pub(crate) remark: Option<String>,
}

impl Receiver<'_> {
    /// Receives until the sender's end message, or until none can be expected any more; `moving` is called with the first datagram.
    pub(crate) fn run(&self, moving: impl FnOnce(Instant)) -> (Outcome, Received) {
        thread::exact_timers();
        let own = &self.stream.socket;
        let mut receiving = Receiving::new(self);
        let outcome = match receiving.prepare() {
            Ok(()) => receiving.take_all(moving),
            Err(error) => Outcome::Broken(error),
        };
        // The socket was made for this trial: whatever it dropped was of this trial.
        let drops = tcp::memory(own).map(|memory| u64::from(memory.drops)).ok();
        (outcome, receiving.finish(drops))
    }

    pub(super) fn is_over(&self) -> bool {
        self.control.is_over()
    }
}
