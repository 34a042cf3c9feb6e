//! The command line.

use std::path::PathBuf;

/// What to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Goodput and CPU per byte of TCP.
    Tcp,
    /// The highest UDP rate without loss, and what it costs to receive.
    Udp,
    /// How evenly UDP leaves.
    Pacing,
    /// Raw frames: the highest rate, and pacing.
    Frames,
    /// All, one after another.
    All,
}

/// What to measure, and with which programs.
pub(crate) struct Args {
    /// Which measurements.
    pub(crate) part: Part,
    /// The program under test.
    pub(crate) narrows: PathBuf,
    /// Peers: a name is searched in PATH.
    pub(crate) iperf3: PathBuf,
    /// As `iperf3`.
    pub(crate) iperf: PathBuf,
    /// As `iperf3`.
    pub(crate) nuttcp: PathBuf,
    /// As `iperf3`.
    pub(crate) xfr: PathBuf,
    /// As `iperf3`.
    pub(crate) trafgen: PathBuf,
    /// As `iperf3`.
    pub(crate) xdp_trafficgen: PathBuf,
    /// Interleaved rounds; in each, every tool runs once.
    pub(crate) rounds: usize,
    /// Length of one measurement.
    pub(crate) seconds: u32,
    /// Rounds of the frame measurements.
    pub(crate) frame_rounds: usize,
    /// Length of one frame measurement.
    pub(crate) frame_seconds: u32,
    /// Numbers of TCP streams, each measured separately.
    pub(crate) streams: Vec<u32>,
    /// UDP payload sizes, each measured separately.
    pub(crate) sizes: Vec<u32>,
    /// A shorter, coarser measurement.
    pub(crate) quick: bool,
    /// The JSON output file.
    pub(crate) output: PathBuf,
}

const USAGE: &str = "usage: narrows-bench [tcp|udp|pacing|frames|all] [--narrows PATH] [--iperf3 PATH] [--iperf PATH] \
                     [--nuttcp PATH] [--xfr PATH] [--trafgen PATH] [--xdp-trafficgen PATH] [--rounds 10, frames 5] \
                     [--seconds 5, frames 10] [--streams 1,2] [--sizes 1448,64] [--quick] [--output target/bench.json]";

impl Args {
    /// Parses the command line, with the defaults of `make bench`.
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = Self {
            part: Part::All,
            narrows: "target/release/narrows".into(),
            iperf3: "iperf3".into(),
            iperf: "iperf".into(),
            nuttcp: "nuttcp".into(),
            xfr: "xfr".into(),
            trafgen: "trafgen".into(),
            xdp_trafficgen: "xdp-trafficgen".into(),
            rounds: 10,
            seconds: 5,
            frame_rounds: 5,
            frame_seconds: 10,
            streams: vec![1, 2],
            sizes: vec![1448, 64],
            quick: false,
            output: "target/bench.json".into(),
        };
        let (mut rounds, mut seconds) = (None, None);
        let mut words = words;
        while let Some(flag) = words.next() {
            match flag.as_str() {
                "tcp" => args.part = Part::Tcp,
                "udp" => args.part = Part::Udp,
                "pacing" => args.part = Part::Pacing,
                "frames" => args.part = Part::Frames,
                "all" => args.part = Part::All,
                "--quick" => args.quick = true,
                _ => {
                    let value = words.next().ok_or_else(|| format!("{flag} is unknown or needs a value; {USAGE}"))?;
                    let bad = || format!("`{value}` does not suit {flag}; {USAGE}");
                    match flag.as_str() {
                        "--narrows" => args.narrows = value.into(),
                        "--iperf3" => args.iperf3 = value.into(),
                        "--iperf" => args.iperf = value.into(),
                        "--nuttcp" => args.nuttcp = value.into(),
                        "--xfr" => args.xfr = value.into(),
                        "--trafgen" => args.trafgen = value.into(),
                        "--xdp-trafficgen" => args.xdp_trafficgen = value.into(),
                        "--output" => args.output = value.into(),
                        "--rounds" => {
                            rounds = Some(value.parse().ok().filter(|n| (1..=1000).contains(n)).ok_or_else(bad)?);
                        }
                        "--seconds" => {
                            seconds = Some(value.parse().ok().filter(|n| (1..=3600).contains(n)).ok_or_else(bad)?);
                        }
                        "--streams" => args.streams = list(&value, 1, 128).ok_or_else(bad)?,
                        // The smallest that holds the header of each tool, the largest that a
                        // packet of 1500 bytes carries.
                        "--sizes" => args.sizes = list(&value, 64, 1472).ok_or_else(bad)?,
                        _ => return Err(format!("`{flag}` is unknown; {USAGE}")),
                    }
                }
            }
        }
        let quick = args.quick;
        args.rounds = rounds.unwrap_or(if quick { 3 } else { args.rounds });
        args.seconds = seconds.unwrap_or(if quick { 2 } else { args.seconds });
        args.frame_rounds = rounds.unwrap_or(if quick { 3 } else { args.frame_rounds });
        args.frame_seconds = seconds.unwrap_or(if quick { 2 } else { args.frame_seconds });
        Ok(args)
    }

    /// Whether a measurement is selected.
    pub(crate) fn wants(&self, part: Part) -> bool {
        self.part == part || self.part == Part::All
    }
}

/// Comma-separated numbers within bounds.
fn list(value: &str, least: u32, most: u32) -> Option<Vec<u32>> {
    value.split(',').map(|word| word.parse().ok().filter(|n| (least..=most).contains(n))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Args, String> {
        Args::parse(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_are_parsed() {
        let args = parse("udp --rounds 3 --streams 1,4 --sizes 512 --xfr /opt/xfr").expect("good words");
        assert_eq!((args.rounds, args.streams.as_slice(), args.seconds), (3, [1, 4].as_slice(), 5));
        assert_eq!((args.sizes.as_slice(), args.xfr.clone()), ([512].as_slice(), PathBuf::from("/opt/xfr")));
        assert!(args.wants(Part::Udp) && !args.wants(Part::Tcp));
    }

    #[test]
    fn quick_is_shorter_unless_the_length_is_given() {
        let lengths =
            |words| parse(words).map(|args| (args.rounds, args.seconds, args.frame_rounds, args.frame_seconds));
        assert_eq!(lengths("--quick"), Ok((3, 2, 3, 2)));
        assert_eq!(lengths("--seconds 4 --quick"), Ok((3, 4, 3, 4)));
        assert_eq!(lengths("frames"), Ok((10, 5, 5, 10)));
        assert_eq!(lengths("--rounds 7"), Ok((7, 5, 7, 10)));
    }

    #[test]
    fn an_invalid_argument_is_named() {
        for words in ["--rounds 0", "--streams 1,x", "--seconds", "--colour red", "sctp", "--sizes 20"] {
            let sentence = parse(words).err().expect(words);
            assert!(sentence.contains("usage"), "{sentence}");
        }
    }
}
