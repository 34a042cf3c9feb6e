//! The settings of a host beside those of its group.

use super::{Control, Truth};
use narrows_model::run::fleet::{ComparedSetting, FleetSettings};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A host is compared with so many others: agents wait meanwhile.
const HOSTS_MAX: usize = 500;
/// Settings that a reader gets.
const ROWS_MAX: usize = 1_000;

type Named = BTreeMap<String, String>;

impl<T: Truth> Control<'_, T> {
    /// What is known of the settings of a host and of those of its group.
    pub fn settings(&self, host: usize) -> FleetSettings {
        let group = |at: usize| self.fleet.hosts[self.names[at]].group.as_str();
        let is_like = |at: &usize| *at != host && group(*at) == group(host);
        let others: Vec<usize> = (0..self.names.len()).filter(is_like).collect();
        let set = |at: usize| self.sessions[at].settings.all.as_ref();
        let known: Vec<&Named> = others.iter().filter_map(|at| set(*at)).collect();
        FleetSettings {
            host: self.names[host].to_owned(),
            group: group(host).to_owned(),
            others: others.len() as u64,
            ..beside(set(host), &known)
        }
    }
}

/// The settings of a host, if they are known, beside those of others. Of many others a part is compared, from all over their order.
fn beside(own: Option<&Named>, known: &[&Named]) -> FleetSettings {
    let mut others: Vec<&Named> = known.iter().step_by(known.len().div_ceil(HOSTS_MAX).max(1)).copied().collect();
    if others.len() < 2 {
        others.clear();
    }
    let mut all: Option<Vec<ComparedSetting>> = own.map(|own| {
        let mut all: Vec<_> = keys(own, &others).into_iter().map(|key| compared(key, own.get(key), &others)).collect();
        all.sort_by_key(|it| !it.differs());
        all
    });
    let differ = all.iter().flatten().filter(|it| it.differs()).count() as u64;
    let left_out = all.as_mut().map_or(0, |all| all.drain(ROWS_MAX.min(all.len())..).count() as u64);
    FleetSettings {
        known: known.len() as u64,
        compared: others.len() as u64,
        differ,
        left_out,
        settings: all,
        ..FleetSettings::default()
    }
}

/// The settings that a host or most of the others have.
fn keys<'a>(own: &'a Named, others: &[&'a Named]) -> BTreeSet<&'a str> {
    let mut having: BTreeMap<&str, usize> = BTreeMap::new();
    for key in others.iter().flat_map(|it| it.keys()) {
        *having.entry(key).or_default() += 1;
    }
    let most = having.into_iter().filter(|(_, hosts)| 2 * hosts > others.len()).map(|(key, _)| key);
    most.chain(own.keys().map(String::as_str)).collect()
}

fn compared(key: &str, own: Option<&String>, others: &[&Named]) -> ComparedSetting {
    let mut counts: BTreeMap<&String, u64> = BTreeMap::new();
    for value in others.iter().filter_map(|it| it.get(key)) {
        *counts.entry(value).or_default() += 1;
    }
    let of = counts.values().sum();
    // What one host has is not common. Of two that are as common, it is the one of this host, or else the smallest.
    let common = counts
        .into_iter()
        .filter(|(_, hosts)| *hosts > 1)
        .max_by_key(|(value, hosts)| (*hosts, Some(*value) == own, Reverse(*value)));
    ComparedSetting {
        key: key.to_owned(),
        value: own.cloned(),
        common: common.map(|(value, _)| value.clone()),
        hosts: [common.map_or(0, |(_, hosts)| hosts), of],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Fleet;
    use crate::truth::Memory;

    fn named(all: &[(&str, &str)]) -> Named {
        all.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    type Shown<'a> = (&'a str, Option<&'a str>, Option<&'a str>, [u64; 2], bool);

    fn rows(of: &FleetSettings) -> Vec<Shown<'_>> {
        let all = of.settings.iter().flatten();
        all.map(|it| (it.key.as_str(), it.value.as_deref(), it.common.as_deref(), it.hosts, it.differs())).collect()
    }

    #[test]
    fn what_differs_from_the_most_common_value_comes_first() {
        let own =
            named(&[("mtu", "1500"), ("own", "1"), ("sack", "off"), ("serial", "x"), ("tie", "c"), ("tied", "b")]);
        let other = |mtu: &str, serial: &str, tie: &str| {
            let all = [("mtu", mtu), ("sack", "on"), ("serial", serial), ("tie", tie), ("tied", tie), ("fq", "yes")];
            named(&all)
        };
        let others =
            [other("1500", "p", "b"), other("1500", "q", "a"), other("9000", "r", "a"), other("1500", "s", "b")];
        let found = beside(Some(&own), &others.iter().collect::<Vec<_>>());
        let expected = [
            ("fq", None, Some("yes"), [4, 4], true),
            ("sack", Some("off"), Some("on"), [4, 4], true),
            ("tie", Some("c"), Some("a"), [2, 4], true),
            ("mtu", Some("1500"), Some("1500"), [3, 4], false),
            ("own", Some("1"), None, [0, 0], false),
            ("serial", Some("x"), None, [0, 4], false),
            ("tied", Some("b"), Some("b"), [2, 4], false),
        ];
        assert_eq!(rows(&found), expected);
        assert_eq!((found.known, found.compared, found.differ, found.left_out), (4, 4, 3, 0));
    }

    #[test]
    fn one_other_host_is_too_few_and_many_are_compared_in_part() {
        let (own, other) = (named(&[("mtu", "1500")]), named(&[("mtu", "9000"), ("fq", "yes")]));
        let found = beside(Some(&own), &[&other]);
        assert_eq!(rows(&found), [("mtu", Some("1500"), None, [0, 0], false)]);
        assert_eq!((found.known, found.compared), (1, 0));
        let found = beside(Some(&own), &vec![&other; 1_200]);
        assert_eq!(rows(&found)[1], ("mtu", Some("1500"), Some("9000"), [400, 400], true));
        let many = (0..3_000).map(|nth| (nth.to_string(), String::new())).collect();
        let found = beside(Some(&many), &[&other, &other]);
        assert_eq!((rows(&found).len(), found.differ, found.left_out), (1_000, 2, 2_002));
    }

    #[test]
    fn a_host_is_compared_with_its_own_group_as_far_as_that_is_known() {
        let hosts = "hosts.a = { group = 'west' }\nhosts.b = { group = 'west' }\nhosts.c = { group = 'west' }\n\
            hosts.d = { group = 'west' }\nhosts.e = {}\nhosts.f = {}\n";
        let test = "[[mesh]]\nname = 'all'\n[[mesh.test]]\nkind = 'probe'\nevery = '1m'\n";
        let fleet = Fleet::read(&format!("name = 's'\n{hosts}{test}")).expect("a fleet");
        let mut control = Control::new(&fleet, Memory::default(), 0);
        for (host, value) in [(0, "off"), (1, "on"), (2, "on"), (4, "off")] {
            control.sessions[host].settings.all = Some(named(&[("sack", value)]));
        }
        let found = control.settings(0);
        assert_eq!(rows(&found), [("sack", Some("off"), Some("on"), [2, 2], true)]);
        assert_eq!((found.group.as_str(), found.others, found.known, found.compared), ("west", 3, 2, 2));
        let unknown = control.settings(3);
        assert_eq!((unknown.settings, unknown.known), (None, 3));
        let alone = control.settings(4);
        assert_eq!((alone.group.as_str(), alone.others, alone.known, alone.compared), ("", 1, 0, 0));
        assert_eq!(rows(&alone), [("sack", Some("off"), None, [0, 0], false)]);
    }
}
