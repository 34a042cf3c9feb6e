//! The tables are complete and true to their own words; what narrows sets is what its commands say.

use super::*;
use narrows_forwarding::data::advice::{Advice, AdviceRole, HostParts, Preset};
use narrows_model::load::frames::Mac;
use narrows_model::{Place, Setting};
use narrows_runner::tune::{TuneError, Tuner};
use std::collections::BTreeSet;

fn book(system: AdviceSystem) -> Handbook {
    handbook(system).expect("a handbook")
}

fn all() -> impl Iterator<Item = (AdviceSystem, Advice)> {
    AdviceSystem::ALL.into_iter().map(book).flat_map(|book| book.advice.into_iter().map(move |it| (book.system, it)))
}

/// Words of at least two capitals that stand by themselves.
fn capitals(line: &str) -> impl Iterator<Item = &str> {
    let parts = line.split(|c: char| !c.is_ascii_alphanumeric());
    parts.filter(|word| word.len() > 2 && word.bytes().all(|b| b.is_ascii_uppercase()))
}

#[test]
fn every_advice_is_whole() {
    for (system, advice) in all() {
        let at = format!("{} {}", system.word(), advice.id);
        assert!(!advice.roles.is_empty() && !advice.commands.is_empty() && !advice.source.is_empty(), "{at}");
        assert!(advice.why.ends_with('.') && !advice.why.trim_end_matches('.').contains(". "), "{at}: one sentence");
        assert!(advice.id.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-'), "{at}");
        let looks_only = ["nic-choice", "honest-counters", "fresh-counters"].contains(&advice.id.as_str());
        assert_eq!(advice.undo.is_empty(), looks_only, "{at}: what is changed has its way back");
    }
}

#[test]
fn an_id_is_there_once_in_each_handbook() {
    for system in AdviceSystem::ALL {
        let advice = book(system).advice;
        let ids: BTreeSet<&str> = advice.iter().map(|advice| advice.id.as_str()).collect();
        assert_eq!(ids.len(), advice.len(), "{}", system.word());
        assert_eq!(book(system).system, system);
    }
}

#[test]
fn every_word_in_capitals_is_explained_and_used() {
    for system in AdviceSystem::ALL {
        let book = book(system);
        let lines = book.advice.iter().flat_map(|advice| advice.commands.iter().chain(&advice.undo));
        let used: BTreeSet<&str> = lines.flat_map(|line| capitals(line)).collect();
        // A word may be a part of a name: static_arp_NAME.
        let explained: BTreeSet<&str> = book.words.iter().map(|(word, _)| word.as_str()).collect();
        assert_eq!(used, explained, "{}", system.word());
    }
}

#[test]
fn what_every_lab_needs_is_said_for_every_switch() {
    for system in AdviceSystem::ALL {
        for id in ["static-mac", "spanning-tree", "discovery", "flow-control", "snmp-counters"] {
            let found = book(system).advice.iter().any(|one| one.id == id && one.roles.contains(&AdviceRole::Switch));
            assert!(found, "{} lacks {id} for the switch", system.word());
        }
    }
}

#[test]
fn what_narrows_sets_is_what_the_commands_say() {
    let parts = HostParts {
        interfaces: vec!["DEVICE".to_owned()],
        bridges: vec!["BRIDGE".to_owned()],
        neighbours: vec![("DEVICE".to_owned(), [198, 18, 0, 1].into(), Mac([2, 0, 0, 0, 0, 1]))],
        rings: vec![("DEVICE".to_owned(), 4096, 4096)],
    };
    let presets = |advice: &Advice| {
        let settings = advice.presets.iter().flat_map(|preset| preset.settings(&parts));
        let words = |line: String| line.replace("198.18.0.1", "ADDRESS").replace("02:00:00:00:00:01", "MAC");
        settings.map(|setting| words(setting.to_string())).collect::<Vec<_>>()
    };
    for (system, advice) in all() {
        for line in presets(&advice) {
            assert_eq!(system, AdviceSystem::Linux, "narrows sets nothing elsewhere");
            assert!(advice.commands.contains(&line), "{}: {line}", advice.id);
        }
    }
}

#[test]
fn what_narrows_sets_is_in_the_tables_of_tune() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let allowed = |setting: Setting| match Tuner::new(folder.path(), "test").apply(&setting, Place::Client) {
        Err(TuneError::NotInTable { allowed, .. }) => allowed,
        other => vec![format!("{other:?}")],
    };
    // Nothing is set: all are refused, with the list of what would not be.
    let keys = allowed(Setting::Sysctl { key: "kernel.panic".into(), value: "1".into() });
    let features = allowed(Setting::Offload { device: "none".into(), feature: "none".into(), on: true });
    let options = allowed(Setting::Bridge { bridge: "none".into(), option: "none".into(), value: 1 });
    let has = |list: &[String], word: &str| list.iter().any(|one| one == word);
    for preset in book(AdviceSystem::Linux).advice.into_iter().flat_map(|advice| advice.presets) {
        match preset {
            Preset::Sysctl { key, .. } | Preset::DeviceSysctl { key, .. } => {
                assert!(has(&keys, &key), "{key} is not one of {keys:?}");
            }
            Preset::Offload { feature, .. } => {
                assert!(has(&features, &feature), "{feature} is not one of {features:?}");
            }
            Preset::Bridge { option, .. } => assert!(has(&options, &option), "{option} is not one of {options:?}"),
            Preset::FlowControl { .. } | Preset::Rings | Preset::Neighbours => {}
        }
    }
}

#[test]
fn the_handbooks_as_they_are_printed() {
    for system in AdviceSystem::ALL {
        insta::assert_snapshot!(
            system.word(),
            narrows_forwarding::writing::advice::text(&book(system), None, narrows_render::Style::default())
        );
    }
}
