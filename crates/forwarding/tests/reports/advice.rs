//! Advice as it is printed: the whole of a small handbook, of one role and of none.

use narrows_forwarding::data::advice::{
    Advice, AdviceFound, AdviceItem, AdviceRole, AdviceSystem, Handbook, Preset, SettingState,
};
use narrows_forwarding::writing::advice;
use narrows_model::{Change, Place, Setting};
use narrows_render::Style;

fn book() -> Handbook {
    let own = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    Handbook {
        system: AdviceSystem::Linux,
        typed: "in a shell, as root".into(),
        words: vec![
            ("DEVICE".into(), "each device that test frames pass".into()),
            ("MAC".into(), "the neighbour's Ethernet address".into()),
        ],
        advice: vec![
            Advice {
                id: "receive-offload".into(),
                roles: vec![AdviceRole::Switch, AdviceRole::Router],
                why: "GRO merges frames that a router must forward one by one: packets are counted where frames were, and \
                      sizes change."
                    .into(),
                commands: own(&["ethtool -K DEVICE gro off"]),
                undo: own(&["ethtool -K DEVICE gro on"]),
                source: "Documentation/networking/segmentation-offloads.rst".into(),
                presets: vec![Preset::Offload { feature: "gro".into(), on: false }],
            },
            Advice {
                id: "static-mac".into(),
                roles: vec![AdviceRole::Switch],
                why: "The receiver never sends.".into(),
                commands: own(&["bridge fdb replace MAC dev DEVICE master static"]),
                undo: own(&["bridge fdb del MAC dev DEVICE master", "true"]),
                source: "bridge(8)".into(),
                presets: vec![],
            },
        ],
    }
}

#[test]
fn a_handbook_is_printed_whole() {
    insta::assert_snapshot!(advice::text(&book(), None, Style::default()));
}

#[test]
fn one_role_is_told_its_own() {
    insta::assert_snapshot!(advice::text(&book(), Some(AdviceRole::Router), Style::default()));
    assert_eq!(
        advice::text(&book(), Some(AdviceRole::Tester), Style::default()),
        "There is no advice for a tester with Linux.\n"
    );
}

fn item(advice: &str, setting: Setting, state: SettingState) -> AdviceItem {
    AdviceItem { advice: advice.to_owned(), what: setting.to_string(), setting: Some(setting), state }
}

fn found() -> AdviceFound {
    let device = || "eth1".to_owned();
    let budget = Setting::Sysctl { key: "net.core.netdev_budget".into(), value: "600".into() };
    AdviceFound {
        role: AdviceRole::Router,
        interfaces: vec![device(), "eth2".to_owned()],
        items: vec![
            AdviceItem {
                advice: "static-neighbours".to_owned(),
                what: "the neighbour 198.18.0.2".to_owned(),
                setting: None,
                state: SettingState::Unavailable("nobody answers for it".to_owned()),
            },
            item("flow-control", Setting::FlowControl { device: device(), on: false }, SettingState::AsAdvised),
            item("process-limit", budget, SettingState::Differs("300".to_owned())),
            item(
                "process-limit",
                Setting::Sysctl { key: "net.core.netdev_budget_usecs".into(), value: "20000".into() },
                SettingState::Differs("8000".to_owned()),
            ),
        ],
        manual: vec!["discovery".to_owned(), "queues".to_owned()],
    }
}

#[test]
fn what_would_be_set_is_told_item_by_item() {
    insta::assert_snapshot!(advice::found(&found(), None, Style::default()));
    let nothing = AdviceFound { items: found().items[..2].to_vec(), manual: Vec::new(), ..found() };
    let text = advice::found(&nothing, None, Style::default());
    assert!(text.ends_with("\n\nNothing is left to set here.\n"), "{text}");
}

#[test]
fn what_was_set_is_told_with_its_way_back() {
    let change = |set: Setting| Change {
        id: "1-2-3".to_owned(),
        at: Place::Client,
        set,
        before: "300".to_owned(),
        made_unix_us: 0,
        in_force: true,
    };
    let made: Vec<Change> = found().to_set().into_iter().map(change).collect();
    insta::assert_snapshot!(advice::found(&found(), Some(&made), Style::default()));
}
