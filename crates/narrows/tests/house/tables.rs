//! One thing, one file, one line: in a folder with a table every file is declared once, and every declaration is a file.

use crate::tree::{code, entries, has_word, name, root, text};
use std::collections::BTreeSet;

/// The folders that are tables. A new one is added here.
const TABLES: &[&str] = &[];

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
            let declared = code.iter().any(|line| line.contains(&format!("mod {entry};")));
            let listed = code.iter().any(|line| has_word(line, entry) && line.contains(&format!("{entry}::")));
            if !declared || !listed {
                wrong.push(format!(
                    "{}/{entry}.rs is a file without its line: {} needs `mod {entry};` and an entry `{entry}::…`",
                    name(&folder),
                    name(&table)
                ));
            }
        }
        assert!(!files.is_empty(), "{} is a table without entries", name(&folder));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
