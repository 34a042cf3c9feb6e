//! Words that do not belong in the source: unsafe outside its room, unfinished work, tests that do not run.

use crate::tree::{code, crates, files, has_word, name, root, text};
use std::path::PathBuf;

/// Each with the reason that the message gives. Cut in two, so that this file passes its own test.
const FORBIDDEN: &[(&str, &str, &str)] = &[
    ("to", "do!", "unfinished work is not committed"),
    ("unimple", "mented!", "unfinished work is not committed"),
    ("FIX", "ME", "write an issue, or mend it"),
    ("TO", "DO", "write an issue, or mend it"),
    ("XX", "X", "write an issue, or mend it"),
    ("#[ig", "nore", "a test that does not run proves nothing: make it able to run, or say why it cannot as a value"),
    ("dbg", "!(", "say it in an error or a report"),
];

fn sources() -> Vec<PathBuf> {
    let root = root();
    ["crates", "bench", "fuzz"].iter().flat_map(|folder| files(&root.join(folder), ".rs")).collect()
}

#[test]
fn unsafe_lives_in_one_room() {
    let mut wrong = Vec::new();
    for path in sources() {
        let place = name(&path);
        if place.starts_with("crates/sys/") {
            continue;
        }
        for (number, line) in code(&text(&path)).iter().enumerate() {
            if has_word(line, concat!("un", "safe")) {
                wrong.push(format!("{place}:{}", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "only crates/sys may hold unsafe code; put a safe function there:\n{}", wrong.join("\n"));
}

#[test]
fn what_the_terminal_gets_of_others_is_cleaned() {
    // Those that clean, and a line above the progress bar, which is cleaned already.
    let own = ["crates/narrows/src/failure.rs", "crates/narrows/src/progress.rs", "crates/runner/src/lib.rs"];
    for path in ["narrows", "runner", "forwarding-runner"]
        .iter()
        .flat_map(|it| files(&root().join("crates").join(it).join("src"), ".rs"))
    {
        let (place, text) = (name(&path), text(&path));
        let wrong = code(&text).iter().any(|line| line.contains("eprintln!"));
        let instead = "use `failure::note!` or the runner's `say`, which clean a peer's words";
        assert!(own.contains(&place.as_str()) || !wrong, "{place}: {instead}");
    }
}

#[test]
fn unfinished_work_is_not_committed() {
    let mut wrong = Vec::new();
    for path in sources() {
        for (number, line) in text(&path).lines().enumerate() {
            for (head, tail, why) in FORBIDDEN {
                let word = format!("{head}{tail}");
                if line.contains(&word) {
                    wrong.push(format!("{}:{}: `{word}`: {why}", name(&path), number + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_source_file_begins_by_saying_what_it_is() {
    let mut wrong = Vec::new();
    for folder in crates() {
        for path in files(&root().join("crates").join(folder).join("src"), ".rs") {
            let text = text(&path);
            if text.lines().count() < 3 {
                continue;
            }
            let first = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
            if !first.starts_with("//!") {
                wrong.push(name(&path));
            }
        }
    }
    assert!(wrong.is_empty(), "these files do not begin with `//!` and a sentence:\n{}", wrong.join("\n"));
}

/// What a text of the project never holds: it must read the same on every machine.
const OF_ONE_MACHINE: &[(&str, &str)] = &[("/wo", "rk/"), ("index.cra", "tes.io"), ("static.cra", "tes.io")];

#[test]
fn no_text_names_a_place_of_one_machine() {
    let root = root();
    let mut wrong = Vec::new();
    for ending in [".rs", ".md", ".toml", ".json", ".txt"] {
        for path in files(&root, ending) {
            let text = text(&path);
            for (head, tail) in OF_ONE_MACHINE {
                if let Some(line) = text.lines().position(|line| line.contains(&format!("{head}{tail}"))) {
                    wrong.push(format!("{}:{}: `{head}{tail}` is a place of one machine", name(&path), line + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
