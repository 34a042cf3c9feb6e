//! The flags that describe a UDP load, the same words in every command.

use super::load::{DirectionWord, duration, millis, size};
use crate::failure::Failure;
use clap::{Args, ValueEnum};
use narrows_model::words::units::{self, Rate};
use narrows_model::{Batching, DatagramSizes, Family, UdpPlan, UdpRate};
use std::time::Duration;

/// A load: bits a second of UDP payload, datagrams a second, or as much as goes.
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

/// Sizes as the user writes them: `largest`, a size, a list of sizes, `imix`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SizesWord {
    Largest,
    List(Vec<u32>),
    Imix,
}

pub(crate) fn sizes(word: &str) -> Result<SizesWord, String> {
    match word {
        "largest" => Ok(SizesWord::Largest),
        "imix" => Ok(SizesWord::Imix),
        list => list
            .split(',')
            .map(|one| {
                let bytes = size(one.trim())?;
                u32::try_from(bytes).map_err(|_| format!("a datagram of {bytes} bytes is too large"))
            })
            .collect::<Result<Vec<u32>, String>>()
            .map(SizesWord::List),
    }
}

impl SizesWord {
    /// The datagrams of a family. The mix is 7 frames of 64 bytes, 4 of 570, 1 of 1518 (with FCS), evenly interleaved; where
    /// a frame is too small for the probe's header, the smallest that carries it is sent.
    pub(crate) fn datagrams(&self, family: Family) -> DatagramSizes {
        const FRAMES: [u32; 12] = [64, 570, 64, 64, 570, 64, 1518, 64, 570, 64, 64, 570];
        match self {
            Self::Largest => DatagramSizes::Largest,
            Self::List(sizes) => DatagramSizes::Sequence(sizes.clone()),
            Self::Imix => {
                // Ethernet's header and FCS, IP's header, UDP's header.
                let overhead = 18 + family.header_bytes() + 8;
                let payload = |frame: &u32| frame.saturating_sub(overhead).max(UdpPlan::LEAST_BYTES);
                DatagramSizes::Sequence(FRAMES.iter().map(payload).collect())
            }
        }
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum BatchingWord {
    /// As rate, size and kernel suggest
    Auto,
    /// Always
    On,
    /// Each datagram by itself
    Off,
}

impl From<BatchingWord> for Batching {
    fn from(word: BatchingWord) -> Self {
        match word {
            BatchingWord::Auto => Self::Auto,
            BatchingWord::On => Self::On,
            BatchingWord::Off => Self::Off,
        }
    }
}

/// A UDP load.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
pub(crate) struct UdpLoadArgs {
    /// Which way the data goes
    #[arg(long, short = 'd', value_enum, default_value = "up")]
    direction: DirectionWord,
    /// Rate of a direction, all streams together: UDP payload as 100M, datagrams as 50kpps, or max
    #[arg(long, short = 'b', value_parser = rate, value_name = "RATE", default_value = "1M")]
    rate: UdpRate,
    /// Another rate for what goes down
    #[arg(long, value_parser = rate, value_name = "RATE")]
    rate_down: Option<UdpRate>,
    /// UDP payload of a datagram: the largest that the path carries in one piece, a size, a list such as 64,512,1400, or imix
    #[arg(long, short = 'l', value_parser = sizes, value_name = "SIZES", default_value = "largest")]
    size: SizesWord,
    /// Streams in each direction
    #[arg(long, short = 'P', default_value_t = 1, value_name = "N")]
    streams: u32,
    /// How long the load lasts
    #[arg(long, short = 't', value_parser = duration, value_name = "TIME", default_value = "10s")]
    duration: Duration,
    /// Leave the first part out of the interval summary
    #[arg(long, short = 'O', value_parser = duration, value_name = "TIME")]
    omit: Option<Duration>,
    /// Time between samples
    #[arg(long, short = 'i', value_parser = duration, value_name = "TIME", default_value = "1s")]
    interval: Duration,
    /// The most datagrams that leave back to back
    #[arg(long, value_name = "N")]
    burst: Option<u32>,
    /// Send buffer of the sending sockets (SO_SNDBUF)
    #[arg(long, value_parser = size, value_name = "SIZE")]
    send_buffer: Option<u64>,
    /// Receive buffer of the receiving sockets (SO_RCVBUF)
    #[arg(long, value_parser = size, value_name = "SIZE")]
    receive_buffer: Option<u64>,
    /// DSCP of the packets, 0 to 63
    #[arg(long, default_value_t = 0, value_name = "N")]
    dscp: u8,
    /// Hand batches to the kernel as one (UDP_SEGMENT)
    #[arg(long, value_enum, default_value = "auto")]
    segmentation: BatchingWord,
    /// Take batches from the kernel as one (UDP_GRO)
    #[arg(long, value_enum, default_value = "auto")]
    coalescing: BatchingWord,
    /// Let datagrams above the path MTU be cut into fragments
    #[arg(long)]
    fragments: bool,
}

pub(super) fn buffer(what: &str, bytes: Option<u64>) -> Result<Option<u32>, Failure> {
    bytes
        .map(|n| u32::try_from(n).map_err(|_| Failure::usage(format!("a {what} of {n} bytes is too large"))))
        .transpose()
}

impl UdpLoadArgs {
    /// The plan, resolved and checked. The family is known once the other end is.
    pub(crate) fn plan(&self, family: Family) -> Result<UdpPlan, Failure> {
        let plan = UdpPlan {
            streams: self.streams,
            direction: self.direction.into(),
            rate_up: self.rate,
            rate_down: self.rate_down.unwrap_or(self.rate),
            sizes: self.size.datagrams(family),
            duration_ms: millis(self.duration),
            omit_ms: self.omit.map_or(0, millis),
            interval_ms: millis(self.interval),
            burst_datagrams: self.burst,
            send_buffer_bytes: buffer("send buffer", self.send_buffer)?,
            receive_buffer_bytes: buffer("receive buffer", self.receive_buffer)?,
            dscp: self.dscp,
            segmentation: self.segmentation.into(),
            coalescing: self.coalescing.into(),
            allow_fragments: self.fragments,
        };
        plan.check().map_err(Failure::usage)?;
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_users_write_them() {
        assert_eq!(sizes("64,1k"), Ok(SizesWord::List(vec![64, 1024])));
        assert_eq!(sizes("largest"), Ok(SizesWord::Largest));
        assert!(sizes("64,,2").is_err());
        assert!(sizes("huge").is_err());
    }

    #[test]
    fn the_mix_has_its_frames() {
        let DatagramSizes::Sequence(sizes) = SizesWord::Imix.datagrams(Family::Ipv4) else { panic!("a list") };
        let count = |size| sizes.iter().filter(|s| **s == size).count();
        // 570 - 18 - 20 - 8 and 1518 - 46; a frame of 64 would carry 18 bytes, two less than the header needs.
        assert_eq!([count(20), count(524), count(1472)], [7, 4, 1]);
    }
}
