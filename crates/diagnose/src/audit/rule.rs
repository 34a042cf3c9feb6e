//! What a hazard is made of: what it looks at, and the words that go with it.

use narrows_model::{Hazard, Key, Place, Setting, Severity, Snapshot};

/// A hazard's rule. Its file says in `matters` why it matters and in `harmless` when it does not.
pub struct Rule {
    /// The public id; it never changes its meaning.
    pub id: &'static str,
    /// How much attention it deserves, unless what was found says otherwise.
    pub severity: Severity,
    /// The key of the row that it marks.
    pub key: &'static str,
    /// The facts that it reads, with the unit that it expects.
    pub needs: &'static [Key],
    /// Why it matters.
    pub matters: &'static str,
    /// When it does not matter.
    pub harmless: &'static str,
    /// What it looks at.
    pub look: Look,
}

/// What a rule looks at. A missing fact is no finding.
#[derive(Clone, Copy)]
pub enum Look {
    /// Each host by itself.
    Host(fn(&Snapshot) -> Option<Found>),
    /// Each host by itself, with the other one where that is known.
    Each(fn(&Snapshot, Option<&Snapshot>) -> Option<Found>),
    /// Both hosts together: client, server.
    Pair(fn(&Snapshot, &Snapshot) -> Option<Found>),
}

/// What a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What is unusual, with its figures; one sentence without a full stop.
    pub says: String,
    /// What to type, where there is something to type.
    pub command: Option<String>,
    /// In place of the rule's own severity.
    pub severity: Option<Severity>,
}

impl Found {
    /// A finding without a command.
    pub fn new(says: impl Into<String>) -> Self {
        Self { says: says.into(), command: None, severity: None }
    }

    /// The same with the command that mends it.
    #[must_use]
    pub fn mend(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }

    /// The same with another severity.
    #[must_use]
    pub fn at(self, severity: Severity) -> Self {
        Self { severity: Some(severity), ..self }
    }
}

impl Rule {
    /// What the rule finds on the hosts that are known.
    #[must_use]
    pub fn apply(&self, client: Option<&Snapshot>, server: Option<&Snapshot>) -> Vec<Hazard> {
        let hazard = |at: Place, found: Found| Hazard {
            id: self.id.to_owned(),
            at,
            severity: found.severity.unwrap_or(self.severity),
            key: self.key.to_owned(),
            says: found.says,
            matters: self.matters.to_owned(),
            harmless: self.harmless.to_owned(),
            command: found.command,
        };
        match self.look {
            Look::Host(look) => [(Place::Client, client), (Place::Server, server)]
                .into_iter()
                .filter_map(|(at, host)| Some(hazard(at, look(host?)?)))
                .collect(),
            Look::Each(look) => [(Place::Client, client, server), (Place::Server, server, client)]
                .into_iter()
                .filter_map(|(at, host, peer)| Some(hazard(at, look(host?, peer)?)))
                .collect(),
            Look::Pair(look) => client
                .zip(server)
                .and_then(|(a, b)| look(a, b))
                .map(|found| hazard(Place::Path, found))
                .into_iter()
                .collect(),
        }
    }
}

/// Whether a flag is known to be off; collectors give a flag or a number.
pub(crate) fn is_off(host: &Snapshot, key: &str) -> bool {
    host.number(key) == Some(0.0)
}

/// The interface's name, for a command.
pub(crate) fn device(host: &Snapshot) -> &str {
    host.text("nic.name").unwrap_or("DEVICE")
}

/// The command that sets a kernel parameter to a number.
pub(crate) fn sysctl(key: &str, value: u64) -> String {
    sysctl_words(key, value.to_string())
}

/// The command that sets a kernel parameter of several words.
pub(crate) fn sysctl_words(key: &str, value: String) -> String {
    Setting::Sysctl { key: key.to_owned(), value }.to_string()
}

/// A count as a whole number, for words.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // saturates, which words bear
pub(crate) const fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use narrows_model::{Fact, Unit, Value};

    /// A host that knows these facts only.
    pub(crate) fn host(facts: &[(&str, Value, Unit)]) -> Snapshot {
        let fact = |(key, value, unit): &(&str, Value, Unit)| Fact {
            key: (*key).into(),
            value: value.clone(),
            unit: *unit,
            source: "test".into(),
        };
        Snapshot { host: "h".into(), facts: facts.iter().map(fact).collect(), ..Snapshot::default() }
    }

    /// What a rule finds on one host: the sentence, the command and the severity.
    pub(crate) fn found(rule: &Rule, facts: &[(&str, Value, Unit)]) -> Option<(String, Option<String>, Severity)> {
        let hazard = rule.apply(Some(&host(facts)), None).pop()?;
        Some((hazard.says, hazard.command, hazard.severity))
    }

    #[test]
    fn a_pair_rule_needs_both_hosts() {
        const RULE: Rule = Rule {
            id: "x",
            severity: Severity::Info,
            key: "nic.mtu",
            needs: &[],
            matters: "",
            harmless: "",
            look: Look::Pair(|_, _| Some(Found { says: "differs".into(), command: None, severity: None })),
        };
        let a = host(&[]);
        assert!(RULE.apply(Some(&a), None).is_empty());
        assert_eq!(RULE.apply(Some(&a), Some(&a))[0].at, Place::Path);
    }
}
