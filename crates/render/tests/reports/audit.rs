//! The audit, as a reader sees it. Its rows and hazards are made by hand: what finds them is tested where it lives.

use crate::samples;

use narrows_model::host::audit::{Audit, AuditRow, Hazard, SCHEMA, Severity};
use narrows_model::host::side_by_side::{Known, ROWS, differs};
use narrows_model::{Absent, Place};
use narrows_render::{Style, audit, json};
use samples::fits::{NARROWEST, fits};

fn sample() -> Audit {
    let client = samples::usual("dct00", 33_554_432, 4_194_304);
    let mut server =
        samples::usual("fe80::260:ddff:fe47:7d71.a-rather-long-name.aglt2.example.org", 262_144, 4_194_304);
    server.facts.retain(|fact| !fact.key.starts_with("nic.ring"));
    server.absent.push(Absent {
        collector: "ethtool".into(),
        what: "nic.ring.*".into(),
        why: "The driver has no rings to tell of.".into(),
    });
    let hazard = |id: &str, at, severity, key: &str, says: &str, command: Option<&str>| Hazard {
        id: id.into(),
        at,
        severity,
        key: key.into(),
        rows: vec![],
        says: says.into(),
        matters: "One connection cannot have more in flight than the receiver's buffer holds.".into(),
        harmless: "On shorter paths, and with several connections at once.".into(),
        command: command.map(Into::into),
    };
    let hazards = vec![
        hazard(
            "tcp-rmem-small",
            Place::Server,
            Severity::Warning,
            "tcp.rmem.min",
            "receive buffers are small: 256 KiB is enough for the 1 Gbit/s of the link only up to an RTT of 1.05 ms",
            Some("sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432'"),
        ),
        hazard(
            "rx-ring-small",
            Place::Client,
            Severity::Notice,
            "nic.ring.rx",
            "the rx ring has 256 of 4096 entries",
            Some("ethtool -G eth2 rx 4096"),
        ),
        hazard("mtu-differs", Place::Path, Severity::Info, "nic.mtu", "the MTU is 1500 B and 9000 B", None),
    ];
    let rows = ROWS
        .iter()
        .filter_map(|spec| {
            let (a, b) = (Known::from(&client).cell(spec), Known::from(&server).cell(spec));
            let said = a.value.is_some() || b.value.is_some();
            said.then(|| AuditRow {
                group: spec.group,
                key: spec.key().into(),
                label: spec.label.into(),
                differs: differs(spec, Some(&a), Some(&b)),
                hazards: hazards.iter().filter(|it| it.key == spec.key()).map(|it| it.id.clone()).collect(),
                client: Some(a),
                server: Some(b),
            })
        })
        .collect();
    Audit { schema: SCHEMA.into(), client: Some(client.name), server: Some(server.name), rows, hazards }
}

fn one_host() -> Audit {
    let mut audit = sample();
    audit.server = None;
    audit.hazards.retain(|hazard| hazard.at == Place::Client);
    for row in &mut audit.rows {
        (row.server, row.differs) = (None, false);
        row.hazards.retain(|id| id == "rx-ring-small");
    }
    audit
}

#[test]
fn both_hosts_as_text() {
    insta::assert_snapshot!(audit::text(&sample(), Style::default()));
}

#[test]
fn one_host_as_text_with_all_words() {
    insta::assert_snapshot!(audit::text(&one_host(), Style { full: true, width: 80, ..Style::default() }));
}

#[test]
fn only_the_end_with_the_hazard_is_painted() {
    let text = audit::text(&sample(), Style { color: true, ..Style::default() });
    let row = text.lines().find(|line| line.contains("≠! tcp_rmem")).expect("the row");
    assert!(row.contains("\x1b[33m4096 B / 128 KiB / 32 MiB"), "{row}");
    assert!(row.contains("\x1b[1;31m4096 B / 128 KiB / 256 KiB !"), "{row}");
}

#[test]
fn both_hosts_as_markdown() {
    insta::assert_snapshot!(audit::markdown(&sample()));
}

#[test]
fn one_host_has_no_role_nothing_to_differ_from_and_no_dashes() {
    let mut audit = one_host();
    for row in &mut audit.rows {
        if row.key.starts_with("nic.ring") {
            let cell = row.client.as_mut().expect("the host's");
            (cell.value, cell.text, cell.why_missing) = (None, "–".into(), Some("no such call".into()));
        }
    }
    for text in [audit::text(&audit, Style::default()), audit::markdown(&audit)] {
        for absent in ["client", "Client", "server", "≠", "–"] {
            assert!(!text.contains(absent), "{absent}: {text}");
        }
        let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("no {word}: {text}"));
        assert!(at("rx-ring-small") < at("tcp"), "the hazards come first: {text}");
        assert!(text.contains("no such call"), "{text}");
    }
}

#[test]
fn lines_fit() {
    for width in [60, 80, 100, 160] {
        let text = audit::text(&sample(), Style { width, ..Style::default() });
        for line in text.lines().filter(|line| !line.contains("$ ")) {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
    }
}

#[test]
fn nothing_unusual_is_said_too() {
    let quiet = Audit { hazards: vec![], rows: vec![], ..sample() };
    assert!(audit::text(&quiet, Style::default()).contains("No hazard found."));
}

#[test]
fn json_comes_back() {
    let text = json::pretty(&sample()).expect("json");
    assert!(text.contains("\"schema\": \"narrows.audit/1\""));
    assert_eq!(serde_json::from_str::<Audit>(&text).expect("it reads back"), sample());
}

#[test]
fn it_fits_the_narrowest_terminal() {
    let style = Style { width: NARROWEST, ..Style::default() };
    fits("two hosts", &audit::text(&sample(), style));
    fits("one host", &audit::text(&one_host(), Style { full: true, ..style }));
}
