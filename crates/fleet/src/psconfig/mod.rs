//! A pSConfig template of perfSONAR (JSON) as the file of a fleet, with what of it could not be taken over.
//!
//! A group with its tasks becomes a mesh with its tests, a machine with its addresses one host: there is one agent on it, and its loads
//! must not meet. Whatever has no counterpart is named in a remark, never dropped in silence.

mod remarks;
mod template;

use crate::plan::{Fleet, Kind};
use remarks::{Remarks, short};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use template::{Address, DAY_MS, HOUR_MS, MINUTE_MS, Named, SECOND_MS, Selector, Task, Template, Test, iso_ms};

/// No template is larger; who reads the file checks it.
pub const TEMPLATE_MAX_BYTES: u64 = 16 << 20;
/// Pairs of hosts of all groups.
const PAIRS_MAX: usize = 2_000_000;
/// What the file of a fleet takes as `every` and, of a longer period, as `lasts`.
const EVERY_MS: [u64; 2] = [10 * SECOND_MS, 366 * DAY_MS];
const LASTS_MS: [u64; 2] = [200, 10 * MINUTE_MS];
/// How long a test lasts of which nothing is said.
const USUAL_MS: u64 = 3 * SECOND_MS;

/// The file of a fleet, as [`Fleet`] reads it.
#[derive(Debug, Serialize)]
struct FleetEntry {
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

/// Reads a pSConfig template: the file of a fleet, and in a sentence each what was changed or could not be taken over.
/// Errors: it is no such JSON, it has no tasks, or none of them has a counterpart.
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
    tasks.sort_by_key(|(_, task)| template.tests.get(&task.test).and_then(Test::kind) != Some(Kind::Load));
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
    /// By their names in the fleet, each with the address that others load.
    hosts: BTreeMap<String, &'a Address>,
    /// By name.
    meshes: BTreeMap<String, MeshEntry>,
    pairs: usize,
    remarks: Remarks,
}

impl<'a> Import<'a> {
    /// Takes a task over.
    /// Errors: why it is left out.
    fn task(&mut self, object: &str, task: &Task) -> Result<(), String> {
        if task.disabled {
            return Err("it is disabled".to_owned());
        }
        let template = self.template;
        let test = template.tests.get(&task.test).ok_or_else(|| format!("there is no test {}", task.test))?;
        let kind = test.kind().ok_or_else(|| format!("a fleet has no test of type {}", test.of))?;
        let mesh = self.mesh(&task.group, test)?;
        self.remarks.keys(object, &task.rest);
        let named = format!("test {}", task.test);
        self.remarks.keys(&named, &test.rest);
        match kind {
            Kind::Load => self.remarks.keys(&named, &test.spec),
            Kind::Probe => self.remarks.note(&named, "its packets become those of a probe: few, at a low rate"),
        }
        let every_ms = self.every_ms(object, task, kind);
        let lasts_ms = self.lasts_ms(&named, test, kind, every_ms);
        let entry = TestEntry { kind: kind.word(), every_ms, lasts_ms };
        let tests = &mut self.meshes.entry(mesh.name.clone()).or_insert(mesh).tests;
        // One probe of a path tells its round trip, loss, routers and MTU.
        let is_same = |it: &TestEntry| it.kind == entry.kind && (kind == Kind::Probe || *it == entry);
        match tests.iter().position(is_same) {
            None => tests.push(entry),
            Some(at) => {
                tests[at].every_ms = tests[at].every_ms.min(every_ms);
                self.remarks.note(object, "another task of its group becomes the same test, which is made once");
            }
        }
        Ok(())
    }

    fn every_ms(&mut self, object: &str, task: &Task, kind: Kind) -> u64 {
        let template = self.template;
        let schedule = task.schedule.as_ref().and_then(|name| template.schedules.get_key_value(name));
        if let Some((name, schedule)) = schedule {
            self.remarks.keys(&format!("schedule {name}"), &schedule.rest);
        }
        if let Some(ms) = schedule.and_then(|(_, schedule)| iso_ms(schedule.repeat.as_deref()?)) {
            return self.within(object, "every", ms, EVERY_MS);
        }
        let usual_ms = if kind == Kind::Load { HOUR_MS } else { MINUTE_MS };
        self.remarks.note(object, &format!("it has no schedule that repeats, so every {}", time(usual_ms)));
        usual_ms
    }

    fn lasts_ms(&mut self, object: &str, test: &Test, kind: Kind, every_ms: u64) -> u64 {
        if kind == Kind::Probe {
            return USUAL_MS;
        }
        let [least_ms, most_ms] = LASTS_MS;
        if let Some(ms) = test.spec.get("duration").and_then(Value::as_str).and_then(iso_ms) {
            return self.within(object, "lasts", ms, [least_ms, most_ms.min(every_ms)]);
        }
        self.remarks.note(object, &format!("it has no duration, so it lasts {}", time(USUAL_MS)));
        USUAL_MS
    }

    fn within(&mut self, object: &str, key: &str, asked_ms: u64, [least_ms, most_ms]: [u64; 2]) -> u64 {
        let taken_ms = asked_ms.clamp(least_ms, most_ms);
        if taken_ms != asked_ms {
            let [asked, taken] = [asked_ms, taken_ms].map(time);
            self.remarks.note(object, &format!("`{key}` is {taken}: {asked} is out of its range"));
        }
        taken_ms
    }

    /// The mesh that a group becomes for a test.
    /// Errors: why it becomes none.
    fn mesh(&mut self, name: &str, test: &Test) -> Result<MeshEntry, String> {
        let template = self.template;
        let group = template.groups.get(name).ok_or_else(|| format!("there is no group {name}"))?;
        let object = format!("group {name}");
        self.remarks.keys(&object, &group.rest);
        let (name, design, from, hosts) = match group.kind.as_str() {
            "mesh" => (name.to_owned(), "mesh", BTreeSet::new(), self.selected(&object, &group.addresses)),
            "disjoint" => {
                let from = self.selected(&object, &group.a);
                let hosts = self.selected(&object, &group.b);
                // The design disjoint does not test hosts of both sides with each other.
                let design = if from.is_disjoint(&hosts) { "disjoint" } else { "star" };
                (name.to_owned(), design, from, hosts)
            }
            "list" => {
                let end = self.end(test);
                let end = end.ok_or_else(|| format!("its {object} is a list, and a fleet tests pairs of hosts"))?;
                let hosts = self.selected(&object, &group.addresses);
                (format!("{name} to {end}"), "star", BTreeSet::from([end]), hosts)
            }
            other => return Err(format!("its {object} is of the unknown type {other}")),
        };
        let pairs = match design {
            "mesh" => hosts.len() * hosts.len().saturating_sub(1) / 2,
            _ => from.len() * hosts.len(),
        };
        if pairs == 0 || from.union(&hosts).count() < 2 {
            return Err(format!("its {object} leaves no pair of hosts"));
        }
        let all = if self.meshes.contains_key(&name) { self.pairs } else { self.pairs.saturating_add(pairs) };
        if all > PAIRS_MAX {
            return Err(format!("with its {object} there are more than {PAIRS_MAX} pairs; try the design regular"));
        }
        self.pairs = all;
        Ok(MeshEntry { name, design, hosts, from, tests: Vec::new() })
    }

    /// The host that all of a list are tested with.
    fn end(&mut self, test: &Test) -> Option<String> {
        let end = test.end()?;
        let template = self.template;
        let found = template.addresses.iter().find(|(name, it)| it.address == end || name.as_str() == end);
        found.and_then(|(name, address)| self.session(name, address))
    }

    /// The hosts that selectors name.
    fn selected(&mut self, object: &str, selectors: &[Selector]) -> BTreeSet<String> {
        let template = self.template;
        let mut hosts = BTreeSet::new();
        for selector in selectors.iter().filter(|it| !it.disabled) {
            self.remarks.keys(object, &selector.rest);
            let named = selector.name.as_ref().and_then(|name| template.addresses.get_key_value(name));
            let of_class = selector.class.as_ref().and_then(|name| template.of_class(name));
            let Some(all) = named.map(|it| vec![it]).or(of_class) else {
                let word = selector.name.as_ref().or(selector.class.as_ref()).map_or("nothing", String::as_str);
                self.remarks.note(object, &format!("it selects {word}, which is no address or class known here"));
                continue;
            };
            hosts.extend(all.into_iter().filter_map(|(name, address)| self.session(name, address)));
        }
        hosts
    }

    /// The host of an address, which is one of the fleet from now on; `None`: it is disabled.
    fn session(&mut self, name: &str, address: &'a Address) -> Option<String> {
        if self.template.is_disabled(address) {
            return None;
        }
        let host = address.fleet_host(name);
        let seated = self.hosts.entry(host.clone()).or_insert(address);
        if seated.address != address.address {
            self.remarks.note(&format!("address {name}"), "its host is tested at another one of its addresses");
        }
        Some(host)
    }

    /// The file, with the remarks.
    /// Errors: nothing is left, or it makes no fleet.
    fn file(mut self) -> Result<(String, Vec<String>), String> {
        let template = self.template;
        let of_mesh = |mesh: &MeshEntry| mesh.hosts.union(&mesh.from).cloned().collect::<Vec<_>>();
        let used: BTreeSet<String> = self.meshes.values().flat_map(of_mesh).collect();
        self.hosts.retain(|host, _| used.contains(host));
        for (name, address) in &template.addresses {
            self.address(name, address);
        }
        let remarks = self.remarks.sentences();
        if self.meshes.is_empty() {
            let why = remarks.join("\n");
            return Err(format!("cannot use the pSConfig template: none of its tasks can be taken over\n{why}"));
        }
        let name = template.meta.get("display-name").and_then(Value::as_str).map(short);
        let row = |(host, address): (String, &Address)| (host, entry(template, address));
        let fleet = FleetEntry {
            name: name.unwrap_or_else(|| "psconfig".to_owned()),
            hosts: self.hosts.into_iter().map(row).collect(),
            mesh: self.meshes.into_values().collect(),
        };
        let text = toml::to_string(&fleet).map_err(|error| format!("cannot write the file of the fleet: {error}"))?;
        Fleet::read(&text).map_err(|why| format!("cannot use the pSConfig template: {why}"))?;
        Ok((text, remarks))
    }

    /// Notes what becomes of an address.
    fn address(&mut self, name: &str, address: &Address) {
        let (object, host) = (format!("address {name}"), address.fleet_host(name));
        if self.template.is_disabled(address) {
            return self.remarks.note(&object, "left out: it is disabled");
        }
        if !self.hosts.contains_key(&host) {
            return self.remarks.note(&object, "left out: no task that is taken over tests it");
        }
        if host != name {
            self.remarks.note(&object, "its host has the name of its machine, of letters, digits and `:._-`");
        }
        if address.address.parse::<IpAddr>().is_err() {
            self.remarks.note(&object, "it is no IP address: others load its host where its agent comes from");
        }
        self.remarks.keys(&object, &address.rest);
        if let Some(machine) = self.template.machine(address) {
            self.remarks.keys(&format!("host {host}"), &machine.rest);
        }
    }
}

/// What the file says of a host.
fn entry(template: &Template, address: &Address) -> HostEntry {
    let machine = template.machine(address);
    let site = |meta: &Value| ["site", "organization"].iter().find_map(|key| meta.get(key)?.as_str().map(short));
    HostEntry {
        group: site(&address.meta).or_else(|| site(&machine?.meta)).unwrap_or_default(),
        address: address.address.parse::<IpAddr>().map(|it| it.to_string()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Design, Mesh};
    use serde_json::json;

    const FJORDS: &str = r#"{
        "_meta": { "display-name": "Fjords" },
        "includes": ["https://noc.example/more.json"],
        "archives": { "central": { "archiver": "http", "data": {} } },
        "addresses": {
            "oslo-thr": { "address": "192.0.2.1", "host": "oslo", "_meta": { "site": "south" } },
            "oslo-lat": { "address": "192.0.2.2", "host": "oslo" },
            "bergen": { "address": "bergen.example", "tags": ["lab"], "labels": { "v6": { "address": "2001:db8::2" } } },
            "narvik": { "address": "2001:db8::3", "host": "narvik", "tags": ["lab"], "contexts": ["netns"] },
            "alta": { "address": "192.0.2.4", "disabled": true },
            "spare": { "address": "192.0.2.5" }
        },
        "address-classes": {
            "labs": { "data-source": { "type": "current-config" }, "match-filter": { "type": "tag", "tag": "lab" } }
        },
        "hosts": { "oslo": { "archives": ["central"] }, "narvik": { "_meta": { "organization": "arctic" } } },
        "groups": {
            "fast": {
                "type": "mesh",
                "addresses": [{ "name": "oslo-thr" }, { "name": "bergen" }, { "name": "narvik" }, { "name": "alta" }, { "name": "gone" }],
                "excludes": [{ "local-address": { "name": "bergen" }, "target-addresses": [{ "name": "narvik" }] }]
            },
            "sides": {
                "type": "disjoint", "unidirectional": true,
                "a-addresses": [{ "name": "oslo-lat" }], "b-addresses": [{ "class": "labs" }]
            },
            "hub": { "type": "list", "addresses": [{ "name": "bergen" }, { "name": "narvik" }] }
        },
        "schedules": {
            "4h": { "repeat": "PT4H", "slip": "PT4H", "sliprand": true },
            "often": { "repeat": "PT1S", "max-runs": 7 }
        },
        "tests": {
            "tcp": {
                "type": "throughput",
                "spec": {
                    "source": "{% address[0] %}", "dest": "{% address[1] %}",
                    "duration": "PT20S", "bandwidth": 2000000000, "udp": false
                }
            },
            "owamp": { "type": "latencybg", "spec": { "source": "{% address[0] %}", "dest": "{% address[1] %}" } },
            "ping": { "type": "rtt", "spec": { "source": "{% address[0] %}", "dest": "{% address[1] %}" } },
            "ping-oslo": { "type": "rtt", "spec": { "source": "{% address[0] %}", "dest": "192.0.2.1" } },
            "names": { "type": "dns", "spec": {} }
        },
        "tasks": {
            "a": { "group": "sides", "test": "owamp" },
            "b": { "group": "fast", "test": "tcp", "schedule": "4h", "archives": ["central"] },
            "c": { "group": "sides", "test": "ping", "schedule": "often" },
            "d": { "group": "hub", "test": "ping-oslo" },
            "e": { "group": "fast", "test": "names" },
            "f": { "group": "fast", "test": "tcp", "disabled": true },
            "g": { "group": "hub", "test": "tcp" }
        }
    }"#;

    fn words(mesh: &Mesh) -> Vec<String> {
        mesh.tests.iter().map(crate::plan::Test::word).collect()
    }

    #[test]
    fn a_template_becomes_a_fleet() {
        let (text, remarks) = imported(FJORDS).expect("a fleet");
        let fleet = Fleet::read(&text).expect("readable");
        assert_eq!(fleet.name, "Fjords");
        let hosts = fleet.hosts.iter().map(|(name, it)| (name.as_str(), it.group.as_str(), it.address.as_str()));
        let expected = [("bergen", "", ""), ("narvik", "arctic", "2001:db8::3"), ("oslo", "south", "192.0.2.1")];
        assert_eq!(hosts.collect::<Vec<_>>(), expected);
        let [fast, hub, sides] = &fleet.meshes[..] else { panic!("three meshes: {text}") };
        assert_eq!([&fast.name, &hub.name, &sides.name], ["fast", "hub to oslo", "sides"]);
        assert_eq!([fast.design, hub.design, sides.design], [Design::Mesh, Design::Star, Design::Disjoint]);
        assert_eq!(fleet.pairs(fast), [[0, 1], [0, 2], [1, 2]]);
        assert_eq!([fleet.pairs(hub), fleet.pairs(sides)], [[[0, 2], [1, 2]]; 2]);
        assert_eq!(words(fast), ["load of 20000 ms each 14400000 ms"]);
        // The more frequent one of two probes stands for both.
        assert_eq!(words(sides), ["probe of 3000 ms each 10000 ms"]);
        assert_eq!(words(hub), ["probe of 3000 ms each 60000 ms"]);
        for says in [
            "address alta, task f: left out: it is disabled",
            "address spare: left out: no task that is taken over tests it",
            "address oslo-lat: its host is tested at another one of its addresses",
            "address bergen: it is no IP address: others load its host where its agent comes from",
            "address bergen: `labels` is not taken over: a host has one address",
            "address narvik: `contexts` is not taken over: an agent measures where it runs",
            "group fast: `excludes` is not taken over: all pairs of the group are tested",
            "group fast: it selects gone, which is no address or class known here",
            "group sides: `unidirectional` is not taken over: loads are made in both directions",
            "host oslo, task b, the template: `archives` is not taken over: the controller keeps the results in its own store",
            "schedule often: `max-runs` is not taken over: narrows has no such thing",
            "task a, task d: it has no schedule that repeats, so every 1m",
            "task c: `every` is 10s: 1s is out of its range",
            "task c: another task of its group becomes the same test, which is made once",
            "task e: left out: a fleet has no test of type dns",
            "task g: left out: its group hub is a list, and a fleet tests pairs of hosts",
            "test tcp: `bandwidth` is not taken over: a load is TCP as fast as it goes",
            "the template: `includes` is not taken over: the files that it names are not read",
        ] {
            assert!(remarks.iter().any(|it| it == says), "{says}\nis not in\n{}", remarks.join("\n"));
        }
        assert!(!remarks.iter().any(|it| it.contains("`udp`") || it.contains("slip")), "{remarks:?}");
    }

    #[test]
    fn sides_that_meet_are_a_star_and_a_long_load_is_cut() {
        let mut of: Value = serde_json::from_str(FJORDS).expect("JSON");
        let names = ["oslo-thr", "bergen", "narvik"];
        of["groups"]["sides"]["b-addresses"] = names.map(|name| json!({ "name": name })).to_vec().into();
        of["tests"]["tcp"]["spec"]["duration"] = json!("PT1H");
        let (text, remarks) = imported(&of.to_string()).expect("a fleet");
        let fleet = Fleet::read(&text).expect("readable");
        assert_eq!((fleet.meshes[2].design, fleet.pairs(&fleet.meshes[2])), (Design::Star, vec![[0, 2], [1, 2]]));
        assert_eq!(fleet.meshes[0].tests[0].lasts_ms, 600_000);
        assert!(remarks.contains(&"test tcp: `lasts` is 10m: 1h is out of its range".to_owned()), "{remarks:?}");
    }

    #[test]
    fn odd_names_are_made_harmless() {
        let names = ["@all", "a \"b\"", "c\n[mesh]\u{1b}", "d.e"];
        let addresses: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!({ "address": "192.0.2.9", "\u{1b}x": 1 }))).collect();
        let selectors: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        let json = json!({
            "addresses": addresses,
            "groups": { "g\u{1b}'\"": { "type": "mesh", "addresses": selectors } },
            "tests": { "t": { "type": "throughput", "spec": { "duration": "soon" } } },
            "tasks": { "t": { "group": "g\u{1b}'\"", "test": "t", "schedule": "none" } }
        });
        let (text, remarks) = imported(&json.to_string()).expect("a fleet");
        let fleet = Fleet::read(&text).expect("readable");
        assert_eq!(fleet.hosts.keys().collect::<Vec<_>>(), ["_all", "a__b_", "c__mesh__", "d.e"]);
        assert_eq!(fleet.pairs(&fleet.meshes[0]).len(), 6);
        assert_eq!(fleet.meshes[0].tests[0].word(), "load of 3000 ms each 3600000 ms");
        assert!(!remarks.concat().chars().any(char::is_control), "{remarks:?}");
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for (json, says) in [
            ("{", "cannot read the pSConfig template: EOF while parsing"),
            ("[]", "cannot read the pSConfig template: "),
            (r#"{ "tasks": 3 }"#, "at line 1 column "),
            ("{}", "it has no tasks"),
            (r#"{ "tasks": { "t": { "group": "g", "test": "x" } } }"#, "task t: left out: there is no test x"),
        ] {
            let said = imported(json).expect_err(json);
            assert!(said.contains(says), "{json}: {said}");
        }
    }
}
