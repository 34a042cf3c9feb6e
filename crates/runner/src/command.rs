//! The user's own commands: they are run without a shell, none runs for ever, and what of their output is kept is bounded.

use narrows_sys::{clock, process};
use std::io::Read;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How often a command is looked at.
const STEP: Duration = Duration::from_millis(5);
/// What of a command's errors is kept; the rest is thrown away.
const ERRORS_BYTES: u64 = 64 * 1024;
/// The most that a command may print where its output is read.
pub(crate) const OUTPUT_BYTES: u64 = 1 << 20;
/// How long the output of a command that has ended is waited for: a process of its own may hold it open.
const REST: Duration = Duration::from_secs(2);
/// The longest last line that a sentence repeats.
const LINE_CHARS: usize = 200;

/// Why a command did not end well. To be said after its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandError {
    /// `stopped` said so, and it was killed.
    Stopped,
    /// It could not be run, did not end in time or failed.
    Failed(String),
}

/// What a command printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// [`OUTPUT_BYTES`] at most; invalid UTF-8 is replaced.
    pub(crate) text: String,
    /// Whether there was more.
    pub(crate) cut: bool,
}

/// Runs a command, waits for its end and returns its output. It has a process group of its own: a Ctrl-C at the terminal is for this
/// program, which then decides by `stopped` whether the command ends, too. The whole group is killed with it.
pub fn run(words: &[String], limit: Duration, stopped: &dyn Fn() -> bool) -> (Printed, Result<(), CommandError>) {
    let failed = |why: String| Err(CommandError::Failed(why));
    let Some((program, rest)) = words.split_first() else {
        return (Printed::default(), failed("the command is empty".to_owned()));
    };
    let mut command = process::bound_command(program);
    command.args(rest).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    // The rest can hold passwords and tokens.
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_plain)));
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return (Printed::default(), failed(format!("cannot be started: {error}"))),
    };
    let output = child.stdout.take().map(|it| kept(it, OUTPUT_BYTES));
    let errors = child.stderr.take().map(|it| kept(it, ERRORS_BYTES));
    let waited = wait(&mut child, limit, stopped);
    if !matches!(waited, Ok(Some(_))) {
        process::kill_group(child.id());
        let _ = child.wait();
    }
    let printed = output.map(|it| text(&it)).unwrap_or_default();
    let ended = match waited {
        Err(error) => failed(format!("cannot be waited for: {error}")),
        Ok(None) if stopped() => Err(CommandError::Stopped),
        Ok(None) => failed(format!("did not end within {:.0} s and was killed", limit.as_secs_f64())),
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(status)) => {
            let said = errors.map(|it| text(&it).text).unwrap_or_default();
            failed(match said.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
                Some(line) => format!("ended with {status}: {}", line.chars().take(LINE_CHARS).collect::<String>()),
                None => format!("ended with {status}"),
            })
        }
    };
    (printed, ended)
}

/// How a command of this program itself ended.
#[derive(Debug)]
pub(crate) struct OwnEnd {
    pub(crate) printed: Printed,
    pub(crate) errors: String,
    /// `None`: by a signal.
    pub(crate) code: Option<i32>,
}

/// It gets so long to keep what was measured and to roll back what it changed.
pub(crate) const PARTING: Duration = Duration::from_secs(20);

/// Runs a command of this program itself, with its environment. Where it does not end in time, is stopped, or this program ends, it is
/// interrupted.
/// Errors: it cannot be started or waited for.
pub(crate) fn own(
    program: &str,
    words: &[String],
    limit: Duration,
    stopped: &dyn Fn() -> bool,
) -> Result<OwnEnd, String> {
    let mut command = process::parting_command(program);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("cannot start {program}: {error}"))?;
    let output = child.stdout.take().map(|it| kept(it, OUTPUT_BYTES));
    let errors = child.stderr.take().map(|it| kept(it, ERRORS_BYTES));
    let mut waited = wait(&mut child, limit, stopped).map_err(|error| error.to_string())?;
    if waited.is_none() {
        let _ = process::signal(child.id(), INTERRUPT);
        waited = wait(&mut child, PARTING, &|| false).map_err(|error| error.to_string())?;
    }
    if waited.is_none() {
        process::kill_group(child.id());
        let _ = child.wait();
    }
    let [printed, errors] = [output, errors].map(|it| it.map(|it| text(&it)).unwrap_or_default());
    Ok(OwnEnd { printed, errors: errors.text, code: waited.and_then(|status| status.code()) })
}

/// SIGINT
const INTERRUPT: i32 = 2;

/// What `{before}` stands for in the words of a command.
pub(crate) const BEFORE: &str = "{before}";

/// Programs whose text follows `-c`; words behind it are arguments.
const SHELLS: [&str; 12] = ["sh", "ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "rbash", "tcsh", "yash", "zsh"];
/// Programs that pass all of their words, or one of them, to a shell.
const PASSING: [&str; 8] = ["ssh", "mosh", "rsh", "su", "runuser", "sg", "script", "watch"];

fn is_one_of(names: &[&str], word: &str) -> bool {
    // `/bin/bash`, `bash5.2`
    let name = word.rsplit('/').next().unwrap_or_default();
    names.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-'))
}

/// Whether a shell may read the word at this place, whatever starts it (`env`, `sudo`, `busybox`, `nsenter`, …).
pub(crate) fn is_shell_text(words: &[String], at: usize) -> bool {
    let before = words.get(..at).unwrap_or_default();
    if before.iter().any(|word| is_one_of(&PASSING, word)) {
        return true;
    }
    let Some(shell) = before.iter().rposition(|word| is_one_of(&SHELLS, word)) else { return false };
    let is_option = |word: &String| word.starts_with('-');
    let mut rest = before[shell + 1..].iter().skip_while(|word| !(is_option(word) && word.contains('c')));
    // The text is the first word behind `-c` that is no option.
    !rest.any(|word| !is_option(word))
}

/// What keeps `{before}` from being quoted where a shell reads it; to be said after the name of the command.
pub(crate) fn unquotable(words: &[String]) -> Option<&'static str> {
    let text: Vec<_> = (0..words.len()).filter(|at| is_shell_text(words, *at)).map(|at| words[at].as_str()).collect();
    let text = text.join(" ");
    if !text.contains(BEFORE) {
        return None;
    }
    if ["\"", "'", "`", "$(", "<<", "\\"].iter().any(|mark| text.contains(mark)) {
        return Some(
            "has {before} in the text of a shell with quotes, backslashes, $( or <<: leave them out, the value is quoted; or give it \
             behind the text, as an argument of sh",
        );
    }
    let mut inner = text.split(|c: char| c.is_whitespace() || ";|&(){}<>".contains(c));
    inner.any(|word| is_one_of(&SHELLS, word) || is_one_of(&PASSING, word) || word == "eval").then_some(
        "has {before} in the text of a shell that starts another one: each would read it anew; start one only",
    )
}

/// Whether a command gets a variable of the environment: what programs need to run as this user, and nothing that is meant for narrows.
fn is_plain(name: &str) -> bool {
    const PLAIN: [&str; 13] = [
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "TERM", "LANG", "LANGUAGE", "TZ", "TMPDIR", "COLUMNS",
        "SSH_AUTH_SOCK", "NO_COLOR",
    ];
    PLAIN.contains(&name) || ["LC_", "XDG_"].iter().any(|prefix| name.starts_with(prefix))
}

/// Waits for the exit status; `None` after the time limit, or when `stopped` returns true.
fn wait(child: &mut Child, limit: Duration, stopped: &dyn Fn() -> bool) -> std::io::Result<Option<ExitStatus>> {
    let since = clock::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if since.elapsed() >= limit || stopped() {
            return Ok(None);
        }
        clock::sleep(STEP);
    }
}

/// Reads a pipe up to a limit, in parts. The rest is read and discarded, because a full pipe would block the command.
fn kept(mut pipe: impl Read + Send + 'static, limit: u64) -> Receiver<Option<Vec<u8>>> {
    let (to, from) = channel();
    std::thread::spawn(move || {
        let (mut buffer, mut left) = (vec![0; 64 * 1024], limit);
        while let Ok(count @ 1..) = pipe.read(&mut buffer) {
            let part = &buffer[..count];
            let take = part.len().min(usize::try_from(left).unwrap_or(usize::MAX));
            left -= take as u64;
            if take > 0 {
                let _ = to.send(Some(part[..take].to_vec()));
            }
            if take < part.len() {
                let _ = to.send(None);
            }
        }
    });
    from
}

/// The text of a pipe.
fn text(from: &Receiver<Option<Vec<u8>>>) -> Printed {
    let (mut bytes, mut cut, since) = (Vec::new(), false, clock::now());
    loop {
        match from.recv_timeout(REST.saturating_sub(since.elapsed())) {
            Ok(Some(part)) => bytes.extend(part),
            Ok(None) => cut = true,
            Err(RecvTimeoutError::Disconnected | RecvTimeoutError::Timeout) => break,
        }
    }
    Printed { text: String::from_utf8_lossy(&bytes).into_owned(), cut }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str], limit_s: u64, stop: bool) -> Result<String, CommandError> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        let (printed, ended) = run(&words, Duration::from_secs(limit_s), &|| stop);
        ended.map(|()| printed.text)
    }

    fn why(answer: Result<String, CommandError>) -> String {
        match answer {
            Err(CommandError::Failed(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_command_ends_well_or_says_why_not() {
        assert_eq!(of(&["echo", "17"], 60, false), Ok("17\n".to_owned()));
        assert_eq!(why(of(&["false"], 60, false)), "ended with exit status: 1");
        let says = "echo first >&2; echo 'no such table' >&2; exit 3";
        assert_eq!(why(of(&["sh", "-c", says], 60, false)), "ended with exit status: 3: no such table");
        let absent = why(of(&["/no/such/program"], 60, false));
        assert!(absent.starts_with("cannot be started: No such file"), "{absent}");
        assert_eq!(why(of(&[], 60, false)), "the command is empty");
    }

    #[test]
    fn no_command_runs_for_ever_and_its_children_end_with_it() {
        assert_eq!(why(of(&["sleep", "60"], 0, false)), "did not end within 0 s and was killed");
        assert_eq!(of(&["sleep", "60"], 60, true), Err(CommandError::Stopped));
        // The shell's child would hold the pipe open.
        let since = clock::now();
        assert_eq!(why(of(&["sh", "-c", "sleep 60 & wait"], 0, false)), "did not end within 0 s and was killed");
        assert!(since.elapsed() < Duration::from_secs(50));
    }

    #[test]
    fn no_command_gets_a_token_or_the_place_of_the_store() {
        let printed = of(&["env"], 60, false).expect("it runs");
        // The test program has them set where this is told below.
        assert!(printed.lines().all(|line| line.split('=').next().is_some_and(is_plain)), "{printed}");
        for name in ["NARROWS_TOKEN", "NARROWS_STORE", "LD_PRELOAD", "PGPASSWORD"] {
            assert!(!is_plain(name), "{name}");
        }
    }

    #[test]
    fn output_without_an_end_is_bounded() {
        let words = ["sh", "-c", "yes 0123456789 | head -c 3000000"].map(str::to_owned);
        let (printed, ended) = run(&words, Duration::from_secs(60), &|| false);
        assert_eq!((printed.text.len(), printed.cut, ended), (1 << 20, true, Ok(())));
        let long = "yes 0123456789 | head -c 300000 >&2; exit 1";
        let why = why(of(&["sh", "-c", long], 60, false));
        assert!(why.starts_with("ended with exit status: 1: 0123") && why.len() < 300, "{why}");
    }
}
