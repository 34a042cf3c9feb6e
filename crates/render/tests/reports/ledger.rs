//! The packet ledger: its text and its picture.

use narrows_model::*;
use narrows_render::{Style, ledger};

pub(crate) fn stage(id: &str, at: Place, dropped: u64, source: &str) -> Stage {
    Stage {
        id: id.into(),
        at,
        entered: 0,
        dropped,
        uncertainty: 0,
        counted: !source.starts_with("no "),
        source: source.into(),
    }
}

fn lossy() -> Ledger {
    let mut stages = vec![
        stage("unsent", Place::Client, 240, "ENOBUFS of sendmmsg"),
        stage("send-buffer", Place::Client, 0, "SNDBUFERRORS of /proc/net/snmp"),
        stage("qdisc", Place::Client, 8_120, "drops of the qdiscs on veth0 (rtnetlink, TCA_STATS2), drops of veth0"),
        stage("nic-tx", Place::Client, 0, "tx_dropped of veth0 (rtnetlink, IFLA_STATS64)"),
        stage("path", Place::Path, 10_000, "what the neighbours leave"),
        stage("nic-rx", Place::Server, 0, "no counter of this driver tells it"),
        stage("softnet", Place::Server, 31, "dropped of /proc/net/softnet_stat"),
        stage("receive-filter", Place::Server, 0, "drop reason NETFILTER_DROP"),
        stage("receive-buffer", Place::Server, 164_192, "SO_RXQ_OVFL of the receiving sockets"),
        stage("delivered", Place::Server, 0, "the receiving application"),
    ];
    stages[4].counted = false;
    stages[6].uncertainty = 4;
    Ledger {
        flow: Flow::Up,
        unit: "datagrams".into(),
        offered: 4_999_799,
        stages,
        delivered: 4_817_216,
        duplicated: 3,
        unexplained: 0,
        uncertainty: 4,
        remarks: vec!["tracefs is not mounted: drop reasons would tell the filter's share from others".into()],
    }
}

fn clean() -> Ledger {
    let mut ledger =
        Ledger { flow: Flow::Down, delivered: 4_999_799, duplicated: 0, uncertainty: 0, remarks: vec![], ..lossy() };
    for stage in &mut ledger.stages {
        (stage.dropped, stage.uncertainty) = (0, 0);
    }
    ledger
}

fn unbalanced() -> Ledger {
    let mut ledger = lossy();
    ledger.stages.retain(|stage| stage.id != "path");
    (ledger.unexplained, ledger.remarks) = (10_000, vec![]);
    ledger
}

#[test]
fn what_was_dropped_is_shown_and_the_rest_is_folded() {
    insta::assert_snapshot!(ledger::text(&[lossy(), clean()], Style::default()));
}

#[test]
fn a_table_for_a_document() {
    let text = ledger::markdown(&[lossy(), unbalanced()]);
    let table: Vec<_> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert!(table.iter().all(|line| line.matches('|').count() == 7), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn everything_when_asked() {
    insta::assert_snapshot!(ledger::text(&[lossy()], Style { full: true, ..Style::default() }));
}

#[test]
fn sources_are_whole_at_every_width() {
    for full in [false, true] {
        for width in [60, 80, 100] {
            let text = ledger::text(&[lossy(), unbalanced()], Style { full, width, ..Style::default() });
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}:\n{text}");
            assert!(!text.contains('…'), "{width}:\n{text}");
        }
    }
}

#[test]
fn what_does_not_balance_is_said() {
    let text = ledger::text(&[unbalanced()], Style { width: 80, ..Style::default() });
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
    let claims = Ledger { unexplained: -40, ..clean() };
    let text = ledger::text(&[claims], Style::default());
    assert!(text.contains("−40 ± 0") && text.contains("more drops were counted than packets are missing"), "{text}");
}

#[test]
fn a_large_count_with_its_error_is_whole() {
    let mut ledger = lossy();
    ledger.stages[0] = Stage { dropped: 52_382_528, uncertainty: 5, entered: 52_739_776, ..ledger.stages[0].clone() };
    for width in [40, 80, 100] {
        let text = ledger::text(&[ledger.clone()], Style { width, ..Style::default() });
        assert!(text.contains("52,382,528 ± 5"), "{text}");
    }
}

#[test]
fn as_json_it_is_the_account_itself() {
    crate::samples::same::reads_back(&lossy());
}

#[test]
fn pictures() {
    for (name, picture) in [("lossy", lossy()), ("clean", clean()), ("unbalanced", unbalanced())] {
        insta::assert_snapshot!(format!("{name}.svg"), ledger::svg::waterfall(&picture));
    }
}

#[test]
fn a_hostile_ledger_breaks_nothing() {
    let mut ledger = lossy();
    for stage in &mut ledger.stages {
        (stage.dropped, stage.uncertainty, stage.id) = (u64::MAX, u64::MAX, "<svg>\x1b[31m".into());
    }
    (ledger.offered, ledger.delivered, ledger.unexplained) = (0, u64::MAX, i64::MIN);
    let picture = ledger::svg::waterfall(&ledger);
    assert!(!picture.contains('\x1b') && picture.matches("<svg").count() == 1);
    assert!(!ledger::text(&[ledger], Style::default()).contains('\x1b'));
}

#[test]
fn where_one_end_gave_no_counters_no_loss_is_called_accounted_for() {
    let of = |ledger: Ledger| {
        let remarks = vec![narrows_model::diagnosis::ledger::ONE_END_SILENT.to_owned()];
        ledger::text(&[Ledger { remarks, ..ledger }], Style::default())
    };
    let text = of(lossy());
    assert!(text.contains("what one end dropped is not known") && !text.contains("accounted for"), "{text}");
    let text = of(clean());
    assert!(text.contains("nothing is missing") && !text.contains("accounted for"), "{text}");
}
