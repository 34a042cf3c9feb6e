//! One thing, one file, one line: in a folder with a table every file is declared once, and every declaration is a file.

use crate::tree::{code, entries, has_word, name, root, text};
use std::collections::BTreeSet;

/// The folders that are tables. A new one is added here.
const TABLES: &[&str] = &["crates/collect/src/collectors", "crates/diagnose/src/causes"];

#[test]
fn every_entry_is_a_file_and_every_file_an_entry() {
    let mut wrong = Vec::new();
    for folder in TABLES {
        let folder = root().join(folder);
        let table = folder.join("mod.rs");
        let code = code(&text(&table));
        let files: BTreeSet<String> = entries(&folder)
            .iter()
            .filter_map(|path| Some(path.file_name()?.to_str()?.trim_end_matches(".rs").to_owned()))
            .filter(|entry| entry != "mod")
            .collect();
        for entry in &files {
            // Either the table's macro declares and lists it by one line, or a `mod` and an entry do.
            let in_macro = code.iter().any(|line| line.trim() == format!("{entry},"));
            let declared = code.iter().any(|line| line.contains(&format!("mod {entry};")));
            let listed = code.iter().any(|line| has_word(line, entry) && line.contains(&format!("{entry}::")));
            if !(in_macro || declared && listed) {
                wrong.push(format!(
                    "{}/{entry}.rs is a file without its line: {} needs `{entry},` in its table",
                    name(&folder),
                    name(&table)
                ));
            }
        }
        assert!(!files.is_empty(), "{} is a table without entries", name(&folder));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_cause_says_what_it_is_how_it_shows_and_what_to_do() {
    let mut wrong = Vec::new();
    for path in entries(&root().join("crates/diagnose/src/causes")) {
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
