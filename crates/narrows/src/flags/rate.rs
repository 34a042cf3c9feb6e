//! Rates. Their short letter is that of iperf3.

use super::values::{bps, rate};
use clap::Args;
use narrows_model::UdpRate;

const SHORT: char = 'b';

/// The rate of a UDP load.
#[derive(Debug, Args)]
pub(crate) struct RateArg {
    /// UDP rate per direction, all streams: 100M, 50kpps, max
    #[arg(long, short = SHORT, value_parser = rate, value_name = "RATE", default_value = "1M")]
    pub(crate) rate: UdpRate,
}

/// The rate of raw frames. What a share of the line is shows when the link is known, so the word is kept.
#[derive(Debug, Args)]
pub(crate) struct FrameRateArg {
    /// Load over all workers: 1.2Mpps, 9.4G (bit/s on the wire), 50% (of the line rate), max
    #[arg(long, short = SHORT, short_alias = 'r', value_name = "RATE", default_value = "max")]
    pub(crate) rate: String,
}

/// The rate of transactions.
#[derive(Debug, Args)]
pub(crate) struct TransactionRateArg {
    /// Transactions a second over all streams; without it the next one as soon as one is done
    #[arg(long, short = SHORT, value_name = "N")]
    pub(crate) rate: Option<f64>,
}

/// The rate of an emulated path.
#[derive(Debug, Args)]
pub(crate) struct PathRateArg {
    /// Bits per second on the wire, 38 bytes of Ethernet counted with each packet
    #[arg(long, short = SHORT, value_parser = bps, value_name = "RATE")]
    pub(crate) rate: Option<u64>,
}

/// The speed of a link.
#[derive(Debug, Args)]
pub(crate) struct LinkSpeedArg {
    /// Speed of the link, where the device does not tell it
    #[arg(long, alias = "link", value_parser = bps, value_name = "RATE", hide_short_help = true)]
    pub(crate) link_speed: Option<u64>,
}
