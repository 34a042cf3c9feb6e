//! Values as the user writes them: the parsers of `narrows_model::words::units` in the form that clap takes.

use crate::failure::Failure;
use narrows_model::UdpRate;
use narrows_model::words::units::{self, BareShare, Rate};
use std::time::Duration;

/// Bits per second: `100M`, `9.4G`.
pub(crate) fn bps(word: &str) -> Result<u64, String> {
    units::parse_bps(word).map_err(|error| error.to_string())
}

/// The rate of a UDP load: payload as `100M`, datagrams as `50kpps`, or `max`.
pub(crate) fn rate(word: &str) -> Result<UdpRate, String> {
    if word == "max" {
        return Ok(UdpRate::Max);
    }
    #[allow(clippy::cast_precision_loss)] // up to 2^53, as it was read
    match units::parse_rate(word).map_err(|error| error.to_string())? {
        Rate::Bits(bps) => Ok(UdpRate::Bps(bps)),
        Rate::Packets(pps) => Ok(UdpRate::Pps(pps as f64)),
    }
}

/// Bytes: `64`, `9k`, `4M`.
pub(crate) fn size(word: &str) -> Result<u64, String> {
    units::parse_size(word).map_err(|error| error.to_string())
}

/// `10s`, `250ms`, `2m`.
pub(crate) fn duration(word: &str) -> Result<Duration, String> {
    units::parse_duration(word).map_err(|error| error.to_string())
}

/// `1%` or `0.01`, as a ratio.
pub(crate) fn ratio(word: &str) -> Result<f64, String> {
    units::parse_share(word, BareShare::Ratio).map_err(|error| error.to_string())
}

/// `0.5%` or `0.5`, as a ratio.
pub(crate) fn percent(word: &str) -> Result<f64, String> {
    units::parse_share(word, BareShare::Percent).map_err(|error| error.to_string())
}

/// Whole milliseconds.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// Bytes as plans hold them. `what`: `message`, `send buffer`.
pub(crate) fn plan_bytes(what: &str, bytes: u64) -> Result<u32, Failure> {
    u32::try_from(bytes).map_err(|_| Failure::usage(format!("a {what} of {bytes} bytes is too large")))
}
