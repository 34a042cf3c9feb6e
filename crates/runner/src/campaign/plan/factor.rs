//! A factor of a plan: what is set on a host, in the load, or by a command.

use super::load::{Flag, Load};
use super::reader::Reader;
use super::{CommandSetting, Factor, Level};
use crate::command::unquotable;
use crate::tune::{self, TuneError};
use narrows_model::words::units::parse_size;
use narrows_model::{LoadPlan, Place, Setting, TcpPlan};
use toml::de::DeTable;

const KEYS: &str = "name, at, device, sysctl, offload, set, flag, command, read, restore, timeout, values";
/// The most values of a factor.
const LEVELS_MAX: usize = 16;

/// How a level is made from its value.
enum Kind {
    /// Its key, and the user's word.
    Word(String, String, usize),
    Command(Vec<String>),
}

/// What else of the plan a factor depends on.
#[derive(Clone, Copy)]
pub(super) struct Within<'a> {
    pub(super) load: &'a Load,
    /// A command needs no way back.
    pub(super) no_undo: bool,
}

/// Reads a table that begins at `at`.
pub(super) fn read(reader: &mut Reader<'_>, at: usize, table: &DeTable<'_>, within: Within<'_>) -> Option<Factor> {
    let (mut name, mut places, mut device, mut what, mut values) = (None, Vec::new(), None, Vec::new(), Vec::new());
    let (mut before, mut restore, mut limit_ms) = (None, None, 60_000);
    for (word, value) in table {
        let key = word.get_ref().as_ref();
        let item = (key, value);
        match key {
            "name" => name = reader.scalar(item),
            "device" => device = reader.scalar(item),
            "values" => values = reader.list(item, LEVELS_MAX),
            "sysctl" | "offload" | "set" | "flag" => {
                let word = reader.scalar(item).unwrap_or_default();
                what.push(Kind::Word(key.to_owned(), word, value.span().start));
            }
            "command" => {
                let words = reader.command(item);
                if words.as_ref().is_some_and(|it| !has(it, "{value}")) {
                    reader.note_at(item, "must have {value}");
                }
                what.push(Kind::Command(words.unwrap_or_default()));
            }
            "read" => before = reader.command(item),
            "restore" => restore = reader.command(item).map(|it| (it, value.span().start)),
            "timeout" => limit_ms = reader.time(item, 100, 3_600_000).unwrap_or(limit_ms),
            "at" => {
                let known: [(_, &[Place]); 3] = [
                    ("client", &[Place::Client]),
                    ("server", &[Place::Server]),
                    ("both", &[Place::Client, Place::Server]),
                ];
                places = reader.choice(item, &known).map(<[Place]>::to_vec).unwrap_or_default();
            }
            _ => reader.unknown(word.span().start, key, KEYS),
        }
    }
    let by_command = what.iter().any(|it| matches!(it, Kind::Command(_)));
    if what.len() != 1 {
        reader.note(at, "factor", "must have exactly one of sysctl, offload, set, flag and command");
        return None;
    }
    for key in ["read", "restore", "timeout"].into_iter().filter(|key| !by_command && table.contains_key(*key)) {
        reader.note(at, &format!("factor.{key}"), "is for a command only");
    }
    let kind = what.remove(0);
    let word = match &kind {
        Kind::Command(words) => {
            command_problems(reader, at, (&places, within.no_undo), before.as_ref(), restore.as_ref());
            words.first().cloned().unwrap_or_default()
        }
        Kind::Word(kind, word, _) => {
            if matches!(kind.as_str(), "offload" | "set") && device.is_none() {
                reader.note(at, "factor.device", "it is missing");
            }
            if kind != "flag" && !table.contains_key("at") {
                reader.note(at, "factor.at", "it is missing: client, server or both");
            }
            word.clone()
        }
    };
    let mut names: Vec<&String> = values.iter().map(|(_, text)| text).collect();
    names.sort();
    names.dedup();
    if values.len() < 2 || names.len() < values.len() {
        reader.note(at, "factor.values", format!("must have 2 to {LEVELS_MAX} different values"));
    }
    let device = device.unwrap_or_default();
    let levels = values.iter().filter_map(|(value_at, text)| match &kind {
        Kind::Command(words) => {
            let command = CommandSetting {
                set: words.iter().map(|it| it.replace("{value}", text)).collect(),
                read: before.clone(),
                restore: restore.clone().map(|(words, _)| words),
                limit_ms,
            };
            Some(Level { name: text.clone(), command: Some(command), ..Level::default() })
        }
        Kind::Word(kind, word, what_at) => {
            let level = level((kind, word), &device, text, within.load);
            match &level {
                Err(says) if says.starts_with("unknown ") => {
                    if *value_at == values[0].0 {
                        reader.note(*what_at, &format!("factor.{kind}"), says);
                    }
                }
                Err(says) => reader.note(*value_at, "factor.values", says),
                Ok(_) => {}
            }
            // An unknown parameter or feature is noted once, and not with each value.
            let wrong = level.as_ref().ok().and_then(|(setting, _)| tune::check(setting.as_ref()?).err());
            match wrong {
                Some(error @ TuneError::BadValue { .. }) => reader.note(*value_at, "factor.values", error.to_string()),
                Some(error) if *value_at == values[0].0 => {
                    reader.note(*what_at, &format!("factor.{kind}"), error.to_string());
                }
                _ => {}
            }
            let (setting, flag) = level.ok()?;
            let settings = setting.iter().flat_map(|it| places.iter().map(|place| (*place, it.clone()))).collect();
            Some(Level { name: text.clone(), settings, flag, ..Level::default() })
        }
    });
    let levels = levels.collect();
    Some(Factor { name: name.unwrap_or(word), levels })
}

fn has(words: &[String], mark: &str) -> bool {
    words.iter().any(|it| it.contains(mark))
}

/// What is wrong with the way back of a command.
fn command_problems(
    reader: &mut Reader<'_>,
    at: usize,
    (places, no_undo): (&[Place], bool),
    before: Option<&Vec<String>>,
    restore: Option<&(Vec<String>, usize)>,
) {
    if !matches!(places, [] | [Place::Client]) {
        reader.note(at, "factor.at", "a command runs on this host; for another one use ssh in it");
    }
    match restore {
        None if !no_undo => reader.note(
            at,
            "factor.restore",
            "it is missing: the command cannot be rolled back; add restore, or allow it with --no-undo",
        ),
        Some((words, at)) if has(words, "{before}") && before.is_none() => {
            reader.note(*at, "restore", "has {before}, but factor.read is missing");
        }
        Some((words, at)) => {
            if let Some(why) = unquotable(words) {
                reader.note(*at, "restore", why);
            }
        }
        None => {}
    }
}

/// One value of a factor: what is set on a host, or in the load.
fn level(
    (kind, word): (&str, &str),
    device: &str,
    text: &str,
    load: &Load,
) -> Result<(Option<Setting>, Option<Flag>), String> {
    let device = || device.to_owned();
    let number = |max: u32| {
        let number = text.parse().ok().filter(|it| (1..=max).contains(it));
        number.ok_or_else(|| format!("`{text}` is not a number from 1 to {max}"))
    };
    let set = |setting| Ok((Some(setting), None));
    match (kind, word) {
        ("sysctl", _) => set(Setting::Sysctl { key: word.to_owned(), value: text.to_owned() }),
        ("offload", _) => match text {
            "on" | "off" => set(Setting::Offload { device: device(), feature: word.to_owned(), on: text == "on" }),
            _ => Err(format!("`{text}` is not on or off")),
        },
        ("set", "mtu") => set(Setting::Mtu { device: device(), mtu: number(65_535)? }),
        ("set", "qdisc") => set(Setting::RootQdisc { device: device(), kind: text.to_owned() }),
        ("set", _) => Err(format!("unknown setting `{word}`; known settings: mtu, qdisc")),
        _ => flag(word, text, load).map(|it| (None, Some(it))),
    }
}

fn flag(name: &str, value: &str, load: &Load) -> Result<Flag, String> {
    match (load, name) {
        (Load::Command(it), _) if has(&it.command, &format!("{{{name}}}")) => {
            Ok(Flag::Word { name: name.to_owned(), value: value.to_owned() })
        }
        (Load::Command(_), _) => Err(format!("unknown flag `{name}`: load.command does not have {{{name}}}")),
        (Load::Narrows(_), "streams") => {
            let number = value.parse().ok().filter(|it| (1..=TcpPlan::MAX_STREAMS).contains(it));
            let number = number.ok_or_else(|| format!("`{value}` is not a number from 1 to {}", TcpPlan::MAX_STREAMS));
            number.map(Flag::Streams)
        }
        (Load::Narrows(LoadPlan::Tcp(_)), "congestion-control") => Ok(Flag::CongestionControl(value.to_owned())),
        (Load::Narrows(LoadPlan::Tcp(_)), "window") => {
            let bytes = parse_size(value).ok().and_then(|it| u32::try_from(it).ok()).filter(|it| *it > 0);
            bytes.map(Flag::Window).ok_or_else(|| format!("`{value}` is not a size such as 64k or 4M"))
        }
        (Load::Narrows(LoadPlan::Tcp(_)), _) => {
            Err(format!("unknown flag `{name}`; known flags: streams, congestion-control, window"))
        }
        (Load::Narrows(_), _) => Err(format!("unknown flag `{name}`; known flags of this load: streams")),
    }
}
