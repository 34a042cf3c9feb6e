//! The audit: both hosts' parameters side by side, and what is unusual about them. Parameters only, no load: a hazard is
//! never a verdict.

pub mod hazards;
pub mod path;
pub mod rule;
mod template;

pub use rule::{Check, Found, Rule, When};

use narrows_model::host::audit::{Audit, AuditRow, Hazard, SCHEMA};
use narrows_model::host::side_by_side::{Cell, Known, ROWS, differs};
use narrows_model::{Place, Snapshot};

/// The audit of one host or of both. A row is left out where neither side knows its fact and neither says why.
pub fn audit(client: Option<&Snapshot>, server: Option<&Snapshot>) -> Audit {
    let hazards = hazards(client, server);
    let name = |host: Option<&Snapshot>| host.map(|host| host.host.clone());
    Audit {
        schema: SCHEMA.to_owned(),
        client: name(client),
        server: name(server),
        rows: rows(client, server, &hazards),
        hazards,
    }
}

/// What is unusual about the hosts, gravest first; of one gravity in the order of ids and places.
pub fn hazards(client: Option<&Snapshot>, server: Option<&Snapshot>) -> Vec<Hazard> {
    let mut found: Vec<Hazard> = hazards::all().flat_map(|rule| rule.apply(client, server)).collect();
    found.sort_by(|a, b| (a.severity, &a.id, a.at).cmp(&(b.severity, &b.id, b.at)));
    found
}

fn rows(client: Option<&Snapshot>, server: Option<&Snapshot>, hazards: &[Hazard]) -> Vec<AuditRow> {
    let said =
        |cell: &Option<Cell>| cell.as_ref().is_some_and(|cell| cell.value.is_some() || cell.why_missing.is_some());
    ROWS.iter()
        .filter_map(|spec| {
            let cell = |host: Option<&Snapshot>| host.map(|host| Known::from(host).cell(spec));
            let (client, server) = (cell(client), cell(server));
            if !said(&client) && !said(&server) {
                return None;
            }
            let mut ids: Vec<String> =
                hazards.iter().filter(|hazard| hazard.is_about(spec.key())).map(|hazard| hazard.id.clone()).collect();
            ids.dedup();
            Some(AuditRow {
                group: spec.group,
                key: spec.key().to_owned(),
                label: spec.label.to_owned(),
                differs: differs(spec, client.as_ref(), server.as_ref()),
                hazards: ids,
                client,
                server,
            })
        })
        .collect()
}

/// A hazard in one sentence, for a report that has room for no more.
pub fn sentence(hazard: &Hazard) -> String {
    let at = match hazard.at {
        Place::Path => "both ends".to_owned(),
        place => place.to_string(),
    };
    let command = hazard.command.as_ref().map(|command| format!(" ({command})")).unwrap_or_default();
    format!("{at}: {}{command}", hazard.says)
}

#[cfg(test)]
mod tests {
    use super::rule::tests::host;
    use super::*;
    use narrows_model::{Absent, Severity, Unit, Value};

    #[test]
    fn rows_know_their_hazards_and_their_reasons() {
        let client = host(&[
            ("nic.ring.rx", Value::Integer(256), Unit::Number),
            ("nic.ring.rx.max", Value::Integer(4096), Unit::Number),
        ]);
        let mut server = host(&[]);
        server.absent.push(Absent {
            collector: "ethtool".into(),
            what: "nic.ring.*".into(),
            why: "no such call".into(),
        });
        let audit = audit(Some(&client), Some(&server));
        let ring = audit.rows.iter().find(|row| row.key == "nic.ring.rx").expect("a row");
        assert_eq!(ring.hazards, ["rx-ring-small"]);
        assert!(!ring.differs);
        let server = ring.server.as_ref().expect("asked for");
        assert_eq!((server.text.as_str(), server.why_missing.as_deref()), ("–", Some("no such call")));
        assert_eq!(audit.hazards.len(), 1);
        assert!(sentence(&audit.hazards[0]).starts_with("client: "));
    }

    /// The keys of the rows that a hazard of a host with these facts marks.
    fn marked(id: &str, facts: &[(&str, Value, Unit)]) -> Vec<String> {
        let audit = audit(Some(&host(facts)), None);
        let rows = audit.rows.iter().filter(|row| row.hazards.iter().any(|it| it == id));
        rows.map(|row| row.key.clone()).collect()
    }

    #[test]
    fn a_hazard_marks_each_row_that_it_is_about_and_no_other() {
        let (byte, rate, flag) = (Unit::Bytes, Unit::BitsPerSecond, Unit::Flag);
        let int = Value::Integer;
        let buffers = |word: &str| {
            let keys = ["core.@.max", "tcp.@.min", "tcp.@.max"].map(|key| key.replace('@', word));
            let [core, min, max] = keys.each_ref().map(String::as_str);
            let small = int(262_144);
            let facts = [
                (core, int(65_536), byte),
                (min, int(4096), byte),
                (max, small, byte),
                ("nic.speed", int(1 << 30), rate),
            ];
            [marked(&format!("core-{word}-below-tcp"), &facts), marked(&format!("tcp-{word}-small"), &facts)]
        };
        assert_eq!(buffers("rmem"), [vec!["tcp.rmem.min", "core.rmem.max"], vec!["nic.speed", "tcp.rmem.min"]]);
        assert_eq!(buffers("wmem"), [vec!["tcp.wmem.min", "core.wmem.max"], vec!["nic.speed", "tcp.wmem.min"]]);
        let mtu = [("path.mtu", int(1400), byte), ("nic.mtu", int(1500), byte)];
        assert_eq!(marked("path-mtu-below-interface", &mtu), ["nic.mtu", "path.mtu"]);
        let bus = |link: i64| {
            let bus = [("pcie.speed", int(8), Unit::Number), ("pcie.bandwidth", int(8), rate)];
            let most = [("pcie.bandwidth.max", int(16), rate), ("nic.speed", int(link), rate)];
            marked("pcie-narrow", &[bus, most].concat())
        };
        assert_eq!(
            (bus(10), bus(1)),
            (vec!["nic.speed".into(), "pcie.bandwidth".into()], vec!["pcie.bandwidth".into()])
        );
        let off = |key| (key, Value::Flag(false), flag);
        let offloads = [("nic.feature.tso", Value::Flag(true), flag), off("nic.feature.gro")];
        assert_eq!(marked("offloads-off", &offloads), ["nic.feature.gro"]);
        let quota = [("cgroup.cpu_quota", Value::Float(1.5), Unit::Fraction), ("cpu.count", int(4), Unit::Number)];
        assert_eq!(marked("cpu-quota", &quota), ["cpu.count", "cgroup.cpu_quota"]);
        let qdisc = [("qdisc.root.kind", "tbf".into(), Unit::Text), ("qdisc.rate", int(1), rate)];
        assert_eq!(marked("qdisc-shapes", &qdisc), ["qdisc.root.kind", "qdisc.rate"]);
        let ring = [("nic.ring.rx", int(256), Unit::Number), ("nic.ring.rx.max", int(4096), Unit::Number)];
        assert_eq!(marked("rx-ring-small", &ring), ["nic.ring.rx"]);
    }

    #[test]
    fn each_end_marks_its_own_rows() {
        let off = |key| host(&[(key, Value::Flag(false), Unit::Flag)]);
        let audit = audit(Some(&off("nic.feature.gro")), Some(&off("nic.feature.tso")));
        let places = |key: &str| {
            let row = audit.rows.iter().find(|row| row.key == key).expect("a row");
            audit.hazards_of(row).map(|hazard| hazard.at).collect::<Vec<_>>()
        };
        assert_eq!(places("nic.feature.gro"), [Place::Client]);
        assert_eq!(places("nic.feature.tso"), [Place::Server]);
    }

    #[test]
    fn one_host_alone_and_none() {
        let audit = audit(Some(&host(&[("tcp.sack", Value::Flag(false), Unit::Flag)])), None);
        assert!(audit.rows.iter().all(|row| row.server.is_none()));
        assert_eq!(audit.hazards[0].severity, Severity::Warning);
        assert!(super::audit(None, None).rows.is_empty());
        assert!(super::hazards(Some(&host(&[])), Some(&host(&[]))).is_empty(), "what is missing is no hazard");
    }
}
