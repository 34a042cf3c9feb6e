//! The flags that loads have in common, whatever carries them.

use super::size::SizeArg;
use super::time::{DurationArg, IntervalArg, OmitArg};
use super::values::{plan_bytes, size};
use super::words;
use crate::failure::Failure;
use clap::Args;
use narrows_model::Direction;

words! {
    /// Direction of the data.
    DirectionWord for Direction {
        /// Client to server
        Up,
        /// Server to client
        Down,
        /// Both ways
        Both,
    }
}

/// Direction of the data.
#[derive(Debug, Args)]
pub(crate) struct DirectionArg {
    /// Direction of the data
    #[arg(long, short = 'd', value_enum, default_value = "up")]
    direction: DirectionWord,
    /// Same as --direction down, as in iperf3
    #[arg(long, short = 'R', conflicts_with = "direction", hide_short_help = true)]
    reverse: bool,
    /// Same as --direction both, as in iperf3
    #[arg(long, conflicts_with_all = ["direction", "reverse"], hide_short_help = true)]
    bidir: bool,
}

/// Directions that are measured one after the other.
#[derive(Debug, Args)]
pub(crate) struct DirectionListArg {
    /// Directions of the data, comma-separated
    #[arg(long, short = 'd', value_enum, value_delimiter = ',', value_name = "DIRECTIONS", default_value = "up,down")]
    pub(crate) direction: Vec<DirectionWord>,
}

/// How many streams.
#[derive(Debug, Args)]
pub(crate) struct StreamsArg {
    /// Streams in each direction
    #[arg(long, short = 'P', default_value_t = 1, value_name = "N")]
    pub(crate) streams: u32,
}

/// Options of the sockets.
#[derive(Debug, Args)]
pub(crate) struct SocketArgs {
    /// Send buffer of the sender, in bytes (SO_SNDBUF)
    #[arg(long, value_parser = size, value_name = "SIZE", hide_short_help = true)]
    send_buffer: Option<u64>,
    /// Receive buffer of the receiver, in bytes (SO_RCVBUF)
    #[arg(long, value_parser = size, value_name = "SIZE", hide_short_help = true)]
    receive_buffer: Option<u64>,
    /// Same as --send-buffer and --receive-buffer, as in iperf3
    #[arg(
        long,
        short = 'w',
        value_parser = size,
        value_name = "SIZE",
        conflicts_with_all = ["send_buffer", "receive_buffer"],
        hide_short_help = true
    )]
    window: Option<u64>,
    /// DSCP of the packets, 0 to 63
    #[arg(long, default_value_t = 0, value_name = "N", hide_short_help = true)]
    pub(crate) dscp: u8,
}

/// The seed of what is random.
#[derive(Debug, Args)]
pub(crate) struct SeedArg {
    /// Random seed
    #[arg(long, default_value_t = 1, value_name = "N", hide_short_help = true)]
    pub(crate) seed: u64,
}

/// A load over sockets.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    pub(crate) direction: DirectionArg,
    #[command(flatten)]
    pub(crate) streams: StreamsArg,
    #[command(flatten)]
    pub(crate) duration: DurationArg,
    #[command(flatten)]
    pub(crate) omit: OmitArg,
    #[command(flatten)]
    pub(crate) interval: IntervalArg,
    #[command(flatten)]
    pub(crate) size: SizeArg,
    #[command(flatten)]
    pub(crate) sockets: SocketArgs,
}

impl DirectionArg {
    pub(crate) fn direction(&self) -> Direction {
        match (self.reverse, self.bidir) {
            (true, _) => Direction::Down,
            (_, true) => Direction::Both,
            _ => self.direction.into(),
        }
    }

    /// The one direction of a command that cannot have both. `what`: `a diagnosis`.
    pub(crate) fn one(&self, what: &str) -> Result<Direction, Failure> {
        match self.direction() {
            Direction::Both => {
                Err(Failure::usage(format!("{what} looks at one direction at a time: choose --direction up or down")))
            }
            one => Ok(one),
        }
    }
}

impl SocketArgs {
    pub(crate) fn send_buffer_bytes(&self) -> Result<Option<u32>, Failure> {
        self.send_buffer.or(self.window).map(|bytes| plan_bytes("send buffer", bytes)).transpose()
    }

    pub(crate) fn receive_buffer_bytes(&self) -> Result<Option<u32>, Failure> {
        self.receive_buffer.or(self.window).map(|bytes| plan_bytes("receive buffer", bytes)).transpose()
    }
}
