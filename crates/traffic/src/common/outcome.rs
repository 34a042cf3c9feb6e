//! How a stream ended, compared with the plan, and which of the ends deserve a remark.

use std::io;
use std::time::Duration;

/// Why a data thread stopped.
#[derive(Debug)]
pub(crate) enum Outcome {
    Complete,
    /// By the stop flag.
    Stopped,
    /// The peer closed the connection, or its side of it.
    Closed,
    Broken(io::Error),
    /// The peer cannot be reached any more; why.
    Lost(String),
    /// The stream cannot continue; why.
    GaveUp(String),
    /// The stream ended, and something is missing.
    Incomplete(String),
}

/// What the record says about a stream that ended.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Remarks {
    pub(crate) remarks: Vec<String>,
    /// Said unless the user stopped the trial: the peer was lost too early.
    pub(crate) loss: Option<String>,
}

impl Outcome {
    /// The remark on a stream, if it deserves one. `closed`: what a connection that the peer closed means on this end.
    ///
    /// A sender closes when its time is up, so a peer that is gone about then is not lost.
    pub(crate) fn remarks(&self, stream: u32, timing: Timing, closed: &str) -> Remarks {
        let when = timing.when();
        let (text, is_loss) = match self {
            Self::Complete | Self::Stopped => return Remarks::default(),
            Self::Closed => (format!("{closed} {when}"), true),
            Self::Broken(error) => (format!("lost the peer {when}: {error}"), true),
            Self::Lost(why) => (format!("gave up {when}: {why}"), true),
            Self::GaveUp(why) => (format!("gave up {when}: {why}"), false),
            Self::Incomplete(what) => (what.clone(), false),
        };
        let text = format!("stream {stream}: {text}");
        if is_loss {
            Remarks { loss: (!timing.in_time()).then_some(text), remarks: Vec::new() }
        } else {
            Remarks { remarks: vec![text], loss: None }
        }
    }
}

/// The end of one stream and its planned end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// Planned end in microseconds since the start; `None` where bytes end the trial.
    pub(crate) end_us: Option<u64>,
    /// When the stream ended.
    pub(crate) ended_us: u64,
}

impl Timing {
    /// The clocks of the two ends start about a round-trip time apart: an end that came this much early is still in time.
    const SLACK_US: u64 = 1_000_000;

    /// End of a stream's data, before it waited for an answer or stragglers: never before the planned end, up to which
    /// the stream counts.
    pub(crate) fn data_over_us(self, waited: Duration) -> u64 {
        let over_us = self.ended_us.saturating_sub(u64::try_from(waited.as_micros()).unwrap_or(u64::MAX));
        over_us.max(self.end_us.unwrap_or(u64::MAX)).min(self.ended_us)
    }

    fn in_time(self) -> bool {
        self.end_us.is_some_and(|end| self.ended_us >= end - Self::SLACK_US.min(end / 4))
    }

    /// `after 2.35 s of 10.00 s`, for a remark.
    fn when(self) -> String {
        let seconds = |us: u64| us as f64 / 1e6;
        match self.end_us {
            Some(end) => format!("after {:.2} s of {:.2} s", seconds(self.ended_us), seconds(end)),
            None => format!("after {:.2} s", seconds(self.ended_us)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOSED: &str = "lost the peer: its data ended";

    fn reset() -> Outcome {
        Outcome::Broken(io::Error::from_raw_os_error(104))
    }

    #[test]
    fn a_peer_that_is_gone_at_the_planned_end_is_no_loss() {
        for ended_us in [9_100_000, 10_000_000, 11_000_000] {
            let timing = Timing { end_us: Some(10_000_000), ended_us };
            for outcome in [reset(), Outcome::Closed, Outcome::Lost("a closed port".to_owned())] {
                assert_eq!(outcome.remarks(0, timing, CLOSED), Remarks::default());
            }
            let missing = Outcome::Incomplete("2 requests were not answered".to_owned());
            assert_eq!(missing.remarks(0, timing, CLOSED).remarks, ["stream 0: 2 requests were not answered"]);
        }
    }

    #[test]
    fn the_wait_after_the_data_is_no_part_of_it() {
        let over = |ended_us, waited_ms| {
            Timing { end_us: Some(3_000_000), ended_us }.data_over_us(Duration::from_millis(waited_ms))
        };
        assert_eq!(over(3_270_000, 220), 3_050_000, "a queue that drained");
        assert_eq!(over(3_270_000, 2_000), 3_000_000, "an outage at the end is part of the trial");
        assert_eq!(over(1_500_000, 300), 1_500_000, "stopped");
        assert_eq!(Timing { end_us: None, ended_us: 5 }.data_over_us(Duration::ZERO), 5);
    }

    #[test]
    fn a_peer_that_is_gone_before_it_is_lost() {
        let timing = Timing { end_us: Some(10_000_000), ended_us: 2_345_000 };
        let remark = reset().remarks(3, timing, CLOSED).loss.unwrap();
        assert!(remark.starts_with("stream 3: lost the peer after 2.35 s of 10.00 s: Connection reset"), "{remark}");
        let remark = Outcome::Closed.remarks(3, timing, CLOSED).loss.unwrap();
        assert_eq!(remark, "stream 3: lost the peer: its data ended after 2.35 s of 10.00 s");
        assert_eq!(Outcome::Stopped.remarks(0, timing, CLOSED), Remarks::default());
        // A short trial has a short slack.
        let timing = Timing { end_us: Some(400_000), ended_us: 200_000 };
        assert!(reset().remarks(0, timing, CLOSED).loss.is_some());
        // Bytes have no planned end.
        assert!(reset().remarks(0, Timing { end_us: None, ended_us: 5 }, CLOSED).loss.is_some());
    }
}
