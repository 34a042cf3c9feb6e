//! What a hazard is made of: what it checks, and the words that go with it.

use super::template;
pub(crate) use super::template::whole;
use narrows_model::host::side_by_side::{ROWS, RowSpec};
use narrows_model::{FactKey, Hazard, Place, Setting, Severity, Snapshot, keys};

/// A hazard's rule: what it checks, and in `matters` and `harmless` why it matters and when it does not.
pub struct Rule {
    /// The public id; it never changes its meaning.
    pub id: &'static str,
    /// How much attention it deserves, unless the finding says otherwise.
    pub severity: Severity,
    /// The key of the row that it marks, unless the finding says otherwise.
    pub key: FactKey,
    /// The facts that it reads, with the unit that it expects.
    pub needs: &'static [FactKey],
    /// What it checks. A missing fact is not a finding.
    pub check: Check,
    pub matters: &'static str,
    /// When it does not matter.
    pub harmless: &'static str,
}

/// What a rule checks.
#[derive(Clone, Copy)]
pub enum Check {
    /// Compares the facts of one host. The sentence and the command are templates ([`super::template`]); a command may be
    /// empty.
    Facts {
        /// The comparison of the first needed fact, or of the first two.
        when: When,
        /// What is unusual; one sentence without a full stop.
        says: &'static str,
        /// What to type, where there is something to type.
        command: &'static str,
    },
    /// The first needed fact differs between the hosts. `{0}` is the client's, `{1}` the server's.
    Differs(&'static str),
    /// Each host on its own, by a rule of its own.
    Host(fn(&Snapshot) -> Option<Found>),
    /// Each host on its own, with the other one where that is known.
    Each(fn(&Snapshot, Option<&Snapshot>) -> Option<Found>),
}

/// A comparison of needed facts.
#[derive(Clone, Copy)]
pub enum When {
    /// The first is 0: a flag that is off.
    Zero,
    /// The first is above 0.
    Positive,
    /// The first is above 0; the second says of what, and its row is marked too.
    PositiveOf,
    /// The first is below the second.
    Below,
    /// The first is above 0 and below the second.
    PositiveBelow,
    /// The first is this word, in upper or lower case.
    Is(&'static str),
    /// The first is some other word.
    IsNot(&'static str),
}

impl When {
    /// How many of the needed facts it is about.
    const fn subjects(self) -> usize {
        match self {
            Self::Below | Self::PositiveBelow | Self::PositiveOf => 2,
            Self::Zero | Self::Positive | Self::Is(_) | Self::IsNot(_) => 1,
        }
    }

    fn holds(self, host: &Snapshot, needs: &[FactKey]) -> Option<bool> {
        let number = |at: usize| host.number(needs.get(at)?.name);
        let word = || host.text(needs.first()?.name);
        Some(match self {
            Self::Zero => is_off(host, *needs.first()?),
            Self::Positive | Self::PositiveOf => number(0)? > 0.0,
            Self::Below => number(0)? < number(1)?,
            Self::PositiveBelow => number(0)? > 0.0 && number(0)? < number(1)?,
            Self::Is(other) => word()?.eq_ignore_ascii_case(other),
            Self::IsNot(other) => !word()?.is_empty() && word()? != other,
        })
    }
}

/// What a rule found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What is unusual, with its figures; one sentence without a full stop.
    pub says: String,
    /// What to type, where there is something to type.
    pub command: Option<String>,
    /// Replaces the rule's own severity.
    pub severity: Option<Severity>,
    /// The facts whose rows it marks, instead of the rule's own; the first names the hazard's key.
    pub rows: Vec<FactKey>,
}

impl Found {
    /// A finding without a command.
    pub fn new(says: impl Into<String>) -> Self {
        Self { says: says.into(), command: None, severity: None, rows: Vec::new() }
    }

    /// The same with the command that fixes it.
    pub fn fix(self, command: impl Into<String>) -> Self {
        Self { command: Some(command.into()), ..self }
    }

    /// The same about the rows of these facts.
    pub fn rows(self, rows: impl Into<Vec<FactKey>>) -> Self {
        Self { rows: rows.into(), ..self }
    }

    /// The same with another severity.
    pub fn severity(self, severity: Severity) -> Self {
        Self { severity: Some(severity), ..self }
    }
}

impl Rule {
    /// What the rule finds on the hosts that are known.
    pub fn apply(&self, client: Option<&Snapshot>, server: Option<&Snapshot>) -> Vec<Hazard> {
        let hazard = |at: Place, found: Found| {
            let rows = rows(if found.rows.is_empty() { std::slice::from_ref(&self.key) } else { &found.rows });
            Hazard {
                id: self.id.to_owned(),
                at,
                severity: found.severity.unwrap_or(self.severity),
                key: rows.first().cloned().unwrap_or_default(),
                rows,
                says: found.says,
                matters: self.matters.to_owned(),
                harmless: self.harmless.to_owned(),
                command: found.command,
            }
        };
        if let Check::Differs(says) = self.check {
            let found = client.zip(server).and_then(|(a, b)| self.differs(a, b, says));
            return found.map(|found| hazard(Place::Path, found)).into_iter().collect();
        }
        [(Place::Client, client, server), (Place::Server, server, client)]
            .into_iter()
            .filter_map(|(at, host, peer)| Some(hazard(at, self.on(host?, peer)?)))
            .collect()
    }

    fn on(&self, host: &Snapshot, peer: Option<&Snapshot>) -> Option<Found> {
        match self.check {
            Check::Facts { when, says, command } => {
                let known = |at: usize| Some((host, *self.needs.get(at)?));
                let found = when.holds(host, self.needs)?.then(|| template::fill(says, &known))??;
                let command = template::fill(command, &known).filter(|command| !command.is_empty());
                let rows = self.needs.iter().take(when.subjects()).copied().collect();
                Some(Found { command, rows, ..Found::new(found) })
            }
            Check::Differs(_) => None,
            Check::Host(check) => check(host),
            Check::Each(check) => check(host, peer),
        }
    }

    fn differs(&self, client: &Snapshot, server: &Snapshot, says: &str) -> Option<Found> {
        let key = *self.needs.first()?;
        let value = |host: &Snapshot| Some(host.get(key.name)?.value.clone());
        let known = |at: usize| Some((*[client, server].get(at)?, key));
        (value(client)? != value(server)?).then(|| template::fill(says, &known)).flatten().map(Found::new)
    }
}

/// The keys of the rows that show these facts, each once.
fn rows(facts: &[FactKey]) -> Vec<String> {
    let row = |fact: &FactKey| {
        let shows = |spec: &&RowSpec| spec.parts.iter().any(|(_, key)| key.name == fact.name);
        ROWS.iter().find(shows).map_or(fact.name, RowSpec::key).to_owned()
    };
    let mut keys: Vec<String> = Vec::new();
    for key in facts.iter().map(row) {
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    keys
}

/// Whether a flag is known to be off; collectors give a flag or a number.
pub(crate) fn is_off(host: &Snapshot, key: FactKey) -> bool {
    host.number(key) == Some(0.0)
}

/// The interface's name, for a command.
pub(crate) fn device(host: &Snapshot) -> &str {
    host.text(keys::NIC_NAME).unwrap_or("DEVICE")
}

/// The command that sets a kernel parameter to a number.
pub(crate) fn sysctl(key: &str, value: u64) -> String {
    sysctl_words(key, value.to_string())
}

/// The command that sets a kernel parameter of several words.
pub(crate) fn sysctl_words(key: &str, value: String) -> String {
    Setting::Sysctl { key: key.to_owned(), value }.to_string()
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
    fn rows_are_those_that_show_the_facts() {
        let facts = [keys::NIC_SPEED, keys::NIC_SPEED_MAX, keys::CORE_RMEM_MAX, keys::TCP_RMEM_MAX];
        assert_eq!(rows(&facts), ["nic.speed", "core.rmem.max", "tcp.rmem.min"]);
        assert_eq!(rows(&[keys::NIC_FEATURE_FIXED_OFF]), ["nic.feature.fixed_off"], "a fact without a row");
    }

    #[test]
    fn a_difference_needs_both_hosts() {
        const RULE: Rule = Rule {
            id: "x",
            severity: Severity::Info,
            key: keys::NIC_MTU,
            needs: &[keys::NIC_MTU],
            check: Check::Differs("{0} and {1}"),
            matters: "",
            harmless: "",
        };
        let host = |mtu: i64| host(&[("nic.mtu", Value::Integer(mtu), Unit::Bytes)]);
        let (a, b) = (host(1500), host(9000));
        assert!(RULE.apply(Some(&a), None).is_empty());
        assert_eq!(RULE.apply(Some(&a), Some(&b))[0].at, Place::Path);
    }
}
