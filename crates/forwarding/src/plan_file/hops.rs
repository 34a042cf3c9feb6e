//! `[[hop]]`: devices on the way, and where their counters are read.

use super::ports::{device, host, token_file};
use super::reader::Table;
use crate::data::{CounterSource, HopPlan};
use narrows_model::host::snmp::{Secret, SnmpAccess, SnmpAgent};
use std::net::{IpAddr, SocketAddr};

/// Entries of `[[hop]]`.
pub(super) const MAX: usize = 16;
/// Names that the books have already.
const TAKEN: [&str; 2] = ["generator", "receiver"];
/// Characters of a name.
const MAX_NAME: usize = 100;

/// The hops of the file; one of which anything is wrong is left out.
pub(super) fn hops(tables: &[Table<'_>]) -> Vec<HopPlan> {
    let mut names: Vec<String> = Vec::new();
    let mut under_test = 0;
    let mut hops = Vec::new();
    for table in tables {
        let name = table.required("name").and_then(|item| item.text(MAX_NAME, "a name"));
        if let Some(name) = &name {
            if TAKEN.contains(&name.as_str()) {
                table.note("name", format!("it is `{name}`, a reserved name for an end of the tester"));
            } else if names.contains(name) {
                table.note("name", format!("it is `{name}`, which another hop has already"));
            }
            names.push(name.clone());
        }
        let tested = table.item("under-test").and_then(|item| item.flag()).unwrap_or(false);
        under_test += u32::from(tested);
        if tested && under_test > 1 {
            table.note("under-test", "a second hop is under test; a plan has one device under test");
        }
        let input = table.required("input").and_then(|item| device(&item));
        let output = table.required("output").and_then(|item| device(&item));
        let source = table.required_table("source").and_then(|source_table| source(&source_table));
        if let (Some(name), Some(input), Some(output), Some(source)) = (name, input, output, source) {
            hops.push(HopPlan { name, source, input, output, under_test: tested });
        }
    }
    hops
}

/// Keys of a source by its kind.
fn allowed(kind: &str) -> &'static [&'static str] {
    match kind {
        "namespace" => &["kind", "name"],
        "narrows" => &["kind", "host", "token-file"],
        _ => &["kind", "agent", "version", "community", "user", "password"],
    }
}

fn source(table: &Table<'_>) -> Option<CounterSource> {
    let kinds = ["namespace", "narrows", "snmp"].map(|kind| (kind, kind));
    let kind = table.required("kind")?.one_of(&kinds)?;
    table.refuse_others(allowed(kind), &format!("a source of the kind \"{kind}\""));
    match kind {
        "namespace" => {
            let item = table.required("name")?;
            let name = item.text(255, NAMESPACES)?;
            if is_namespace(&name) { Some(CounterSource::Namespace { name }) } else { item.refuse(NAMESPACES) }
        }
        "narrows" => {
            let token_file = token_file(table);
            Some(CounterSource::Narrows { host: host(&table.required("host")?)?, token_file })
        }
        _ => snmp_agent(table).map(CounterSource::Snmp),
    }
}

const NAMESPACES: &str = "the name of a network namespace, pid:1234, lab:NAME/HOST or a path like /proc/1234/ns/net";

fn is_namespace(name: &str) -> bool {
    if let Some(pid) = name.strip_prefix("pid:") {
        return pid.parse::<u32>().is_ok_and(|pid| pid > 0);
    }
    if let Some(of_lab) = name.strip_prefix("lab:") {
        return of_lab
            .split_once('/')
            .is_some_and(|(lab, host)| !lab.is_empty() && !host.is_empty() && !host.contains('/'));
    }
    name.starts_with('/') || !name.contains('/')
}

/// The agent that a table names by its keys `agent`, `version`, `community` or `user`, and `password`.
pub(super) fn snmp_agent(table: &Table<'_>) -> Option<SnmpAgent> {
    let agent = table.required("agent").and_then(|item| {
        let agent = item.as_text().filter(|word| is_agent(word)).map(str::to_owned);
        agent.or_else(|| item.refuse("the agent's address, like 192.0.2.1, 192.0.2.1:161 or [2001:db8::1]:161"))
    });
    let version = match table.item("version") {
        None => "2c",
        Some(item) => item.one_of(&[("2c", "2c"), ("3", "3")])?,
    };
    let (own, others) = if version == "3" { ("user", "community") } else { ("community", "user") };
    if table.has(others) {
        table.note(others, format!("SNMP {version} has no {others}; it has a {own}"));
    }
    let name = table.required(own).and_then(|item| item.text(255, own));
    let password = match table.item("password") {
        None => None,
        Some(_) if version == "2c" => {
            table.note("password", "SNMP 2c has no password; it has a community");
            return None;
        }
        // Eight characters are the fewest that USM takes (RFC 3414, section 11.2).
        Some(item) => match item.as_text().filter(|word| (8..=255).contains(&word.chars().count())) {
            Some(word) => Some(Secret::new(word)),
            None => {
                // Not shown: it is a secret.
                item.note("it must be text of 8 to 255 characters");
                return None;
            }
        },
    };
    let (agent, name) = (agent?, name?);
    let access = match version {
        "3" => SnmpAccess::V3 { user: name, password },
        _ => SnmpAccess::V2c { community: Secret::new(name) },
    };
    Some(SnmpAgent { agent, access })
}

fn is_agent(word: &str) -> bool {
    let bare = word.strip_prefix('[').and_then(|word| word.strip_suffix(']')).unwrap_or(word);
    if bare.parse::<IpAddr>().is_ok() || word.parse::<SocketAddr>().is_ok_and(|agent| agent.port() > 0) {
        return true;
    }
    // A host's name, with or without a port.
    let (host, port) = word.split_once(':').unwrap_or((word, "161"));
    let label = |label: &str| {
        (1..=63).contains(&label.len()) && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
    };
    host.len() <= 253 && host.split('.').all(label) && port.parse::<u16>().is_ok_and(|port| port > 0)
        // What looks like an address and is none is no name either.
        && host.chars().any(|c| c.is_ascii_alphabetic())
}
