//! How a stream ended, and which of the ends deserve a remark.

use crate::common::timing::Timing;
use std::io;

/// Why a data thread stopped moving data.
#[derive(Debug)]
pub(super) enum Outcome {
    /// As planned: the time was up, or all bytes were moved.
    Complete,
    /// By the stop flag.
    Stopped,
    /// The peer closed its side (receiver: end of data).
    Closed,
    /// The connection broke.
    Broken(io::Error),
    /// No data moved for this time, seconds.
    Stalled(u64),
    /// All was sent, but the last bytes were never acknowledged.
    Unacknowledged(u32),
}

impl Outcome {
    /// The remark on a sending stream, if it deserves one.
    pub(super) fn remark_on_sender(&self, stream: u32, timing: Timing) -> Option<String> {
        let when = timing.when();
        match self {
            Self::Complete | Self::Stopped => None,
            Self::Closed | Self::Broken(_) if timing.in_time() => None,
            Self::Closed => Some(format!("stream {stream}: the peer closed the connection {when}")),
            Self::Broken(error) => Some(format!("stream {stream}: lost the peer {when}: {error}")),
            Self::Stalled(seconds) => {
                Some(format!("stream {stream}: gave up {when}: the connection took no byte for {seconds} s"))
            }
            Self::Unacknowledged(bytes) => {
                Some(format!("stream {stream}: gave up {when}: the last {bytes} bytes were never acknowledged"))
            }
        }
    }

    /// The remark on a receiving stream, if it deserves one.
    pub(super) fn remark_on_receiver(&self, stream: u32, timing: Timing) -> Option<String> {
        let when = timing.when();
        match self {
            Self::Complete | Self::Stopped | Self::Unacknowledged(_) => None,
            // Without a planned time a complete stream ends with the end of data: the byte counts show whether it was complete.
            Self::Closed if timing.end_us.is_none() => None,
            // A sender closes abortively when its time is up.
            Self::Closed | Self::Broken(_) if timing.in_time() => None,
            Self::Closed => Some(format!("stream {stream}: lost the peer: its data ended {when}")),
            Self::Broken(error) => Some(format!("stream {stream}: lost the peer {when}: {error}")),
            Self::Stalled(seconds) => Some(format!("stream {stream}: gave up {when}: no byte came for {seconds} s")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reset() -> Outcome {
        Outcome::Broken(io::Error::from_raw_os_error(104))
    }

    #[test]
    fn a_reset_at_the_planned_end_is_no_loss() {
        for ended_us in [9_100_000, 10_000_000, 11_000_000] {
            let timing = Timing { end_us: Some(10_000_000), ended_us };
            assert_eq!(reset().remark_on_receiver(0, timing), None);
            assert_eq!(reset().remark_on_sender(0, timing), None);
            assert_eq!(Outcome::Closed.remark_on_receiver(0, timing), None);
        }
    }

    #[test]
    fn a_reset_before_it_is_a_lost_peer() {
        let timing = Timing { end_us: Some(10_000_000), ended_us: 2_345_000 };
        let remark = reset().remark_on_receiver(3, timing).unwrap();
        assert!(remark.starts_with("stream 3: lost the peer after 2.35 s of 10.00 s: Connection reset"), "{remark}");
        assert!(Outcome::Closed.remark_on_receiver(0, timing).is_some());
        assert_eq!(Outcome::Stopped.remark_on_sender(0, timing), None);
        // A short trial has a short slack.
        let timing = Timing { end_us: Some(400_000), ended_us: 200_000 };
        assert!(reset().remark_on_receiver(0, timing).is_some());
    }

    #[test]
    fn the_end_of_data_completes_a_stream_of_bytes() {
        let timing = Timing { end_us: None, ended_us: 5 };
        assert_eq!(Outcome::Closed.remark_on_receiver(0, timing), None);
        assert!(reset().remark_on_receiver(0, timing).is_some());
    }
}
