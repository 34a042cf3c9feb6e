//! The generated pages of `docs/` are fresh. `make docs` writes them anew; look at the difference before you commit it.
//!
//! `docs/commands.md` holds the `--help` of every command, so it is the snapshot of those texts too.

#![allow(clippy::disallowed_methods, clippy::panic)] // a test that runs the program and reads its pages

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What `narrows WORDS --help` prints, free of the terminal's width and of this environment's values.
fn help(words: &[String]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_narrows"))
        .args(words)
        .arg("--help")
        .env_clear()
        .output()
        .unwrap_or_else(|error| panic!("cannot run narrows: {error}"));
    assert!(output.status.success(), "`narrows {} --help` ends with {}", words.join(" "), output.status);
    String::from_utf8(output.stdout).unwrap_or_else(|error| panic!("the help is no UTF-8: {error}"))
}

/// The names under `Commands:` in a help text.
fn subcommands(help: &str) -> Vec<String> {
    help.lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| line.starts_with("  "))
        .filter(|line| !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next().map(str::to_owned))
        .filter(|name| name != "help")
        .collect()
}

/// Appends the help of a command and of all below it.
fn append(page: &mut String, words: &[String]) {
    let text = help(words);
    let title = [&["narrows".to_owned()], words].concat().join(" ");
    let trimmed: Vec<&str> = text.lines().map(str::trim_end).collect();
    let _ = write!(page, "\n## {title}\n\n```text\n{}\n```\n", trimmed.join("\n").trim_end());
    for name in subcommands(&text) {
        append(page, &[words, &[name]].concat());
    }
}

/// Compares a page with what it should be, or writes it where `UPDATE_DOCS` is set.
fn check(path: &Path, wanted: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, wanted).unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
        return;
    }
    let there = std::fs::read_to_string(path).unwrap_or_default();
    if let Some((number, (old, new))) = there.lines().zip(wanted.lines()).enumerate().find(|(_, (old, new))| old != new)
    {
        panic!("{} is stale from line {}: `{old}` should be `{new}`; run `make docs`", path.display(), number + 1);
    }
    assert!(there == wanted, "{} is stale: it is too long or too short; run `make docs`", path.display());
}

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

#[test]
fn the_commands_page_is_fresh() {
    let mut page = String::from(
        "# Commands\n\nThe `--help` of every command, written by `make docs`. What the flags mean is in the [manual](manual.md).\n",
    );
    append(&mut page, &[]);
    check(&docs().join("commands.md"), &page);
}

/// The head of a source file (its `//!` lines), with its title one level down.
fn head(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()));
    let lines: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let head = lines.join("\n");
    if head.starts_with("# ") { format!("#{head}") } else { head }
}

/// The heads of all rules of a folder, by name.
fn heads(page: &mut String, folder: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(&folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    files.retain(|file| !file.ends_with("mod.rs"));
    files.sort();
    assert!(!files.is_empty(), "{} holds no causes", folder.display());
    for file in &files {
        let _ = write!(page, "\n{}\n", head(file).trim_end());
    }
}

#[test]
fn the_causes_page_is_fresh() {
    let mut page = String::from(
        "# Causes\n\nWhat narrows can name, from the heads of the rules themselves; written by `make docs`. An id never changes its\n\
         meaning. How a verdict is made of them is told in [the accounts](accounts.md).\n",
    );
    heads(&mut page, "../diagnose/src/causes/tcp");
    page.push_str("\n# Causes of a load of UDP\n\nWhat `diagnose --udp` names. An id that stands above means the same here, seen in datagrams.\n");
    heads(&mut page, "../diagnose/src/causes/udp");
    check(&docs().join("causes.md"), &page);
}

#[test]
fn the_page_of_the_forwarding_plan_is_fresh() {
    let mut page = String::from(
        "# The plan of a forwarding benchmark\n\nEvery key of the file that `narrows rfc2544 PLAN` reads, written by `make docs`; \
         `narrows rfc2544 keys` prints the\nsame. A share is a number such as 0.005 or text such as \"0.5%\". What the benchmark does with it is in the [manual](manual.md).\n\n",
    );
    page.push_str(&narrows_runner::forwarding::reference().replace("### ", "## "));
    check(&docs().join("forwarding-plan.md"), &format!("{}\n", page.trim_end()));
}

#[test]
fn subcommands_are_read_from_a_help_text() {
    let text = "Usage: x\n\nCommands:\n  serve     be the other end\n            (a second line)\n  lab       a lab\n  help      Print\n\nOptions:\n  -h\n";
    assert_eq!(subcommands(text), ["serve", "lab"]);
}

/// The words of the narrows commands in the code blocks of a page: without prompt, environment, explanation, pipe and redirection.
fn commands(page: &str) -> Vec<Vec<String>> {
    let mut fenced = false;
    let code = page.lines().filter_map(|line| {
        if line.starts_with("```") {
            fenced = !fenced;
            return None;
        }
        if fenced { Some(line) } else { line.strip_prefix("    ") }
    });
    let command = |line: &str| {
        let line = line.split_once("$ ").map_or(line, |(_, command)| command).trim_start();
        let line = line.strip_prefix("sudo ").unwrap_or(line);
        // What follows two spaces explains it.
        let line = line.split("  ").next().unwrap_or_default();
        let end = line.find(['|', '>', '&', ';', '#']).unwrap_or(line.len());
        let words: Vec<String> = line[..end].split_whitespace().map(|word| word.replace('\'', "")).collect();
        // In a lab the command is one of a host of it.
        let at = words.windows(2).rposition(|two| two[0] != "lab" && two[1] == "narrows").map_or(0, |at| at + 1);
        let words = &words[at..];
        let is_one = words.first().is_some_and(|word| word == "narrows") && words.len() > 1;
        (is_one && !words.iter().any(|word| word.contains('…') || word.contains(':'))).then(|| words[1..].to_vec())
    };
    code.filter_map(command).collect()
}

#[test]
fn every_command_of_the_pages_is_one() {
    let mut pages: Vec<PathBuf> = std::fs::read_dir(docs()).into_iter().flatten().flatten().map(|it| it.path()).collect();
    pages.retain(|page| page.extension().is_some_and(|it| it == "md") && !page.ends_with("commands.md"));
    pages.push(docs().join("../README.md"));
    let mut seen = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap_or_else(|error| panic!("cannot read {}: {error}", page.display()));
        for words in commands(&text) {
            let output = Command::new(env!("CARGO_BIN_EXE_narrows")).args(&words).arg("--help").env_clear().output();
            let output = output.unwrap_or_else(|error| panic!("cannot run narrows: {error}"));
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{}: `narrows {}`: {said}", page.display(), words.join(" "));
            seen += 1;
        }
    }
    assert!(seen > 50, "only {seen} commands were found");
}

#[test]
fn the_picture_of_a_diagnosis_is_fresh() {
    let drawn = std::env::temp_dir().join(format!("narrows-docs-{}.svg", std::process::id()));
    let run = docs().join("../fixtures/runs/demo.run.json");
    let output = Command::new(env!("CARGO_BIN_EXE_narrows")).arg("report").arg(run).arg("--svg").arg(&drawn).output();
    let output = output.unwrap_or_else(|error| panic!("cannot run narrows: {error}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let picture = std::fs::read_to_string(&drawn).unwrap_or_else(|error| panic!("nothing was drawn: {error}"));
    let _ = std::fs::remove_file(&drawn);
    check(&docs().join("diagnosis.svg"), &picture);
}
