//! Shares of the sender's time, from the limited-time counters of TCP (`net/ipv4/tcp.c`, `tcp_get_info_chrono_stats`).
//!
//! `busy` CONTAINS the time limited by the receive window and by the send buffer. They tick in jiffies.

use narrows_model::load::tcp::{TcpSample, TcpStreamRecord};

/// Fractions of the counted time, over all streams of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Shares {
    /// Data was there to send.
    pub busy: f64,
    /// Of the counted time (not of `busy`): held back by the receiver's window.
    pub receive_window: f64,
    /// Of the counted time: held back by the send buffer.
    pub send_buffer: f64,
    /// Of the counted time: samples that found the sender repairing loss (recovery or timeout).
    pub recovery: f64,
}

impl Shares {
    /// The shares between the first and the last sample of each stream.
    pub(super) fn of<'a>(streams: impl Iterator<Item = &'a [TcpSample]>) -> Option<Self> {
        let (mut sum, mut elapsed_us) = (Self::default(), 0.0);
        let (mut repairing, mut sampled) = (0_usize, 0_usize);
        for samples in streams {
            let (first, last) = (samples.first()?, samples.last()?);
            let span = last.at_us.checked_sub(first.at_us).filter(|&us| us > 0)?;
            let grew = |of: fn(&TcpSample) -> Option<u64>| Some(of(last)?.saturating_sub(of(first)?) as f64);
            sum.busy += grew(|sample| sample.tcp.busy_time_us)?;
            sum.receive_window += grew(|sample| sample.tcp.rwnd_limited_us)?;
            sum.send_buffer += grew(|sample| sample.tcp.sndbuf_limited_us)?;
            {
                elapsed_us += span as f64;
            }
            sampled += samples.len();
            repairing += samples.iter().filter(|sample| sample.tcp.ca_state.is_some_and(|state| state >= 3)).count();
        }
        if elapsed_us <= 0.0 {
            return None;
        }
        let recovery = repairing as f64 / sampled.max(1) as f64;
        Some(Self {
            busy: (sum.busy / elapsed_us).min(1.0),
            receive_window: (sum.receive_window / elapsed_us).min(1.0),
            send_buffer: (sum.send_buffer / elapsed_us).min(1.0),
            recovery,
        })
    }
}

/// What had arrived by each sample of the first second: seconds since the start, and bits of all streams.
pub(super) fn early(got: &[(&TcpStreamRecord, &[TcpSample])]) -> Vec<(f64, f64)> {
    let samples = got.iter().map(|(_, samples)| samples.len()).min().unwrap_or(0);
    let sum = |at: usize| got.iter().map(|(_, samples)| samples[at].bytes as f64 * 8.0).sum::<f64>();
    let at_s = |at: usize| got.iter().map(|(_, samples)| samples[at].at_us).max().unwrap_or(0) as f64 / 1e6;
    (0..samples).map(|at| (at_s(at), sum(at))).take_while(|(at_s, _)| *at_s <= 1.0).collect()
}

/// Samples count where they are a majority, for what the clock leaves: both may be full at once, and it gives the time to one.
pub(super) fn held(limited_time: f64, sampled: Option<f64>, other_time: f64) -> f64 {
    limited_time.max(sampled.filter(|share| *share > 0.5).unwrap_or(0.0).min(1.0 - other_time))
}
