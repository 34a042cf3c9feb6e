//! The pages tell the truth that can be checked: each crate is on the map, each link has a target.

use crate::tree::{crates, entries, files, name, root, text};

#[test]
fn the_map_names_every_crate_and_no_other() {
    let map = text(&root().join("ARCHITECTURE.md"));
    let known = crates();
    for folder in &known {
        assert!(map.contains(&format!("`crates/{folder}`")), "ARCHITECTURE.md does not name `crates/{folder}`");
    }
    for named in map.split("`crates/").skip(1).filter_map(|rest| rest.split(['`', '/']).next()) {
        assert!(
            known.iter().any(|folder| folder == named),
            "ARCHITECTURE.md names `crates/{named}`, which is not there"
        );
    }
}

#[test]
fn the_pages_that_a_newcomer_looks_for_are_there() {
    for page in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"] {
        assert!(root().join(page).is_file(), "{page} is missing");
    }
    let readme = text(&root().join("README.md"));
    for command in ["make demo", "make test"] {
        assert!(readme.contains(command), "README.md does not say `{command}`");
    }
    assert!(text(&root().join("CHANGELOG.md")).contains("## Unreleased"), "CHANGELOG.md has no `## Unreleased`");
}

#[test]
fn every_link_between_pages_has_a_target() {
    let mut pages: Vec<_> =
        entries(&root()).into_iter().filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    pages.extend(files(&root().join("docs"), ".md"));
    let mut wrong = Vec::new();
    for page in pages {
        let text = text(&page);
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = target.split('#').next().unwrap_or_default();
            let outside = target.contains("://") || path.is_empty();
            if !outside && !page.parent().is_some_and(|folder| folder.join(path).exists()) {
                wrong.push(format!("{} links to {target}, which is not there", name(&page)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_make_target_that_a_page_names_exists() {
    let makefile = text(&root().join("Makefile"));
    for page in ["README.md", "CONTRIBUTING.md"] {
        let page_text = text(&root().join(page));
        for target in page_text.split("`make ").skip(1).filter_map(|rest| rest.split(['`', ' ']).next()) {
            assert!(makefile.contains(&format!("\n{target}:")), "{page} names `make {target}`, which is no target");
        }
    }
}
