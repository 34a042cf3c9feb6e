//! The source tree: where it is, which crates and files it has, and a file without its comments and strings.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("crates/narrows is two levels down").to_owned()
}

pub(crate) fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// A path as the messages name it: from the root.
pub(crate) fn name(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// The names of the folders in `crates/`, sorted.
pub(crate) fn crates() -> Vec<String> {
    let mut names: Vec<String> = entries(&root().join("crates"))
        .into_iter()
        .filter(|path| path.join("Cargo.toml").is_file())
        .filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    names
}

/// Everything directly in a folder; nothing where there is no such folder.
pub(crate) fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> =
        fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// Every file below a folder whose name ends so, sorted; build output and hidden folders are left out.
pub(crate) fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder) {
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        if path.is_dir() && !hidden && !path.ends_with("target") {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found
}

/// A Rust file line by line without comments and without what stands between quotes: what is left is code.
pub(crate) fn code(text: &str) -> Vec<String> {
    text.lines()
        .map(|line| {
            let line = line.replace("\\\"", "").replace("'\"'", "");
            line.split("//").next().unwrap_or_default().split('"').step_by(2).collect::<Vec<_>>().join("\"\"")
        })
        .collect()
}

/// Whether a line of code holds a word as a whole.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        !line[..at].chars().next_back().is_some_and(inside)
            && !line[at + word.len()..].chars().next().is_some_and(inside)
    })
}

#[test]
fn code_is_what_is_neither_comment_nor_string() {
    assert_eq!(code("let a = \"unsafe\"; // unsafe"), ["let a = \"\"; "]);
    assert_eq!(code("f(\"an \\\"unsafe\\\" word\")"), ["f(\"\")"]);
    assert!(has_word("unsafe {", "unsafe"));
    assert!(!has_word("unsafe_code", "unsafe"));
}
