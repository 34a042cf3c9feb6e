//! What packages take from the program itself: completions, answered at each Tab, and the manual.

use crate::world::{World, alone};

/// What bash would offer for the last word.
fn offered(world: &World, words: &[&str]) -> Vec<String> {
    let mut command = world.command(&[&["--", "narrows"], words].concat());
    command.env("NARROWS_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    let output = command.env("_CLAP_IFS", "\n").output().expect("the program");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).expect("text").lines().map(str::to_owned).collect()
}

#[test]
fn causes_kept_runs_and_their_hosts_are_completed() {
    let world = alone();
    assert_eq!(
        offered(&world, &["report", "x", "--why-not", "tcp-rec"]),
        ["tcp-receive-buffer-fixed", "tcp-receive-window"]
    );
    assert_eq!(offered(&world, &["audit", "198"]), [""; 0], "no run is kept yet");
    let runs = world.state().join("runs");
    std::fs::create_dir_all(&runs).expect("a directory");
    let run = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/runs/long-path-before.run.json");
    std::fs::copy(run, runs.join("20250101-000000-00000001.run.json")).expect("copied");
    std::fs::write(runs.join("20250101-000000-00000002.run.json"), "damaged").expect("written");
    for command in [&["report"][..], &["report", "x", "--diff"]] {
        assert_eq!(offered(&world, &[command, &["2025"]].concat()), ["20250101-000000-00000001"]);
    }
    for command in [&["audit"][..], &["diagnose"], &["measure", "tcp"]] {
        assert_eq!(offered(&world, &[command, &["198"]].concat()), ["198.51.100.25"]);
    }
    assert_eq!(offered(&world, &["rep"]), ["report"]);
}

#[test]
fn every_shell_gets_a_script_that_asks_the_program_on_the_path() {
    let world = alone();
    for (shell, line) in [("bash", " narrows\n"), ("zsh", "#compdef narrows\n"), ("fish", "--command narrows ")] {
        let said = world.run(&["completion", shell]).with_code(0);
        assert!(said.out.contains("NARROWS_COMPLETE") && said.out.contains(line), "{said:?}");
        assert!(!said.out.contains("target/"), "a path of this machine: {said:?}");
    }
}

#[test]
fn the_manual_has_a_page_for_every_command_of_the_help() {
    let world = alone();
    std::fs::create_dir(world.path("man")).expect("a directory");
    assert_eq!(world.run(&["man", "man"]).code, Some(0));
    let page = |name: &str| std::fs::read_to_string(world.path("man").join(name)).unwrap_or_else(|_| panic!("{name}"));
    let index = page("narrows.1");
    let help = world.run(&["--help"]).out;
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    for command in commands.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help") {
        assert!(page(&format!("narrows-{command}.1")).contains(".SH SYNOPSIS"));
        assert!(index.contains(&format!("narrows\\-{}", command.replace('-', "\\-"))), "{command}: {index}");
    }
    assert!(page("narrows-measure-tcp.1").contains(r"\-\-duration"));
    assert!(!world.path("man/narrows-man.1").exists(), "a hidden command");
    assert!(world.sentence(1, &["man", "none"]).starts_with("cannot write none/narrows.1: "));
}
