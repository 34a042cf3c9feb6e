//! What users started on the hosts of a lab and what still runs there when the lab ends.
//!
//! A process keeps its network namespace alive: a server that nobody ends would hold its host for ever.

use crate::Result;
use narrows_sys::{clock, files, process};
use std::path::Path;
use std::time::Duration;

/// The variable by which a process, and all that it starts, is known to belong to a lab: the lab's state file.
pub(crate) const MARK: &str = "NARROWS_LAB_STATE";

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;
/// For those that were asked to end; a server sets back what its clients changed.
const PATIENCE: Duration = Duration::from_secs(3);
/// The largest environment that is looked through.
const ENVIRONMENT_MOST_BYTES: u64 = 4 << 20;

/// Ends all that runs on the hosts of the lab with this state file: it is asked, and killed where it does not obey.
///
/// # Errors
/// A process that cannot be waited for.
pub(crate) fn end_all(state_file: &Path) -> Result<()> {
    for signal in [SIGTERM, SIGKILL] {
        let left = of(state_file);
        for pid in &left {
            // It may have ended by itself.
            let _ = process::signal(*pid, signal);
        }
        let deadline = clock::now() + PATIENCE;
        for pid in left {
            process::wait_gone(pid, deadline.saturating_duration_since(clock::now()))?;
        }
    }
    Ok(())
}

/// Those that carry the mark and live in a network namespace other than ours.
fn of(state_file: &Path) -> Vec<u32> {
    let mark = format!("{MARK}={}", state_file.display());
    let own_network = network("self");
    let is_one = |pid: &u32| {
        let environment = files::read(Path::new(&format!("/proc/{pid}/environ")), ENVIRONMENT_MOST_BYTES);
        *pid != std::process::id()
            && environment.is_ok_and(|text| text.split(|byte| *byte == 0).any(|entry| entry == mark.as_bytes()))
            && process::start_time(*pid).is_some()
            && network(&pid.to_string()) != own_network
    };
    let names = files::list(Path::new("/proc")).unwrap_or_default();
    names.iter().filter_map(|name| name.parse().ok()).filter(is_one).collect()
}

fn network(process: &str) -> Option<std::path::PathBuf> {
    files::read_link(Path::new(&format!("/proc/{process}/ns/net"))).ok()
}
