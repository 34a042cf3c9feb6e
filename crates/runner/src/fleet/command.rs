//! What the thread that decides for a fleet receives, and what it does of that for users.

use narrows_fleet::control::Control;
use narrows_fleet::incident::names;
use narrows_fleet::judge::TESTS;
use narrows_fleet::plan::Fleet;
use narrows_fleet::protocol::{Poll, Reply};
use narrows_fleet::truth::Truth;
use narrows_model::run::fleet::{FleetPaths, FleetStatus};
use narrows_sys::clock;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use tokio::sync::oneshot;

/// What the thread that decides receives.
pub(super) enum Event {
    Poll {
        host: String,
        from: Option<IpAddr>,
        poll: Poll,
        answer: oneshot::Sender<Reply>,
    },
    Command(Command, oneshot::Sender<Result<serde_json::Value, String>>),
    /// How the fleet is, and if asked for which paths are tested.
    Look(bool, oneshot::Sender<Result<Later, String>>),
}

/// What is still to be worked out, elsewhere.
pub(super) type Later = Box<dyn FnOnce() -> (FleetStatus, FleetPaths) + Send>;

/// What a user asks of a controller.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    Status,
    /// The file is read again.
    Apply,
    /// The same, with this text in its place.
    ApplyFile {
        text: String,
    },
    /// No test begins for so long; 0: they do.
    Pause {
        for_ms: u64,
    },
    /// A host gets no tests, or gets them again.
    Drain {
        host: String,
        back: bool,
    },
    /// Tests of a mesh, or of all, now.
    Run {
        mesh: Option<String>,
        /// Only those between two hosts.
        #[serde(default)]
        between: Option<[String; 2]>,
    },
    Acknowledge {
        incident: u64,
        who: String,
    },
    /// What the tests of a path found in the last so long.
    Series {
        from: String,
        to: String,
        last_ms: u64,
    },
    /// The settings of a host beside those of its group; nothing of a host that the fleet has not.
    Settings {
        host: String,
    },
    /// Each target of alerts gets a message, to see whether it arrives.
    TryAlerts,
    /// Of an element, or of names that begin so (`*`), nothing is reported for so long; 0: it is reported again.
    Mute {
        element: String,
        for_ms: u64,
    },
}

impl Command {
    /// What it changes, in words; `None`: it only reads.
    pub(super) fn changes(&self) -> Option<String> {
        Some(match self {
            Self::Status | Self::Series { .. } | Self::Settings { .. } => return None,
            Self::Apply => "apply".to_owned(),
            Self::ApplyFile { text } => format!("apply a file of {} bytes", text.len()),
            Self::Pause { for_ms } => format!("pause for {} s", for_ms / 1_000),
            Self::Drain { host, back } => format!("{} {host}", if *back { "drain --back" } else { "drain" }),
            Self::Run { mesh, between } => {
                let between = between.as_ref().map_or_else(String::new, |[a, b]| format!(" between {a} and {b}"));
                format!("run {}{between}", mesh.as_deref().unwrap_or("all"))
            }
            Self::Acknowledge { incident, who } => format!("acknowledge {incident} by {who}"),
            Self::TryAlerts => "try-alerts".to_owned(),
            Self::Mute { element, for_ms } => format!("mute {element} for {} s", for_ms / 1_000),
        })
    }
}

/// Milliseconds since the epoch.
pub(super) fn now_ms() -> u64 {
    clock::unix_us() / 1_000
}

/// Does what a user wishes.
pub(super) fn executed<T: Truth<Error = narrows_store::Error>>(
    control: &mut Control<'_, T>,
    fleet: &Fleet,
    command: Command,
) -> Result<serde_json::Value, String> {
    let host = |control: &Control<'_, T>, name: &str| {
        control.host(name).ok_or_else(|| format!("the fleet has no host {name}"))
    };
    let says = match command {
        Command::Status | Command::Apply | Command::ApplyFile { .. } | Command::TryAlerts => {
            return Err("this is answered elsewhere".to_owned());
        }
        Command::Series { from, to, last_ms } => {
            let (from, to) = (host(control, &from)?, host(control, &to)?);
            let found =
                control.series(from, to, now_ms().saturating_sub(last_ms)).map_err(|error| error.to_string())?;
            return serde_json::to_value(found).map_err(|error| error.to_string());
        }
        Command::Settings { host } => {
            let found = control.host(&host).map(|at| control.settings(at));
            return serde_json::to_value(found).map_err(|error| error.to_string());
        }
        Command::Pause { for_ms } => {
            control.pause(now_ms().saturating_add(for_ms));
            if for_ms == 0 { "tests begin again".to_owned() } else { format!("no test begins until {}", after(for_ms)) }
        }
        Command::Drain { host: name, back } => {
            let at = host(control, &name)?;
            control.drain(at, !back);
            if back { format!("{name} gets tests again") } else { format!("{name} gets no more tests") }
        }
        Command::Run { mesh, between } => {
            let of = |it: &narrows_fleet::plan::Mesh| mesh.as_ref().is_none_or(|name| *name == it.name);
            let places: Vec<usize> =
                fleet.meshes.iter().enumerate().filter(|(_, it)| of(it)).map(|(nth, _)| nth).collect();
            if places.is_empty() {
                return Err(format!("the fleet has no mesh {}", mesh.unwrap_or_default()));
            }
            let hosts =
                between.as_ref().map(|[a, b]| Ok::<_, String>([host(control, a)?, host(control, b)?])).transpose()?;
            let planned: Result<Vec<usize>, _> =
                places.into_iter().map(|at| control.run(at, hosts, now_ms())).collect();
            match (planned.map_err(|error| error.to_string())?.into_iter().sum::<usize>(), between) {
                (0, Some([a, b])) => return Err(format!("nothing is tested between {a} and {b}")),
                (count, _) => format!("{count} tests are due now"),
            }
        }
        Command::Acknowledge { incident, who } => {
            if !control.judge().incidents().acknowledge(incident, &who) {
                return Err(format!("there is no open incident {incident}"));
            }
            format!("incident {incident} is in the hands of {who}")
        }
        Command::Mute { element, for_ms } => {
            let which = muted(control, fleet, &element)?;
            control.judge().incidents().mute(&which, now_ms().saturating_add(for_ms));
            match for_ms {
                0 => format!("{which} is reported again"),
                _ => format!("nothing is reported of {which} until {}", after(for_ms)),
            }
        }
    };
    Ok(serde_json::Value::String(says))
}

/// What a user's word for a mute means.
/// Errors: nothing is called so.
fn muted<T: Truth>(control: &mut Control<'_, T>, fleet: &Fleet, word: &str) -> Result<String, String> {
    if fleet.hosts.contains_key(word) {
        return Ok(format!("host {word}"));
    }
    let group = word.strip_prefix("group ").unwrap_or(word);
    let is_it =
        fleet.hosts.values().map(|it| &it.group).chain(fleet.joins.iter().map(|it| &it.group)).any(|it| it == group);
    if !group.is_empty() && is_it {
        return Ok(format!("group {group}"));
    }
    let is_known = |name: &String| names(word, name);
    let is_open = |known: &str| known == word;
    let incidents = control.judge().incidents();
    let is_said = incidents.open().iter().any(|it| is_open(&it.element))
        || incidents.muted().iter().any(|(known, _)| is_open(known));
    let whole = ["all agents", "all paths", "the controller's clock"].contains(&word)
        || word.starts_with("router ")
        || word.ends_with('*');
    if whole || is_said || fleet.hosts.keys().any(is_known) || word.contains(TESTS) {
        return Ok(word.to_owned());
    }
    Err(format!(
        "nothing is called {word}: name a host, a group, or an element as incidents do (with * at its end: all that begin so)"
    ))
}

/// The time in so long (UTC).
fn after(ms: u64) -> String {
    narrows_model::words::date::utc(now_ms().saturating_add(ms) / 1_000)
}
