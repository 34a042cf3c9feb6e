//! The flags that describe a TCP load, the same words in every command.

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use narrows_model::load::tcp::{Application, Limit, TcpPlan, ZeroCopy};
use narrows_model::{Direction, words::units};
use std::time::Duration;

pub(crate) fn bps(word: &str) -> Result<u64, String> {
    units::parse_bps(word).map_err(|error| error.to_string())
}

pub(crate) fn size(word: &str) -> Result<u64, String> {
    units::parse_size(word).map_err(|error| error.to_string())
}

pub(crate) fn duration(word: &str) -> Result<Duration, String> {
    units::parse_duration(word).map_err(|error| error.to_string())
}

/// Which way the data goes.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum DirectionWord {
    /// Client to server
    Up,
    /// Server to client
    Down,
    /// Both at once
    Both,
}

impl From<DirectionWord> for Direction {
    fn from(word: DirectionWord) -> Self {
        match word {
            DirectionWord::Up => Self::Up,
            DirectionWord::Down => Self::Down,
            DirectionWord::Both => Self::Both,
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ZeroCopyWord {
    /// What helps on this kernel
    Auto,
    /// Send pages by reference
    On,
    /// Copy from a user buffer
    Off,
}

impl From<ZeroCopyWord> for ZeroCopy {
    fn from(word: ZeroCopyWord) -> Self {
        match word {
            ZeroCopyWord::Auto => Self::Auto,
            ZeroCopyWord::On => Self::On,
            ZeroCopyWord::Off => Self::Off,
        }
    }
}

/// A TCP load.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    /// Which way the data goes
    #[arg(long, short = 'd', value_enum, default_value = "up")]
    direction: DirectionWord,
    /// Connections in each direction
    #[arg(long, short = 'P', default_value_t = 1, value_name = "N")]
    streams: u32,
    /// How long the load lasts
    #[arg(long, short = 't', value_parser = duration, value_name = "TIME", conflicts_with = "bytes")]
    duration: Option<Duration>,
    /// Send so many bytes on each stream instead
    #[arg(long, short = 'n', value_parser = size, value_name = "SIZE")]
    bytes: Option<u64>,
    /// Leave the first part out of the summary
    #[arg(long, short = 'O', value_parser = duration, value_name = "TIME")]
    omit: Option<Duration>,
    /// Time between samples
    #[arg(long, short = 'i', value_parser = duration, value_name = "TIME")]
    interval: Option<Duration>,
    /// Bytes handed to the kernel in one call
    #[arg(long, short = 'l', value_parser = size, value_name = "SIZE", default_value = "128k")]
    size: u64,
    /// Fix the send buffer of the sending sockets (SO_SNDBUF)
    #[arg(long, value_parser = size, value_name = "SIZE")]
    send_buffer: Option<u64>,
    /// Fix the receive buffer of the receiving sockets (SO_RCVBUF)
    #[arg(long, value_parser = size, value_name = "SIZE")]
    receive_buffer: Option<u64>,
    /// Congestion control of the sending sockets, such as cubic or bbr
    #[arg(long, short = 'C', value_name = "NAME")]
    congestion_control: Option<String>,
    /// Largest segment (TCP_MAXSEG)
    #[arg(long, short = 'M', value_name = "BYTES")]
    mss: Option<u16>,
    /// DSCP of the packets, 0 to 63
    #[arg(long, default_value_t = 0, value_name = "N")]
    dscp: u8,
    /// Send small writes at once (TCP_NODELAY)
    #[arg(long, short = 'N')]
    no_delay: bool,
    /// Cap on the rate of each socket (SO_MAX_PACING_RATE)
    #[arg(long, value_parser = bps, value_name = "RATE")]
    pacing_rate: Option<u64>,
    /// How the sender hands its bytes over
    #[arg(long, value_enum, default_value = "auto")]
    zero_copy: ZeroCopyWord,
    /// Imitate an application that writes no faster than this
    #[arg(long, value_parser = bps, value_name = "RATE")]
    app_write_rate: Option<u64>,
    /// Imitate an application that reads no faster than this
    #[arg(long, value_parser = bps, value_name = "RATE")]
    app_read_rate: Option<u64>,
    /// Imitate an application that computes so many microseconds on each MiB before it writes it
    #[arg(long, value_name = "US", default_value_t = 0)]
    app_write_cpu: u32,
    /// Imitate an application that computes so many microseconds on each MiB after it read it
    #[arg(long, value_name = "US", default_value_t = 0)]
    app_read_cpu: u32,
}

/// What a command takes where the user gave no time.
pub(crate) struct Defaults {
    pub(crate) duration_ms: u64,
    pub(crate) omit_ms: u64,
    pub(crate) interval_ms: u64,
}

pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn whole(what: &str, bytes: Option<u64>) -> Result<Option<u32>, Failure> {
    bytes
        .map(|n| u32::try_from(n).map_err(|_| Failure::usage(format!("a {what} of {n} bytes is too large"))))
        .transpose()
}

impl LoadArgs {
    /// Whether the user gave a time.
    pub(crate) const fn has_duration(&self) -> bool {
        self.duration.is_some()
    }

    /// The plan, resolved and checked.
    pub(crate) fn plan(&self, defaults: &Defaults) -> Result<TcpPlan, Failure> {
        let limit = match self.bytes {
            Some(bytes) => Limit::BytesPerStream(bytes),
            None => Limit::DurationMs(self.duration.map_or(defaults.duration_ms, millis)),
        };
        let omit_ms = self.omit.map_or_else(
            || match (self.bytes, self.duration) {
                (Some(_), _) => 0,
                // A short load keeps the proportion of the default one.
                (None, Some(given)) => (millis(given) * defaults.omit_ms / defaults.duration_ms).min(defaults.omit_ms),
                (None, None) => defaults.omit_ms,
            },
            millis,
        );
        let plan = TcpPlan {
            streams: self.streams,
            direction: self.direction.into(),
            limit,
            omit_ms,
            interval_ms: self.interval.map_or(defaults.interval_ms, millis),
            message_bytes: whole("message", Some(self.size))?.unwrap_or(u32::MAX),
            send_buffer_bytes: whole("send buffer", self.send_buffer)?,
            receive_buffer_bytes: whole("receive buffer", self.receive_buffer)?,
            congestion_control: self.congestion_control.clone(),
            mss_bytes: self.mss,
            dscp: self.dscp,
            no_delay: self.no_delay,
            pacing_bps: self.pacing_rate,
            zero_copy: self.zero_copy.into(),
            awake: false,
            application: Application {
                write_bps: self.app_write_rate.unwrap_or(0),
                read_bps: self.app_read_rate.unwrap_or(0),
                write_cpu_us_per_mib: self.app_write_cpu,
                read_cpu_us_per_mib: self.app_read_cpu,
            },
        };
        plan.check().map_err(Failure::usage)?;
        Ok(plan)
    }
}
