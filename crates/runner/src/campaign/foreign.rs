//! A run of another program: its output is bounded, and the last match of the plan's pattern is its number.

use super::plan::{CommandLoad, pattern};
use crate::command::{self, CommandError, OUTPUT_BYTES};
use narrows_model::run::command::CommandRecord;
use narrows_sys::clock;
use std::time::Duration;

/// What a program may take above its expected duration before it is killed.
const MARGIN: Duration = Duration::from_secs(15);
/// What of its output is stored.
const STORED_BYTES: usize = 16 * 1024;

/// Runs the program once; `None`: the user stopped it. `name`: the id of the record and the program that makes it.
pub(super) fn run(
    load: &CommandLoad,
    host: &str,
    name: (String, String),
    stopped: &dyn Fn() -> bool,
) -> Option<CommandRecord> {
    let command: Vec<String> = load.command.iter().map(|word| word.replace("{host}", host)).collect();
    let began = clock::now();
    let mut record = CommandRecord { failed: None, command, ..not_run(load, host, name, String::new()) };
    let limit = Duration::from_millis(load.duration_ms) + MARGIN;
    let (printed, ended) = command::run(&record.command, limit, stopped);
    record.elapsed_us = clock::micros_since(began);
    let program = record.program();
    let number = match ended {
        Err(CommandError::Stopped) => return None,
        Err(CommandError::Failed(why)) => Err(format!("`{program}` {why}")),
        Ok(()) if printed.cut => Err(format!("`{program}` printed more than {OUTPUT_BYTES} bytes")),
        Ok(()) => number(&load.pattern, &printed.text).map_err(|why| format!("the output of `{program}` {why}")),
    };
    match number {
        Ok(number) => record.value = Some(number),
        Err(why) => record.failed = Some(why),
    }
    record.output = end_of(&printed.text);
    Some(record)
}

/// The record of a program that was not run; why.
pub(super) fn not_run(load: &CommandLoad, host: &str, name: (String, String), why: String) -> CommandRecord {
    CommandRecord {
        id: name.0,
        made_by: name.1,
        started_unix_us: clock::unix_us(),
        elapsed_us: 0,
        host: host.to_owned(),
        command: load.command.clone(),
        pattern: load.pattern.clone(),
        unit: load.unit.clone(),
        value: None,
        failed: Some(why),
        output: String::new(),
    }
}

/// The number of the last match.
fn number(text: &str, output: &str) -> Result<f64, String> {
    let regex = pattern(text)?;
    let found = regex.captures_iter(output).last().and_then(|it| Some(it.get(1)?.as_str()));
    let found = found.ok_or_else(|| format!("has no match of load.pattern `{text}`"))?;
    let number: Option<f64> = found.trim().parse().ok().filter(|it: &f64| it.is_finite());
    number.ok_or_else(|| format!("has `{}`, which is not a number", found.chars().take(40).collect::<String>()))
}

fn end_of(text: &str) -> String {
    let from = (text.len().saturating_sub(STORED_BYTES)..=text.len()).find(|at| text.is_char_boundary(*at));
    text[from.unwrap_or(0)..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::Unit;
    use narrows_model::run::campaign::Better;

    fn of(script: &str, pattern: &str) -> CommandRecord {
        let load = CommandLoad {
            command: ["sh", "-c", script].map(str::to_owned).to_vec(),
            pattern: pattern.to_owned(),
            unit: "Mbit/s".to_owned(),
            better: Better::Higher,
            duration_ms: 1_000,
        };
        run(&load, "server", ("id".to_owned(), "test".to_owned()), &|| false).expect("not stopped")
    }

    #[test]
    fn the_last_match_is_the_number() {
        let record = of("echo rate: 12.5 Mbit/s; echo rate: 20 Mbit/s to {host}", r"rate: ([\d.]+)");
        assert_eq!((record.value, record.failed.as_deref()), (Some(20.0), None));
        assert!(record.output.ends_with("to server\n"), "{record:?}");
        let figure = record.figure().expect("a figure");
        assert_eq!((figure.name.as_str(), figure.value, figure.unit), ("sh", 20e6, Unit::BitsPerSecond));
    }

    #[test]
    fn without_a_number_the_run_failed_and_says_why() {
        let why = |script, pattern| of(script, pattern).failed.expect("a reason");
        assert_eq!(why("echo none", r"(\d+)"), r"the output of `sh` has no match of load.pattern `(\d+)`");
        assert_eq!(why("echo 1.2.3", r"([\d.]+)"), "the output of `sh` has `1.2.3`, which is not a number");
        assert_eq!(why("echo refused >&2; exit 2", r"(\d+)"), "`sh` ended with exit status: 2: refused");
        assert_eq!(why("yes 1 | head -c 2000000", r"(\d+)"), "`sh` printed more than 1048576 bytes");
        assert_eq!(end_of(&"é".repeat(10_000)).len(), STORED_BYTES);
    }

    #[test]
    fn the_user_stops_it() {
        let load = CommandLoad {
            command: ["sleep", "60"].map(str::to_owned).to_vec(),
            pattern: "(x)".to_owned(),
            unit: String::new(),
            better: Better::Higher,
            duration_ms: 60_000,
        };
        assert_eq!(run(&load, "h", (String::new(), String::new()), &|| true), None);
    }
}
