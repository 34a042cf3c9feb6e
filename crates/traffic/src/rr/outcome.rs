//! How a stream of transactions ended, what it leaves, and which of the ends deserve a remark.

use crate::common::timing::Timing;
use narrows_stats::Histogram;
use std::io;

/// Why a stream ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// As planned.
    Complete,
    /// By the stop flag.
    Stopped,
    /// The peer closed the connection.
    Closed,
    /// The connection or socket broke.
    Broken(io::Error),
    /// The number of answers that had not come when the grace time was over.
    Unanswered(u64),
    /// The peer sent more or other data than requested.
    Garbage(String),
    /// The stream cannot continue; why.
    GaveUp(String),
}

impl Outcome {
    /// Whether the peer is gone: a remark, unless the trial was stopped.
    pub(crate) const fn is_loss(&self) -> bool {
        matches!(self, Self::Closed | Self::Broken(_) | Self::GaveUp(_))
    }

    /// The remark on a stream, if it deserves one.
    pub(crate) fn remark(&self, stream: u32, timing: Timing, requests: bool) -> Option<String> {
        let when = timing.when();
        match self {
            Self::Complete | Self::Stopped => None,
            // A requester that is done closes; one whose peer closes at the end may have a last request on its way.
            Self::Closed | Self::Broken(_) | Self::GaveUp(_) if timing.in_time() => None,
            Self::Closed if requests => {
                Some(format!("stream {stream}: lost the peer: it closed the connection {when}"))
            }
            Self::Closed => Some(format!("stream {stream}: lost the peer: its requests ended {when}")),
            Self::Broken(error) => Some(format!("stream {stream}: lost the peer {when}: {error}")),
            Self::Unanswered(count) => Some(format!(
                "stream {stream}: {count} requests were not answered within {} s after the end",
                crate::common::limits::GRACE.as_secs()
            )),
            Self::Garbage(what) => Some(format!("stream {stream}: gave up {when}: {what}")),
            Self::GaveUp(why) => Some(format!("stream {stream}: gave up {when}: {why}")),
        }
    }
}

/// What a stream's thread leaves.
#[derive(Debug)]
pub(crate) struct Leaves {
    pub(crate) outcome: Outcome,
    pub(crate) latency: Histogram,
    /// Empty unless each transaction has a connection of its own.
    pub(crate) connect: Histogram,
    /// This end's address, where the stream found it out.
    pub(crate) local: Option<String>,
    /// What went otherwise than planned without ending the stream, without the stream's name.
    pub(crate) notes: Vec<String>,
}

impl Leaves {
    /// Of a stream that took no latencies.
    pub(crate) const fn of(outcome: Outcome, notes: Vec<String>) -> Self {
        Self { outcome, latency: Histogram::new(), connect: Histogram::new(), local: None, notes }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_leaves_early_is_a_loss_and_at_the_end_it_is_not() {
        let early = Timing { end_us: Some(10_000_000), ended_us: 2_345_000 };
        let remark = Outcome::Closed.remark(3, early, true).unwrap();
        assert_eq!(remark, "stream 3: lost the peer: it closed the connection after 2.35 s of 10.00 s");
        let at_the_end = Timing { end_us: Some(10_000_000), ended_us: 9_900_000 };
        assert_eq!(Outcome::Closed.remark(3, at_the_end, true), None);
        assert_eq!(Outcome::Closed.remark(3, at_the_end, false), None);
        assert!(Outcome::Unanswered(2).remark(0, at_the_end, true).unwrap().contains("2 requests were not answered"));
    }
}
