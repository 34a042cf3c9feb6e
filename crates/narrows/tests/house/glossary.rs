//! Plain English: phrases that the glossary replaces do not occur in documentation, help, snapshots and messages.

use crate::tree::{entries, files, name, root, text};
use std::process::Command;

/// A phrase that must not occur, and what to write instead.
const GLOSSARY: &[(&str, &str)] = &[
    ("what came of them", "and their loss and latency"),
    ("be the other end", "run the measurement server"),
    ("the other end:", "Connection:"),
    ("who seems to send", "source address and port range"),
    ("who shall get it", "destination range, same syntax"),
    ("likewise", "same syntax; also"),
    ("--make-up", "--max-catch-up"),
    ("made up for", "caught up"),
    ("makes up for", "catches up; absorbs"),
    ("said twice", "given twice"),
    ("after such a silence", "after this idle time"),
    ("per cent", "percent"),
    ("load falls each time", "loss-curve step, in % of the maximum load"),
    ("what the tester carries", "tester calibration"),
    ("--unqualified", "--skip-calibration"),
    ("take batches", "UDP GRO"),
    ("hand batches", "UDP GSO"),
    ("makes chance repeatable", "random seed"),
    ("datagrams die", "datagrams are dropped"),
    ("climb to the next", "fix the next bottleneck"),
    ("set all back", "roll back"),
    ("set back", "rolled back"),
    ("sets back", "rolls back"),
    ("is no target", "invalid target"),
    ("is no run", "not a narrows run file"),
    ("cannot be like that", "invalid path"),
    ("are the most", "the maximum is"),
    ("is waited for", "how long to wait for"),
    ("worst case", "forwarding rate at maximum offered load, FRMOL (RFC 2285)"),
    ("least receive buffer", "udp_rmem_min"),
    ("missed by the card", "rx_missed_errors"),
    ("chronograph", "TCP_INFO limited-time counters"),
    ("network of management", "out-of-band management network"),
    ("known for good", "static neighbours"),
    ("nobody says anything", "no background traffic"),
    ("given up after a stall", "skipped after a stall"),
    ("told as given up", "skipped and counted as unsent"),
    ("stood still", "stalled"),
    ("for each act", "for each round"),
    ("three acts", "three rounds"),
    ("the bank", "the scenario suite"),
    ("lab bank", "lab scenarios"),
    ("the books", "the accounting"),
    ("books balance", "all losses are accounted for"),
    ("ledger balances", "all losses are accounted for"),
    ("is told", "is reported"),
    ("are told", "are reported"),
    ("unless told otherwise", "default"),
    ("told apart", "distinguished"),
    ("receiver's looks", "receiver's samples"),
    ("two looks", "two samples"),
    ("form of the result", "output format"),
    ("form of the report", "output format"),
    ("how long the load lasts", "test duration"),
    ("how long it lasts", "test duration"),
    ("send so many bytes", "stop after this many bytes per stream"),
    ("leave the first part", "exclude this time from the summary (slow start)"),
    ("handed to the kernel in one call", "read and write size"),
    ("hands its bytes over", "zero-copy sending"),
    ("in this file (json)", "to this file (JSON)"),
    ("keep the run in", "save the run to"),
    ("another rate for what", "rate in the down direction, if different"),
    ("most datagrams that leave", "maximum burst, in datagrams"),
    ("what is sought", "search goal; repeatable"),
    ("has on their way", "outstanding requests per stream"),
    ("which way the data goes", "direction of the data"),
    ("least rtt", "min rtt"),
    ("a line an interval", "one line per interval"),
    ("a line a trial", "one line per trial"),
    ("draw the trials", "write a plot of the trials to this file"),
    ("must be said", "must be given"),
    ("this server wants its token", "the server requires a token"),
    ("does not let us", "does not allow it"),
    ("needs it not", "does not need it"),
    ("a kernel of today", "a current kernel"),
    ("the way back", "the undo; the reverse path"),
    ("the way forth", "the forward path"),
    ("held the sender back", "limited the sender"),
    ("where the bits went", "Roofline"),
    ("the device meanwhile", "Device under test"),
];

/// A place that keeps its words: a part of its name, and why.
const KEPT: &[(&str, &str)] = &[("snapshots/replay__search", "the stored run was made with an older message")];

/// The string literals of a source file without its tests: what a user may see.
fn literals(source: &str) -> Vec<(usize, String)> {
    let source = source.find("#[cfg(test)]\nmod tests {").map_or(source, |tests| &source[..tests]);
    let mut found = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (number, line) in source.lines().enumerate() {
        let line = line.trim_start();
        if open.is_none() && line.starts_with("//") {
            continue;
        }
        let mut letters = line.chars();
        while let Some(letter) = letters.next() {
            match (&mut open, letter) {
                (Some((_, words)), '\\') => match letters.next() {
                    Some('n') | None => words.push(' '),
                    Some(escaped) => words.push(escaped),
                },
                (Some(_), '"') => found.extend(open.take()),
                (Some((_, words)), letter) => words.push(letter),
                (None, '"') => open = Some((number + 1, String::new())),
                (None, '\'') if letters.as_str().starts_with("\"'") || letters.as_str().starts_with("\\\"'") => {
                    letters.by_ref().find(|letter| *letter == '\'');
                }
                (None, '/') if letters.as_str().starts_with('/') => break,
                _ => {}
            }
        }
    }
    found
}

/// Text with single blanks, in small letters.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Whether a phrase occurs in a plain text, as whole words.
fn occurs(text: &str, phrase: &str) -> bool {
    let inside = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let whole = |(at, found): (usize, &str)| {
        let (before, after) = (text[..at].chars().next_back(), text[at + found.len()..].chars().next());
        let joined = inside(before) && phrase.starts_with(char::is_alphanumeric)
            || inside(after) && phrase.ends_with(char::is_alphanumeric);
        !joined
    };
    text.match_indices(phrase).any(whole)
}

/// What is wrong with the text of a place.
fn check(wrong: &mut Vec<String>, place: &str, text: &str) {
    if KEPT.iter().any(|(part, _)| place.contains(part)) {
        return;
    }
    let text = plain(text);
    for (phrase, instead) in GLOSSARY.iter().filter(|(phrase, _)| occurs(&text, phrase)) {
        wrong.push(format!("{place}: `{phrase}`: write `{instead}`"));
    }
}

/// The help of a command and of all below it, by `-h` and `--help`.
fn helps(wrong: &mut Vec<String>, words: &[String]) {
    for flag in ["-h", "--help"] {
        let output = Command::new(env!("CARGO_BIN_EXE_narrows")).args(words).arg(flag).env_clear().output();
        let text = String::from_utf8(output.expect("narrows runs").stdout).expect("text");
        assert!(text.contains("Usage:"), "narrows {} {flag} prints no help", words.join(" "));
        check(wrong, &format!("narrows {} {flag}", words.join(" ")), &text);
        if flag == "-h" {
            let lines = text.lines().skip_while(|line| *line != "Commands:").skip(1);
            let lines = lines.take_while(|line| line.starts_with("  ")).filter(|line| !line.starts_with("   "));
            for name in lines.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
                helps(wrong, &[words, &[name.to_owned()]].concat());
            }
        }
    }
}

#[test]
fn pages_and_snapshots_are_in_plain_english() {
    let root = root();
    let mut wrong = Vec::new();
    let mut pages: Vec<_> =
        entries(&root).into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect();
    // The page of commands is the help, which has a test of its own.
    pages.extend(files(&root.join("docs"), ".md").into_iter().filter(|path| !path.ends_with("commands.md")));
    pages.extend(files(&root.join("crates"), ".snap"));
    assert!(pages.len() > 20, "too few pages");
    for page in pages {
        check(&mut wrong, &name(&page), &text(&page));
    }
    assert!(wrong.is_empty(), "write plain English:\n{}", wrong.join("\n"));
}

#[test]
fn help_is_in_plain_english() {
    let mut wrong = Vec::new();
    helps(&mut wrong, &[]);
    assert!(wrong.is_empty(), "write plain English:\n{}", wrong.join("\n"));
}

#[test]
fn messages_are_in_plain_english() {
    let mut wrong = Vec::new();
    for path in files(&root().join("crates"), ".rs") {
        let place = name(&path);
        let is_test =
            !place.contains("/src/") || ["/tests/", "tests.rs", "/testing"].iter().any(|it| place.contains(it));
        if !is_test {
            for (line, words) in literals(&text(&path)) {
                check(&mut wrong, &format!("{place}:{line}"), &words);
            }
        }
    }
    assert!(wrong.is_empty(), "write plain English:\n{}", wrong.join("\n"));
}

#[test]
fn a_phrase_is_found_whole_in_literals_only() {
    let source = "// stood still\nlet a = \"it stood \\\n    still\"; // \"set back\"\nlet q = '\"'; let b = r\"x\";\n";
    assert_eq!(literals(source), [(2, "it stood  still".to_owned()), (4, "x".to_owned())]);
    let mut wrong = Vec::new();
    check(&mut wrong, "here", "It  Stood\nstill; the booksellers");
    assert_eq!(wrong, ["here: `stood still`: write `stalled`"]);
    assert!(!occurs("the bankers", "the bank") && occurs("by the bank.", "the bank"));
}
