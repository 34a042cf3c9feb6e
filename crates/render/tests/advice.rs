//! Advice as it is printed: the whole of a small handbook, of one role and of none.

use narrows_model::forwarding::advice::{
    Advice, AdviceFound, AdviceItem, AdviceRole, AdviceSystem, Handbook, Preset, Standing,
};
use narrows_model::{Change, Place, Setting};
use narrows_render::{Style, advice};

const BOOK: Handbook = Handbook {
    system: AdviceSystem::Linux,
    typed: "in a shell, as root",
    words: &[("DEVICE", "each device that test frames pass"), ("MAC", "the neighbour's Ethernet address")],
    advice: &[
        Advice {
            id: "receive-offload",
            roles: &[AdviceRole::Switch, AdviceRole::Router],
            why: "GRO merges frames that a router must forward one by one: packets are counted where frames were, and sizes \
                  change.",
            commands: &["ethtool -K DEVICE gro off"],
            undo: &["ethtool -K DEVICE gro on"],
            source: "Documentation/networking/segmentation-offloads.rst",
            presets: &[Preset::Offload { feature: "gro", on: false }],
        },
        Advice {
            id: "static-mac",
            roles: &[AdviceRole::Switch],
            why: "The receiver never sends.",
            commands: &["bridge fdb replace MAC dev DEVICE master static"],
            undo: &["bridge fdb del MAC dev DEVICE master", "true"],
            source: "bridge(8)",
            presets: &[],
        },
    ],
};

#[test]
fn a_handbook_is_printed_whole() {
    insta::assert_snapshot!(advice::text(&BOOK, None, Style::default()));
}

#[test]
fn one_role_is_told_its_own() {
    insta::assert_snapshot!(advice::text(&BOOK, Some(AdviceRole::Router), Style::default()));
    assert_eq!(
        advice::text(&BOOK, Some(AdviceRole::Tester), Style::default()),
        "There is no advice for a tester with Linux.\n"
    );
}

fn item(advice: &'static str, setting: Setting, standing: Standing) -> AdviceItem {
    AdviceItem { advice, what: setting.to_string(), setting: Some(setting), standing }
}

fn found() -> AdviceFound {
    let device = || "eth1".to_owned();
    let budget = Setting::Sysctl { key: "net.core.netdev_budget".into(), value: "600".into() };
    AdviceFound {
        role: AdviceRole::Router,
        seat: vec![device(), "eth2".to_owned()],
        items: vec![
            AdviceItem {
                advice: "static-neighbours",
                what: "the neighbour 198.18.0.2".to_owned(),
                setting: None,
                standing: Standing::NotHere("nobody answers for it".to_owned()),
            },
            item("flow-control", Setting::FlowControl { device: device(), on: false }, Standing::Already),
            item("process-limit", budget, Standing::Differs("300".to_owned())),
            item(
                "process-limit",
                Setting::Sysctl { key: "net.core.netdev_budget_usecs".into(), value: "20000".into() },
                Standing::Differs("8000".to_owned()),
            ),
        ],
        left: vec!["discovery", "queues"],
    }
}

#[test]
fn what_would_be_set_is_told_item_by_item() {
    insta::assert_snapshot!(advice::found(&found(), None, Style::default()));
    let nothing = AdviceFound { items: found().items[..2].to_vec(), left: Vec::new(), ..found() };
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
