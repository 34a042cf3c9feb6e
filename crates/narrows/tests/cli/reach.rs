//! The other end that cannot be reached, or does not want us.

use crate::world::{World, on_loopback, word};

fn measure<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&["measure", "tcp", "127.0.0.1", "--duration", "300ms", "--pacing-rate", "50M"], words].concat()
}

#[test]
fn a_host_that_is_not_there() {
    on_loopback(|world| {
        let sentence = world.sentence(1, &["measure", "tcp", "no-such-host.invalid"]);
        assert!(sentence.starts_with("cannot resolve `no-such-host.invalid`: "), "{sentence}");
        assert_eq!(
            world.sentence(1, &measure(&["--port", "1"])),
            "cannot connect to 127.0.0.1:1: connection refused; start `narrows serve` there, or give its port with \
            --port"
        );
        assert_eq!(
            world.sentence(1, &["audit", "192.0.2.1"]),
            "cannot connect to 192.0.2.1:5220: no route (Network is unreachable (os error 101))"
        );
        assert_eq!(
            world.sentence(1, &measure(&["-6"])),
            "`127.0.0.1` has no IPv6 address; use another host, or drop -4 or -6"
        );
        let sentence = world.sentence(1, &["measure", "tcp", "ssh://no-such-host.invalid"]);
        assert!(sentence.contains("ssh"), "{sentence}");
    });
}

#[test]
fn a_port_that_is_taken() {
    on_loopback(|world| {
        let (_server, port, _) = world.serve(&[]);
        assert_eq!(
            world.sentence(1, &["serve", "--port", &port]),
            format!(
                "port {port} is taken: another `narrows serve` may be running; stop it, or choose another with --port"
            )
        );
    });
}

#[test]
fn a_token_that_is_none_or_of_another_server() {
    on_loopback(|world| {
        let (_server, port, _) = world.serve(&[]);
        assert_eq!(
            world.sentence(1, &measure(&["--port", &port])),
            format!(
                "the server requires a token: copy the file whose path `narrows serve` printed at start, and pass it with \
            --token-file, or store it once with `narrows trust 127.0.0.1 -p {port} --token-file FILE`"
            )
        );
        let what = "invalid token: a token is one line that starts with `narrows1.`, as `narrows serve` writes it";
        let garbage = world.file("garbage", "hello\n");
        assert_eq!(
            world.sentence(1, &measure(&["--port", &port, "--token-file", &garbage])),
            format!("{garbage}: {what}")
        );
        assert_eq!(
            world.sentence(1, &["serve", "--port", "0", "--token-file", &garbage]),
            format!("{garbage}: {what}")
        );
        let missing = word(&world.path("missing"));
        assert_eq!(
            world.sentence(1, &measure(&["--port", &port, "--token-file", &missing])),
            format!(
                "cannot read token file {missing}: not found; copy it from the server (`narrows serve` prints its \
                path at start)"
            )
        );
        let token = std::fs::read_to_string(world.token_file()).expect("a token");
        let token = token.trim();
        let other = if token.ends_with('A') { "B" } else { "A" };
        let wrong = world.file("wrong", &format!("{}{other}\n", &token[..token.len() - 1]));
        assert_eq!(
            world.sentence(1, &measure(&["--port", &port, "--token-file", &wrong])),
            "wrong token: copy the file whose path `narrows serve` printed at start"
        );
        let elsewhere = of_another_server(world);
        let sentence = world.sentence(1, &measure(&["--port", &port, "--token-file", &elsewhere]));
        assert!(
            sentence.starts_with(&format!("the token does not match the server at 127.0.0.1:{port}: its key is ")),
            "{sentence}"
        );
        // Nothing of all that cost the server its life.
        world.run(&measure(&["--port", &port, "--token-file", &world.token_file()])).with_code(0);
    });
}

/// The token file of a server with another key.
fn of_another_server(world: &World) -> String {
    let state = world.path("other");
    let mut command = world.command(&["serve", "--port", "0"]);
    let mut child = command.env("XDG_STATE_HOME", &state).spawn().expect("the program");
    let mut line = String::new();
    let errors = child.stderr.take().expect("piped");
    std::io::BufRead::read_line(&mut std::io::BufReader::new(errors), &mut line).expect("its errors");
    child.kill().expect("it lives");
    child.wait().expect("a child");
    word(&state.join("narrows/token"))
}

#[test]
fn a_try_where_tuning_is_not_allowed() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let brief = ["--try", "-q", "--exit-zero", "--no-profile", "-t", "500ms", "--budget", "2s"];
        let to = ["diagnose", "127.0.0.1", "--port", &port, "--token-file", &token];
        let said = world.run(&[&to[..], &brief].concat()).with_code(0);
        let note = "the server on here does not allow changes there: only fixes of this host are tried; `narrows serve \
            --allow-tune` there allows all";
        assert!(said.err.lines().any(|line| line == note), "{said:?}");
        let sentence = world.sentence(1, &measure(&["--port", &port, "--token-file", &token, "-C", "none", "--quiet"]));
        assert!(sentence.contains("congestion control none is not available; this host has: "), "{sentence}");
    });
}

#[test]
fn a_server_without_a_token_names_its_own_limit() {
    on_loopback(|world| {
        let (_server, port, _) = world.serve(&["--open", "--open-rate", "20M"]);
        let host = ["127.0.0.1", "--port", &port, "-t", "500ms"];
        let limit = "this server limits clients without its token to 20.0 Mbit/s (`narrows serve --open-rate`)";
        let unwrapped = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let json = |words: &[&str]| world.run(&[words, &host, &["--format", "json"]].concat()).json();
        let said = world.run(&[&["measure", "tcp"][..], &host].concat());
        assert!(unwrapped(&said.out).contains(limit), "{said:?}");
        assert_eq!(json(&["measure", "tcp"])["run"]["server_limit_bps"], 20_000_000);
        let said = world.run(&[&["measure", "tcp", "--pacing-rate", "10M"][..], &host].concat());
        assert!(said.code == Some(0) && !unwrapped(&said.out).contains("this server limits"), "{said:?}");
        let said = world.run(&[&["measure", "udp", "-b", "30M"][..], &host].concat());
        assert!(unwrapped(&said.out).contains(limit), "{said:?}");
        let report = json(&["diagnose", "--no-profile"]);
        assert_eq!(report["run"]["server_limit_bps"], 20_000_000, "{report}");
        assert!(
            report["verdict"]["causes"].as_array().expect("causes").iter().all(|it| it["id"] != "pacing-cap"),
            "{report}"
        );
    });
}

#[test]
fn a_diagnosis_of_both_directions_has_both_reports_and_compares_them() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let words = ["diagnose", "127.0.0.1", "--port", &port, "--token-file", &token, "-d", "both", "--no-profile"];
        let load = ["-t", "2500ms", "-O", "0s", "--budget", "3s", "--pacing-rate", "50M", "-o", "kept.run.json"];
        let said = world.run(&[&words[..], &load, &["--format", "json"]].concat());
        let both = said.json();
        assert_eq!(both["schema"], "narrows.both-directions/1");
        let mut worst = 0;
        for way in ["up", "down"] {
            let report = &both[way];
            assert_eq!((&report["schema"], &report["verdict"]["direction"]), (&"narrows.report/1".into(), &way.into()));
            worst = worst.max(if report["verdict"]["status"] == "limited" { 3 } else { 0 });
            let kept = world.run(&["report", &format!("kept-{way}.run.json"), "--format", "json"]);
            assert_eq!(&kept.json(), report);
        }
        assert_eq!(said.code, Some(worst), "{said:?}");
        let symmetry = &both["symmetry"];
        let (up, down) = (&symmetry["up_bps"], &symmetry["down_bps"]);
        assert!(up.as_f64().is_some_and(|bps| bps > 1e6) && down.as_f64().is_some_and(|bps| bps > 1e6), "{symmetry}");
        let text = world.run(&[&words[..], &load].concat()).out;
        let titles: Vec<&str> = text.lines().filter(|line| line.starts_with("==== ")).collect();
        assert_eq!(
            titles,
            ["==== up: from the client to the server ====", "==== down: from the server to the client ===="]
        );
        assert!(text.starts_with("up    ") && text.contains("\nThe directions d"), "{text}");
    });
}
