//! The file of a fleet (TOML): hosts, meshes of them, and the tests of each mesh.

use crate::alert::{ALERTS_MAX, Alert, Target};
use crate::schedule::fnv;
use narrows_mesh::design;
use narrows_model::words::units::{parse_bps, parse_duration, parse_size};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Hosts of one fleet, at most.
pub const HOSTS_MAX: usize = 100_000;

/// A fleet as its file describes it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fleet {
    pub name: String,
    /// By name.
    #[serde(default)]
    pub hosts: BTreeMap<String, Host>,
    /// Who may join beside them.
    #[serde(rename = "join", default)]
    pub joins: Vec<Join>,
    #[serde(rename = "mesh")]
    pub meshes: Vec<Mesh>,
    #[serde(rename = "alert", default)]
    pub alerts: Vec<Alert>,
    /// The URL of a collector of OpenTelemetry, which gets the figures of the fleet.
    #[serde(default)]
    pub otlp: Option<String>,
    /// Loads that pass one router at the same time, at most; `None`: as many as there are.
    #[serde(default)]
    pub concurrent: Option<std::num::NonZeroUsize>,
    /// Tests are kept for so long; of older ones a figure a day.
    #[serde(rename = "keep", default = "month", deserialize_with = "duration")]
    pub keep_ms: u64,
}

const fn month() -> u64 {
    30 * 24 * 3_600_000
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table such as { address = \"192.0.2.1\" }")]
pub struct Host {
    pub group: String,
    /// Where the others load it; empty: where its agent comes from.
    pub address: String,
    /// It joined, and is in no file.
    #[serde(skip)]
    pub member: Option<Joined>,
}

/// Hosts that may join a fleet.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Join {
    /// The group of those who join.
    pub group: String,
    /// A name whose addresses are those of such hosts, as a headless service of Kubernetes is one.
    #[serde(default)]
    pub service: Option<String>,
    #[serde(default = "hundred")]
    pub most: usize,
}

const fn hundred() -> usize {
    100
}

/// A host that joined.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Joined {
    pub group: String,
    /// Where its agent came from last; `None`: that is not known.
    pub address: Option<IpAddr>,
}

/// Some hosts, and the tests between them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mesh {
    pub name: String,
    /// Names of hosts, and of groups with `@` before them; empty: all hosts.
    #[serde(default)]
    pub hosts: Vec<String>,
    #[serde(default)]
    pub design: Design,
    /// Of a star: who is tested with all others. Of disjoint sides: those of one side, named as `hosts`.
    #[serde(default)]
    pub from: Vec<String>,
    #[serde(rename = "test")]
    pub tests: Vec<Test>,
}

/// Which pairs of a mesh are tested.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Each host with each other.
    #[default]
    Mesh,
    /// The hosts of `from` with all others.
    Star,
    /// The hosts of `from` with those of `hosts`, and neither with their own.
    Disjoint,
    /// Each with the next by name.
    Ring,
    /// Each with eight others at least, and any two groups once; a host more or less changes few pairs of the others.
    Regular,
    /// The first host of each group with those of the others, and with its own group.
    Representatives,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Packets at a low rate: round trip and loss.
    Probe,
    /// TCP as fast as it goes.
    Load,
}

impl Kind {
    /// As in the file.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Probe => "probe",
            Self::Load => "load",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    pub kind: Kind,
    #[serde(rename = "every", deserialize_with = "duration")]
    pub every_ms: u64,
    #[serde(rename = "lasts", default = "lasts", deserialize_with = "duration")]
    pub lasts_ms: u64,
    /// Hours of the day in UTC in which it is not made: `08:00-18:00`.
    #[serde(default, deserialize_with = "hours")]
    pub quiet: Vec<[u32; 2]>,
    /// What a load is expected to carry, for the sum of bytes.
    #[serde(rename = "expect", default = "gigabit", deserialize_with = "rate")]
    pub expect_bps: u64,
    /// 1 to 9: where not all can be made at once, those with more begin first.
    #[serde(default = "five")]
    pub priority: u8,
    /// No load begins after so many bytes of a day (UTC).
    #[serde(rename = "bytes-a-day", default, deserialize_with = "size")]
    pub bytes_a_day: Option<u64>,
}

const fn lasts() -> u64 {
    3_000
}

const fn gigabit() -> u64 {
    1_000_000_000
}

const fn five() -> u8 {
    5
}

fn duration<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    let word = String::deserialize(from)?;
    let time = parse_duration(&word).map_err(serde::de::Error::custom)?;
    u64::try_from(time.as_millis()).map_err(serde::de::Error::custom)
}

fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    parse_bps(&String::deserialize(from)?).map_err(serde::de::Error::custom)
}

fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    parse_size(&String::deserialize(from)?).map(Some).map_err(serde::de::Error::custom)
}

fn hours<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<[u32; 2]>, D::Error> {
    let minute = |word: &str| {
        let (hour, minute) = word.trim().split_once(':')?;
        let (hour, minute): (u32, u32) = (hour.parse().ok()?, minute.parse().ok()?);
        (hour <= 24 && minute < 60 && hour * 60 + minute <= MINUTES).then_some(hour * 60 + minute)
    };
    let span = |word: String| {
        let ends = word.split_once('-').and_then(|(from, to)| Some([minute(from)?, minute(to)?]));
        ends.filter(|[from, to]| from != to)
            .ok_or_else(|| serde::de::Error::custom(format!("`{word}` is no span of hours: write it like 08:00-18:00")))
    };
    Vec::<String>::deserialize(from)?.into_iter().map(span).collect()
}

/// Minutes of a day.
pub(crate) const MINUTES: u32 = 24 * 60;

impl Test {
    /// What it is known by in its mesh, wherever it stands in the file.
    pub fn word(&self) -> String {
        format!("{} of {} ms each {} ms", self.kind.word(), self.lasts_ms, self.every_ms)
    }

    /// Whether it is not made in a minute of the day.
    pub(crate) fn is_quiet(&self, minute: u32) -> bool {
        self.quiet.iter().any(
            |[from, to]| {
                if from < to { (*from..*to).contains(&minute) } else { minute >= *from || minute < *to }
            },
        )
    }
}

/// What to write where there can be several, and one stands without its brackets.
fn hint(error: &toml::de::Error, text: &str) -> Option<String> {
    let found = error.message().strip_suffix(", expected a sequence")?;
    if found != "invalid type: map" {
        return Some("; write a list in brackets, as [\"…\"]".to_owned());
    }
    let header = error.span().and_then(|span| text.get(span)).map(str::trim);
    let is_header = |it: &&str| it.starts_with('[') && !it.starts_with("[[") && it.ends_with(']') && !it.contains('\n');
    Some(header.filter(is_header).map_or_else(
        || "; tables of which there can be several have double brackets, as [[mesh]]".to_owned(),
        |header| format!("; write [{header}]"),
    ))
}

impl Fleet {
    /// Reads a file.
    /// Errors: the first mistake of its form with its line; else all that makes no sense, in a line each.
    pub fn read(text: &str) -> Result<Self, String> {
        let fleet: Self = toml::from_str(text)
            .map_err(|error| format!("{}{}", error.to_string().trim_end(), hint(&error, text).unwrap_or_default()))?;
        let wrong = fleet.mistakes();
        if wrong.is_empty() { Ok(fleet) } else { Err(wrong.join("\n")) }
    }

    fn mistakes(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let least = if self.joins.is_empty() { 2 } else { 0 };
        if !(least..=HOSTS_MAX).contains(&self.hosts.len()) {
            wrong.push(format!("a fleet has {least} to {HOSTS_MAX} hosts, and not {}", self.hosts.len()));
        }
        wrong.extend(self.wrong_joins());
        let is_address = |host: &Host| host.address.is_empty() || host.address.parse::<IpAddr>().is_ok();
        for (name, host) in self.hosts.iter().filter(|(_, host)| !is_address(host)) {
            wrong.push(format!("host {name}: `{}` is no IP address", host.address));
        }
        if self.keep_ms < 2 * 24 * 3_600_000 {
            wrong.push("keep is 2d at least: what is bad is seen by comparison with yesterday".to_owned());
        }
        if self.alerts.len() > ALERTS_MAX {
            wrong.push(format!("a fleet has {ALERTS_MAX} alerts at most, and not {}", self.alerts.len()));
        }
        let mistake = |(nth, alert): (usize, &Alert)| Some(format!("alert {}: {}", nth + 1, alert.mistake()?));
        wrong.extend(self.alerts.iter().enumerate().filter_map(mistake));
        wrong.extend(self.collector().err().map(|why| format!("otlp: {why}")));
        let mut names = BTreeSet::new();
        for mesh in &self.meshes {
            let of = format!("mesh {}", mesh.name);
            if mesh.name.is_empty() || !names.insert(&mesh.name) {
                wrong.push(format!("{of}: each mesh has a name of its own"));
            }
            let is_joined = |name: &String| self.joins.iter().any(|it| name.strip_prefix('@') == Some(&*it.group));
            let unknown = |name: &&String| self.named(std::slice::from_ref(*name)).is_empty() && !is_joined(name);
            let unknown: Vec<&str> = mesh.hosts.iter().chain(&mesh.from).filter(unknown).map(String::as_str).collect();
            if !unknown.is_empty() {
                wrong.push(format!("{of}: no host or @group of this name: {}", unknown.join(", ")));
            }
            if mesh.from.is_empty() == matches!(mesh.design, Design::Star | Design::Disjoint) {
                wrong.push(format!("{of}: `from` goes with the designs star and disjoint, which need it"));
            }
            if mesh.tests.is_empty() {
                wrong.push(format!("{of}: it has no test"));
            }
            let words: BTreeSet<String> = mesh.tests.iter().map(Test::word).collect();
            if words.len() < mesh.tests.len() {
                wrong.push(format!("{of}: two of its tests are the same"));
            }
            for test in &mesh.tests {
                let (kind, every) = (test.kind.word(), test.every_ms);
                if every < 10_000 {
                    wrong.push(format!("{of}: {kind}: every is 10s at least"));
                }
                if !(1..=9).contains(&test.priority) {
                    wrong.push(format!("{of}: {kind}: priority is from 1 to 9, and 9 is first"));
                }
                if !(200..=600_000).contains(&test.lasts_ms) || test.lasts_ms > every {
                    wrong.push(format!("{of}: {kind}: lasts is from 200ms to 10m, and no longer than every"));
                }
            }
            if unknown.is_empty() && self.joins.is_empty() && self.pairs(mesh).is_empty() {
                wrong.push(format!("{of}: its design leaves no pair of hosts"));
            }
        }
        wrong
    }

    fn wrong_joins(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let mut groups = BTreeSet::new();
        for Join { group, service, most } in &self.joins {
            if group.is_empty() || !groups.insert(group) {
                wrong.push(format!("join {group}: each has a group of its own"));
            }
            if !(1..=HOSTS_MAX).contains(most) {
                wrong.push(format!("join {group}: most is from 1 to {HOSTS_MAX}"));
            }
            let is_name =
                |it: &String| !it.is_empty() && it.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
            if let Some(service) = service.as_ref().filter(|it| !is_name(it)) {
                wrong.push(format!(
                    "join {group}: `{service}` is no name of a host: write it like narrows-agent.narrows.svc"
                ));
            }
        }
        wrong
    }

    /// The fleet once all have joined who may.
    pub fn with_all_joined(&self) -> Self {
        let mut whole = self.clone();
        for Join { group, most, .. } in &self.joins {
            let host = Host { group: group.clone(), ..Host::default() };
            let room = HOSTS_MAX.saturating_sub(whole.hosts.len());
            // No name of a file has this form.
            whole.hosts.extend((0..room.min(*most)).map(|nth| (format!("@{group} {nth}"), host.clone())));
        }
        whole
    }

    /// The collector that gets figures, if there is one.
    /// Errors: what makes no sense in its URL.
    pub fn collector(&self) -> Result<Option<Target>, String> {
        self.otlp.as_deref().map(Target::collector).transpose()
    }

    /// The places of hosts in the order of names; a word is a host, or a group with `@`.
    fn named(&self, words: &[String]) -> BTreeSet<usize> {
        let is = |name: &String, host: &Host, word: &String| {
            word.strip_prefix('@').map_or(name == word, |group| !group.is_empty() && host.group == group)
        };
        let all = self.hosts.iter().enumerate();
        all.filter(|(_, (name, host))| words.iter().any(|word| is(name, host, word))).map(|(nth, _)| nth).collect()
    }

    /// The pairs of a mesh, each once, as places of hosts in the order of names.
    pub fn pairs(&self, mesh: &Mesh) -> Vec<[usize; 2]> {
        let hosts: Vec<usize> = if mesh.hosts.is_empty() {
            (0..self.hosts.len()).collect()
        } else {
            self.named(&mesh.hosts).into_iter().collect()
        };
        let from = self.named(&mesh.from);
        let groups: Vec<&str> = self.hosts.values().map(|host| host.group.as_str()).collect();
        let mut found = BTreeSet::new();
        let mut add = |a: usize, b: usize| a != b && found.insert([a.min(b), a.max(b)]);
        match mesh.design {
            Design::Mesh => hosts.iter().for_each(|a| hosts.iter().for_each(|b| _ = add(*a, *b))),
            Design::Star => from.iter().for_each(|a| hosts.iter().for_each(|b| _ = add(*a, *b))),
            Design::Disjoint => {
                let others: Vec<&usize> = hosts.iter().filter(|host| !from.contains(*host)).collect();
                from.iter().for_each(|a| others.iter().for_each(|b| _ = add(*a, **b)));
            }
            Design::Ring => hosts.iter().zip(hosts.iter().cycle().skip(1)).for_each(|(a, b)| _ = add(*a, *b)),
            Design::Regular => {
                let names: Vec<&String> = self.hosts.keys().collect();
                // Neither changes with the other hosts and groups, so that few pairs do.
                let keys: Vec<u64> = hosts.iter().map(|host| fnv(names[*host].bytes())).collect();
                let of_each: Vec<usize> = hosts.iter().map(|host| fnv(groups[*host].bytes()) as usize).collect();
                design::stable_pairs(&of_each, &keys).into_iter().for_each(|[a, b]| _ = add(hosts[a], hosts[b]));
            }
            Design::Representatives => {
                let mut firsts: BTreeMap<&str, usize> = BTreeMap::new();
                for host in &hosts {
                    let first = *firsts.entry(groups[*host]).or_insert(*host);
                    add(first, *host);
                }
                firsts.values().for_each(|a| firsts.values().for_each(|b| _ = add(*a, *b)));
            }
        }
        found.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(design: &str) -> Result<Fleet, String> {
        Fleet::read(&format!(
            "name = 'site'\nhosts.a = {{ group = 'x' }}\nhosts.b = {{ group = 'x' }}\nhosts.c = {{ group = 'y' }}\nhosts.d = {{ group = 'y' }}\n\
             [[mesh]]\nname = 'all'\n{design}\n[[mesh.test]]\nkind = 'load'\nevery = '1h'\nquiet = ['22:00-06:00']\n"
        ))
    }

    fn pairs(design: &str) -> Vec<[usize; 2]> {
        let fleet = fleet(design).expect("a fleet");
        fleet.pairs(&fleet.meshes[0])
    }

    #[test]
    fn each_design_has_its_pairs() {
        assert_eq!(pairs("").len(), 6);
        assert_eq!(pairs("hosts = ['@x', 'd']"), [[0, 1], [0, 3], [1, 3]]);
        assert_eq!(pairs("design = 'star'\nfrom = ['b']"), [[0, 1], [1, 2], [1, 3]]);
        assert_eq!(pairs("design = 'disjoint'\nfrom = ['@y']"), [[0, 2], [0, 3], [1, 2], [1, 3]]);
        assert_eq!(pairs("design = 'ring'"), [[0, 1], [0, 3], [1, 2], [2, 3]]);
        assert_eq!(pairs("design = 'representatives'"), [[0, 1], [0, 2], [2, 3]]);
        assert_eq!(pairs("design = 'regular'").len(), 6);
    }

    #[test]
    fn a_host_more_in_a_regular_design_changes_few_pairs_of_the_others() {
        let pairs = |hosts: usize, groups: usize, without: usize| {
            let hosts = (0..hosts).filter(|nth| *nth != without);
            let hosts: String =
                hosts.map(|nth| format!("hosts.h{nth:03} = {{ group = 'g{}' }}\n", nth % groups)).collect();
            let mesh = "[[mesh]]\nname = 'all'\ndesign = 'regular'\n[[mesh.test]]\nkind = 'load'\nevery = '1h'\n";
            let fleet = Fleet::read(&format!("name = 's'\n{hosts}{mesh}")).expect("a fleet");
            let names: Vec<&String> = fleet.hosts.keys().collect();
            let named = |pair: [usize; 2]| pair.map(|host| names[host].clone());
            fleet.pairs(&fleet.meshes[0]).into_iter().map(named).collect::<BTreeSet<[String; 2]>>()
        };
        for (hosts, groups) in [(10, 1), (12, 4), (17, 1), (17, 3), (41, 3), (120, 6)] {
            let after = pairs(hosts, groups, hosts);
            for new in 0..hosts {
                let (before, name) = (pairs(hosts, groups, new), format!("h{new:03}"));
                let changed = before.symmetric_difference(&after).filter(|pair| !pair.contains(&name)).count();
                let most = if hosts < 40 { 18 } else { 4 + groups };
                assert!(changed <= most, "{new} of {hosts} in {groups}: {changed} of {}", before.len());
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_said_with_its_place() {
        for (design, says) in [
            ("design = 'cube'", "line 8"),
            ("color = 1", "unknown field `color`"),
            ("hosts = ['@z', 'e']", "mesh all: no host or @group of this name: @z, e"),
            ("design = 'star'", "`from` goes with the designs star and disjoint"),
            (
                "[[mesh.test]]\nkind = 'probe'\nevery = '1m'\n[[alert]]\nform = 'chat'\n[[mesh]]\nname = 'x'",
                "alert 1: it has none of `webhook`, `alertmanager` and `smtp`",
            ),
            ("hosts = ['a']", "its design leaves no pair of hosts"),
            ("[[mesh.test]]\nkind = 'load'\nevery = '60m'", "two of its tests are the same"),
            ("[[mesh.test]]\nkind = 'load'\nevery = '9m'\npriority = 10", "priority is from 1 to 9"),
            ("[[mesh.test]]\nkind = 'load'\nevery = '9m'\n[[join]]\ngroup = 'z'\nmost = 0", "join z: most is from 1"),
            (
                "[[mesh.test]]\nkind = 'load'\nevery = '9m'\n[[join]]\ngroup = 'z'\nservice = 'http://z'",
                "join z: `http://z` is no name of a host",
            ),
            (
                "[[mesh.test]]\nkind = 'load'\nevery = '9m'\n[[join]]\ngroup = 'z'\n[[join]]\ngroup = 'z'",
                "join z: each has a group of its own",
            ),
        ] {
            let said = fleet(design).expect_err(design);
            assert!(said.contains(says), "{design}: {said}");
        }
        let short = "name='s'\nhosts.a={}\nhosts.b={}\n[[mesh]]\nname='m'\n[[mesh.test]]\nkind='probe'\nevery='1s'\nlasts='5s'\n";
        let said = Fleet::read(short).expect_err("too often");
        assert!(said.contains("every is 10s at least") && said.contains("no longer than every"), "{said}");
        let said = Fleet::read(&short.replace("'1s'", "'often'")).expect_err("a word");
        assert!(said.contains("line 8") && said.contains("invalid duration `often`"), "{said}");
        let said = Fleet::read(&short.replace("every='1s'", "every='1h'\nquiet=['8-9']")).expect_err("no hours");
        assert!(said.contains("08:00-18:00"), "{said}");
        for (right, wrong, says) in [
            ("[[mesh]]", "[mesh]", "write [[mesh]]"),
            ("[[mesh.test]]", "[mesh.test]", "write [[mesh.test]]"),
            ("[[mesh]]\nname='m'\n[[mesh.test]]", "[mesh.test]", "double brackets, as [[mesh]]"),
            ("name='m'", "name='m'\nhosts='a'", "write a list in brackets"),
            ("hosts.a={}", "hosts.a='192.0.2.7'", "expected a table such as { address = \"192.0.2.1\" }"),
        ] {
            let said = Fleet::read(&short.replace(right, wrong)).expect_err(wrong);
            assert!(said.contains(says), "{wrong}: {said}");
        }
    }
}
