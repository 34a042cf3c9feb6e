//! Words that make no sense: exit code 2, the word and what would be one. Nothing is reached for.

use crate::world::{alone, on_loopback, word};

/// The first line that is said, for words that it refuses.
pub(crate) fn refusal(words: &[&str]) -> String {
    let said = alone().run(words);
    assert_eq!(said.code, Some(2), "narrows {}: {said:?}", words.join(" "));
    let line = said.err.lines().next().and_then(|line| line.split_once(": "));
    line.unwrap_or_else(|| panic!("narrows {}: {said:?}", words.join(" "))).1.to_owned()
}

#[test]
fn a_bad_rate_size_duration_or_port_is_named_with_a_good_one() {
    for (words, sentence) in [
        (
            ["--pacing-rate", "fast"],
            "invalid value 'fast' for '--pacing-rate <RATE>': invalid rate `fast`; write it like 100M, 9.4G or 1.2Mpps",
        ),
        (["--size", "big"], "invalid value 'big' for '--size <SIZE>': invalid size `big`; write it like 64, 9k or 4M"),
        (
            ["--duration", "soon"],
            "invalid value 'soon' for '--duration <TIME>': invalid duration `soon`; write it like 10s, 250ms or 2m",
        ),
        (["--port", "70000"], "invalid value '70000' for '--port <PORT>': 70000 is not in 1..=65535"),
        (["--port", "0"], "invalid value '0' for '--port <PORT>': 0 is not in 1..=65535"),
    ] {
        assert_eq!(refusal(&[&["measure", "tcp", "127.0.0.1"][..], &words[..]].concat()), sentence);
    }
    for words in [["--direction", "sideways"], ["--streams", "some"], ["--format", "poem"], ["--zero-copy", "maybe"]] {
        let sentence = refusal(&[&["measure", "tcp", "127.0.0.1"][..], &words[..]].concat());
        assert!(sentence.starts_with(&format!("invalid value '{}' for '{} <", words[1], words[0])), "{sentence}");
    }
}

#[test]
fn a_plan_that_cannot_be_is_named_with_its_limits() {
    for (words, sentence) in [
        (&["-t", "1s", "--omit", "2s"][..], "omit is 2 s, but the trial lasts only 1 s"),
        (&["-t", "0s"], "duration is 0 s, but must be from 100 ms to 24 h"),
        (&["--streams", "0"], "streams is 0, but must be from 1 to 128"),
        (&["--dscp", "64"], "dscp is 64, but must be from 0 to 63"),
        (&["--mss", "20"], "mss is 20, but must be from 88 to 32767"),
        (&["--size", "0"], "message bytes is 0, but must be from 1 to 67108864"),
        (&["--size", "8G"], "invalid message of 8589934592 bytes: the maximum is 4294967295"),
        (&["--interval", "1ms"], "interval is 1 ms, but must be from 10 ms to 1 h"),
        (&["--congestion-control", "a b"], "invalid congestion control `a b`"),
    ] {
        assert_eq!(alone().sentence(2, &[&["measure", "tcp", "127.0.0.1"], words].concat()), sentence);
    }
}

#[test]
fn a_diagnosis_wants_sound_flags() {
    assert_eq!(
        alone().sentence(2, &["search", "127.0.0.1", "--direction", "both"]),
        "a search looks at one direction at a time: choose --direction up or down"
    );
    assert!(refusal(&["diagnose", "127.0.0.1", "--keep"]).starts_with("the following required arguments"));
    assert_eq!(
        refusal(&["diagnose", "127.0.0.1", "--try", "--pairs", "2"]),
        "invalid value '2' for '--pairs <N>': 2 is not in 3..=100"
    );
    assert!(refusal(&["diagnose", "127.0.0.1", "-4", "-6"]).contains("cannot be used with"));
}

#[test]
fn a_rate_of_less_than_two_datagrams_is_refused() {
    assert_eq!(
        alone().sentence(2, &["measure", "udp", "127.0.0.1", "-b", "10"]),
        "cannot measure at 10 bit/s: in 10.0 s each stream would send less than two datagrams; use --rate 2.05 kbit/s or more, a \
         smaller --size or a longer --duration"
    );
    assert_eq!(
        alone().sentence(2, &["measure", "udp", "127.0.0.1", "-b", "1pps", "-t", "2s", "-P", "2"]),
        "cannot measure at 1 pps: in 2.00 s each stream would send less than two datagrams; use --rate 2 pps or more, a smaller \
         --size or a longer --duration"
    );
}

#[test]
fn a_directory_that_is_missing_is_not_made() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let file = word(&world.path("nonexist/x"));
        let why =
            format!("cannot write {file}: directory {} does not exist; create it first", word(&world.path("nonexist")));
        for command in [&["measure", "tcp"][..], &["diagnose"]] {
            let way = ["127.0.0.1", "-p", &port, "--token-file", &token, "-o", &file];
            assert_eq!(world.sentence(1, &[command, &way].concat()), why);
        }
        assert!(!world.path("nonexist").exists());
    });
}

#[test]
fn a_target_that_is_none_is_named() {
    for (target, why) in [
        ("http://a", "write a host, an address or ssh://user@host"),
        ("a:0", "the port must be from 1 to 65535"),
        ("a b", "neither a host name nor an address"),
        ("ssh://-oProxyCommand=x", "write ssh://user@host or ssh://user@host:port"),
    ] {
        assert_eq!(alone().sentence(2, &["measure", "tcp", target]), format!("invalid target `{target}`: {why}"));
    }
}

#[test]
fn a_line_or_a_frame_that_cannot_be_is_named() {
    for (words, sentence) in [
        (
            ["--speed", "fast"],
            "invalid value 'fast' for '--speed <SPEEDS>': invalid rate `fast`; write it like 100M, 9.4G or 1.2Mpps",
        ),
        (["--speed", "0"], "invalid value '0' for '--speed <SPEEDS>': a line of 0 bit/s carries nothing"),
        (
            ["--size", "63"],
            "invalid value '63' for '--size <SIZES>': `63` has frames of 63 bytes; the allowed range is 64 to 9216 \
            bytes with FCS",
        ),
        (
            ["--size", "imix"],
            "invalid value 'imix' for '--size <SIZES>': `imix` is a mix; write a list of sizes, such as 64,570,1518",
        ),
    ] {
        assert_eq!(refusal(&[&["line-rate"][..], &words[..]].concat()), sentence);
    }
}

#[test]
fn the_arithmetic_of_a_line_needs_nothing() {
    let said = alone().run(&["line-rate", "--speed", "1G", "--size", "64"]).quiet(0);
    let row = said.out.lines().nth(2).map(|line| line.split_whitespace().collect::<Vec<_>>());
    assert_eq!(row.as_deref(), Some(&["64", "84", "1,488,095", "672.00", "214.3", "Mbit/s", "–"][..]), "{said:?}");
}

#[test]
fn unknown_commands_tables_and_names_are_refused() {
    assert_eq!(refusal(&["diagnos"]), "unrecognized subcommand 'diagnos'");
    assert_eq!(refusal(&["measure", "smoke", "host"]), "unrecognized subcommand 'smoke'");
    assert_eq!(refusal(&["lab", "nonsense"]), "unrecognized subcommand 'nonsense'");
    assert_eq!(refusal(&["list", "nonsense"]), "invalid value 'nonsense' for '<WHAT>'");
    assert_eq!(
        refusal(&["snapshot", "new", "--peer", "x"]),
        "invalid value 'x' for '--peer <ADDRESS>': invalid IP address syntax"
    );
    assert_eq!(
        alone().sentence(2, &["lab", "scenarios", "no-such-scenario"]),
        "no scenario matches; see `narrows list scenarios`"
    );
    assert!(alone().run(&["lab", "scenarios", "-n", "5"]).err.contains("--draw <SEED>"));
}

#[test]
fn a_report_says_what_was_weighed_for_and_against_a_cause() {
    let run = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/runs/long-path-before.run.json");
    let said = alone().run(&["report", run, "--why-not", "tcp-receive-buffer-fixed"]).quiet(0);
    assert!(said.out.starts_with("tcp-receive-buffer-fixed at the server  the evidence speaks for it\n"), "{said:?}");
    assert!(said.out.contains("\n  read     "), "{said:?}");
    let said = alone().run(&["report", run, "--why-not", "pacing-cap"]);
    assert!(said.out.contains("the evidence speaks against it"), "{said:?}");
    assert_eq!(
        alone().sentence(2, &["report", run, "--why-not", "gremlins"]),
        "cannot explain cause `gremlins`: the run has no such cause; see `narrows list causes`"
    );
}

#[test]
fn two_diagnoses_are_compared_and_other_runs_refused() {
    let run = |name: &str| format!("{}/../../fixtures/runs/{name}.run.json", env!("CARGO_MANIFEST_DIR"));
    let (before, after, other) = (run("long-path-before"), run("long-path-after"), run("measure-tcp"));
    let said = alone().run(&["report", &before, "--diff", &after]).quiet(0);
    assert!(said.out.contains("first cause: tcp-receive-buffer-fixed at the server"), "{said:?}");
    let json = alone().run(&["report", &before, "--diff", &after, "--format", "json"]).out;
    assert!(json.starts_with("{\n  \"schema\": \"narrows.diff/1\""), "{json}");
    let refused = alone().sentence(2, &["report", &before, "--diff", &other]);
    assert!(refused.starts_with("cannot compare run ") && refused.contains("it is not a diagnosis"), "{refused}");
    assert!(refused.ends_with(&format!("or use `narrows compare {before} {other}`")), "{refused}");
    let missing = alone().sentence(1, &["report", &before, "--diff", "nowhere"]);
    assert!(missing.starts_with("cannot find run `nowhere`: "), "{missing}");
}
