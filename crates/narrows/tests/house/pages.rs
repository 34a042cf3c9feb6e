//! The pages tell the truth that can be checked: each crate is on the map, each link has a target.

use crate::tree::{crates, entries, files, name, root, text};
use std::path::PathBuf;

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

/// All pages for readers.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<_> =
        entries(&root()).into_iter().filter(|path| path.extension().is_some_and(|e| e == "md")).collect();
    pages.extend(files(&root().join("docs"), ".md"));
    pages
}

#[test]
fn every_link_between_pages_has_a_target() {
    let mut wrong = Vec::new();
    for page in pages() {
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

/// The anchor of a heading, as forges and mdBook make it.
fn anchor(heading: &str) -> String {
    let words = heading.trim_start_matches('#').trim().to_lowercase().replace(' ', "-");
    words.chars().filter(|letter| letter.is_alphanumeric() || "-_".contains(*letter)).collect()
}

#[test]
fn every_anchor_of_a_link_is_a_heading() {
    let mut wrong = Vec::new();
    for page in pages() {
        let content = text(&page);
        for target in content.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let Some((path, wanted)) = target.split_once('#') else { continue };
            let other = if path.is_empty() { page.clone() } else { page.with_file_name(path) };
            let is_page = !target.contains("://") && other.extension().is_some_and(|ending| ending == "md");
            if is_page && !text(&other).lines().any(|line| line.starts_with('#') && anchor(line) == wanted) {
                wrong.push(format!("{} links to {target}, which is no heading there", name(&page)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(anchor("## Live views: `--tui`"), "live-views---tui");
}

#[test]
fn the_site_has_every_page_once_and_leads_to_no_other_file() {
    let docs = root().join("docs");
    let summary = text(&docs.join("SUMMARY.md"));
    for path in files(&docs, ".md") {
        let page = name(&path).trim_start_matches("docs/").to_owned();
        let times = summary.matches(&format!("]({page})")).count();
        assert_eq!(times, usize::from(page != "SUMMARY.md"), "docs/SUMMARY.md names {page} {times} times");
        assert!(!text(&path).contains("](../"), "docs/{page} links to a file that is not on the site");
    }
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
