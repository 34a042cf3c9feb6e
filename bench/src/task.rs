//! A program on one end: limited in time, and ended with this program, however this ends.

use crate::network::{End, Network};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::Path;
use std::process::{Child, ChildStderr, ChildStdin, Stdio};
use std::time::Duration;

/// The first process of a PID namespace: it starts the program, ends it when its own input closes, and ends with it;
/// all processes of the namespace end with the first one.
const KEEPER: &str =
    "exec 3<&0; limit=$1 nice=$2; shift 2; timeout -k 1 $limit nice -n $nice \"$@\" </dev/null 3<&- & program=$!
    { cat <&3; kill $program; } >/dev/null 2>&1 & wait $program";

/// The maximum output that is read.
const OUTPUT_MAX: u64 = 16 << 20;

pub(crate) struct Order<'a> {
    pub(crate) program: &'a Path,
    pub(crate) words: &'a [String],
    pub(crate) limit: Duration,
    /// Its nice value, relative to this program's.
    pub(crate) nice: i32,
    /// Whether its output is read.
    pub(crate) heard: bool,
}

/// A running program; it ends when this is dropped.
pub(crate) struct Task {
    name: String,
    child: Child,
    /// It runs as long as this is open.
    input: Option<ChildStdin>,
    errors: Option<BufReader<ChildStderr>>,
}

pub(crate) struct Output {
    pub(crate) output: String,
    /// Whether it succeeded, and the beginning of its standard error.
    pub(crate) failure: Option<String>,
}

impl Task {
    pub(crate) fn start(network: &Network, end: End, order: &Order<'_>) -> Result<Self, String> {
        let Order { program, words, limit, nice, heard } = *order;
        let mut child = network
            .command(end)
            .args(["unshare", "--pid", "--fork", "--kill-child", "sh", "-c", KEEPER, "sh"])
            .args([limit.as_secs().max(1).to_string(), nice.to_string()])
            .arg(program)
            .args(words)
            .stdin(Stdio::piped())
            .stdout(if heard { Stdio::piped() } else { Stdio::null() })
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", program.display()))?;
        let (input, errors) = (child.stdin.take(), child.stderr.take().map(BufReader::new));
        Ok(Self { name: program.display().to_string(), child, input, errors })
    }

    /// Waits for the first line on its standard error: the sign that it is running.
    pub(crate) fn await_line(&mut self) -> Result<String, String> {
        let mut line = String::new();
        let read = self.errors.as_mut().map(|errors| errors.read_line(&mut line));
        match read {
            Some(Ok(bytes)) if bytes > 0 => Ok(line.trim_end().to_owned()),
            _ => Err(format!("{} ended before it began", self.name)),
        }
    }

    pub(crate) fn runs(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until it ends by itself.
    pub(crate) fn finish(mut self) -> Result<Output, String> {
        let unread = |error| format!("cannot read what {} says: {error}", self.name);
        let (mut output, mut errors) = (String::new(), Vec::new());
        if let Some(stdout) = self.child.stdout.take() {
            stdout.take(OUTPUT_MAX).read_to_string(&mut output).map_err(unread)?;
        }
        if let Some(stderr) = self.errors.take() {
            stderr.take(OUTPUT_MAX).read_to_end(&mut errors).map_err(unread)?;
        }
        let status = self.child.wait().map_err(|error| format!("cannot wait for {}: {error}", self.name))?;
        let failure = (!status.success()).then(|| {
            let first: Vec<String> =
                String::from_utf8_lossy(&errors).lines().take(3).map(|line| line.trim().to_owned()).collect();
            format!("{} failed ({status}): {}", self.name, first.join(" / "))
        });
        Ok(Output { output, failure })
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        drop(self.input.take());
        // Its remaining output has no reader, so that it is not blocked by a full pipe.
        drop(self.errors.take());
        let _ = self.child.wait();
    }
}
