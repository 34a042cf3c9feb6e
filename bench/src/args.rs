//! The command line.

use crate::tools::{Mode, Way};
use clap::{Parser, ValueEnum, value_parser};
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Goodput and CPU per byte of TCP
    Tcp,
    /// The highest UDP rate without loss, and what it costs to receive
    Udp,
    /// How evenly UDP leaves
    Pacing,
    /// Raw frames: the highest rate, and pacing
    Frames,
    /// All, one after another
    All,
}

/// Measures narrows against its peers
#[derive(Debug, Parser)]
#[command(name = "narrows-bench")]
pub(crate) struct Args {
    /// Which measurements
    #[arg(value_enum, default_value = "all")]
    pub(crate) part: Part,
    /// The program under test
    #[arg(long, value_name = "PATH", default_value = "target/release/narrows")]
    pub(crate) narrows: PathBuf,
    /// Another build of it, to compare with: without overflow checks, or of another commit
    #[arg(long, value_name = "PATH")]
    pub(crate) other: Option<PathBuf>,
    /// A peer; a name is searched in PATH
    #[arg(long, value_name = "PATH", default_value = "iperf3")]
    pub(crate) iperf3: PathBuf,
    /// The same
    #[arg(long, value_name = "PATH", default_value = "iperf")]
    pub(crate) iperf: PathBuf,
    /// The same
    #[arg(long, value_name = "PATH", default_value = "nuttcp")]
    pub(crate) nuttcp: PathBuf,
    /// The same
    #[arg(long, value_name = "PATH", default_value = "xfr")]
    pub(crate) xfr: PathBuf,
    /// The same
    #[arg(long, value_name = "PATH", default_value = "trafgen")]
    pub(crate) trafgen: PathBuf,
    /// The same
    #[arg(long, value_name = "PATH", default_value = "xdp-trafficgen")]
    pub(crate) xdp_trafficgen: PathBuf,
    /// Interleaved rounds; in each, every tool runs once [default: 10, of frames 5; quick 3]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Length of one measurement [default: 5, of frames 10; quick 2]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..=3600))]
    seconds: Option<u32>,
    /// What the ends of TCP loads do with each byte, each measured separately
    #[arg(long, value_delimiter = ',', value_enum, default_value = "usual,copying,uncopied")]
    pub(crate) modes: Vec<Mode>,
    /// Directions of TCP loads, each measured separately
    #[arg(long, value_delimiter = ',', value_enum, default_value = "up")]
    pub(crate) ways: Vec<Way>,
    /// The congestion control of both ends (of the route, so that it is that of every tool)
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    pub(crate) congestion_control: String,
    /// Numbers of TCP streams, each measured separately
    #[arg(long, value_delimiter = ',', default_value = "1,2,8", value_parser = value_parser!(u32).range(1..=128))]
    pub(crate) streams: Vec<u32>,
    /// UDP payload sizes, each measured separately: from the header of each tool to what a packet of 1500 bytes carries
    #[arg(long, value_delimiter = ',', default_value = "1448,64", value_parser = value_parser!(u32).range(64..=1472))]
    pub(crate) sizes: Vec<u32>,
    /// A shorter, coarser measurement
    #[arg(long)]
    pub(crate) quick: bool,
    /// The JSON output file
    #[arg(long, value_name = "PATH", default_value = "target/bench.json")]
    pub(crate) output: PathBuf,
}

impl Args {
    pub(crate) fn rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 3 } else { 10 })
    }

    pub(crate) fn seconds(&self) -> u32 {
        self.seconds.unwrap_or(if self.quick { 2 } else { 5 })
    }

    pub(crate) fn frame_rounds(&self) -> u32 {
        self.rounds.unwrap_or(if self.quick { 3 } else { 5 })
    }

    pub(crate) fn frame_seconds(&self) -> u32 {
        self.seconds.unwrap_or(if self.quick { 2 } else { 10 })
    }

    /// Whether a measurement is selected.
    pub(crate) fn wants(&self, part: Part) -> bool {
        self.part == part || self.part == Part::All
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Args, String> {
        Args::try_parse_from(["narrows-bench"].into_iter().chain(words.split_whitespace())).map_err(|it| it.to_string())
    }

    #[test]
    fn arguments_are_parsed() {
        let args = parse("udp --rounds 3 --streams 1,4 --sizes 512 --xfr /opt/xfr").expect("good words");
        assert_eq!((args.rounds(), args.streams.as_slice(), args.seconds()), (3, [1, 4].as_slice(), 5));
        assert_eq!((args.sizes.as_slice(), args.xfr.clone()), ([512].as_slice(), PathBuf::from("/opt/xfr")));
        assert!(args.wants(Part::Udp) && !args.wants(Part::Tcp));
    }

    #[test]
    fn quick_is_shorter_unless_the_length_is_given() {
        let lengths =
            |words| parse(words).map(|args| (args.rounds(), args.seconds(), args.frame_rounds(), args.frame_seconds()));
        assert_eq!(lengths("--quick"), Ok((3, 2, 3, 2)));
        assert_eq!(lengths("--seconds 4 --quick"), Ok((3, 4, 3, 4)));
        assert_eq!(lengths("frames"), Ok((10, 5, 5, 10)));
        assert_eq!(lengths("--rounds 7"), Ok((7, 5, 7, 10)));
    }

    #[test]
    fn an_invalid_argument_is_named() {
        for words in ["--rounds 0", "--streams 1,x", "--seconds", "--colour red", "sctp", "--sizes 20"] {
            let sentence = parse(words).expect_err(words);
            assert!(sentence.contains(words.split(' ').next().expect(words)), "{sentence}");
        }
    }
}
