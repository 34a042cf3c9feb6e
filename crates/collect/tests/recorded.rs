//! Recorded hosts: all facts of each capture below `fixtures/hosts`.

use narrows_collect::{COLLECTORS, Class, Host, Recorded, counters, inventory};
use narrows_model::{Snapshot, Unit};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn hosts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts")
}

fn open(name: &str) -> Recorded {
    Recorded::open(&hosts().join(name)).expect("a capture")
}

/// Facts and absences, one per line; durations are left out.
fn shown(snapshot: &Snapshot) -> String {
    let mut text = format!("{} at {}\n", snapshot.host, snapshot.taken_unix_us);
    for fact in &snapshot.facts {
        let _ = writeln!(text, "{} = {} [{:?}] from {}", fact.key, fact.value, fact.unit, fact.source);
    }
    for absent in &snapshot.absent {
        let _ = writeln!(text, "- {} ({}): {}", absent.what, absent.collector, absent.why);
    }
    text
}

macro_rules! captures {
    ($($test:ident: $name:literal,)*) => {
        const NAMES: &[&str] = &[$($name),*];
        $(
            #[test]
            fn $test() {
                insta::assert_snapshot!($name, shown(&inventory(&open($name), None)));
            }
        )*
    };
}

captures! {
    ten_gigabit_in_a_slot_of_four_lanes: "10g-x4-slot",
    ten_gigabit_in_a_slot_of_eight_lanes: "10g-x8-slot",
    low_end: "low-end",
    virtual_machine: "vm",
    two_nodes_and_64_queues: "numa-multiqueue",
    dct00: "dct00",
    umfs05: "umfs05",
    laptop_on_a_weak_wireless_link: "wireless",
}

#[test]
fn every_capture_is_tested() {
    let found: BTreeSet<String> = narrows_sys::files::list(&hosts()).expect("the directory").into_iter().collect();
    let tested: BTreeSet<String> = NAMES.iter().map(|name| (*name).to_owned()).chain(["README.md".into()]).collect();
    assert_eq!(found, tested);
}

#[test]
fn the_slot_halves_what_the_card_could_do() {
    let facts = inventory(&open("10g-x4-slot"), None);
    assert_eq!(facts.number("pcie.bandwidth"), Some(8e9));
    assert_eq!(facts.number("pcie.bandwidth.max"), Some(16e9));
    assert_eq!(facts.number("nic.speed"), Some(10e9));
    let peer = inventory(&open("10g-x8-slot"), None);
    assert_eq!(peer.number("pcie.bandwidth"), Some(16e9));
}

#[test]
fn the_cpu_of_a_softnet_line_is_the_one_that_it_names() {
    let facts = inventory(&open("numa-multiqueue"), None);
    // CPU 5 is offline: CPU 17 has the 17th line, and only it dropped.
    assert_eq!(facts.number("softnet.cpu17.dropped"), Some(2.0));
    assert_eq!(facts.number("softnet.dropped"), Some(2.0));
    assert!(facts.get("softnet.cpu5.processed").is_none());
    let old = inventory(&open("low-end"), None);
    assert_eq!(old.number("softnet.time_squeeze"), Some(7.0));
    assert!(old.family("softnet.cpu").next().is_none(), "an old kernel does not say which CPU a line is of");
}

#[test]
fn the_cap_on_the_frequency_thermal_throttling_and_cpus_next_to_the_card_are_read() {
    let facts = inventory(&open("numa-multiqueue"), None);
    assert_eq!(facts.get("nic.local_cpus").map(|fact| fact.value.to_string()).as_deref(), Some("16-31 48-63"));
    assert_eq!(facts.number("cpu.frequency.limit"), Some(2.8e9));
    assert_eq!(facts.number("cpu.thermal.throttled_ms"), Some(1200.0));
    assert!(inventory(&open("vm"), None).get("cpu.thermal.throttled_ms").is_none());
}

#[test]
fn each_key_is_a_fact_or_absent_and_in_the_declared_unit() {
    for name in NAMES {
        let facts = inventory(&open(name), None);
        for key in COLLECTORS.iter().flat_map(|collector| collector.provides) {
            let fact = facts.facts.iter().find(|fact| key.covers(&fact.key));
            assert!(fact.is_none_or(|fact| fact.unit == key.unit), "{name}: {}", key.name);
            let family = key.name.ends_with('*');
            let told = fact.is_some() || facts.why_absent(key.name).is_some() || family;
            assert!(told, "{name}: {} is neither a fact nor absent", key.name);
        }
    }
}

#[test]
fn counters_are_part_of_the_inventory() {
    assert!(COLLECTORS.iter().all(|collector| collector.class != Class::Counters), "else the next line is wrong");
    for name in NAMES {
        let host = open(name);
        let (all, some) = (inventory(&host, None), counters(&host, None));
        assert!(some.facts.iter().all(|fact| all.facts.contains(fact)), "{name}");
        assert!(some.facts.iter().any(|fact| fact.unit == Unit::Count), "{name}");
        assert_eq!(all.taken_unix_us, host.taken_unix_us());
    }
}
