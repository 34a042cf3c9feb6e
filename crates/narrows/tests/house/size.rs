//! No file grows into a monolith: 500 lines are the most, and what is above today may only shrink.

use crate::tree::{crates, files, name, root, text};

/// Lines of one source file, tests included.
const MOST: usize = 500;

/// Files above the limit, with the lines that they may have. A ratchet: numbers go down, entries go away, none is added
/// without a reason beside it.
const ABOVE: &[(&str, usize)] = &[];

#[test]
fn no_file_is_a_monolith() {
    let mut wrong = Vec::new();
    for folder in crates() {
        for path in files(&root().join("crates").join(folder).join("src"), ".rs") {
            let (path, lines) = (name(&path), text(&path).lines().count());
            let allowed = ABOVE.iter().find(|(file, _)| *file == path).map_or(MOST, |(_, lines)| *lines);
            if lines > allowed {
                wrong.push(format!(
                    "{path} has {lines} lines and may have {allowed}: split it by what its parts are about"
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_ratchet_only_turns_one_way() {
    for (file, allowed) in ABOVE {
        let path = root().join(file);
        let lines = if path.is_file() { text(&path).lines().count() } else { 0 };
        assert!(lines > MOST, "{file} has {lines} lines now: take its entry ({allowed}) out of ABOVE");
        assert!(lines + 20 > *allowed, "{file} shrank: turn its entry in ABOVE down to {lines}");
    }
}
