//! Spellings of before. Most are hidden aliases beside their flags; here are those that an alias cannot express: a flag that took a
//! value which has a flag of its own today.

use super::values::rate;
use std::ffi::OsString;

struct Split {
    command: &'static str,
    flag: &'static str,
    /// Whether a word is such a value.
    is_value: fn(&str) -> bool,
    value_flag: &'static str,
}

const SPLITS: [Split; 2] = [
    Split { command: "diagnose", flag: "--udp", is_value: |word| rate(word).is_ok(), value_flag: "--rate" },
    Split { command: "generate", flag: "--random", is_value: |word| word.parse::<u64>().is_ok(), value_flag: "--seed" },
];

/// The arguments in today's spelling: `diagnose HOST --udp 500M` is `diagnose HOST --udp --rate 500M`.
pub(crate) fn respelled(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::new();
    for argument in arguments {
        let word = argument.to_str().unwrap_or_default();
        let split = SPLITS.iter().find(|split| out.get(1).is_some_and(|command| command == split.command));
        let Some(split) = split else {
            out.push(argument);
            continue;
        };
        if let Some(value) = word.strip_prefix(split.flag).and_then(|rest| rest.strip_prefix('='))
            && (split.is_value)(value)
        {
            out.extend([split.flag, split.value_flag, value].map(OsString::from));
            continue;
        }
        if out.last().is_some_and(|last| last == split.flag) && (split.is_value)(word) {
            out.push(split.value_flag.into());
        }
        out.push(argument);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser as _;

    /// What a command line is parsed to.
    fn parsed(line: &str) -> String {
        let words = line.split_whitespace().map(OsString::from);
        match Cli::try_parse_from(respelled(words)) {
            Ok(cli) => format!("{cli:?}"),
            Err(error) => panic!("{line}: {error}"),
        }
    }

    #[test]
    fn every_old_spelling_means_what_its_new_one_means() {
        for (old, new) in [
            ("narrows diagnose h --udp 500M", "narrows diagnose h --udp --rate 500M"),
            ("narrows diagnose --udp=50kpps h", "narrows diagnose h --udp -b 50kpps"),
            ("narrows diagnose h --udp max --datagram 1200", "narrows diagnose h --udp -b max --size 1200"),
            (
                "narrows diagnose h --udp 1M --datagram imix --fragments",
                "narrows diagnose h --udp -b 1M -l imix --fragments",
            ),
            ("narrows generate eth1 -r 1Mpps", "narrows generate eth1 --rate 1Mpps"),
            ("narrows generate eth1 -r 50%", "narrows generate eth1 -b 50%"),
            ("narrows generate eth1 --link 10G", "narrows generate eth1 --link-speed 10G"),
            ("narrows generate eth1 --random 7", "narrows generate eth1 --random --seed 7"),
            ("narrows generate eth1 --random", "narrows generate eth1 --random --seed 1"),
            ("narrows generate eth1 --make-up 20ms", "narrows generate eth1 --max-catch-up 20ms"),
            ("narrows search h --trial 2s", "narrows search h --duration 2s"),
            ("narrows search h --max 1G --unqualified", "narrows search h --max 1G --skip-calibration"),
            ("narrows measure udp h --segmentation off --coalescing on", "narrows measure udp h --gso off --gro on"),
            ("narrows search h --width 0.5 --step 5", "narrows search h --width 0.5% --step 5%"),
        ] {
            assert_eq!(parsed(old), parsed(new), "{old}");
        }
    }

    #[test]
    fn other_words_stay_as_they_are() {
        for line in [
            "narrows measure rr max --udp",
            "narrows diagnose --udp server",
            "narrows lab exec lab h narrows diagnose --udp 1M",
        ] {
            let words = || line.split(' ').map(OsString::from);
            assert_eq!(respelled(words()), words().collect::<Vec<_>>());
        }
    }
}
