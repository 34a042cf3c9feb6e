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
                hazards.iter().filter(|hazard| hazard.key == spec.key()).map(|hazard| hazard.id.clone()).collect();
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

    #[test]
    fn one_host_alone_and_none() {
        let audit = audit(Some(&host(&[("tcp.sack", Value::Flag(false), Unit::Flag)])), None);
        assert!(audit.rows.iter().all(|row| row.server.is_none()));
        assert_eq!(audit.hazards[0].severity, Severity::Warning);
        assert!(super::audit(None, None).rows.is_empty());
        assert!(super::hazards(Some(&host(&[])), Some(&host(&[]))).is_empty(), "what is missing is no hazard");
    }
}
