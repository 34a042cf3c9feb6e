//! Rules and collectors meet in keys: what a rule needs some collector provides, in the unit that the rule expects, and what a
//! rule's file reads is among its needs. Neither crate can see the other, so only here can it be checked.

use narrows_diagnose::audit::{Check, hazards};
use narrows_diagnose::causes::{tcp as causes, udp};
use narrows_model::FactKey;
use narrows_model::host::side_by_side::ROWS;
use narrows_model::keys::ALL as TYPED;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn provided() -> impl Iterator<Item = &'static FactKey> {
    let watched = narrows_collect::Watched::ALL.into_iter().flat_map(narrows_collect::Watched::provides);
    narrows_collect::COLLECTORS.iter().flat_map(|collector| collector.provides).chain(watched)
}

fn is_provided(name: &str) -> bool {
    provided().any(|key| key.covers(name))
}

#[test]
fn what_a_rule_needs_is_provided_in_its_unit() {
    let causes = causes::TABLE.iter().map(|cause| (cause.id, cause.needs));
    let hazards = hazards::all().map(|rule| (rule.id, rule.needs));
    let udp = udp::TABLE.iter().map(|cause| (cause.id, cause.needs));
    let ledger = std::iter::once(("the ledger", narrows_diagnose::ledger::NEEDS));
    for (id, need) in
        causes.chain(hazards).chain(udp).chain(ledger).flat_map(|(id, needs)| needs.iter().map(move |need| (id, need)))
    {
        let units: BTreeSet<String> =
            provided().filter(|key| key.covers(need.name)).map(|key| format!("{:?}", key.unit)).collect();
        assert_eq!(units, BTreeSet::from([format!("{:?}", need.unit)]), "{id} needs {}", need.name);
    }
}

#[test]
fn what_a_row_shows_is_provided() {
    for (row, (_, key)) in ROWS.iter().flat_map(|row| row.parts.iter().map(move |part| (row, part))) {
        assert!(is_provided(key.name), "{}: no collector provides {}", row.label, key.name);
    }
}

#[test]
fn a_hazard_marks_the_row_of_a_key_that_it_needs() {
    for rule in hazards::all() {
        let row = ROWS.iter().find(|row| row.key() == rule.key.name).expect(rule.id);
        let shows = |need: &FactKey| row.parts.iter().any(|(_, key)| key.name == need.name);
        let group = rule.key.name.split('.').next().unwrap_or_default();
        let near = |need: &FactKey| need.name.starts_with(group);
        assert!(rule.needs.iter().any(|need| shows(need) || near(need)), "{} marks {}", rule.id, rule.key.name);
    }
}

fn sources(below: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../diagnose/src").join(below)
}

/// The code of a file: without its tests and without comments.
fn code(path: &Path) -> String {
    let text = narrows_sys::files::read_text(path).expect("a file named after its rule");
    let rules = text.split("#[cfg(test)]").next().unwrap_or_default();
    rules.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The keys that some code reads: constants of the table, and words between quotation marks that have the form of a key: dotted,
/// with a first part that some collector's keys have.
fn keys(code: &str) -> BTreeSet<&str> {
    let constant = |(at, _): (usize, &str)| {
        let ident: &str = code[at + "keys::".len()..].split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next()?;
        TYPED.iter().find(|(name, _)| *name == ident).map(|(_, key)| key.name)
    };
    let roots: BTreeSet<&str> = provided().filter_map(|key| key.name.split('.').next()).collect();
    let is_key = |word: &&str| {
        let plain = word.chars().all(|c| c.is_ascii_alphanumeric() || "._*{}".contains(c));
        plain && word.split_once('.').is_some_and(|(root, rest)| roots.contains(root) && !rest.is_empty())
    };
    let words = code.split('"').skip(1).step_by(2).filter(is_key);
    code.match_indices("keys::").filter_map(constant).chain(words).collect()
}

/// The functions that causes share: all of their common file, and those that another file of them may call.
fn helpers(common: &str, files: &[String]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let files = files.iter().map(|code| (code.as_str(), &["pub(super) fn ", "pub(crate) fn "][..]));
    for (code, starts) in std::iter::once((common, &["fn ", "pub fn ", "pub(crate) fn "][..])).chain(files) {
        let mut name = None;
        for line in code.lines() {
            if line.contains("fn ") && !line.starts_with([' ', '/']) {
                let named = starts.iter().find_map(|start| line.strip_prefix(start)?.split(['(', '<']).next());
                name = named.map(str::to_owned);
            }
            if let Some(name) = &name {
                let body: &mut String = found.entry(name.clone()).or_default();
                body.push_str(line);
                body.push('\n');
            }
        }
    }
    found
}

/// The code of the helpers that some code calls, and of those that these call.
fn called<'a>(code: &str, helpers: &'a BTreeMap<String, String>) -> BTreeMap<&'a str, &'a str> {
    let calls = |code: &str, name: &str| {
        code.match_indices(name).any(|(at, _)| {
            let longer = code[..at].chars().next_back().is_some_and(|c| c.is_ascii_alphanumeric() || c == '_');
            !longer && code[at + name.len()..].starts_with('(')
        })
    };
    let (mut all, mut open) = (BTreeMap::new(), vec![code]);
    while let Some(code) = open.pop() {
        for (name, body) in helpers {
            if calls(code, name) && all.insert(name.as_str(), body.as_str()).is_none() {
                open.push(body);
            }
        }
    }
    all
}

/// Whether a key is among the needs. A word with a hole, and one that more parts must follow, stand for all that begin so.
fn in_needs(needs: &[FactKey], word: &str) -> bool {
    let begins =
        |prefix: &str| needs.iter().any(|need| need.name.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty()));
    match word.split_once('{') {
        Some((prefix, _)) => begins(prefix),
        None if is_provided(word) => needs.iter().any(|need| need.name == word),
        None => begins(&format!("{word}.")),
    }
}

#[test]
fn what_a_causes_file_reads_is_among_its_needs() {
    let folder = sources("causes/tcp");
    let file = |id: &str| code(&folder.join(format!("{}.rs", id.replace('-', "_"))));
    let files: Vec<String> = causes::TABLE.iter().map(|cause| file(cause.id)).collect();
    // The methods of the evidence are helpers, too.
    let methods = code(&sources("evidence/tcp").join("mod.rs")).replace("\n    ", "\n");
    let shared = ["tcp.rs", "bound.rs"].map(|file| code(&sources("causes/shared").join(file)));
    let helpers = helpers(&[shared.concat(), methods].concat(), &files);
    for shared in ["link_bps_of", "foretold_bps", "held_back"] {
        assert!(helpers.contains_key(shared), "the scan does not find {shared}: {:?}", helpers.keys());
    }
    let mut wrong = Vec::new();
    for (cause, code) in causes::TABLE.iter().zip(&files) {
        let called = called(code, &helpers);
        let read =
            called.values().map(|body| keys(body)).fold(keys(code), |all, some| all.union(&some).copied().collect());
        wrong.extend(
            read.iter()
                .filter(|key| !in_needs(cause.needs, key))
                .map(|key| format!("{} reads {key} and does not need it", cause.id)),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_file_of_a_cause_of_udp_reads_is_among_its_needs() {
    let folder = sources("causes/udp");
    let mut wrong = Vec::new();
    for cause in udp::TABLE {
        let code = code(&folder.join(format!("{}.rs", cause.id.replace('-', "_"))));
        let unread = keys(&code).into_iter().filter(|key| !in_needs(cause.needs, key)).map(str::to_owned);
        wrong.extend(unread.map(|key| format!("{} reads {key} and does not need it", cause.id)));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_hazards_file_reads_is_among_its_needs() {
    let folder = sources("audit/hazards");
    let mut wrong = Vec::new();
    for rule in hazards::all() {
        // A comparison of facts reads what it needs, and nothing else; the two rules of buffers share a file.
        if matches!(rule.check, Check::Facts { .. } | Check::Differs(_)) || rule.id.ends_with("mem-small") {
            continue;
        }
        let code = code(&folder.join(format!("{}.rs", rule.id.replace('-', "_"))));
        let rule_alone: String = code.lines().filter(|line| !line.trim_start().starts_with("key: ")).collect();
        let mut read = keys(&rule_alone);
        if code.contains("device(") {
            read.insert("nic.name");
        }
        wrong.extend(
            read.iter()
                .filter(|key| !in_needs(rule.needs, key))
                .map(|key| format!("{} reads {key} and does not need it", rule.id)),
        );
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_scan_sees_what_it_looks_for() {
    let code = r#"evidence.number(role, keys::QDISC_RATE); "net.core.rmem_max"; format!("tcp.rmem.{part}"); "a sentence. And one.";"#;
    assert_eq!(keys(code), BTreeSet::from(["qdisc.rate", "tcp.rmem.{part}"]));
    let common = "fn outer(x: u8) {\n    inner(x)\n}\nfn inner(x: u8) {\n    y.number(keys::NIC_SPEED)\n}\n";
    let files = ["fn own() {}\npub(super) fn lent() {\n    y.number(keys::QDISC_DROPS)\n}\n".to_owned()];
    let helpers = helpers(common, &files);
    assert_eq!(helpers.keys().collect::<Vec<_>>(), ["inner", "lent", "outer"]);
    let called = called("let z = super::outer(1);", &helpers);
    assert_eq!(called.keys().copied().collect::<Vec<_>>(), ["inner", "outer"]);
    assert!(super::keys::called("let z = outermost(1);", &helpers).is_empty());
    assert_eq!(keys(called["inner"]), BTreeSet::from(["nic.speed"]));
}
