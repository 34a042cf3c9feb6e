//! Runs, captures and changes that cannot be had or made.

use crate::world::{alone, on_loopback, word};
use std::collections::BTreeSet;

#[test]
fn a_run_that_is_none_is_named() {
    let world = alone();
    assert_eq!(
        world.sentence(1, &["report", "nothere"]),
        format!("cannot find run `nothere`: neither a file nor a run id in {}", word(&world.state().join("runs.db")))
    );
    let missing = word(&world.path("nothere.run.json"));
    assert_eq!(
        world.sentence(1, &["report", &missing]),
        format!("cannot open {missing}: No such file or directory (os error 2)")
    );
    let garbage = world.file("garbage", "hello\n");
    assert_eq!(
        world.sentence(1, &["report", &garbage]),
        format!("{garbage} is not a narrows run file: expected value at line 1 column 1")
    );
    let newer = world.file("newer", r#"{"format": 99, "made_by": "narrows 9.9.9"}"#);
    assert_eq!(
        world.sentence(1, &["report", &newer]),
        format!(
            "cannot read {newer}: written by a newer narrows (narrows 9.9.9) in format 99, this version reads up to \
            2; upgrade narrows"
        )
    );
}

#[test]
fn a_capture_goes_into_a_directory_of_its_own() {
    let world = alone();
    let full = world.file("there", "something");
    let directory = word(full.as_ref()).rsplit_once('/').map(|(parent, _)| parent.to_owned()).expect("a parent");
    assert_eq!(
        world.sentence(1, &["snapshot", &directory]),
        format!("cannot write a capture to {directory}: the directory is not empty; name a new one")
    );
    let sentence = world.sentence(1, &["snapshot", "/proc/nowhere"]);
    assert!(sentence.starts_with("cannot make directory /proc/nowhere"), "{sentence}");
}

#[test]
fn a_setting_that_narrows_does_not_make_is_refused() {
    let world = alone();
    assert_eq!(
        world.sentence(2, &["tune", "apply", "kernel.panic=1"]),
        "narrows does not set the kernel parameter `kernel.panic`; `narrows list parameters` shows all that it sets"
    );
    assert!(world.run(&["list", "parameters"]).out.contains("net.ipv4.tcp_rmem "));
    assert_eq!(
        world.sentence(2, &["tune", "apply", "net.ipv4.tcp_sack=9"]),
        "`9` is no value for net.ipv4.tcp_sack: it must be a number from 0 to 1"
    );
    assert_eq!(
        world.sentence(2, &["tune", "apply", "nonsense"]),
        "`nonsense` is no setting; write it like net.ipv4.tcp_sack=1"
    );
    assert_eq!(world.run(&["tune", "list"]).out, "nothing is changed on this host\n", "none of them left a trace");
}

#[test]
fn an_undoing_of_what_was_not_done_is_refused() {
    let world = alone();
    for id in ["nosuch", "../../etc/passwd"] {
        assert_eq!(
            world.sentence(1, &["tune", "undo", id]),
            format!(
                "there is no change {id} in the journal {}; see `narrows tune list`",
                word(&world.state().join("changes"))
            )
        );
    }
}

#[test]
fn without_a_home_there_is_no_place_for_state() {
    let world = alone();
    let output = world.command(&["report", "nothere"]).env_remove("HOME").env("XDG_STATE_HOME", "relative").output();
    let said = String::from_utf8(output.expect("the program").stderr).expect("text");
    // Root has a place in any case.
    assert!(said.contains("/var/lib/narrows/runs") || said.contains("neither XDG_STATE_HOME nor HOME"), "{said}");
}

#[test]
fn a_state_directory_that_cannot_be_used_is_refused() {
    let world = alone();
    let said = |state: &str| {
        let output = world.command(&["history"]).env("NARROWS_STATE", state).output().expect("the program");
        (output.status.code(), String::from_utf8(output.stderr).expect("text"))
    };
    let (code, why) = said("relative");
    assert!(
        code == Some(2) && why.contains("NARROWS_STATE: cannot use relative: not an absolute path"),
        "{code:?} {why}"
    );
    // Root's keys and journal would be everybody's.
    if narrows_sys::process::is_root() {
        let open = world.path("open");
        std::fs::create_dir(&open).expect("a directory");
        std::fs::set_permissions(&open, std::os::unix::fs::PermissionsExt::from_mode(0o1777)).expect("a mode");
        let (code, why) = said(open.to_str().expect("text"));
        assert!(
            code == Some(2) && why.contains("other users may write to it") && why.contains("only where no other"),
            "{why}"
        );
    }
}

/// What the program says to a user who is not root and has no entry in the user database. `None` where this user may not become another
/// one.
fn as_a_stranger(mut command: std::process::Command) -> Option<(Option<i32>, String)> {
    use std::os::unix::process::CommandExt as _;
    match command.uid(54_321).gid(54_321).env_remove("HOME").env_remove("XDG_STATE_HOME").current_dir("/").output() {
        Ok(output) => Some((output.status.code(), String::from_utf8(output.stderr).expect("text"))),
        Err(error) => {
            println!("NOT CHECKED: what another user meets, since {error}");
            None
        }
    }
}

#[test]
fn a_token_file_behind_a_closed_directory_is_not_called_missing() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = alone();
    let closed = world.path("closed");
    std::fs::create_dir(&closed).expect("a directory");
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o700)).expect("closed");
    let token = word(&closed.join("token"));
    let command = world.command(&["measure", "tcp", "127.0.0.1", "--token-file", &token]);
    let Some((code, said)) = as_a_stranger(command) else { return };
    let sentence = format!(
        "narrows: cannot open {token}: permission denied; copy the token to a file that you may read, or run as its owner\n"
    );
    assert_eq!((code, said), (Some(1), sentence));
}

#[test]
fn a_full_disk_loses_no_result() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&["--stamp", "--stamp-any", "--responsiveness"]);
        let way = ["127.0.0.1", "-p", &port, "--token-file", &token];
        let point = ["-l", "64", "--protocol", "udp", "-d", "up", "-b", "1M", "-t", "100ms", "--no-search"];
        let search = [
            "-l", "64", "--min", "1M", "--max", "2M", "--skip-calibration", "-t", "100ms", "--sum", "100ms",
            "--no-profile",
        ];
        let commands = [
            [&["measure", "tcp"], &way[..], &["-t", "100ms"]].concat(),
            [&["sweep"], &way[..], &point].concat(),
            [&["search"], &way[..], &search].concat(),
            vec!["trace", "127.0.0.1", "--flows", "1", "--no-mtu", "-n", "-c", "1"],
            vec!["measure", "stamp", "127.0.0.1", "-t", "200ms"],
            vec![
                "measure", "responsiveness", "127.0.0.1", "--token-file", &token, "-d", "up", "-t", "1s", "-i", "100ms",
            ],
            vec!["receive", "lo", "-t", "100ms"],
        ];
        for (n, words) in commands.iter().enumerate() {
            let tag = format!("t{n}");
            // A sweep tries its run file before the first point.
            let output = if words[0] == "sweep" { "--csv" } else { "-o" };
            let said = world.run(&[&words[..], &[output, "/dev/full", "--tag", &tag]].concat());
            let listed = world.run(&["history", "--tag", &tag, "--format", "json"]).json();
            let id = listed["runs"][0]["id"].as_str().unwrap_or_else(|| panic!("not kept: {said:?}"));
            assert!(said.code == Some(1) && !said.out.is_empty(), "{words:?}: {said:?}");
            let end = format!("No space left on device (os error 28); it is in the store as {id}\n");
            assert!(said.err.ends_with(&end), "{words:?}: {said:?}");
            let again = world.run(&["report", id, "--format", "csv"]);
            // What is in quotes may have commas.
            let commas = |line: &str| line.split('"').step_by(2).map(|part| part.matches(',').count()).sum::<usize>();
            let columns: BTreeSet<_> = again.out.lines().map(commas).collect();
            assert!(again.code == Some(0) && columns.len() == 1, "{words:?}: {again:?}");
        }
    });
}

#[test]
fn without_a_home_a_diagnosis_is_made_and_not_saved() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        let token = std::fs::read_to_string(token).expect("a token");
        let mut command =
            world.command(&["diagnose", "127.0.0.1", "-p", &port, "-t", "1s", "--no-profile", "--budget", "2s"]);
        command.args(["--exit-zero", "-q"]).env("NARROWS_TOKEN", token.trim());
        let Some((code, said)) = as_a_stranger(command) else { return };
        assert_eq!(code, Some(0), "{said}");
        assert!(said.starts_with("cannot save the run: cannot place the run: "), "{said}");
    });
}
