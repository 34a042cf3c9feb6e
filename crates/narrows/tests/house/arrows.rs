//! Arrows only point down, the pure crates stay pure, and every crate lives under the workspace's lints.

use crate::tree::{crates, name, root, text};
use std::collections::BTreeMap;

/// The layers of the house from the ground up. A crate may depend on those below its own layer, never on its neighbours.
const LAYERS: &[&[&str]] = &[
    &["model"],
    &["stats", "sys", "wire"],
    &["mesh", "search"],
    &["fleet"],
    &["collect", "diagnose", "lab", "snmp", "store", "traffic"],
    &["views"],
    &["render"],
    &["forwarding", "runner"],
    &["forwarding-runner"],
    &["narrows"],
];

/// Crates without IO and without a clock: what they need comes in as an argument.
const PURE: &[&str] =
    &["diagnose", "fleet", "forwarding", "mesh", "model", "render", "search", "stats", "views", "wire"];

/// Crates that know these crates of the house only, their tests excepted.
const ONLY: &[(&str, &[&str])] =
    &[("views", &["model", "stats", "diagnose", "search", "mesh"]), ("render", &["model"])];

/// What a pure crate must not depend on, with any name: these are the ways to files, sockets, clocks and threads.
const IMPURE: &[&str] = &["axum", "hyper", "libc", "narrows-sys", "nix", "rustix", "socket2", "tokio"];

/// The names that a manifest depends on, by section (`dependencies`, `dev-dependencies`, `build-dependencies`).
fn dependencies(manifest: &str) -> BTreeMap<String, Vec<String>> {
    let mut section = String::new();
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            header.trim_end_matches(']').clone_into(&mut section);
        } else if section.ends_with("dependencies")
            && let Some((key, _)) = line.split_once('=')
            && !line.starts_with('#')
        {
            let dependency = key.trim().split('.').next().unwrap_or_default().to_owned();
            found.entry(section.clone()).or_default().push(dependency);
        }
    }
    found
}

fn layer(folder: &str) -> Option<usize> {
    LAYERS.iter().position(|layer| layer.contains(&folder))
}

#[test]
fn arrows_point_down() {
    let mut wrong = Vec::new();
    for folder in crates() {
        let Some(own) = layer(&folder) else {
            wrong.push(format!("crates/{folder} has no layer: give it one in LAYERS of {}", file!()));
            continue;
        };
        let manifest = root().join("crates").join(&folder).join("Cargo.toml");
        for (section, names) in dependencies(&text(&manifest)) {
            for other in names.iter().filter_map(|name| name.strip_prefix("narrows-")) {
                match layer(other) {
                    Some(below) if below < own => {}
                    _ => wrong.push(format!(
                        "{} [{section}]: `{folder}` points to `{other}`, which is not below it; \
                         pass the data through crates/runner, or move the shared part into model, stats, wire or sys",
                        name(&manifest)
                    )),
                }
            }
        }
    }
    assert!(wrong.is_empty(), "arrows only point down:\n{}", wrong.join("\n"));
}

#[test]
fn pure_crates_have_no_way_to_the_outside() {
    let mut wrong = Vec::new();
    for folder in PURE {
        let manifest = root().join("crates").join(folder).join("Cargo.toml");
        let found = dependencies(&text(&manifest));
        for dependency in found.get("dependencies").into_iter().flatten() {
            if IMPURE.contains(&dependency.as_str()) {
                wrong
                    .push(format!("{}: `{dependency}` does IO; a pure crate takes data as arguments", name(&manifest)));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn views_and_formats_know_no_more_than_they_need() {
    for (folder, allowed) in ONLY {
        let manifest = root().join("crates").join(folder).join("Cargo.toml");
        let found = dependencies(&text(&manifest));
        let known = found.get("dependencies").into_iter().flatten().filter_map(|name| name.strip_prefix("narrows-"));
        for other in known {
            assert!(allowed.contains(&other), "{}: `{folder}` must not know `{other}`", name(&manifest));
        }
    }
}

#[test]
fn every_crate_lives_under_the_workspace_lints() {
    for folder in crates() {
        let manifest = root().join("crates").join(&folder).join("Cargo.toml");
        let inherits = text(&manifest).contains("[lints]\nworkspace = true");
        assert_eq!(
            inherits,
            folder != "sys",
            "{}: every crate but sys (the room for unsafe) has `[lints] workspace = true`, which forbids unsafe",
            name(&manifest)
        );
    }
}

#[test]
fn a_manifest_reads_by_section() {
    let found = dependencies("[package]\nname = \"x\"\n[dependencies]\nnarrows-model.workspace = true\nlibc = \"1\"\n");
    assert_eq!(found["dependencies"], ["narrows-model", "libc"]);
}
