//! Advice as it is printed: the whole of a small handbook, of one role and of none.

use narrows_model::advice::{Advice, AdviceRole, AdviceSystem, Handbook, Preset};
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
