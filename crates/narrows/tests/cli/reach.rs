//! The other end that cannot be reached, or does not want us.

use crate::world::{World, on_loopback, word};

fn measure<'a>(words: &[&'a str]) -> Vec<&'a str> {
    [&["measure", "tcp", "127.0.0.1", "--duration", "300ms", "--pacing-rate", "50M"], words].concat()
}

#[test]
fn a_host_that_is_not_there() {
    on_loopback(|world| {
        let sentence = world.sentence(1, &["measure", "tcp", "no-such-host.invalid"]);
        assert!(sentence.starts_with("the host `no-such-host.invalid` is unknown: "), "{sentence}");
        assert_eq!(
            world.sentence(1, &measure(&["--port", "1"])),
            "nothing listens at 127.0.0.1:1: start `narrows serve` there, or name its port"
        );
        assert_eq!(
            world.sentence(1, &["audit", "192.0.2.1"]),
            "there is no route to 192.0.2.1:5220 (Network is unreachable (os error 101))"
        );
        assert_eq!(
            world.sentence(1, &measure(&["-6"])),
            "the host `127.0.0.1` has no IPv6 address; name another one, or leave the family open"
        );
        let sentence = world.sentence(1, &["measure", "tcp", "ssh://no-such-host.invalid"]);
        assert!(sentence.contains("ssh"), "{sentence}");
    });
}

#[test]
fn a_port_that_is_taken() {
    on_loopback(|world| {
        let (_server, port) = world.serve(&[]);
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
        let (_server, port) = world.serve(&[]);
        assert_eq!(
            world.sentence(1, &measure(&["--port", &port])),
            "this server wants its token: `narrows serve` wrote it to a file there and told the path when it started; \
             give it with --token-file or NARROWS_TOKEN, or store it once with `narrows trust 127.0.0.1 --token-file FILE`"
        );
        let what = "this is no token of narrows; a token is one line that begins with `narrows1.`, as `narrows serve` wrote it";
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
                "there is no token file {missing}; copy the one of the server, whose place `narrows serve` tells when it starts"
            )
        );
        let token = std::fs::read_to_string(world.token_file()).expect("a token");
        let token = token.trim();
        let other = if token.ends_with('A') { "B" } else { "A" };
        let wrong = world.file("wrong", &format!("{}{other}\n", &token[..token.len() - 1]));
        assert_eq!(
            world.sentence(1, &measure(&["--port", &port, "--token-file", &wrong])),
            "this is not the server's token: take the one from the file that `narrows serve` names when it starts"
        );
        let elsewhere = of_another_server(world);
        let sentence = world.sentence(1, &measure(&["--port", &port, "--token-file", &elsewhere]));
        assert!(
            sentence.starts_with(&format!("the server at 127.0.0.1:{port} is not the one of the token: its key is ")),
            "{sentence}"
        );
        // Nothing of all that cost the server its life.
        let said = world.run(&measure(&["--port", &port, "--token-file", &world.token_file()]));
        assert_eq!(said.code, Some(0), "{said:?}");
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
        let (_server, port) = world.serve(&[]);
        let token = world.token_file();
        assert_eq!(
            world.sentence(1, &["diagnose", "127.0.0.1", "--port", &port, "--token-file", &token, "--try"]),
            "here does not let us change its settings: start `narrows serve --allow-tune` there, or leave --try out"
        );
        let sentence = world.sentence(1, &measure(&["--port", &port, "--token-file", &token, "-C", "none", "--quiet"]));
        assert!(
            sentence.contains("cannot set TCP_CONGESTION to none") && sentence.contains("this host has: "),
            "{sentence}"
        );
    });
}
