//! What an assistant may ask for: each tool is a command of this program, and its arguments are words of that command.

use crate::mesh::HOSTS_MAX;
use Kind::{Flag, Hosts, Number, One, Run, Seconds, Text};
use Place::{Behind, First, Option};
use serde_json::{Map, Value, json};

/// A tool: one command.
#[derive(Debug)]
pub(super) struct Tool {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    words: &'static [&'static str],
    takes: &'static [Argument],
    /// Whether it puts load on a path: one such runs at a time.
    pub(super) is_load: bool,
}

#[derive(Debug)]
struct Argument {
    name: &'static str,
    about: &'static str,
    kind: Kind,
    place: Place,
    is_required: bool,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Text,
    /// A run of the store, no file.
    Run,
    /// It is there, or it is not.
    Flag,
    /// A whole number from the one to the other.
    Number(u64, u64),
    /// So many seconds at most.
    Seconds(u64),
    One(&'static [&'static str]),
    Hosts,
}

/// Where it stands in the command.
#[derive(Debug, Clone, Copy)]
enum Place {
    /// A subcommand.
    First,
    Option(&'static str),
    /// Behind all options.
    Behind,
}

/// A text is no longer: names, addresses, rates.
const TEXT_MAX: usize = 200;

const fn of(name: &'static str, kind: Kind, place: Place, about: &'static str) -> Argument {
    Argument { name, about, kind, place, is_required: false }
}

const fn needs(name: &'static str, kind: Kind, place: Place, about: &'static str) -> Argument {
    Argument { is_required: true, ..of(name, kind, place, about) }
}

const SERVER: &str =
    "A host with `narrows serve` (name, address or host:port) whose token `narrows trust` stored, or ssh://host";
const DIRECTION: Argument =
    of("direction", One(&["up", "down", "both"]), Option("--direction"), "Of the data: up is from this host (default)");
const DURATION: Argument = of("duration_s", Seconds(60), Option("--duration"), "Duration of a load, seconds");
const STREAMS: Argument = of("streams", Number(1, 128), Option("--streams"), "Streams at the same time");
const RATE: &str = "Rate to send at, as 100M or 2.5G, bits a second";
/// Only with leave to change settings.
const TRY: &str = "try";

/// All of them.
pub(super) const TOOLS: &[Tool] = &[
    Tool {
        name: "audit",
        about: "Check the network settings of this host, and of another one, against what fast paths need. No load.",
        words: &["audit"],
        takes: &[of("host", Text, Behind, SERVER)],
        is_load: false,
    },
    Tool {
        name: "connections",
        about: "Tell what limits each TCP connection of this host now (sender, receiver window, path, application). No load.",
        words: &["connections", "--once"],
        takes: &[
            of("process", Text, Option("--process"), "Only those of a process: its name or id"),
            of("peer", Text, Option("--peer"), "Only those to an address or network"),
            of(
                "peer_host",
                Text,
                Option("--peer-host"),
                "Also see them from the other end, a host with `narrows serve`",
            ),
        ],
        is_load: false,
    },
    Tool {
        name: "trace",
        about: "Trace the path to any host: routers, round trips, loss by hop, path MTU, filters. Few packets; no load.",
        words: &["trace"],
        takes: &[
            needs("host", Text, Behind, "Any host: name or address"),
            of("protocol", One(&["icmp", "udp", "tcp"]), Option("--protocol"), "What its packets are"),
            of("port", Number(1, 65_535), Option("--port"), "Of TCP or UDP"),
        ],
        is_load: false,
    },
    Tool {
        name: "diagnose",
        about: "Load the path to a host for about ten seconds, and name what limits it, with evidence and the exact fix.",
        words: &["diagnose"],
        takes: &[
            needs("host", Text, Behind, SERVER),
            DIRECTION,
            STREAMS,
            of("udp", Flag, Option("--udp"), "UDP in place of TCP; name a rate"),
            of("rate", Text, Option("--rate"), RATE),
            of("expect", Text, Option("--expect"), "What the path should carry, as 10G"),
            of(TRY, Flag, Option("--try"), "Apply the fix, measure again, and roll it back"),
        ],
        is_load: true,
    },
    Tool {
        name: "measure",
        about: "Load the path to a host and measure goodput, loss, round trips and the CPU time that it costs.",
        words: &["measure"],
        takes: &[
            needs("protocol", One(&["tcp", "udp"]), First, "What is sent"),
            needs("host", Text, Behind, SERVER),
            DIRECTION,
            DURATION,
            STREAMS,
            of("rate", Text, Option("-b"), RATE),
        ],
        is_load: true,
    },
    Tool {
        name: "mesh",
        about: "Load the paths between several hosts, all reached by ssh without a question, and name the host, direction or trunk that is \
                slow.",
        words: &["mesh"],
        takes: &[
            needs("hosts", Hosts, Behind, "Each ssh://[user@]host[:port], or a host with `narrows serve`"),
            DURATION,
            of("budget_s", Seconds(600), Option("--budget"), "Start no load that would end later"),
            of("budget_bytes", Text, Option("--budget-bytes"), "Start no load after so many bytes, as 20G"),
            of("no_diagnose", Flag, Option("--no-diagnose"), "Only find what is slow"),
            of(TRY, Flag, Option("--try"), "Try the first fix of each diagnosis, and roll it back"),
        ],
        is_load: true,
    },
    Tool {
        name: "history",
        about: "List the stored runs of this host: time, command, host, verdict, goodput and the id for `report`.",
        words: &["history"],
        takes: &[
            of("host", Text, Option("--host"), "Only runs to this host"),
            of("since", Text, Option("--since"), "Only later ones: a date, or a time ago as 7d"),
            of("verdict", Text, Option("--verdict"), "Only those with this cause"),
            of("command", Text, Option("--command"), "Only those of this command"),
            of("limit", Number(1, 1_000), Option("--limit"), "So many at most"),
        ],
        is_load: false,
    },
    Tool {
        name: "report",
        about: "Show a stored run with its evidence; or how it differs from another one.",
        words: &["report"],
        takes: &[
            needs("run", Run, Behind, "Its id, as `history` lists it, or `last`"),
            of("why_not", Text, Option("--why-not"), "Tell why a cause was not named"),
            of("diff", Run, Option("--diff"), "The id of another run, to compare with"),
            of("full", Flag, Option("--full"), "All that is known"),
        ],
        is_load: false,
    },
    Tool {
        name: "fleet_status",
        about: "Tell what is bad in a fleet of hosts, which agents are there, and how tests end.",
        words: &["fleet", "status"],
        takes: &[of("controller", Text, Option("--controller"), "Its host (default: this one)")],
        is_load: false,
    },
];

/// What every tool takes as well.
const FORMAT: Argument =
    of("format", One(&["text", "json"]), Option("--format"), "A report to read (default), or all figures as JSON");

/// The name of each tool, and its arguments as a JSON Schema, also those that change settings.
pub fn schemas() -> impl Iterator<Item = (&'static str, Map<String, Value>)> {
    TOOLS.iter().map(|tool| (tool.name, tool.schema(true)))
}

/// The words of the command that a call of a tool is.
/// Errors: there is no such tool; what is wrong with an argument.
pub fn command_of(tool: &str, given: &Map<String, Value>) -> Result<Vec<String>, String> {
    named(tool)?.words(given, true)
}

/// Errors: there is no such tool.
pub(super) fn named(name: &str) -> Result<&'static Tool, String> {
    TOOLS.iter().find(|it| it.name == name).ok_or_else(|| {
        let all: Vec<&str> = TOOLS.iter().map(|it| it.name).collect();
        format!("there is no such tool; there are {}", all.join(", "))
    })
}

impl Tool {
    fn arguments(&self, may_tune: bool) -> impl Iterator<Item = &Argument> {
        self.takes.iter().chain([&FORMAT]).filter(move |it| may_tune || it.name != TRY)
    }

    /// Its arguments as a JSON Schema.
    pub(super) fn schema(&self, may_tune: bool) -> Map<String, Value> {
        let one = |it: &Argument| (it.name.to_owned(), it.kind.schema(it.about));
        let required: Vec<&str> = self.takes.iter().filter(|it| it.is_required).map(|it| it.name).collect();
        let properties: Map<String, Value> = self.arguments(may_tune).map(one).collect();
        let whole = json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        });
        whole.as_object().cloned().unwrap_or_default()
    }

    /// The words of its command.
    /// Errors: what is wrong with an argument.
    pub(super) fn words(&self, given: &Map<String, Value>, may_tune: bool) -> Result<Vec<String>, String> {
        if let Some(odd) = given.keys().find(|key| !self.arguments(may_tune).any(|it| it.name == key.as_str())) {
            let known: Vec<&str> = self.arguments(may_tune).map(|it| it.name).collect();
            if odd == TRY {
                return Err("`try` changes settings: this server was started without --allow-tune".to_owned());
            }
            let odd: String = odd.chars().take(TEXT_MAX).collect();
            return Err(format!("{} has no argument `{odd}`; it takes {}", self.name, known.join(", ")));
        }
        let (mut first, mut options, mut behind) = (Vec::new(), Vec::new(), Vec::new());
        for argument in self.arguments(may_tune) {
            let Some(value) = given.get(argument.name).filter(|value| !value.is_null()) else {
                if argument.is_required {
                    return Err(format!("{} needs `{}`: {}", self.name, argument.name, argument.about));
                }
                continue;
            };
            let words = argument.kind.words(value).map_err(|why| format!("`{}` {why}", argument.name))?;
            match argument.place {
                First => first.extend(words),
                Behind => behind.extend(words),
                Option(flag) if matches!(argument.kind, Flag) => options.extend(words.iter().map(|_| flag.to_owned())),
                // In one word: no value is taken for another option.
                Option(flag) => options.extend(words.iter().map(|word| format!("{flag}={word}"))),
            }
        }
        let mut all: Vec<String> = self.words.iter().map(|word| (*word).to_owned()).collect();
        all.extend(first);
        all.extend(options);
        if !behind.is_empty() {
            all.push("--".to_owned());
            all.extend(behind);
        }
        Ok(all)
    }
}

impl Kind {
    fn schema(self, about: &str) -> Value {
        match self {
            Text | Run => json!({ "type": "string", "maxLength": TEXT_MAX, "description": about }),
            Flag => json!({ "type": "boolean", "description": about }),
            Number(least, most) => {
                json!({ "type": "integer", "minimum": least, "maximum": most, "description": about })
            }
            Seconds(most) => json!({ "type": "integer", "minimum": 1, "maximum": most, "description": about }),
            One(all) => json!({ "type": "string", "enum": all, "description": about }),
            Hosts => json!({
                "type": "array", "items": { "type": "string", "maxLength": TEXT_MAX }, "minItems": 2, "maxItems": HOSTS_MAX,
                "description": about,
            }),
        }
    }

    fn words(self, value: &Value) -> Result<Vec<String>, String> {
        match self {
            Text => Ok(vec![text(value)?]),
            Run => {
                let word = text(value)?;
                let is_id = word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '~' | ':'));
                if is_id { Ok(vec![word]) } else { Err("must be an id, as `history` lists it, or `last`".to_owned()) }
            }
            Flag => match value.as_bool() {
                Some(true) => Ok(vec![String::new()]),
                Some(false) => Ok(Vec::new()),
                None => Err("must be true or false".to_owned()),
            },
            Number(least, most) => Ok(vec![number(value, least, most)?.to_string()]),
            Seconds(most) => Ok(vec![format!("{}s", number(value, 1, most)?)]),
            One(all) => match value.as_str().filter(|word| all.contains(word)) {
                Some(word) => Ok(vec![word.to_owned()]),
                None => Err(format!("must be one of {}", all.join(", "))),
            },
            Hosts => {
                let all = value.as_array().filter(|all| (2..=HOSTS_MAX).contains(&all.len()));
                let all = all.ok_or_else(|| format!("must be a list of 2 to {HOSTS_MAX} hosts"))?;
                all.iter().map(text).collect()
            }
        }
    }
}

/// A word: nothing that a command could take for an option.
fn text(value: &Value) -> Result<String, String> {
    let word = value.as_str().ok_or("must be a text")?;
    let is_plain = !word.is_empty() && word.chars().count() <= TEXT_MAX && !word.contains(char::is_control);
    match is_plain && !word.starts_with('-') {
        true => Ok(word.to_owned()),
        false => Err(format!(
            "must have 1 to {TEXT_MAX} characters, none of them a control character, and not begin with `-`"
        )),
    }
}

fn number(value: &Value, least: u64, most: u64) -> Result<u64, String> {
    let found = value.as_u64().filter(|it| (least..=most).contains(it));
    found.ok_or_else(|| format!("must be a whole number from {least} to {most}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(name: &str, given: &Value, may_tune: bool) -> Result<String, String> {
        let tool = named(name)?;
        tool.words(given.as_object().expect("an object"), may_tune).map(|words| words.join(" "))
    }

    #[test]
    fn arguments_become_the_words_of_a_command() {
        for (name, given, command) in [
            ("audit", json!({}), "audit"),
            ("audit", json!({ "host": "b", "format": "json" }), "audit --format=json -- b"),
            ("connections", json!({ "peer": "10.0.0.0/8", "process": null }), "connections --once --peer=10.0.0.0/8"),
            (
                "measure",
                json!({ "host": "b", "protocol": "udp", "rate": "1G", "duration_s": 3 }),
                "measure udp --duration=3s -b=1G -- b",
            ),
            (
                "diagnose",
                json!({ "host": "ssh://b", "udp": true, "rate": "2G" }),
                "diagnose --udp --rate=2G -- ssh://b",
            ),
            (
                "mesh",
                json!({ "hosts": ["ssh://a", "ssh://b"], "no_diagnose": true }),
                "mesh --no-diagnose -- ssh://a ssh://b",
            ),
            ("history", json!({ "since": "7d", "limit": 5 }), "history --since=7d --limit=5"),
        ] {
            assert_eq!(words(name, &given, false).as_deref(), Ok(command), "{name}");
        }
        assert_eq!(words("diagnose", &json!({ "host": "b", "try": true }), true).as_deref(), Ok("diagnose --try -- b"));
    }

    #[test]
    fn what_is_wrong_with_an_argument_is_said() {
        let long = "x".repeat(TEXT_MAX + 1);
        for (name, given, says) in [
            ("trace", json!({}), "needs `host`"),
            ("trace", json!({ "host": "-oProxyCommand=x" }), "not begin with `-`"),
            ("trace", json!({ "host": "a\u{1b}[2J" }), "control character"),
            ("trace", json!({ "host": long }), "1 to 200 characters"),
            ("trace", json!({ "host": 7 }), "must be a text"),
            ("trace", json!({ "host": "a", "protocol": "sctp" }), "one of icmp, udp, tcp"),
            ("trace", json!({ "host": "a", "port": 65_536 }), "from 1 to 65535"),
            ("trace", json!({ "host": "a", "output": "/etc/passwd" }), "no argument `output`; it takes host, protocol"),
            ("diagnose", json!({ "host": "a", "try": true }), "without --allow-tune"),
            ("diagnose", json!({ "host": "a", "udp": "yes" }), "true or false"),
            ("measure", json!({ "host": "a", "protocol": "tcp", "duration_s": 600 }), "from 1 to 60"),
            ("mesh", json!({ "hosts": ["a"] }), "2 to 200 hosts"),
        ] {
            let why = words(name, &given, false).expect_err("it is wrong");
            assert!(why.contains(says), "{why}");
        }
    }

    #[test]
    fn no_tool_changes_a_host_without_leave() {
        for tool in TOOLS {
            assert!(!tool.schema(false)["properties"].as_object().expect("a map").contains_key(TRY), "{}", tool.name);
        }
        assert!(TOOLS.iter().any(|tool| tool.schema(true)["properties"].as_object().expect("a map").contains_key(TRY)));
    }
}
