//! The words of the command line.

use std::path::PathBuf;

/// What to measure, and with which programs.
pub(crate) struct Args {
    /// The program under test.
    pub(crate) narrows: PathBuf,
    /// Peers: a name is looked for on the PATH.
    pub(crate) iperf3: PathBuf,
    /// As `iperf3`.
    pub(crate) xfr: PathBuf,
    /// Interleaved rounds; in each, every tool runs once.
    pub(crate) rounds: usize,
    /// Length of one measurement.
    pub(crate) seconds: u32,
    /// Numbers of streams, each measured by itself.
    pub(crate) streams: Vec<u32>,
    /// Where the JSON goes.
    pub(crate) output: PathBuf,
}

const USAGE: &str = "usage: narrows-bench [--narrows PATH] [--iperf3 PATH] [--xfr PATH] [--rounds 10] [--seconds 5] \
                     [--streams 1,2] [--output target/bench.json]";

impl Args {
    /// Reads the words, with the defaults of `make bench`.
    pub(crate) fn parse(words: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut args = Self {
            narrows: "target/release/narrows".into(),
            iperf3: "iperf3".into(),
            xfr: "xfr".into(),
            rounds: 10,
            seconds: 5,
            streams: vec![1, 2],
            output: "target/bench.json".into(),
        };
        let mut words = words;
        while let Some(flag) = words.next() {
            let value = words.next().ok_or_else(|| format!("{flag} needs a value; {USAGE}"))?;
            let bad = || format!("`{value}` does not suit {flag}; {USAGE}");
            match flag.as_str() {
                "--narrows" => args.narrows = value.into(),
                "--iperf3" => args.iperf3 = value.into(),
                "--xfr" => args.xfr = value.into(),
                "--output" => args.output = value.into(),
                "--rounds" => args.rounds = value.parse().ok().filter(|n| (1..=1000).contains(n)).ok_or_else(bad)?,
                "--seconds" => args.seconds = value.parse().ok().filter(|n| (1..=3600).contains(n)).ok_or_else(bad)?,
                "--streams" => {
                    args.streams = value
                        .split(',')
                        .map(|word| word.parse().ok().filter(|n| (1..=128).contains(n)))
                        .collect::<Option<_>>()
                        .ok_or_else(bad)?;
                }
                _ => return Err(format!("`{flag}` is unknown; {USAGE}")),
            }
        }
        Ok(args)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Args, String> {
        Args::parse(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn words_become_numbers() {
        let args = parse("--rounds 3 --streams 1,4 --xfr /opt/xfr").expect("good words");
        assert_eq!((args.rounds, args.streams, args.seconds), (3, vec![1, 4], 5));
        assert_eq!(args.xfr, PathBuf::from("/opt/xfr"));
    }

    #[test]
    fn a_bad_word_is_named() {
        for words in ["--rounds 0", "--streams 1,x", "--seconds", "--colour red"] {
            let sentence = parse(words).err().expect(words);
            assert!(sentence.contains("usage"), "{sentence}");
        }
    }
}
