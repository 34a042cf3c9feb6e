//! The user's own commands: what resets a device, and what switches it to another configuration. They are run without a shell, and
//! none runs for ever.

use narrows_sys::{clock, process};
use narrows_traffic::Stop;
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ExitStatus, Stdio};
use std::time::Duration;

/// How often a command is looked at.
const STEP: Duration = Duration::from_millis(5);
/// What of a command's errors is read; the rest is thrown away.
const SAID_BYTES: u64 = 64 * 1024;
/// The longest last line that a sentence repeats.
const LINE_CHARS: usize = 200;

/// Runs a command and waits for its end. It has a process group of its own: a Ctrl-C at the terminal is for this program, which then
/// decides by `stop` whether the command ends, too.
///
/// # Errors
/// It cannot be run, did not end in time or well: what is to be said after its name.
pub(super) fn run(words: &[String], limit: Duration, stop: Option<&Stop>) -> Result<(), String> {
    let (program, rest) = words.split_first().ok_or("the command is empty")?;
    let mut command = process::bound_command(program);
    command.args(rest).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn().map_err(|error| format!("cannot be started: {error}"))?;
    let said = child.stderr.take().map(|mut said| {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            // What cannot be read is not said; a command whose errors nobody reads would stand still.
            let _ = said.by_ref().take(SAID_BYTES).read_to_end(&mut text);
            let _ = std::io::copy(&mut said, &mut std::io::sink());
            String::from_utf8_lossy(&text).into_owned()
        })
    });
    let status = match wait(&mut child, limit, stop) {
        Ok(Some(status)) => status,
        outcome => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(match outcome {
                Err(error) => format!("cannot be waited for: {error}"),
                Ok(_) if stop.is_some_and(Stop::is_set) => {
                    "was still running at the end of the load and was killed".to_owned()
                }
                Ok(_) => format!("did not end within {:.0} s and was killed", limit.as_secs_f64()),
            });
        }
    };
    if status.success() {
        // Whoever holds its errors open behind it is not waited for.
        return Ok(());
    }
    let said = said.and_then(|thread| thread.join().ok()).unwrap_or_default();
    Err(match said.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
        Some(line) => format!("ended with {status}: {}", line.chars().take(LINE_CHARS).collect::<String>()),
        None => format!("ended with {status}"),
    })
}

/// Its end; nothing where it did not come in time, or `stop` was raised.
fn wait(child: &mut Child, limit: Duration, stop: Option<&Stop>) -> std::io::Result<Option<ExitStatus>> {
    let since = clock::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if since.elapsed() >= limit || stop.is_some_and(Stop::is_set) {
            return Ok(None);
        }
        clock::sleep(STEP);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(words: &[&str], limit: Duration, stop: Option<&Stop>) -> Result<(), String> {
        run(&words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>(), limit, stop)
    }

    #[test]
    fn a_command_ends_well_or_says_why_not() {
        let minute = Duration::from_secs(60);
        assert_eq!(of(&["true"], minute, None), Ok(()));
        assert_eq!(of(&["false"], minute, None), Err("ended with exit status: 1".to_owned()));
        let says = "echo first >&2; echo 'no such table' >&2; exit 3";
        assert_eq!(of(&["sh", "-c", says], minute, None), Err("ended with exit status: 3: no such table".to_owned()));
        let why = of(&["/no/such/program"], minute, None).expect_err("not there");
        assert!(why.starts_with("cannot be started: No such file"), "{why}");
        assert!(of(&[], minute, None).is_err());
    }

    #[test]
    fn no_command_runs_for_ever() {
        let why = of(&["sleep", "60"], Duration::ZERO, None).expect_err("killed");
        assert_eq!(why, "did not end within 0 s and was killed");
        let stop = Stop::new();
        stop.stop();
        let why = of(&["sleep", "60"], Duration::from_secs(60), Some(&stop)).expect_err("ended");
        assert_eq!(why, "was still running at the end of the load and was killed");
    }

    #[test]
    fn errors_without_an_end_do_not_stop_it() {
        let long = "i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789 >&2; i=$((i+1)); done; exit 1";
        let why = of(&["sh", "-c", long], Duration::from_secs(60), None).expect_err("exit 1");
        assert!(why.starts_with("ended with exit status: 1: 0123") && why.len() < 300, "{why}");
    }
}
