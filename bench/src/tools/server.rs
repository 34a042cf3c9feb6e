//! A tool's server: in a separate PID namespace, so that all processes it starts end with it, and are counted with it.

use super::Tool;
use crate::network::{End, Network};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// The unit of `/proc/PID/stat`, as of `/proc/stat`.
const TICKS_PER_SECOND: f64 = 100.0;

/// The running server of a tool; it ends when this is dropped, or when this program ends.
pub(crate) struct Server(Option<Running>);

struct Running {
    child: Child,
    /// The name of its PID namespace.
    pids: PathBuf,
}

impl Server {
    /// Starts it and waits until it listens. A server for a single measurement is not started here.
    pub(crate) fn start(tool: &Tool, network: &Network) -> Result<Self, String> {
        if tool.serving.once { Ok(Self(None)) } else { Self::start_now(tool, network) }
    }

    /// Starts a server for a single measurement.
    pub(crate) fn start_once(tool: &Tool, network: &Network) -> Result<Self, String> {
        if tool.serving.once { Self::start_now(tool, network) } else { Ok(Self(None)) }
    }

    fn start_now(tool: &Tool, network: &Network) -> Result<Self, String> {
        let Some(words) = &tool.serving.words else { return Ok(Self(None)) };
        // The shell ends when its own input closes, even if this program is killed. It is the first process of
        // its PID namespace, so the server ends with it, even a daemon.
        let child = network
            .command(End::Server)
            .args(["unshare", "--pid", "--fork", "--kill-child"])
            .args(["sh", "-c", "trap : INT TERM; \"$@\" & cat >/dev/null; kill $!; wait", "sh"])
            .arg(&tool.program)
            .args(words)
            .env("DO_NOT_TRACK", "1") // xfr would look for updates
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot start {}: {error}", tool.program.display()))?;
        let mut server = Self(Some(Running { child, pids: PathBuf::new() }));
        network
            .await_listener(End::Server, tool.serving.listens, tool.serving.port)
            .map_err(|why| format!("the server of {}: {why}", tool.name))?;
        if let Some(running) = &mut server.0 {
            let link = format!("/proc/{}/ns/pid_for_children", running.child.id());
            running.pids = std::fs::read_link(&link).map_err(|error| format!("cannot read {link}: {error}"))?;
        }
        Ok(server)
    }

    /// CPU seconds, user and system, of its processes so far, including ended children; `None` if this tool has no
    /// server of its own.
    pub(crate) fn cpu_seconds(&self) -> Option<f64> {
        let running = self.0.as_ref()?;
        let entries = std::fs::read_dir("/proc").ok()?;
        let ours = |process: &Path| std::fs::read_link(process.join("ns/pid")).is_ok_and(|pids| pids == running.pids);
        let ticks = entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|process| ours(process))
            .filter_map(|process| ticks(&std::fs::read_to_string(process.join("stat")).ok()?));
        Some(ticks.sum::<f64>() / TICKS_PER_SECOND)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(running) = &mut self.0 {
            drop(running.child.stdin.take());
            let _ = running.child.wait();
        }
    }
}

/// `utime`, `stime`, `cutime` and `cstime` of a line of `/proc/PID/stat`. The name, in parentheses, may contain
/// anything.
fn ticks(stat: &str) -> Option<f64> {
    let words: Vec<f64> =
        stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(4).filter_map(|word| word.parse().ok()).collect();
    (words.len() == 4).then(|| words.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::ticks;

    #[test]
    fn times_are_parsed_after_any_name() {
        let stat = "15308 (nut) tcp) S 15294 15288 1330 0 -1 4194560 207 0 1 0 16 28 3 2 20 0 1 0 1668210";
        assert_eq!(ticks(stat), Some(49.0));
        assert_eq!(ticks("1 (x) S 1 2"), None);
    }
}
