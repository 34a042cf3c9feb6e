//! Words that users of iperf3 type, and the token that is stored once.

use crate::world::{alone, on_loopback, word};
use std::os::unix::fs::PermissionsExt as _;

#[test]
fn the_form_of_iperf3_is_answered() {
    for (words, form) in [
        (&["-s"][..], "narrows serve"),
        (&["-c", "server", "-u", "-b", "10M"], "narrows measure udp server -b 10M"),
        (&["-c", "server", "-R", "-J"], "narrows measure tcp server -R -J"),
    ] {
        assert_eq!(alone().sentence(2, words), format!("this is the form of iperf3; narrows does it by: {form}"));
    }
    assert_eq!(
        alone().sentence(2, &["measure", "tcp", "server", "-u"]),
        "cannot use -u (--udp of iperf3) here: UDP is a command of its own: `narrows measure udp HOST`"
    );
}

#[test]
fn flags_of_iperf3_measure_the_same() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let way = ["measure", "tcp", "-c", "127.0.0.1", "-p", &port, "--token-file", &token, "-t", "0.3", "-b", "20M"];
        let said = world.run(&[&way[..], &["-R", "-J", "-Z", "-w", "256k", "--no-save"]].concat()).quiet(0);
        let plan = &said.json()["plan"];
        assert_eq!((&plan["direction"], &plan["zero_copy"]), (&"down".into(), &"on".into()));
        assert_eq!((&plan["send_buffer_bytes"], &plan["receive_buffer_bytes"]), (&262_144.into(), &262_144.into()));
        assert_eq!(plan["application"]["write_bps"], 20_000_000);
        assert!(!world.state().join("runs").exists(), "--no-save");
    });
}

#[test]
fn a_token_is_stored_once_and_then_found() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let measure = ["measure", "tcp", "127.0.0.1", "-p", &port, "-t", "300ms", "-b", "20M", "--no-save", "-q"];
        let sentence = world.sentence(1, &measure);
        let advice = format!("or store it once with `narrows trust 127.0.0.1 -p {port} --token-file FILE`");
        assert!(sentence.ends_with(&advice), "{sentence}");
        let file = world.state().join("trusted");
        let said = world.run(&["trust", "127.0.0.1", "-p", &port, "--token-file", &token]);
        let stored = format!("stored the token of 127.0.0.1, port {port}, in {}\n", word(&file));
        assert_eq!((said.code, said.out), (Some(0), stored));
        assert_eq!(file.metadata().expect("it is there").permissions().mode() & 0o777, 0o600);
        assert_eq!(world.run(&measure).code, Some(0), "it is found");
        assert!(world.run(&["trust"]).out.starts_with(&format!("127.0.0.1  port {port}  key ")));
        let secret = std::fs::read_to_string(&token).expect("a token");
        assert_eq!(world.run(&["trust", "--show"]).out, secret);
        assert!(!world.run(&["trust"]).out.contains(secret.trim().rsplit('.').next().expect("a secret")));
        assert_eq!(world.run(&["trust", "127.0.0.1", "-p", &port, "--forget"]).code, Some(0));
        assert_eq!(world.run(&measure).code, Some(1), "it is forgotten");
        let sentence = world.sentence(2, &["trust", "server"]);
        assert!(sentence.starts_with("cannot store the token of server: there is none; name its file"), "{sentence}");
        let sentence = world.sentence(1, &["trust", "server", "--token-file", &world.file("garbage", "hello\n")]);
        assert!(sentence.contains("garbage: invalid token"), "{sentence}");
    });
}

#[test]
fn a_host_alone_is_diagnosed() {
    on_loopback(|world| {
        assert_eq!(
            world.sentence(1, &["127.0.0.1:1"]),
            "cannot connect to 127.0.0.1:1: connection refused; start `narrows serve` there, or give its port with --port"
        );
    });
}
