//! Habits from iperf3 and its kind. Where a flag means the same it is a flag here as well; here are the words that mean something else,
//! and the narrows form that answers them.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, Error};
use std::error::Error as _;
use std::ffi::OsString;
use std::num::ParseIntError;

/// A flag of iperf3, or of another command, that the command does not have, and what to use instead.
const ANSWERS: &[(&[&str], &str)] = &[
    (&["-s", "--server"], "the server is `narrows serve`"),
    (&["-c", "--client"], "the server is named without a flag: `narrows measure tcp HOST`"),
    (&["-u", "--udp"], "UDP is a command of its own: `narrows measure udp HOST`"),
    (&["-D", "--daemon"], "`narrows serve` runs in the foreground; let systemd start it"),
    (&["-1", "--one-off"], "`narrows serve` runs until Ctrl-C; `ssh://HOST` starts one for a single run"),
    (&["-Z", "--zerocopy"], "only a load of TCP sends without a copy"),
    (&["-A", "--affinity"], "a load of TCP has --pin list --cpus N/M; otherwise use taskset(1)"),
    (&["-B", "--bind"], "the route decides the source address; see ip-route(8)"),
    (&["-S", "--tos"], "use --dscp N; N is a quarter of the TOS byte"),
    (&["-k", "--blockcount"], "use --bytes SIZE"),
    (&["-f"], "units are chosen by size; --format json has plain numbers"),
    (&["-V", "--verbose"], "use --full"),
    (&["--json-stream"], "use --format ndjson"),
    (&["--logfile"], "redirect standard output; --output FILE saves the run as JSON"),
    (&["--fq-rate"], "use --pacing-rate RATE"),
    (&["--connect-timeout"], "a connection is given up after 5 s"),
    (&["--get-server-output"], "both ends are always reported"),
    (
        &["-b", "--bitrate", "--bandwidth"],
        "this command chooses its rates; `narrows search` takes their limit as --max RATE",
    ),
    (&["-R", "--reverse", "--bidir"], "use --direction"),
    (&["-w", "--window"], "this command sets no socket buffers"),
    (&["-P", "--parallel"], "this command has no streams"),
    (&["-J", "--json"], "this command has no JSON form"),
    (&["-q", "--quiet"], "this command prints its result alone"),
    (&["-o", "--output"], "redirect standard output to a file"),
    (&["--html"], "a page is written by --format html, if --help lists that format"),
    (&["--csv"], "values are written by --format csv, if --help lists that format"),
    (&["--markdown", "--md"], "Markdown is written by --format markdown, if --help lists that format"),
    (
        &["--every"],
        "`narrows mesh` has it; `narrows watch` has --interval TIME, and `narrows fleet` repeats tests of many hosts",
    ),
];

/// What a command line in the form of iperf3 (`-c HOST`, `-s`, `HOST` alone) is in the form of narrows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Meant {
    /// These arguments.
    This(Vec<OsString>),
    /// It is understood, but says the same in other words: the form to use.
    Say(String),
}

/// Reads the arguments; the first one is the program.
pub(crate) fn meant(arguments: Vec<OsString>, is_host: impl Fn(&[&str]) -> bool) -> Meant {
    let words: Vec<&str> = arguments.iter().skip(1).map(|word| word.to_str().unwrap_or_default()).collect();
    let Some(first) = words.first() else { return Meant::This(arguments) };
    let is = |word: &str, names: [&str; 2]| names.contains(&word);
    let client = words.iter().position(|word| is(word, ["-c", "--client"]));
    if first.starts_with('-') && words.iter().any(|word| is(word, ["-s", "--server"])) {
        let rest = words.iter().filter(|word| !is(word, ["-s", "--server"]) && !is(word, ["-D", "--daemon"]));
        return Meant::Say(joined("narrows serve", rest));
    }
    if let (true, Some(at)) = (first.starts_with('-'), client) {
        let host = words.get(at + 1).copied().unwrap_or("HOST");
        let kind = if words.iter().any(|word| is(word, ["-u", "--udp"])) { "udp" } else { "tcp" };
        let rest =
            words.iter().enumerate().filter(|(nth, word)| *nth != at && *nth != at + 1 && !is(word, ["-u", "--udp"]));
        return Meant::Say(joined(&format!("narrows measure {kind} {host}"), rest.map(|(_, word)| word)));
    }
    match *first {
        "measure" => Meant::This(measure(&words, is_host).map_or(arguments.clone(), |words| {
            arguments[..1].iter().cloned().chain(words.into_iter().map(OsString::from)).collect()
        })),
        "help" => {
            let shown = arguments[..1].iter().chain(&arguments[2..]).cloned().chain([OsString::from("--help")]);
            Meant::This(shown.collect())
        }
        first if !first.starts_with('-') && is_host(&[first]) => {
            let mut all = arguments;
            all.insert(1, "diagnose".into());
            Meant::This(all)
        }
        _ => Meant::This(arguments),
    }
}

/// `measure [tcp|udp] [-c] HOST [-u]` with the load as a command and the host without a flag; `None` where that changes nothing.
fn measure(words: &[&str], is_host: impl Fn(&[&str]) -> bool) -> Option<Vec<String>> {
    let client = words.windows(2).position(|pair| ["-c", "--client"].contains(&pair[0]) && !pair[1].starts_with('-'));
    let mut meant: Vec<&str> =
        words.iter().enumerate().filter(|(nth, _)| Some(*nth) != client).map(|(_, word)| *word).collect();
    let second = *meant.get(1)?;
    let udp = |word: &&str| ["-u", "--udp"].contains(word);
    // Two words are a load and a host, so that the first of them is a load that was misspelt.
    let alone = meant.get(2).is_none_or(|next| next.starts_with('-'));
    let unnamed = if second.starts_with('-') { client.is_some() } else { alone && is_host(&["measure", second]) };
    if unnamed {
        meant.insert(1, if meant.iter().any(udp) { "udp" } else { "tcp" });
    }
    if meant[1] == "udp" {
        meant.retain(|word| !udp(word));
    }
    (meant != words).then(|| meant.into_iter().map(str::to_owned).collect())
}

fn joined<'a>(begin: &str, rest: impl Iterator<Item = &'a &'a str>) -> String {
    rest.fold(begin.to_owned(), |all, word| all + " " + word)
}

/// Names that many hosts have, as those of the lab, though they are nearly a command.
const HOSTS: [&str; 2] = ["server", "client"];

/// Whether the last word is the name of a host: after those before it, it is no command, and not nearly one.
pub(crate) fn is_host<C: CommandFactory>(words: &[&str]) -> bool {
    let Some((word, commands)) = words.split_last() else { return false };
    if HOSTS.contains(word) {
        return true;
    }
    let command = C::command();
    let within = commands.iter().try_fold(&command, |command, name| command.find_subcommand(name));
    if within.is_none_or(|within| within.find_subcommand(word).is_some()) {
        return false;
    }
    let refused = command.try_get_matches_from(["narrows"].iter().chain(words)).err();
    refused.is_some_and(|error| error.get(ContextKind::SuggestedSubcommand).is_none())
}

/// What to use instead of the flag or the number that was refused.
pub(crate) fn answer(error: &Error) -> Option<String> {
    let Some(ContextValue::String(flag)) = error.get(ContextKind::InvalidArg) else { return None };
    if error.source().is_some_and(<dyn std::error::Error>::is::<ParseIntError>) {
        let value = error.get(ContextKind::InvalidValue).map(ToString::to_string).unwrap_or_default();
        return Some(format!("invalid value '{value}' for '{flag}': not a whole number of 0 or more"));
    }
    if flag.starts_with("--format")
        && error.get(ContextKind::InvalidValue).is_some_and(|it| it.to_string() == "ministat")
    {
        return Some("cannot use --format ministat: `narrows compare --ministat` prints what ministat does".to_owned());
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return None;
    }
    let flag = flag.split(['=', ' ']).next()?;
    let (flags, answer) = ANSWERS.iter().find(|(flags, _)| flags.contains(&flag))?;
    // A short flag may be meant as something else: a number, or an option of another program.
    let long = flags.iter().find(|name| name.starts_with("--")).filter(|_| !flag.starts_with("--"));
    let meant = long.map_or_else(String::new, |long| format!(" ({long} of iperf3)"));
    Some(format!("cannot use {flag}{meant} here: {answer}"))
}

/// The error without clap's tip to give an unknown flag as a value behind `--`, which would make it the name of a host.
pub(crate) fn without_value_tip(mut error: Error) -> Error {
    let is_flag = |it: &ContextValue| matches!(it, ContextValue::String(flag) if flag.starts_with("--"));
    if error.kind() == ErrorKind::UnknownArgument
        && error.get(ContextKind::InvalidArg).is_some_and(is_flag)
        && let Some(ContextValue::StyledStrs(mut tips)) = error.remove(ContextKind::Suggested)
    {
        tips.retain(|tip| !tip.to_string().contains("as a value"));
        if !tips.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
        }
    }
    error
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::Parser as _;

    fn words(line: &str) -> Vec<OsString> {
        line.split_whitespace().map(OsString::from).collect()
    }

    fn of(line: &str) -> Meant {
        meant(words(line), is_host::<Cli>)
    }

    /// What a command line is parsed to.
    fn parsed(line: &str) -> String {
        let Meant::This(words) = of(line) else { panic!("{line}") };
        Cli::try_parse_from(words).map(|cli| format!("{cli:?}")).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    #[test]
    fn what_means_the_same_is_understood() {
        for (habit, ours) in [
            ("narrows db7", "narrows diagnose db7"),
            ("narrows server", "narrows diagnose server"),
            ("narrows db7 --try", "narrows diagnose db7 --try"),
            ("narrows ssh://ops@db7 -R", "narrows diagnose ssh://ops@db7 -R"),
            ("narrows 192.0.2.1:6000", "narrows diagnose 192.0.2.1:6000"),
            ("narrows measure tcp -c server -P 4 -t 5 -i 1", "narrows measure tcp server --streams 4 -t 5s -i 1s"),
            ("narrows measure udp server -b 10M -l 1200", "narrows measure udp server --rate 10M --size 1200"),
            ("narrows measure -c db7", "narrows measure tcp db7"),
            ("narrows measure -t 5 -c db7 -u", "narrows measure udp db7 -t 5s"),
            ("narrows measure db7", "narrows measure tcp db7"),
            ("narrows measure udp db7 -u", "narrows measure udp db7"),
        ] {
            assert_eq!(parsed(habit), parsed(ours), "{habit}");
        }
    }

    #[test]
    fn the_form_of_iperf3_is_answered_with_ours() {
        for (habit, ours) in [
            ("narrows -s", "narrows serve"),
            ("narrows -s -D -p 6000", "narrows serve -p 6000"),
            ("narrows -c server", "narrows measure tcp server"),
            ("narrows -c server -u -b 10M -R", "narrows measure udp server -b 10M -R"),
            ("narrows -R -c server -J", "narrows measure tcp server -R -J"),
            ("narrows -u -c", "narrows measure udp HOST"),
        ] {
            assert_eq!(of(habit), Meant::Say(ours.to_owned()));
        }
    }

    #[test]
    fn commands_and_what_is_nearly_one_are_no_hosts() {
        for line in [
            "narrows", "narrows list causes", "narrows --version", "narrows diagnos server", "narrows mesure tcp h",
            "narrows measure tpc h", "narrows measure --help", "narrows measure",
        ] {
            assert_eq!(of(line), Meant::This(words(line)));
        }
        assert_eq!(of("narrows help measure tcp"), Meant::This(words("narrows measure tcp --help")));
    }

    #[test]
    fn every_answer_is_reached_by_a_flag_that_some_command_does_not_have() {
        let refused = |line: &str| answer(&Cli::parsed(words(line)).expect_err(line));
        for (line, begin) in [
            ("narrows measure tcp h -u", "cannot use -u (--udp of iperf3) here: UDP is a command of its own"),
            ("narrows measure udp h -Z", "cannot use -Z (--zerocopy of iperf3) here: only a load of TCP"),
            ("narrows measure tcp h -B 10.0.0.1", "cannot use -B (--bind of iperf3) here: the route"),
            ("narrows search h -b 100M", "cannot use -b (--bitrate of iperf3) here: this command chooses its rates"),
            ("narrows measure tcp h --fq-rate 1G", "cannot use --fq-rate here: use --pacing-rate RATE"),
            ("narrows measure tcp h -s", "cannot use -s (--server of iperf3) here: the server is `narrows serve`"),
            ("narrows watch h --every 3s", "cannot use --every here: `narrows mesh` has it; `narrows watch` has --int"),
            ("narrows measure tcp h --html", "cannot use --html here: a page is written by --format html"),
            ("narrows report -1", "cannot use -1 (--one-off of iperf3) here: `narrows serve` runs"),
            ("narrows store prune --keep -1", "invalid value '-1' for '--keep <N>': not a whole number of 0 or more"),
        ] {
            let answer = refused(line).unwrap_or_default();
            assert!(answer.starts_with(begin), "{line}: {answer}");
        }
        assert_eq!(refused("narrows measure tcp h --nonsense"), None);
    }

    #[test]
    fn an_unknown_flag_is_no_value() {
        let said = |line: &str| without_value_tip(Cli::parsed(words(line)).expect_err(line)).to_string();
        let refused = said("narrows measure tcp h --nonsense");
        assert!(refused.starts_with("error: unexpected argument '--nonsense' found\n\nUsage: "), "{refused}");
        assert!(said("narrows measure tcp h --strems 2").contains("a similar argument exists: '--streams'"));
    }
}
