//! One thing, one file, one line: in a folder with a table every file is declared once, and every declaration is a file.

use crate::tree::{code, entries, has_word, name, root, text};
use std::collections::BTreeSet;

/// A folder whose files are the entries of a table.
struct Table {
    folder: &'static str,
    /// Where the table is.
    table: &'static str,
    /// How the files of entries end.
    ending: &'static str,
    /// Files of the folder that help the others.
    helpers: &'static [&'static str],
}

/// The folders that are tables. A new one is added here.
const TABLES: &[Table] = &[
    Table {
        folder: "crates/collect/src/collectors",
        table: "crates/collect/src/collectors/mod.rs",
        ending: ".rs",
        helpers: &[],
    },
    Table {
        folder: "crates/diagnose/src/audit/hazards",
        table: "crates/diagnose/src/audit/hazards/mod.rs",
        ending: ".rs",
        helpers: &["comparisons", "tcp_buffers"],
    },
    Table {
        folder: "crates/diagnose/src/causes/tcp",
        table: "crates/diagnose/src/causes/tcp/mod.rs",
        ending: ".rs",
        helpers: &[],
    },
    Table {
        folder: "crates/diagnose/src/causes/udp",
        table: "crates/diagnose/src/causes/udp/mod.rs",
        ending: ".rs",
        helpers: &[],
    },
    Table {
        folder: "crates/lab/src/faults",
        table: "crates/lab/src/faults/mod.rs",
        ending: ".rs",
        helpers: &["costly_core", "fault", "undo", "value"],
    },
    Table {
        folder: "crates/runner/scenarios",
        table: "crates/runner/src/scenarios/mod.rs",
        ending: ".toml",
        helpers: &[],
    },
];

/// Whether a table has a line for an entry.
fn has_line(table: &str, entry: &str) -> bool {
    // A file that is no Rust is named in quotes; otherwise the table's macro declares and lists a module by one line, or a
    // `mod` and an entry do.
    let quoted = table.lines().any(|line| line.trim() == format!("\"{entry}\","));
    let code = code(table);
    let in_macro = code.iter().any(|line| line.trim() == format!("{entry},"));
    let declared = code.iter().any(|line| line.contains(&format!("mod {entry};")));
    let listed = code.iter().any(|line| has_word(line, entry) && line.contains(&format!("{entry}::")));
    quoted || in_macro || declared && listed
}

#[test]
fn every_entry_is_a_file_and_every_file_an_entry() {
    let mut wrong = Vec::new();
    for table in TABLES {
        let folder = root().join(table.folder);
        let code = text(&root().join(table.table));
        let files: BTreeSet<String> = entries(&folder)
            .iter()
            .filter_map(|path| Some(path.file_name()?.to_str()?.strip_suffix(table.ending)?.to_owned()))
            .filter(|entry| entry != "mod" && !table.helpers.contains(&entry.as_str()))
            .collect();
        for entry in files.iter().filter(|entry| !has_line(&code, entry)) {
            wrong.push(format!(
                "{}/{entry}{} is a file without its line in the table of {}",
                table.folder, table.ending, table.table
            ));
        }
        assert!(!files.is_empty(), "{} is a table without entries", table.folder);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_line_is_found_in_each_kind_of_table() {
    for (table, entry) in [
        ("causes! {\n    a_b,\n}", "a_b"),
        ("mod a_b;\nconst ALL: &[Fault] = &[\n    a_b::FAULT,\n];", "a_b"),
        ("scenarios! {\n    \"a-b\",\n}", "a-b"),
    ] {
        assert!(has_line(table, entry), "{table}");
        assert!(!has_line(table, "a"), "{table}");
    }
    assert!(!has_line("mod a_b;\nconst ALL: &[Fault] = &[];", "a_b"), "declared is not listed");
}

#[test]
fn every_cause_says_what_it_is_how_it_shows_and_what_to_do() {
    let mut wrong = Vec::new();
    for path in entries(&root().join("crates/diagnose/src/causes/tcp")) {
        let file = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        if file == "mod" {
            continue;
        }
        let head: Vec<String> =
            text(&path).lines().map_while(|line| line.strip_prefix("//!").map(str::to_owned)).collect();
        if head.first().map(|line| line.trim().to_owned()) != Some(format!("# {}", file.replace('_', "-"))) {
            wrong.push(format!(
                "{}: its head begins with `# ` and the cause's id, which is the file's name",
                name(&path)
            ));
        }
        for part in ["**Shows**", "**Fix**"] {
            if !head.iter().any(|line| line.trim_start().starts_with(part)) {
                wrong.push(format!("{}: its head has no paragraph {part}: the manual is made from it", name(&path)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// No build of the gate reads `fuzz/Cargo.toml`: a wrong one would be noticed by nobody.
#[test]
fn each_fuzz_target_is_a_program_of_its_own() {
    let manifest = text(&root().join("fuzz/Cargo.toml"));
    let listed: BTreeSet<String> = manifest
        .lines()
        .filter_map(|line| {
            let (name, rest) = line.trim().strip_prefix("{ name = \"")?.split_once('"')?;
            let path = format!(", path = \"fuzz_targets/{name}.rs\"");
            assert!(rest.starts_with(&path), "fuzz/Cargo.toml: the file of a target has its name: {line}");
            Some(name.to_owned())
        })
        .collect();
    let files: BTreeSet<String> = entries(&root().join("fuzz/fuzz_targets"))
        .iter()
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    assert_eq!(listed, files, "each file of fuzz/fuzz_targets has a line of `bin` in fuzz/Cargo.toml");
}
