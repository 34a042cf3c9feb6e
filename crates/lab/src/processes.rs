//! Processes that users started on the hosts of a lab and that still run when the lab ends.
//!
//! A process keeps its network namespace alive: a forgotten server would keep its host for ever.

use crate::Result;
use narrows_sys::{clock, files, process};
use std::path::Path;
use std::time::Duration;

/// The environment variable that marks a process and its children as part of a lab: the lab's state file.
pub(crate) const MARK: &str = "NARROWS_LAB_STATE";

const SIGTERM: i32 = 15;
const SIGKILL: i32 = 9;
/// Time to end after a request; a server rolls back its clients' changes in that time.
const PATIENCE: Duration = Duration::from_secs(3);
/// The maximum size of an environment that is searched.
const MAX_ENVIRONMENT_BYTES: u64 = 4 << 20;

/// Ends all processes on the hosts of the lab with this state file: terminates them, and kills those that do not end.
/// Errors: a process cannot be waited for.
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

/// The processes that carry the mark and run in a network namespace other than ours.
pub(crate) fn of(state_file: &Path) -> Vec<u32> {
    let mark = format!("{MARK}={}", state_file.display());
    let own_network = network("self");
    let is_one = |pid: &u32| {
        let environment = files::read(Path::new(&format!("/proc/{pid}/environ")), MAX_ENVIRONMENT_BYTES);
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
