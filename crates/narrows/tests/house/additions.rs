//! What an addition costs: how many files outside of its own name an engine or a procedure. The table of CONTRIBUTING.md says
//! the same numbers.

use crate::tree::{code, files, has_word, name, root, text};
use std::collections::BTreeSet;

/// Something that is added as files of its own and a line in each table.
struct Addition {
    what: &'static str,
    /// The identifiers that name it.
    words: &'static [&'static str],
    /// Identifiers that begin so and go on with a capital letter name it, too.
    prefix: &'static str,
    /// Its own files: parts of their paths.
    own: &'static [&'static str],
    /// The tables with a line for it.
    tables: &'static [&'static str],
    /// No more tables than this.
    max: usize,
    /// Who else may name it, and why that is no cost of another such thing.
    others: &'static [(&'static str, &'static str)],
}

const ADDITIONS: &[Addition] = &[
    Addition {
        what: "the engine rr",
        words: &["rr", "rr_report"],
        prefix: "Rr",
        own: &["/rr/", "/rr.rs"],
        tables: &[
            "crates/model/src/load/mod.rs",
            "crates/traffic/src/lib.rs",
            "crates/views/src/measure/mod.rs",
            "crates/render/src/measure/mod.rs",
            "crates/runner/src/books.rs",
            "crates/narrows/src/commands/measure/mod.rs",
        ],
        max: 6,
        others: &[
            ("crates/model/src/lib.rs", "re-exports for short paths, which an engine can do without"),
            (
                "crates/model/src/run/live.rs",
                "names of its figures in a live view; an engine without them has those of TCP",
            ),
            ("crates/views/src/live.rs", "the same; an engine without them shows bits per second"),
            ("crates/render/src/live/measure.rs", "the same"),
            ("crates/diagnose/src/latency/", "a rule about latency, which reads its records"),
            ("crates/wire/src/lib.rs", "declares its header over UDP; an engine without one of its own needs none"),
            ("crates/runner/src/campaign/plan/load.rs", "keys of a plan file; an engine need not be in campaigns"),
            ("crates/traffic/src/common/", "a session answers the connections of single transactions"),
            ("crates/traffic/src/engines.rs", "the same"),
            ("crates/runner/src/server/running.rs", "the same"),
            ("crates/runner/src/server/trial.rs", "the same"),
        ],
    },
    Addition {
        what: "the procedure FRMOL",
        words: &["frmol"],
        prefix: "Frmol",
        own: &["/frmol.rs"],
        tables: &[
            "crates/forwarding/src/data/procedures/mod.rs",
            "crates/forwarding/src/procedures/mod.rs",
            "crates/forwarding/src/views/procedures/mod.rs",
            "crates/forwarding/src/writing/procedures/mod.rs",
        ],
        max: 4,
        others: &[("crates/forwarding-runner/src/verify/", "a check of the tester, which uses it")],
    },
];

impl Addition {
    /// Whether a line of code names it.
    fn is_named(&self, line: &str) -> bool {
        let inside = |c: char| c.is_alphanumeric() || c == '_';
        self.words.iter().any(|word| has_word(line, word))
            || line.split(|c| !inside(c)).any(|word| {
                let rest = word.strip_prefix(self.prefix);
                rest.is_some_and(|rest| rest.chars().next().is_none_or(char::is_uppercase))
            })
    }

    fn is_own(&self, file: &str) -> bool {
        self.own.iter().any(|part| file.contains(part))
    }

    fn is_other(&self, file: &str) -> bool {
        self.others.iter().any(|(part, _)| file.starts_with(part))
    }
}

/// The code of a file without its tests.
fn program(text: &str) -> &str {
    let tests = text.find("#[cfg(test)]\nmod tests {");
    &text[..tests.unwrap_or(text.len())]
}

fn is_test(file: &str) -> bool {
    !file.contains("/src/") || ["/tests/", "tests.rs", "/testing"].iter().any(|part| file.contains(part))
}

#[test]
fn an_addition_is_named_by_its_own_files_and_its_tables_alone() {
    let mut wrong = Vec::new();
    let sources = files(&root().join("crates"), ".rs");
    for addition in ADDITIONS {
        let naming: BTreeSet<String> = sources
            .iter()
            .filter(|path| !is_test(&name(path)) && !addition.is_own(&name(path)))
            .filter(|path| code(program(&text(path))).iter().any(|line| addition.is_named(line)))
            .map(|path| name(path))
            .filter(|file| !addition.is_other(file))
            .collect();
        let tables: BTreeSet<String> = addition.tables.iter().map(|file| (*file).to_owned()).collect();
        let new =
            naming.difference(&tables).map(|file| format!("{file} names {}: do that in its own files", addition.what));
        wrong.extend(new);
        let gone = tables
            .difference(&naming)
            .map(|file| format!("{file} no longer names {}: take it from the list", addition.what));
        wrong.extend(gone);
        if tables.len() > addition.max {
            wrong.push(format!(
                "{} has a line in {} tables: {} are allowed",
                addition.what,
                tables.len(),
                addition.max
            ));
        }
    }
    assert!(wrong.is_empty(), "an addition is a file of its own and a line in few tables:\n{}", wrong.join("\n"));
}

#[test]
fn a_name_is_found_as_a_word() {
    let rr = &ADDITIONS[0];
    for line in ["pub mod rr;", "LoadPlan::Rr(plan) => plan,", "use x::{A, RrReport};", "rr_report(run)"] {
        assert!(rr.is_named(line), "{line}");
    }
    for line in ["let err = 1;", "Error", "Rrr", "arr[0]"] {
        assert!(!rr.is_named(line), "{line}");
    }
    assert_eq!(program("fn f() {}\n#[cfg(test)]\nmod tests {\n    rr();\n}\n"), "fn f() {}\n");
}
