//! Sizes: of messages, datagrams and frames.

use super::values::{plan_bytes, size};
use crate::failure::Failure;
use clap::Args;
use narrows_model::load::frame_words::parse_sizes;
use narrows_model::{DatagramSizes, Family, TcpPlan, UdpPlan};

const SHORT: char = 'l';

/// The sizes of a load over sockets.
#[derive(Debug, Args)]
pub(crate) struct SizeArg {
    /// UDP payload size, in bytes: largest (unfragmented), a list such as 64,1400, or imix
    #[arg(long, short = SHORT, value_parser = sizes, value_name = "SIZES", default_value = "largest")]
    pub(crate) size: Sizes,
}

/// Sizes that are measured one after the other.
#[derive(Debug, Args)]
pub(crate) struct SizeListArg {
    /// Datagram payload or TCP message sizes, in bytes, comma-separated
    #[arg(
        long,
        hide_default_value = true,
        short = SHORT,
        value_parser = size,
        value_delimiter = ',',
        value_name = "SIZES",
        default_value = "64,128,256,512,1024,1280,1448,2048,4096,8192,8948"
    )]
    pub(crate) size: Vec<u64>,
}

/// The sizes of raw frames.
#[derive(Debug, Args)]
pub(crate) struct FrameSizeArg {
    /// Frame sizes with FCS, in bytes: a list, imix, imix:7x64,4x570,1x1518 or genome:abfg (default: smallest)
    #[arg(long, short = SHORT, value_name = "SIZES")]
    pub(crate) size: Option<String>,
}

/// Frame sizes of which each has a row of its own.
#[derive(Debug, Args)]
pub(crate) struct FrameSizeListArg {
    /// Frame sizes with FCS, in bytes, 64 to 9216, comma-separated
    #[arg(
        long,
        short = SHORT,
        value_parser = frame_size,
        value_delimiter = ',',
        default_value = "64,128,256,512,1024,1280,1518,9216",
        value_name = "SIZES"
    )]
    pub(crate) size: Vec<u32>,
}

/// Sizes as the user writes them: `largest`, a size, a list of sizes, or a mix of frames.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Sizes {
    /// Of TCP: as fast loads need it.
    Auto,
    Largest,
    List(Vec<u64>),
    /// Sizes of frames with FCS, of which the payloads are sent.
    Frames(Vec<u32>),
}

fn sizes(word: &str) -> Result<Sizes, String> {
    match word {
        "auto" => Ok(Sizes::Auto),
        "largest" => Ok(Sizes::Largest),
        mix if mix == "imix" || mix.starts_with("imix:") || mix.starts_with("genome:") => {
            parse_sizes(mix).map(Sizes::Frames).map_err(|error| error.to_string())
        }
        list => {
            let sizes: Result<_, _> = list.split(',').map(|one| size(one.trim())).collect();
            sizes.map(Sizes::List).map_err(|error| error.to_string())
        }
    }
}

fn frame_size(word: &str) -> Result<u32, String> {
    match parse_sizes(word).map_err(|error| error.to_string())?[..] {
        [size] => Ok(size),
        _ => Err(format!("`{word}` is a mix; write a list of sizes, such as 64,570,1518")),
    }
}

impl Sizes {
    /// The payloads of datagrams. Where a frame of a mix is too small for the probe's header, the smallest datagram that carries
    /// it is sent.
    pub(crate) fn datagrams(&self, family: Family) -> Result<DatagramSizes, Failure> {
        Ok(match self {
            Self::Auto | Self::Largest => DatagramSizes::Largest,
            Self::List(sizes) => DatagramSizes::Sequence(
                sizes.iter().map(|bytes| plan_bytes("datagram", *bytes)).collect::<Result<_, _>>()?,
            ),
            Self::Frames(frames) => {
                // The headers of Ethernet with its FCS, of IP and of UDP.
                let overhead = 18 + family.header_bytes() + 8;
                let payload = |frame: &u32| frame.saturating_sub(overhead).max(UdpPlan::MIN_BYTES);
                DatagramSizes::Sequence(frames.iter().map(payload).collect())
            }
        })
    }

    /// The bytes of a message of TCP, and whether they were chosen.
    pub(crate) fn message_bytes(&self) -> Result<(u32, bool), Failure> {
        match self {
            Self::Auto => Ok((TcpPlan::default().message_bytes, false)),
            Self::List(sizes) if sizes.len() == 1 => plan_bytes("message", sizes[0]).map(|bytes| (bytes, true)),
            _ => Err(Failure::usage("a TCP load has one message size; write one, such as --size 128k")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_users_write_them() {
        assert_eq!(sizes("64,1k"), Ok(Sizes::List(vec![64, 1024])));
        assert_eq!(sizes("largest"), Ok(Sizes::Largest));
        assert_eq!(sizes("genome:ab"), Ok(Sizes::Frames(vec![64, 128])));
        assert!(sizes("64,,2").is_err());
        assert!(sizes("huge").is_err());
        assert!(sizes("64,128").is_ok_and(|list| list.message_bytes().is_err()));
        let of = |word| sizes(word).expect("a size").message_bytes().expect("one size");
        assert_eq!((of("auto"), of("128k")), ((128 << 10, false), (128 << 10, true)));
    }

    #[test]
    fn the_mix_has_its_frames() {
        let mix = sizes("imix").expect("a mix").datagrams(Family::Ipv4).expect("sizes");
        let DatagramSizes::Sequence(sizes) = mix else { panic!("a list") };
        let count = |size| sizes.iter().filter(|s| **s == size).count();
        // 570 - 18 - 20 - 8 and 1518 - 46; a frame of 64 would carry 18 bytes, two less than the header needs.
        assert_eq!([count(20), count(524), count(1472)], [7, 4, 1]);
    }
}
