//! Rates. Their short letter is that of iperf3.

use super::values::{bps, rate};
use clap::Args;
use narrows_model::UdpRate;

const SHORT: char = 'b';

/// The rate of a UDP load.
#[derive(Debug, Args)]
pub(crate) struct RateArg {
    /// UDP rate per direction: 100M (payload), 50kpps (datagrams) or max
    #[arg(long, short = SHORT, value_parser = rate, value_name = "RATE", default_value = "1M")]
    pub(crate) rate: UdpRate,
}

/// The rate of raw frames. What a share of the line is shows when the link is known, so the word is kept.
#[derive(Debug, Args)]
pub(crate) struct FrameRateArg {
    /// Offered load: 1.2Mpps, 9.4G (bit/s on the wire), 50% (of line rate) or max
    #[arg(long, short = SHORT, short_alias = 'r', value_name = "RATE", default_value = "max")]
    pub(crate) rate: String,
}

/// The rate of transactions.
#[derive(Debug, Args)]
pub(crate) struct TransactionRateArg {
    /// Transactions per second, all streams (default: as fast as possible)
    #[arg(long, short = SHORT, value_name = "N")]
    pub(crate) rate: Option<f64>,
}

/// The rate of an emulated path.
#[derive(Debug, Args)]
pub(crate) struct PathRateArg {
    /// Rate on the wire, in bit/s
    #[arg(long, short = SHORT, value_parser = bps, value_name = "RATE")]
    pub(crate) rate: Option<u64>,
}

/// The speed of a link.
#[derive(Debug, Args)]
pub(crate) struct LinkSpeedArg {
    /// Link speed, if the interface does not report it
    #[arg(long, alias = "link", value_parser = bps, value_name = "RATE", hide_short_help = true)]
    pub(crate) link_speed: Option<u64>,
}
