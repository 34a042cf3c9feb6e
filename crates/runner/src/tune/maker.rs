//! Who made a change: a process, told apart from a later one of the same number by the time of its start.

use narrows_sys::files;
use narrows_sys::process::start_time;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// A process that made a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Maker {
    /// Its id.
    pub pid: u32,
    /// When it started, in ticks since boot (`/proc/PID/stat`, field 22).
    pub started_ticks: Option<u64>,
    /// Which command it was: `serve`, `diagnose`.
    pub role: String,
}

impl Maker {
    pub(super) fn this_process(role: &str) -> Self {
        let pid = std::process::id();
        Self { pid, started_ticks: start_time(pid), role: role.to_owned() }
    }

    /// Whether that very process is still there.
    #[must_use]
    pub fn lives(&self) -> bool {
        let now = start_time(self.pid);
        now.is_some() && now == self.started_ticks
    }
}

/// The boot that this is; settings of the running kernel do not outlive it.
pub(super) fn boot_id() -> Option<String> {
    files::read_text(Path::new("/proc/sys/kernel/random/boot_id")).ok().map(|text| text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_an_earlier_one_of_its_number_does_not() {
        let mut maker = Maker::this_process("test");
        assert!(maker.lives());
        maker.started_ticks = maker.started_ticks.map(|ticks| ticks + 1);
        assert!(!maker.lives());
    }
}
