//! Factors that commands set: how each is rolled back is on disk before it is set, so that the next campaign rolls back what a killed
//! one left.

use super::plan::CommandSetting;
use crate::command::{self, BEFORE, CommandError, is_shell_text};
use crate::ends::EndsError;
use narrows_sys::files;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// The longest value that `{before}` stands for.
const BEFORE_BYTES: usize = 4096;
/// The largest file of what is to be rolled back.
const FILE_BYTES: u64 = 1 << 20;

/// How a value that was set is rolled back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Pending {
    factor: String,
    restore: Vec<String>,
    limit_ms: u64,
}

/// What was set and is not rolled back yet, oldest first, as in its file.
#[derive(Debug)]
pub(super) struct Undo {
    file: PathBuf,
    pending: Vec<Pending>,
}

/// Why a value was not set.
pub(super) enum NotSet {
    Stopped,
    /// The command failed: so does the run.
    Failed(String),
    /// The way back cannot be written down.
    Fatal(String),
    /// A setting of narrows, on either host.
    Ends(EndsError),
}

impl Undo {
    /// With what is left in the file.
    pub(super) fn open(file: PathBuf) -> Result<Self, String> {
        let pending = if files::exists(&file) {
            let bytes = files::read(&file, FILE_BYTES).map_err(|error| error.to_string())?;
            serde_json::from_slice(&bytes).map_err(|error| {
                format!("cannot read {}: {error}; roll its commands back by hand, then remove it", file.display())
            })?
        } else {
            Vec::new()
        };
        Ok(Self { file, pending })
    }

    fn save(&self) -> Result<(), String> {
        let save = || {
            if self.pending.is_empty() {
                return if files::exists(&self.file) { files::remove(&self.file) } else { Ok(()) };
            }
            files::write_whole(&self.file, &serde_json::to_vec(&self.pending).unwrap_or_default(), 0o600)
        };
        save().map_err(|error| error.to_string())
    }

    /// Writes down the way back, then sets the value.
    pub(super) fn set(
        &mut self,
        factor: &str,
        host: &str,
        to: &CommandSetting,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(), NotSet> {
        let limit = Duration::from_millis(to.limit_ms);
        let run = |words: &[String], what: &str| {
            let words: Vec<String> = words.iter().map(|word| word.replace("{host}", host)).collect();
            let (printed, ended) = command::run(&words, limit, stopped);
            match ended {
                Ok(()) => Ok(printed.text.trim().to_owned()),
                Err(CommandError::Stopped) => Err(NotSet::Stopped),
                Err(CommandError::Failed(why)) => {
                    // Of its further words one may be a password.
                    Err(NotSet::Failed(format!("cannot {what} factor {factor}: `{}` {why}", words[0])))
                }
            }
        };
        let before = to.read.as_ref().map(|words| run(words, "read")).transpose()?.unwrap_or_default();
        if before.len() > BEFORE_BYTES {
            let why = format!("cannot read factor {factor}: the value is longer than {BEFORE_BYTES} bytes");
            return Err(NotSet::Failed(why));
        }
        if let Some(restore) = &to.restore {
            let words: Vec<String> = restore.iter().map(|word| word.replace("{host}", host)).collect();
            let restore = with_before(&words, &before)
                .map_err(|why| NotSet::Failed(format!("cannot read factor {factor}: {why}")))?;
            let pending = Pending { factor: factor.to_owned(), restore, limit_ms: to.limit_ms };
            self.pending.push(pending);
            self.save().map_err(NotSet::Fatal)?;
        }
        run(&to.set, "set").map(drop)
    }

    /// Rolls all back, the latest first; names the factors. Ctrl-C does not stop it.
    pub(super) fn restore(&mut self) -> Result<Vec<String>, String> {
        let mut names = Vec::new();
        while let Some(last) = self.pending.last() {
            let (_, ended) = command::run(&last.restore, Duration::from_millis(last.limit_ms), &|| false);
            if let Err(CommandError::Failed(why)) = ended {
                let program = last.restore.first().map_or("", String::as_str);
                return Err(format!(
                    "cannot roll back factor {}: `{program}` {why}; the next `narrows campaign` tries it again",
                    last.factor
                ));
            }
            names.extend(self.pending.pop().map(|it| it.factor));
            self.save()?;
        }
        Ok(names)
    }
}

/// The command with what `read` printed. A shell gets it quoted: it is a value and no part of the command, whatever is in it.
fn with_before(words: &[String], before: &str) -> Result<Vec<String>, &'static str> {
    let quoted = format!("'{}'", before.replace('\'', r"'\''"));
    let word = |(at, word): (usize, &String)| match is_shell_text(words, at) {
        // fish reads it also between quotes.
        true if word.contains(BEFORE) && before.contains('\\') => {
            Err("the value has a backslash, which shells read differently; give it to restore as an argument of sh")
        }
        true => Ok(word.replace(BEFORE, &quoted)),
        false => Ok(word.replace(BEFORE, before)),
    };
    words.iter().enumerate().map(word).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::unquotable;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn what_was_read_is_no_part_of_a_shells_command() {
        let of = |all: &[&str]| {
            let mut words = with_before(&words(all), "a'; touch /tmp/x; '").expect("quoted");
            words.pop().unwrap_or_default()
        };
        let quoted = r"'a'\''; touch /tmp/x; '\'''";
        assert_eq!(of(&["/bin/sh", "-ec", "echo {before} > f"]), format!("echo {quoted} > f"));
        assert_eq!(of(&["ssh", "h", "sysctl", "-w", "a={before}"]), format!("a={quoted}"));
        assert_eq!(of(&["sh", "-c", "echo $0", "{before}"]), "a'; touch /tmp/x; '", "an argument");
        assert_eq!(of(&["sysctl", "-w", "a={before}"]), "a=a'; touch /tmp/x; '");
        for start in [
            &["env", "X=1", "sh", "-c"][..],
            &["sudo", "sh", "-c"],
            &["busybox", "sh", "-c"],
            &["nsenter", "-t", "1", "-n", "/bin/bash5.2", "-e", "-c"],
            &["fish", "-c"],
            &["tcsh", "-c"],
            &["mksh", "-ce"],
            &["sh", "-c", "-e"],
            &["su", "-c"],
            &["su", "user", "--command"],
            &["runuser", "-u", "user", "-c"],
            &["sudo", "ssh", "h"],
        ] {
            let all: Vec<&str> = start.iter().copied().chain(["echo {before} > f"]).collect();
            assert_eq!(of(&all), format!("echo {quoted} > f"), "{start:?}");
        }
        assert_eq!(of(&["sudo", "sh", "-c", "echo $0", "{before}"]), "a'; touch /tmp/x; '", "an argument");
        // In fish a backslash escapes the quote behind it.
        assert!(with_before(&words(&["fish", "-c", "echo {before}"]), r"\'; touch /tmp/x; '").is_err());
    }

    #[test]
    fn text_in_which_a_value_cannot_be_quoted_is_refused() {
        for refused in [
            &["sh", "-c", "echo \"old {before} x\" > f"][..],
            &["ssh", "h", "sh -c 'x {before} y'"],
            &["ssh", "h", "echo '", "{before}", "'"],
            &["sh", "-c", "echo `x {before}`"],
            &["sudo", "sh", "-c", "echo $(x {before})"],
            &["sh", "-c", "cat << x\n{before}\nx"],
            &["sh", "-c", r"echo \{before}"],
            &["ssh", "h", "sh", "-c", "{before}"],
            &["sh", "-c", "ssh h x={before}"],
            &["sh", "-c", "eval x {before}"],
        ] {
            assert!(unquotable(&words(refused)).is_some(), "{refused:?}");
        }
        for taken in [
            &["sh", "-c", "echo {before} > f"][..],
            &["sh", "-c", "echo \"$0\" > f", "{before}"],
            &["ssh", "h", "sysctl", "-w", "a={before}"],
            &["sysctl", "-w", "a='{before}'"],
            &["sh", "-c", "echo 'none'"],
        ] {
            assert_eq!(unquotable(&words(taken)), None, "{taken:?}");
        }
    }

    #[test]
    fn what_a_command_sets_is_rolled_back_also_by_the_next_process() {
        let scratch = tempfile::tempdir().expect("a directory");
        let (knob, file) = (scratch.path().join("knob"), scratch.path().join("undo.json"));
        files::write_whole(&knob, b"old\n", 0o600).expect("a file");
        let path = knob.display().to_string();
        let to = CommandSetting {
            set: words(&["sh", "-c", &format!("echo new > {path}")]),
            read: Some(words(&["cat", &path])),
            restore: Some(words(&["sh", "-c", "echo $0 > $1", "{before}", &path])),
            limit_ms: 60_000,
        };
        let now = || files::read_text(&knob).expect("a file");
        let mut undo = Undo::open(file.clone()).expect("a file");
        assert!(undo.set("knob", "server", &to, &|| false).is_ok());
        assert_eq!(now(), "new\n");
        // As after kill -9.
        drop(undo);
        let mut undo = Undo::open(file.clone()).expect("a file");
        assert_eq!(undo.restore(), Ok(words(&["knob"])));
        assert_eq!((now().as_str(), files::exists(&file)), ("old\n", false));
        // Also where the command failed half-way.
        let bad = CommandSetting { set: words(&["sh", "-c", &format!("echo half > {path}; exit 1")]), ..to };
        assert!(matches!(undo.set("knob", "server", &bad, &|| false), Err(NotSet::Failed(_))));
        assert_eq!(undo.restore(), Ok(words(&["knob"])));
        assert_eq!(now(), "old\n");
    }

    #[test]
    fn what_cannot_be_rolled_back_stays_written_down() {
        let scratch = tempfile::tempdir().expect("a directory");
        let file = scratch.path().join("undo.json");
        let to =
            CommandSetting { set: words(&["true"]), read: None, restore: Some(words(&["false"])), limit_ms: 60_000 };
        let mut undo = Undo::open(file.clone()).expect("a file");
        assert!(undo.set("knob", "server", &to, &|| false).is_ok());
        assert_eq!(
            undo.restore(),
            Err("cannot roll back factor knob: `false` ended with exit status: 1; the next `narrows campaign` tries \
                 it again"
                .to_owned())
        );
        assert_eq!(Undo::open(file).expect("a file").pending.len(), 1);
    }
}
