//! The Markdown of a diagnosis.

use crate::samples;

use narrows_model::*;
use narrows_render::{diagnosis, markdown};

#[test]
fn every_shape() {
    for (name, report) in samples::all() {
        insta::assert_snapshot!(name, diagnosis::markdown(&report));
    }
}

#[test]
fn where_packets_went_is_told_where_any_are_missing() {
    let stage = |id: &str, at, dropped| Stage { entered: 1000, ..crate::ledger::stage(id, at, dropped, "a|counter") };
    let mut report = samples::all().remove(0).1;
    let mut ledger = Ledger {
        flow: Flow::Up,
        unit: "packets".into(),
        offered: 1000,
        stages: vec![stage("qdisc", Place::Client, 7), stage("delivered", Place::Server, 0)],
        delivered: 993,
        ..Ledger::default()
    };
    report.accounts.ledger = vec![ledger.clone()];
    let page = diagnosis::markdown(&report);
    assert!(page.contains("\n## Packet ledger (packets), up\n"), "{page}");
    assert!(page.contains("| qdisc | client | 7 | 0.70 % | 993 | a\\|counter |\n"), "{page}");
    ledger.stages.remove(0);
    ledger.delivered = 1000;
    report.accounts.ledger = vec![ledger];
    assert!(!diagnosis::markdown(&report).contains("Where the packets went"), "nothing is missing");
}

#[test]
fn words_from_outside_stay_words() {
    assert_eq!(markdown::text("<script>*x*|`y`\x1b[2J"), "&lt;script&gt;\\*x\\*\\|\\`y\\`?\\[2J");
    assert_eq!(markdown::code("a`b|c\nd"), "a'b\\|c d");
    let page = diagnosis::markdown(&samples::long_names());
    assert!(!page.contains('\x1b'));
}
