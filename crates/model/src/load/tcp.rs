//! Plans: what will be done, resolved and bounded. A plan is made from the user's words by the runner and
//! travels to the other end as it is.

use crate::load::udp::UdpPlan;
use crate::words::place::{Direction, Flow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// When a trial ends by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// After this many milliseconds, the omitted ones included.
    DurationMs(u64),
    /// When each stream has carried this many bytes (and after [`TcpPlan::LONGEST_MS`] at the latest).
    BytesPerStream(u64),
}

/// Whether the sender avoids copying into the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
pub enum ZeroCopy {
    /// The engine decides by what helps on this kernel.
    #[default]
    Auto,
    /// Pages of a file in memory are sent by reference (`sendfile`).
    On,
    /// Plain `send` from a user buffer.
    Off,
}

/// What the receiver does with the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
pub enum Receive {
    /// The kernel discards it without a copy (`MSG_TRUNC`, tcp(7)): the cost of the path alone.
    #[default]
    Discard,
    /// It is copied to a user buffer (`recv`), as an application does.
    Copy,
}

/// An application that the engine imitates. All zero: an application that is always ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct Application {
    /// The sending application offers no more than this, over all streams of a flow; 0 = as fast as the socket takes it.
    pub write_bps: u64,
    /// The receiving application reads no more than this, over all streams of a flow; 0 = as fast as the socket gives it.
    pub read_bps: u64,
    /// CPU time that the sending application burns on each MiB before it writes it.
    pub write_cpu_us_per_mib: u32,
    /// CPU time that the receiving application burns on each MiB after it read it.
    pub read_cpu_us_per_mib: u32,
}

/// The check of a number in a plan.
///
/// # Errors
/// One sentence that names the field, its value and what is allowed.
pub(crate) fn within(name: &str, value: u64, least: u64, most: u64) -> Result<(), String> {
    if (least..=most).contains(&value) {
        Ok(())
    } else {
        Err(format!("{name} is {value}, but must be from {least} to {most}"))
    }
}

/// One TCP trial, the same words for both ends. Where a field is an `Option`, `None` means *as the kernel decides*,
/// which is itself a decision: nothing is left open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TcpPlan {
    /// Streams per flow (so `both` has twice as many connections), 1 to [`TcpPlan::MOST_STREAMS`].
    pub streams: u32,
    /// Which way the data goes.
    pub direction: Direction,
    /// When it ends.
    pub limit: Limit,
    /// The first part of the trial that no summary counts: slow start, mostly.
    pub omit_ms: u64,
    /// How often both ends take a sample (there are more and closer ones in the first 100 ms).
    pub interval_ms: u64,
    /// Bytes handed to the kernel in one call.
    pub message_bytes: u32,
    /// `SO_SNDBUF` asked for on every sending socket.
    pub send_buffer_bytes: Option<u32>,
    /// `SO_RCVBUF` asked for on every receiving socket, before the connection is made.
    pub receive_buffer_bytes: Option<u32>,
    /// `TCP_CONGESTION` on every sending socket.
    pub congestion_control: Option<String>,
    /// `TCP_MAXSEG` before the connection is made.
    pub mss_bytes: Option<u16>,
    /// DSCP of both ends, 0 to 63.
    pub dscp: u8,
    /// `TCP_NODELAY`.
    pub no_delay: bool,
    /// `SO_MAX_PACING_RATE` of each sending socket, in bits per second.
    pub pacing_bps: Option<u64>,
    /// How the sender hands its bytes over.
    pub zero_copy: ZeroCopy,
    /// What the receiver does with the data.
    #[serde(default)]
    pub receive: Receive,
    /// The application that the two ends imitate.
    pub application: Application,
    /// Both ends keep their cores awake with threads that yield to everything else. The clock tick that the kernel accounts by
    /// stands still on a core that is idle but for interrupts; on one that is awake it sees what they take.
    #[serde(default)]
    pub awake: bool,
}

impl TcpPlan {
    /// The longest trial that an end admits.
    pub const LONGEST_MS: u64 = 24 * 3600 * 1000;
    /// The most streams per flow that an end admits.
    pub const MOST_STREAMS: u32 = 128;

    /// The flows of the trial.
    #[must_use]
    pub fn flows(&self) -> &'static [Flow] {
        self.direction.flows()
    }

    /// What is wrong with the plan, if anything: the check that both ends make before they act on it.
    ///
    /// # Errors
    /// One sentence that names the field, its value and what is allowed.
    pub fn check(&self) -> Result<(), String> {
        within("streams", self.streams.into(), 1, Self::MOST_STREAMS.into())?;
        match self.limit {
            Limit::DurationMs(ms) => {
                within("duration in ms", ms, 100, Self::LONGEST_MS)?;
                if self.omit_ms >= ms {
                    return Err(format!("omit is {} ms, but the trial lasts only {ms} ms", self.omit_ms));
                }
            }
            Limit::BytesPerStream(bytes) => within("bytes per stream", bytes, 1, 1 << 50)?,
        }
        within("interval in ms", self.interval_ms, 10, 3_600_000)?;
        within("message bytes", self.message_bytes.into(), 1, 64 << 20)?;
        for (name, bytes) in [("send buffer", self.send_buffer_bytes), ("receive buffer", self.receive_buffer_bytes)] {
            if let Some(bytes) = bytes {
                within(name, bytes.into(), 1024, 1 << 30)?;
            }
        }
        if let Some(mss) = self.mss_bytes {
            within("mss", mss.into(), 88, 32_767)?;
        }
        within("dscp", self.dscp.into(), 0, 63)?;
        if let Some(name) = &self.congestion_control
            && (name.is_empty()
                || name.len() > 15
                || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-'))
        {
            return Err(format!("`{}` is no name of a congestion control", name.escape_default()));
        }
        if let Some(bps) = self.pacing_bps {
            within("pacing rate in bit/s", bps, 8_000, 1 << 50)?;
        }
        Ok(())
    }
}

impl Default for TcpPlan {
    /// One stream up for ten seconds, every other thing as the kernel decides.
    fn default() -> Self {
        Self {
            streams: 1,
            direction: Direction::Up,
            limit: Limit::DurationMs(10_000),
            omit_ms: 0,
            interval_ms: 1_000,
            message_bytes: 128 << 10,
            send_buffer_bytes: None,
            receive_buffer_bytes: None,
            congestion_control: None,
            mss_bytes: None,
            dscp: 0,
            no_delay: false,
            pacing_bps: None,
            zero_copy: ZeroCopy::Auto,
            receive: Receive::Discard,
            application: Application::default(),
            awake: false,
        }
    }
}

/// A diagnosis: the load that shows the problem, and what may be done about it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DiagnosePlan {
    /// The load under which the path is looked at; its direction is `up` or `down`, never `both`.
    pub load: TcpPlan,
    /// A load of UDP that is looked at instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<UdpPlan>,
    /// The whole diagnosis ends within this time, its experiments included.
    pub budget_ms: u64,
    /// Whether fixes are tried: applied, measured in turn with the state before, and rolled back.
    pub try_fixes: bool,
    /// Whether fixes that helped stay.
    pub keep: bool,
    /// Pairs of trials (without and with the fix) that prove a gain; at least 3.
    pub proof_pairs: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_plan_is_sound() {
        assert_eq!(TcpPlan::default().check(), Ok(()));
    }

    #[test]
    fn a_bad_plan_names_the_field_and_the_limits() {
        let plan = TcpPlan { streams: 0, ..TcpPlan::default() };
        assert_eq!(plan.check(), Err("streams is 0, but must be from 1 to 128".to_owned()));
        let plan = TcpPlan { omit_ms: 10_000, ..TcpPlan::default() };
        assert_eq!(plan.check(), Err("omit is 10000 ms, but the trial lasts only 10000 ms".to_owned()));
        let plan = TcpPlan { congestion_control: Some("a b".into()), ..TcpPlan::default() };
        assert!(plan.check().is_err());
    }
}
