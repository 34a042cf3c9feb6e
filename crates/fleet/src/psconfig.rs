//! A pSConfig template of perfSONAR (JSON) as the file of a fleet, with what of it could not be taken over.
//!
//! A group with its tasks becomes a mesh with its tests, a host with its addresses one host of the fleet: an agent is per machine, and a
//! load must not meet another one there. Whatever has no counterpart is named in a remark, never dropped in silence.

use crate::plan::{Fleet, Kind};
use narrows_model::words::show::clean;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// No template is larger; who reads the file checks it.
pub const TEMPLATE_MAX_BYTES: u64 = 16 << 20;
/// Pairs of hosts of all groups.
const PAIRS_MAX: usize = 2_000_000;
const REMARKS_MAX: usize = 100;
/// Objects that are named in one remark.
const NAMED_MAX: usize = 5;
/// Of one remark, in characters.
const WORDS_MAX: usize = 300;

const SECOND_MS: u64 = 1_000;
const MINUTE_MS: u64 = 60 * SECOND_MS;
const HOUR_MS: u64 = 60 * MINUTE_MS;
const DAY_MS: u64 = 24 * HOUR_MS;
/// What the file of a fleet takes as `every`, and as `lasts` of a shorter period.
const EVERY_MS: [u64; 2] = [10 * SECOND_MS, 366 * DAY_MS];
const LASTS_MS: [u64; 2] = [200, 10 * MINUTE_MS];
/// How long a test lasts of which nothing is said.
const USUAL_MS: u64 = 3 * SECOND_MS;

/// Keys that say nothing new: a load is made in both directions and slips by itself.
const QUIET: &[&str] =
    &["source", "dest", "source-node", "dest-node", "duration", "reverse", "schema", "slip", "sliprand"];

/// Why a key is not taken over, or what happens instead.
const WHY: &[(&str, &str)] = &[
    ("archives", "the controller keeps the results in its own store"),
    ("bandwidth", "a load is TCP as fast as it goes"),
    ("contexts", "an agent measures where it runs"),
    ("default-address-label", "a host has one address"),
    ("excludes", "all pairs of the group are tested"),
    ("excludes-self", "a host is never tested with itself"),
    ("includes", "the files that it names are not read"),
    ("ip-version", "the addresses of the hosts decide"),
    ("label", "a host has one address"),
    ("labels", "a host has one address"),
    ("no-agent", "each host of a fleet needs an agent"),
    ("parallel", "a load is one stream"),
    ("remote-addresses", "a host has one address"),
    ("subtasks", "each test has a period of its own"),
    ("tools", "narrows measures itself"),
    ("udp", "a load is TCP as fast as it goes"),
    ("unidirectional", "loads are made in both directions"),
];

type Named<T> = BTreeMap<String, T>;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Template {
    addresses: Named<Address>,
    #[serde(rename = "address-classes")]
    classes: Named<Class>,
    groups: Named<Group>,
    hosts: Named<Host>,
    schedules: Named<Schedule>,
    tasks: Named<Task>,
    tests: Named<TestOf>,
    #[serde(rename = "_meta")]
    meta: Value,
    #[serde(flatten)]
    rest: Named<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Address {
    address: String,
    host: Option<String>,
    tags: Vec<String>,
    disabled: bool,
    #[serde(rename = "_meta")]
    meta: Value,
    #[serde(flatten)]
    rest: Named<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Class {
    #[serde(rename = "data-source")]
    source: Value,
    #[serde(rename = "match-filter")]
    matching: Value,
    #[serde(flatten)]
    rest: Named<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Host {
    tags: Vec<String>,
    disabled: bool,
    #[serde(rename = "_meta")]
    meta: Value,
    #[serde(flatten)]
    rest: Named<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Group {
    #[serde(rename = "type")]
    kind: String,
    addresses: Vec<Selector>,
    #[serde(rename = "a-addresses")]
    a: Vec<Selector>,
    #[serde(rename = "b-addresses")]
    b: Vec<Selector>,
    #[serde(flatten)]
    rest: Named<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Selector {
    name: Option<String>,
    class: Option<String>,
    disabled: bool,
    #[serde(flatten)]
    rest: Named<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Schedule {
    repeat: Option<String>,
    #[serde(flatten)]
    rest: Named<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Task {
    group: String,
    test: String,
    schedule: Option<String>,
    disabled: bool,
    #[serde(flatten)]
    rest: Named<Value>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TestOf {
    #[serde(rename = "type")]
    kind: String,
    spec: Named<Value>,
}

/// The file of a fleet, as [`Fleet`] reads it.
#[derive(Debug, Serialize)]
struct File {
    name: String,
    hosts: Named<HostEntry>,
    mesh: Vec<MeshEntry>,
}

#[derive(Debug, Serialize)]
struct HostEntry {
    #[serde(skip_serializing_if = "String::is_empty")]
    group: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    address: String,
}

#[derive(Debug, Serialize)]
struct MeshEntry {
    name: String,
    design: &'static str,
    hosts: BTreeSet<String>,
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    from: BTreeSet<String>,
    #[serde(rename = "test")]
    tests: Vec<TestEntry>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct TestEntry {
    kind: &'static str,
    #[serde(rename = "every", serialize_with = "written")]
    every_ms: u64,
    #[serde(rename = "lasts", serialize_with = "written")]
    lasts_ms: u64,
}

fn written<S: Serializer>(ms: &u64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&time(*ms))
}

/// A time in the words of the file: `4h`, `90s`.
fn time(ms: u64) -> String {
    let units = [(DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "m"), (SECOND_MS, "s")];
    let fits = units.into_iter().find(|(unit, _)| ms.is_multiple_of(*unit));
    fits.map_or_else(|| format!("{ms}ms"), |(unit, word)| format!("{}{word}", ms / unit))
}

/// Milliseconds of an ISO 8601 duration from weeks to seconds: `PT4H`, `P1DT30M`.
fn iso_ms(word: &str) -> Option<u64> {
    let sum = |mut rest: &str, units: &[(char, u64)]| {
        let (mut units, mut sum) = (units.iter(), 0.0);
        while !rest.is_empty() {
            let at = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
            let letter = rest[at..].chars().next()?;
            let (_, ms) = units.find(|(unit, _)| *unit == letter)?;
            sum += rest[..at].parse::<f64>().ok()? * *ms as f64;
            rest = &rest[at + letter.len_utf8()..];
        }
        Some(sum)
    };
    let (days, times) = word.strip_prefix('P').map(|rest| rest.split_once('T').unwrap_or((rest, "")))?;
    let ms: f64 = sum(days, &[('W', 7 * DAY_MS), ('D', DAY_MS)])?
        + sum(times, &[('H', HOUR_MS), ('M', MINUTE_MS), ('S', SECOND_MS)])?;
    (ms >= 1.0 && ms < 1e15).then(|| ms.round() as u64)
}

/// What is said, and of which objects.
#[derive(Debug, Default)]
struct Remarks(BTreeMap<String, BTreeSet<String>>);

impl Remarks {
    fn note(&mut self, object: &str, says: &str) {
        self.0.entry(short(says)).or_default().insert(short(object));
    }

    /// Notes the keys that are not taken over.
    fn keys(&mut self, object: &str, rest: &Named<Value>) {
        let is_silent = |(key, value): &(&String, &Value)| {
            key.starts_with(['_', '#']) || QUIET.contains(&key.as_str()) || says_nothing(value)
        };
        for (key, _) in rest.iter().filter(|it| !is_silent(it)) {
            let why = WHY.iter().find(|(of, _)| *of == key.as_str()).map_or("narrows has no such thing", |(_, why)| why);
            self.note(object, &format!("`{key}` is not taken over: {why}"));
        }
    }

    fn sentences(self) -> Vec<String> {
        let more = self.0.len().saturating_sub(REMARKS_MAX);
        let sentence = |(says, objects): (String, BTreeSet<String>)| {
            let named: Vec<&str> = objects.iter().take(NAMED_MAX).map(String::as_str).collect();
            let others = match objects.len() - named.len() {
                0 => String::new(),
                others => format!(" and {others} more"),
            };
            format!("{}{others}: {says}", named.join(", "))
        };
        let last = (more > 0).then(|| format!("{more} more remarks are left out"));
        self.0.into_iter().take(REMARKS_MAX).map(sentence).chain(last).collect()
    }
}

/// Words of a template, so that they can be shown.
fn short(words: &str) -> String {
    clean(&words.chars().take(WORDS_MAX).collect::<String>())
}

/// Whether a key with this value is as good as none.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::Array(all) => all.is_empty(),
        Value::Object(all) => all.is_empty(),
        // What `excludes-self` is where nothing is said.
        Value::String(word) => word == "host",
        _ => false,
    }
}

fn kind(test: &TestOf) -> Option<Kind> {
    match test.kind.as_str() {
        "throughput" => Some(Kind::Load),
        "latency" | "latencybg" | "rtt" | "trace" | "mtu" => Some(Kind::Probe),
        _ => None,
    }
}

/// The host of the fleet that an address is of. Its name stands where `@` means a group, and others read it in a terminal.
fn host_of(name: &str, address: &Address) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || ":._-".contains(c) { c } else { '_' };
    address.host.as_deref().unwrap_or(name).chars().map(plain).collect()
}

/// Reads a pSConfig template: the file of a fleet, and in a sentence each what was changed or could not be taken over.
/// Errors: it is no such JSON, it has no tasks, or none that narrows has a counterpart of.
pub fn imported(json: &str) -> Result<(String, Vec<String>), String> {
    let template: Template = serde_json::from_str(json)
        .map_err(|error| format!("cannot read the pSConfig template: {}", short(&error.to_string())))?;
    if template.tasks.is_empty() {
        return Err("cannot use the pSConfig template: it has no tasks".to_owned());
    }
    let mut import = Import {
        template: &template,
        hosts: BTreeMap::new(),
        meshes: BTreeMap::new(),
        pairs: 0,
        remarks: Remarks::default(),
    };
    import.remarks.keys("the template", &template.rest);
    let mut tasks: Vec<(&String, &Task)> = template.tasks.iter().collect();
    // A host of several addresses is loaded at that of its loads.
    tasks.sort_by_key(|(_, task)| template.tests.get(&task.test).and_then(kind) != Some(Kind::Load));
    for (name, task) in tasks {
        let object = format!("task {name}");
        if let Err(why) = import.task(&object, task) {
            import.remarks.note(&object, &format!("left out: {why}"));
        }
    }
    import.file()
}

struct Import<'a> {
    template: &'a Template,
    /// By their names in the fleet.
    hosts: BTreeMap<String, &'a Address>,
    /// By name.
    meshes: BTreeMap<String, MeshEntry>,
    pairs: usize,
    remarks: Remarks,
}

impl<'a> Import<'a> {
    /// Takes a task over.
    /// Errors: why it is left out.
    fn task(&mut self, object: &str, task: &'a Task) -> Result<(), String> {
        if task.disabled {
            return Err("it is disabled".to_owned());
        }
        let template = self.template;
        let test = template.tests.get(&task.test).ok_or_else(|| format!("there is no test {}", task.test))?;
        let kind = kind(test).ok_or_else(|| format!("a fleet has no test of type {}", test.kind))?;
        let mesh = self.mesh(&task.group, test)?;
        self.remarks.keys(object, &task.rest);
        let named = format!("test {}", task.test);
        match kind {
            Kind::Load => self.remarks.keys(&named, &test.spec),
            Kind::Probe => self.remarks.note(&named, "its packets become those of a probe: few, at a low rate"),
        }
        let every_ms = self.every_ms(object, task, kind);
        let entry = TestEntry { kind: kind.word(), every_ms, lasts_ms: self.lasts_ms(&named, test, kind, every_ms) };
        let tests = &mut self.meshes.entry(mesh.name.clone()).or_insert(mesh).tests;
        // One probe of a path tells its round trip, loss, routers and MTU.
        match tests.iter_mut().find(|it| it.kind == entry.kind && (kind == Kind::Probe || **it == entry)) {
            None => tests.push(entry),
            Some(same) => {
                same.every_ms = same.every_ms.min(entry.every_ms);
                self.remarks.note(object, "another task of its group becomes the same test, which is made once");
            }
        }
        Ok(())
    }

    fn every_ms(&mut self, object: &str, task: &Task, kind: Kind) -> u64 {
        let schedule = task.schedule.as_ref().and_then(|name| self.template.schedules.get_key_value(name));
        if let Some((name, schedule)) = schedule {
            self.remarks.keys(&format!("schedule {name}"), &schedule.rest);
        }
        if let Some(ms) = schedule.and_then(|(_, schedule)| iso_ms(schedule.repeat.as_deref()?)) {
            return self.within(object, "every", ms, EVERY_MS);
        }
        let usual_ms = if kind == Kind::Load { HOUR_MS } else { MINUTE_MS };
        self.remarks.note(object, &format!("it has no schedule that repeats: every {}", time(usual_ms)));
        usual_ms
    }

    fn lasts_ms(&mut self, object: &str, test: &TestOf, kind: Kind, every_ms: u64) -> u64 {
        if kind == Kind::Probe {
            return USUAL_MS;
        }
        let [least_ms, most_ms] = LASTS_MS;
        match test.spec.get("duration").and_then(Value::as_str).and_then(iso_ms) {
            Some(ms) => self.within(object, "lasts", ms, [least_ms, most_ms.min(every_ms)]),
            None => {
                self.remarks.note(object, &format!("it has no `duration`: {}", time(USUAL_MS)));
                USUAL_MS
            }
        }
    }

    fn within(&mut self, object: &str, key: &str, asked_ms: u64, [least_ms, most_ms]: [u64; 2]) -> u64 {
        let taken_ms = asked_ms.clamp(least_ms, most_ms);
        if taken_ms != asked_ms {
            self.remarks.note(object, &format!("`{key}` cannot be {}: {}", time(asked_ms), time(taken_ms)));
        }
        taken_ms
    }

    /// The mesh that a group becomes for a test.
    /// Errors: why it becomes none.
    fn mesh(&mut self, name: &str, test: &TestOf) -> Result<MeshEntry, String> {
        let group = self.template.groups.get(name).ok_or_else(|| format!("there is no group {name}"))?;
        let object = format!("group {name}");
        self.remarks.keys(&object, &group.rest);
        let none = BTreeSet::new();
        let (name, design, from, hosts) = match group.kind.as_str() {
            "mesh" => (name.to_owned(), "mesh", none, self.selected(&object, &group.addresses)),
            "disjoint" => {
                let [from, hosts] = [&group.a, &group.b].map(|side| self.selected(&object, side));
                // The design disjoint would not test hosts of both sides with each other.
                let design = if from.is_disjoint(&hosts) { "disjoint" } else { "star" };
                (name.to_owned(), design, from, hosts)
            }
            "list" => {
                let end = self.end(test);
                let end = end.ok_or_else(|| format!("its group {name} is a list, and a fleet tests pairs of hosts"))?;
                let hosts = self.selected(&object, &group.addresses);
                (format!("{name} to {end}"), "star", BTreeSet::from([end]), hosts)
            }
            other => return Err(format!("its group {name} is of the unknown type {other}")),
        };
        let pairs = match design {
            "mesh" => hosts.len() * hosts.len().saturating_sub(1) / 2,
            _ => from.len() * hosts.len(),
        };
        if pairs == 0 || from.union(&hosts).count() < 2 {
            return Err(format!("its {object} leaves no pair of hosts"));
        }
        if !self.meshes.contains_key(&name) {
            self.pairs = self.pairs.saturating_add(pairs);
        }
        if self.pairs > PAIRS_MAX {
            return Err(format!("with its {object} it is more than {PAIRS_MAX} pairs; try the design regular"));
        }
        Ok(MeshEntry { name, design, hosts, from, tests: Vec::new() })
    }

    /// The one host that all tests of a list are with.
    fn end(&mut self, test: &TestOf) -> Option<String> {
        let fixed = |key| test.spec.get(key)?.as_str().filter(|end| !end.contains("{%"));
        let end = fixed("dest").or_else(|| fixed("source"))?;
        let is_it = |(name, it): &(&'a String, &'a Address)| it.address == end || name.as_str() == end;
        let (name, address) = self.template.addresses.iter().find(is_it)?;
        self.seat(name, address)
    }

    /// The hosts that selectors name.
    fn selected(&mut self, object: &str, selectors: &'a [Selector]) -> BTreeSet<String> {
        let mut hosts = BTreeSet::new();
        for selector in selectors.iter().filter(|it| !it.disabled) {
            self.remarks.keys(object, &selector.rest);
            let named = selector.name.as_ref().and_then(|name| self.template.addresses.get_key_value(name));
            let of_class = || selector.class.as_ref().and_then(|name| self.of_class(name));
            let Some(all) = named.map(|it| vec![it]).or_else(of_class) else {
                let word = selector.name.as_ref().or(selector.class.as_ref()).map_or("nothing", String::as_str);
                self.remarks.note(object, &format!("it selects {word}, which is no address or class known here"));
                continue;
            };
            hosts.extend(all.into_iter().filter_map(|(name, address)| self.seat(name, address)));
        }
        hosts
    }

    /// The addresses of a class; `None`: it is not there, or made by a filter that is not known here.
    fn of_class(&self, name: &str) -> Option<Vec<(&'a String, &'a Address)>> {
        let class = self.template.classes.get(name)?;
        let is_current = class.source.get("type").is_some_and(|it| it == "current-config");
        if !is_current || class.rest.contains_key("exclude-filter") {
            return None;
        }
        let filter = &class.matching;
        let tag = filter.get("tag").and_then(Value::as_str);
        let has = |tags: &[String]| tags.iter().any(|it| Some(it.as_str()) == tag);
        let is_of: &dyn Fn(&Address) -> bool = match (filter, filter.get("type").and_then(Value::as_str)) {
            (Value::Null, _) => &|_| true,
            (_, Some("tag")) if tag.is_some() => &|it| has(&it.tags),
            (Value::Object(keys), Some("host")) if tag.is_some() && keys.len() == 2 => {
                &|it| self.machine(it).is_some_and(|host| has(&host.tags))
            }
            _ => return None,
        };
        Some(self.template.addresses.iter().filter(|(_, address)| is_of(address)).collect())
    }

    fn machine(&self, address: &Address) -> Option<&'a Host> {
        self.template.hosts.get(address.host.as_ref()?)
    }

    fn is_disabled(&self, address: &Address) -> bool {
        address.disabled || self.machine(address).is_some_and(|host| host.disabled)
    }

    /// The host of an address, which has one from now on; `None`: it is disabled.
    fn seat(&mut self, name: &str, address: &'a Address) -> Option<String> {
        if self.is_disabled(address) {
            return None;
        }
        let host = host_of(name, address);
        let seated = self.hosts.entry(host.clone()).or_insert(address);
        if seated.address != address.address {
            self.remarks.note(&format!("address {name}"), "its host is tested at another address that it has");
        }
        Some(host)
    }

    /// The file, with the remarks.
    /// Errors: nothing is left, or no fleet is made of it.
    fn file(mut self) -> Result<(String, Vec<String>), String> {
        let template = self.template;
        let of_mesh = |mesh: &MeshEntry| mesh.hosts.union(&mesh.from).cloned().collect::<Vec<_>>();
        let used: BTreeSet<String> = self.meshes.values().flat_map(of_mesh).collect();
        self.hosts.retain(|host, _| used.contains(host));
        template.addresses.iter().for_each(|(name, address)| self.address(name, address));
        let remarks = self.remarks.sentences();
        if self.meshes.is_empty() {
            let why = remarks.join("\n");
            return Err(format!("cannot use the pSConfig template: none of its tasks can be taken over\n{why}"));
        }
        let name = template.meta.get("display-name").and_then(Value::as_str).map_or_else(|| "psconfig".to_owned(), short);
        let entry = |(host, address): (String, &Address)| (host, entry(template, address));
        let hosts = self.hosts.into_iter().map(entry).collect();
        let text = toml::to_string(&File { name, hosts, mesh: self.meshes.into_values().collect() })
            .map_err(|error| format!("cannot write the file of the fleet: {error}"))?;
        Fleet::read(&text).map_err(|why| format!("cannot use the pSConfig template: {why}"))?;
        Ok((text, remarks))
    }

    /// Notes what becomes of an address.
    fn address(&mut self, name: &str, address: &Address) {
        let (object, host) = (format!("address {name}"), host_of(name, address));
        let mut note = |says| self.remarks.note(&object, says);
        if address.disabled || self.template.hosts.get(&host).is_some_and(|it| it.disabled) {
            return note("left out: it is disabled");
        }
        if !self.hosts.contains_key(&host) {
            return note("left out: no task that is taken over tests it");
        }
        if host != name {
            note("it has the name of its host in the fleet, of letters, digits and `:._-`");
        }
        if address.address.parse::<IpAddr>().is_err() {
            note("it is no IP address: others load its host where its agent comes from");
        }
        self.remarks.keys(&object, &address.rest);
        if let Some(machine) = self.machine(address) {
            self.remarks.keys(&format!("host {host}"), &machine.rest);
        }
    }
}

/// What the file says of a host.
fn entry(template: &Template, address: &Address) -> HostEntry {
    let machine = address.host.as_ref().and_then(|host| template.hosts.get(host));
    let metas = [Some(&address.meta), machine.map(|it| &it.meta)].into_iter().flatten();
    let site = |meta: &Value| ["site", "organization"].iter().find_map(|key| meta.get(key)?.as_str().map(short));
    HostEntry {
        group: metas.into_iter().find_map(site).unwrap_or_default(),
        address: address.address.parse::<IpAddr>().map_or_else(|_| String::new(), |it| it.to_string()),
    }
}
