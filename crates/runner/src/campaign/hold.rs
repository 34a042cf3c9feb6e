//! A campaign that runs holds a lock, so that it does not run twice; what a killed one left is rolled back by the next.

use super::commands::{NotSet, Undo};
use super::plan::CommandSetting;
use crate::state;
use narrows_sys::files::{self, Locked};
use std::path::{Path, PathBuf};

/// How the file of what is to be rolled back ends.
const UNDO: &str = ".undo.json";

/// A campaign that this process runs, until it is dropped.
#[derive(Debug)]
pub(super) struct Hold {
    _lock: Locked,
    pub(super) undo: Undo,
}

fn directory() -> Result<PathBuf, String> {
    let state = state::directory().ok_or("cannot lock the campaign: no state directory; set HOME or XDG_STATE_HOME")?;
    let directory = state.join("campaigns");
    files::make_directory(&directory).map_err(|error| error.to_string())?;
    Ok(directory)
}

/// Takes the campaign of that hash; `None`: another process has it.
fn take_in(directory: &Path, hash: &str) -> Result<Option<Hold>, String> {
    let lock = files::try_lock(&directory.join(format!("{hash}.lock"))).map_err(|error| error.to_string())?;
    let Some(lock) = lock else { return Ok(None) };
    Ok(Some(Hold { _lock: lock, undo: Undo::open(directory.join(format!("{hash}{UNDO}")))? }))
}

impl Hold {
    /// Takes the campaign.
    /// Errors: it runs already, or the state directory cannot be used.
    pub(super) fn take(hash: &str) -> Result<Self, String> {
        take_in(&directory()?, hash)?.ok_or_else(|| {
            "cannot start the campaign: it is already running in another process; wait for its end".to_owned()
        })
    }
}

/// What a command outside of a campaign changed, with its way back.
#[derive(Debug)]
pub struct Pending(Hold);

impl Pending {
    /// Writes the way back down, then runs the command: also one that failed is to be rolled back.
    /// Errors: the state directory cannot be used; nothing was run.
    pub fn run(
        hash: &str,
        name: &str,
        set: Vec<String>,
        restore: Vec<String>,
        limit_ms: u64,
        stopped: &dyn Fn() -> bool,
    ) -> Result<(Self, Result<(), String>), String> {
        let mut hold = Hold::take(hash)?;
        let to = CommandSetting { set, read: None, restore: Some(restore), limit_ms };
        let ran = match hold.undo.set(name, "", &to, stopped) {
            Ok(()) => Ok(()),
            Err(NotSet::Stopped) => Err("interrupted".to_owned()),
            Err(NotSet::Failed(why)) => Err(why),
            Err(NotSet::Fatal(why)) => return Err(why),
            Err(NotSet::Ends(error)) => Err(error.to_string()),
        };
        Ok((Self(hold), ran))
    }

    pub fn restore(&mut self) -> Result<Vec<String>, String> {
        self.0.undo.restore()
    }
}

/// Rolls back what commands of killed campaigns set; names the factors. Campaigns that run are left alone.
/// Errors: the first command that failed; it is tried again the next time.
pub fn recover() -> Result<Vec<String>, String> {
    recover_in(&directory()?)
}

fn recover_in(directory: &Path) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for file in files::list(directory).map_err(|error| error.to_string())? {
        if let Some(hash) = file.strip_suffix(UNDO)
            && let Some(mut hold) = take_in(directory, hash)?
        {
            names.extend(hold.undo.restore()?);
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_sys::clock;
    use std::time::Duration;

    #[test]
    fn a_campaign_runs_once_and_one_that_runs_is_not_rolled_back() {
        let scratch = tempfile::tempdir().expect("a directory");
        let held = take_in(scratch.path(), "0a").expect("a directory").expect("free");
        assert!(take_in(scratch.path(), "0a").expect("a directory").is_none());
        assert!(take_in(scratch.path(), "0b").expect("a directory").is_some());
        let undo = br#"[{"factor":"knob","restore":["true"],"limit_ms":60000}]"#;
        files::write_whole(&scratch.path().join("0a.undo.json"), undo, 0o600).expect("a file");
        assert_eq!(recover_in(scratch.path()), Ok(Vec::new()));
        drop(held);
        // A process that another test starts has a copy of the lock until it runs its program.
        let recovered = (0..500).find_map(|_| {
            clock::sleep(Duration::from_millis(10));
            recover_in(scratch.path()).map(|all| (!all.is_empty()).then_some(all)).transpose()
        });
        assert_eq!(recovered, Some(Ok(vec!["knob".to_owned()])));
        assert_eq!(recover_in(scratch.path()), Ok(Vec::new()));
    }
}
