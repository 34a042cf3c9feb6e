//! What a trace shows of the path, as hazards of an audit.

use narrows_model::host::audit::Audit;
use narrows_model::host::audit::Hazard;
use narrows_model::trace::report::{TraceFinding, TraceReport};
use narrows_model::{Place, Severity, keys};

/// A finding that is a hazard: its id, severity, why it matters and when not.
type Known = (&'static str, Severity, &'static str, &'static str);

/// The findings that are hazards. Loss needs more probes than an audit sends, and what hides the path does not harm it.
const KNOWN: &[Known] = &[
    (
        "black-hole",
        Severity::Warning,
        "A connection stalls as soon as it sends full segments: the sender does not learn that they are too large.",
        "With TCP's own MTU probing (tcp_mtu_probing), or where MSS clamping keeps segments small.",
    ),
    (
        "mtu-shrinks",
        Severity::Notice,
        "Each connection learns it from that hop's ICMP messages; a filter that drops them makes it a black hole.",
        "Where ICMP passes, as in this trace.",
    ),
    (
        "asymmetry",
        Severity::Info,
        "Delay, loss and MTU of the two directions are those of different routers: look at each on its own.",
        "Most paths between networks are asymmetric.",
    ),
];

/// Adds to an audit what a trace of the path shows, and of the path back where the server traced it.
pub fn add(audit: &mut Audit, trace: &TraceReport) {
    let back = trace.back.iter().flat_map(|back| &back.findings).map(|it| ("way back: ", it));
    let mut seen: Vec<&str> = Vec::new();
    for (way, finding) in trace.findings.iter().map(|it| ("", it)).chain(back) {
        let TraceFinding { id, says, .. } = finding;
        let Some((id, severity, matters, harmless)) = KNOWN.iter().find(|known| known.0 == id) else { continue };
        // Both traces compare the directions.
        if *id == "asymmetry" && seen.contains(id) {
            continue;
        }
        seen.push(id);
        // Different routers say nothing about the MTU.
        let row = audit.rows.iter_mut().find(|row| row.key == keys::PATH_MTU.name && *id != "asymmetry");
        if let Some(row) = row.filter(|row| !row.hazards.iter().any(|known| known == id)) {
            row.hazards.push((*id).to_owned());
        }
        audit.hazards.push(Hazard {
            id: (*id).to_owned(),
            at: Place::Path,
            severity: *severity,
            key: keys::PATH_MTU.into(),
            rows: Vec::new(),
            says: format!("{way}{says}"),
            matters: (*matters).to_owned(),
            harmless: (*harmless).to_owned(),
            command: None,
        });
    }
    audit.hazards.sort_by(|a, b| (a.severity, &a.id, a.at).cmp(&(b.severity, &b.id, b.at)));
}
