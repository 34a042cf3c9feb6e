//! A measurement that ends before its time: by Ctrl-C, by the death of the server, by the death of the client.

use crate::world::{Running, SIGINT, SIGKILL, SIGTERM, Said, World, on_loopback};
use narrows_sys::clock;
use narrows_sys::rtnl::Links;
use std::time::Duration;

/// A measurement that would take ten seconds, at its first interval.
fn measuring(world: &World, port: &str, direction: &str) -> Running {
    let token = world.token_file();
    let words = ["measure", "tcp", "127.0.0.1", "--port", port, "--token-file", &token, "--direction", direction];
    let mut client = world.start(&[&words[..], &["-t", "10s", "-i", "100ms", "--pacing-rate", "50M"]].concat());
    client.await_line("[  0]");
    client
}

/// What was measured until then is there: the summary of the stream, with its bytes.
fn check_summary(said: &Said) {
    let summary = said.out.split_once("- - -\n").unwrap_or_else(|| panic!("no summary: {said:?}")).1;
    let stream = summary.lines().nth(1).unwrap_or_default();
    assert!(stream.starts_with("[  0]") && stream.ends_with("sender"), "{said:?}");
    let carried = summary.lines().nth(2).unwrap_or_default();
    assert!(carried.starts_with("[  0]") && carried.contains("bit/s"), "{said:?}");
}

#[test]
fn ctrl_c_keeps_and_prints_what_was_measured() {
    on_loopback(|world| {
        let (_server, port, _) = world.serve(&[]);
        for direction in ["up", "down"] {
            let client = measuring(world, &port, direction);
            // `timeout -s INT` signals the process and its group.
            client.signal(SIGINT);
            client.signal(SIGINT);
            let said = client.end().with_code(130);
            check_summary(&said);
            let first = said.out.lines().nth(2).unwrap_or_default();
            assert!(first.contains(" 0.00-0."), "the first interval is there: {said:?}");
            let id = said.err.strip_prefix("saved as ").expect("its id").trim_end().to_owned();
            let csv = world.run(&["report", &id, "--format", "csv"]);
            let columns: std::collections::BTreeSet<_> = csv.out.lines().map(|line| line.split(',').count()).collect();
            assert!(csv.code == Some(0) && csv.out.lines().count() > 1 && columns.len() == 1, "{csv:?}");
            let again = world.run(&["report", &id]);
            let summary = |text: &str| text.split_once("- - -\n").map(|(_, summary)| summary.to_owned());
            assert_eq!(
                (again.code, summary(&again.out)),
                (Some(0), summary(&said.out)),
                "it was saved as it was shown"
            );
            assert!(said.out.ends_with("interrupted: this is what was measured until then\n"), "{said:?}");
            assert!(!said.out.contains("lost the peer"), "the end that stops second is no loss: {said:?}");
        }
    });
}

#[test]
fn ctrl_c_gives_up_waiting() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let _running = measuring(world, &port, "up");
        let mut second = world.start(&["diagnose", "127.0.0.1", "--port", &port, "--token-file", &token]);
        second.await_error("waiting, position 1 in the queue: the client 127.0.0.1 is measuring");
        second.signal(SIGINT);
        let said = second.end();
        assert_eq!((said.code, &*said.err), (Some(130), "narrows: interrupted before anything was measured\n"));
    });
}

#[test]
fn a_server_that_dies_is_told_with_what_was_measured() {
    for (signal, direction) in [(SIGKILL, "up"), (SIGKILL, "down"), (SIGTERM, "up"), (SIGTERM, "down")] {
        on_loopback(|world| {
            let (server, port, _) = world.serve(&[]);
            let client = measuring(world, &port, direction);
            server.signal(signal);
            let said = client.end().with_code(1);
            check_summary(&said);
            let sentence = format!("lost the server at 127.0.0.1:{port}: ");
            let error = said.err.split_once("narrows: ").map(|(_, error)| error).unwrap_or_default();
            assert!(error.starts_with(&sentence) && error.lines().count() == 1, "{said:?}");
            assert!(said.out.contains("failed: lost the server at 127.0.0.1:"), "{said:?}");
            if signal == SIGTERM {
                assert_eq!(error, format!("{sentence}the server was stopped\n"));
            }
        });
    }
}

/// A diagnosis whose load is under way: a part of it has crossed the loopback device.
fn diagnosing(world: &World, port: &str, words: &[&str], packets: u64) -> Running {
    let carried = || Links::open().and_then(|mut links| links.get("lo")).expect("the loopback device").rx_packets;
    let host = ["diagnose", "127.0.0.1", "--port", port, "-t", "10s", "--no-profile"];
    let mut client = world.start(&[&host, words].concat());
    client.await_error("* load: ");
    let (since, before) = (clock::now(), carried());
    // The other end reports once a second; a busy machine does so late.
    while carried() < before + packets || since.elapsed() < Duration::from_secs(2) {
        assert!(since.elapsed() < Duration::from_secs(30), "no load");
        clock::sleep(Duration::from_millis(5));
    }
    client
}

#[test]
fn a_diagnosis_that_is_cut_short_reports_what_was_measured_and_accuses_no_one() {
    const UDP: &[&str] = &["--udp", "-b", "50M", "--size", "1200"];
    const TCP: &[&str] = &["--pacing-rate", "50M"];
    for (signal, load, direction) in
        [(SIGKILL, TCP, "up"), (SIGKILL, TCP, "down"), (SIGINT, TCP, "up"), (SIGKILL, UDP, "up"), (SIGINT, UDP, "down")]
    {
        on_loopback(|world| {
            let (server, port, token) = world.serve(&[]);
            let words = ["--token-file", &token, "-d", direction, "-o", "cut.run.json"];
            let client = diagnosing(world, &port, &[load, &words].concat(), if load == TCP { 100 } else { 2_500 });
            if signal == SIGINT {
                client.signal(signal);
            } else {
                server.signal(signal);
            }
            let said = client.end();
            assert_eq!(said.code, Some(if signal == SIGINT { 130 } else { 1 }), "{said:?}");
            assert!(said.out.starts_with("UNKNOWN "), "{said:?}");
            let headline = said.out.lines().nth(1).unwrap_or_default();
            assert!(
                headline.contains("Mbit/s") && headline.contains("; what limits it is unknown, since the run was"),
                "{said:?}"
            );
            assert!(!said.out.contains("what to do") && !said.out.contains("you could get"), "{said:?}");
            let why = format!("lost the server at 127.0.0.1:{port}: ");
            let last = said.err.lines().last().unwrap_or_default();
            // Who interrupts needs no sentence.
            assert!(signal == SIGINT || last.starts_with(&format!("narrows: {why}")), "{said:?}");
            assert_eq!(load == TCP, said.out.contains("\nwhere the sender's time went"), "{said:?}");
            // What the server counted is lost with it, and what was on its way is not called dropped.
            assert!(signal == SIGINT || !said.out.contains("(% of offered"), "{said:?}");
            let again = world.run(&["report", "cut.run.json"]);
            assert_eq!((again.code, again.out), (Some(0), said.out));
        });
    }
}

#[test]
fn a_client_that_dies_frees_the_server_for_the_next() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let first = measuring(world, &port, "up");
        first.signal(SIGKILL);
        let words = ["measure", "tcp", "127.0.0.1", "--port", &port, "--token-file", &token, "-t", "300ms"];
        let said = world.run(&[&words[..], &["--pacing-rate", "50M"]].concat()).with_code(0);
        check_summary(&said);
        assert_eq!(first.end().code, None, "it was killed");
    });
}
