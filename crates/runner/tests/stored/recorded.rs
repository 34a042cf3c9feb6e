//! The audit of each recorded host, as its user sees it: the capture is read, taken for an inventory, audited and rendered.
//!
//! A capture holds what its source says and no more. What the source's author found unusual must be found here too, and what
//! the author found in order must stay unmarked.

use narrows_collect::{Recorded, inventory};
use narrows_diagnose::audit::audit;
use narrows_model::{Audit, Place, Severity, Snapshot};
use narrows_render::Style;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn captures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/hosts")
}

fn host(name: &str) -> Snapshot {
    inventory(&Recorded::open(&captures().join(name)).expect(name), None)
}

fn alone(name: &str) -> Audit {
    audit(Some(&host(name)), None)
}

fn pair(client: &str, server: &str) -> Audit {
    audit(Some(&host(client)), Some(&host(server)))
}

/// The pair of the report of 2010: its client in the short slot.
fn slots() -> Audit {
    pair("10g-x4-slot", "10g-x8-slot")
}

/// The pair of the tuning log of 2007.
fn long_path() -> Audit {
    pair("dct00", "umfs05")
}

fn text(audit: &Audit) -> String {
    narrows_render::audit::text(audit, Style::default())
}

/// What was found: id and place.
fn found(audit: &Audit) -> BTreeSet<(&str, Place)> {
    audit.hazards.iter().map(|hazard| (hazard.id.as_str(), hazard.at)).collect()
}

/// A row of the audit as its client and its server.
fn row<'a>(audit: &'a Audit, key: &str) -> (&'a str, &'a str) {
    let row = audit.rows.iter().find(|row| row.key == key).expect(key);
    let side = |cell: &'a Option<narrows_model::host::side_by_side::Cell>| cell.as_ref().map_or("", |cell| &cell.text);
    (side(&row.client), side(&row.server))
}

#[test]
fn every_capture_is_shown() {
    insta::assert_snapshot!("low-end", text(&alone("low-end")));
    insta::assert_snapshot!("vm", text(&alone("vm")));
    insta::assert_snapshot!("numa-multiqueue", text(&alone("numa-multiqueue")));
    insta::assert_snapshot!("10g-slots", text(&slots()));
    insta::assert_snapshot!("long-path", text(&long_path()));
    insta::assert_snapshot!("wireless", text(&alone("wireless")));
    let shown =
        ["10g-x4-slot", "10g-x8-slot", "README.md", "dct00", "low-end", "numa-multiqueue", "umfs05", "vm", "wireless"];
    let mut there = narrows_sys::files::list(&captures()).expect("the captures");
    there.sort();
    assert_eq!(there, shown);
}

#[test]
fn each_row_of_the_report_of_2010_is_there() {
    let audit = slots();
    for (key, client, server) in [
        ("route.source", "192.0.2.2", "192.0.2.1"),
        ("nic.speed", "10 Gbit/s of 10 Gbit/s", "10 Gbit/s of 10 Gbit/s"),
        ("nic.carrier", "on", "on"),
        ("nic.duplex", "full", "full"),
        ("nic.pause.autoneg", "on", "on"),
        ("nic.pause.rx", "on", "on"),
        ("nic.pause.tx", "on", "on"),
        ("nic.mtu", "9000 B", "9000 B"),
        ("pcie.speed", "2.5 GT/s x4", "2.5 GT/s x8"),
        ("tcp.rmem.min", "4096 B / 512 KiB / 97.7 MiB", "4096 B / 512 KiB / 97.7 MiB"),
        (
            "tcp.mem.low",
            "191,904 pages / 255,872 pages / 383,808 pages",
            "572,352 pages / 763,136 pages / 1,144,704 pages",
        ),
        ("tcp.wmem.min", "4096 B / 512 KiB / 97.7 MiB", "4096 B / 512 KiB / 97.7 MiB"),
        ("tcp.sack", "off", "off"),
        (
            "udp.mem.low",
            "191,904 pages / 255,872 pages / 383,808 pages",
            "572,352 pages / 763,136 pages / 1,144,704 pages",
        ),
        ("udp.rmem_min", "4096 B", "4096 B"),
        ("udp.wmem_min", "4096 B", "4096 B"),
        ("nic.counter.rx_packets", "5,725,558", "5,725,576"),
        ("nic.counter.tx_packets", "491,108", "491,126"),
        ("nic.counter.rx_bytes", "48,411,512,340", "48,411,519,886"),
        ("nic.counter.tx_bytes", "29,532,462", "26,587,945"),
        ("nic.counter.rx_errors", "0", "0"),
        ("nic.counter.tx_errors", "0", "0"),
    ] {
        assert_eq!(row(&audit, key), (client, server), "{key}");
    }
}

#[test]
fn the_short_slot_and_the_missing_option_are_all_that_is_marked_in_2010() {
    let audit = slots();
    let want = [("pcie-narrow", Place::Client), ("sack-off", Place::Client), ("sack-off", Place::Server)];
    assert_eq!(found(&audit), BTreeSet::from(want));
    assert_eq!(audit.hazards[0].id, "pcie-narrow");
    assert_eq!(audit.hazards[0].severity, Severity::Warning);
}

#[test]
fn what_the_authors_of_2007_wrote_down_is_found() {
    let audit = long_path();
    let want = [
        // "the ring buffer settings are relatively small versus the maximum allowable (256 vs 4096)"
        ("rx-ring-small", Place::Client),
        ("tx-ring-small", Place::Client),
        // "a large number of dropped received (RX) packets"
        ("receive-drops", Place::Client),
        // "the txqueuelen has been increased to 10000 from a default of 1000"
        ("txqueuelen-unusual", Place::Client),
        // "limited by two other parameters which needed to be increased"
        ("core-rmem-below-tcp", Place::Server),
        ("core-wmem-below-tcp", Place::Server),
        // "Note the 1500 MTU limitation on this path."
        ("mtu-differs", Place::Path),
        ("path-mtu-below-interface", Place::Server),
    ];
    assert_eq!(found(&audit), BTreeSet::from(want));
    let says = |id: &str| audit.hazards.iter().find(|hazard| hazard.id == id).map(|hazard| hazard.says.as_str());
    assert_eq!(says("rx-ring-small"), Some("the rx ring has 256 of 4096 entries"));
    assert_eq!(says("receive-drops"), Some("178067 of 265555257 received packets were dropped since boot"));
}

#[test]
fn a_card_without_offloads_is_no_hazard() {
    assert_eq!(row(&alone("low-end"), "nic.feature.tso"), ("off", ""));
    assert!(found(&alone("low-end")).is_empty());
}
