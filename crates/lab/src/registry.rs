//! Where the labs of a user are registered: a state file and a socket each, in a directory that only the user can enter.

use crate::protocol::State;
use crate::spec::check_name;
use crate::{Error, Result};
use narrows_sys::{files, process};
use std::path::{Path, PathBuf};

/// The directory of the labs.
#[derive(Debug, Clone)]
pub struct Registry {
    directory: PathBuf,
}

impl Registry {
    /// The directory of this user: `/run/narrows/lab` for root, otherwise below `$XDG_RUNTIME_DIR`, otherwise below
    /// `/tmp`. Root of a user namespace does not own `/run`.
    pub fn of_user() -> Self {
        let of_root = Path::new("/run/narrows/lab");
        if process::is_root() && files::make_directory(of_root).is_ok() {
            return Self::at(of_root);
        }
        match std::env::var_os("XDG_RUNTIME_DIR").filter(|directory| !directory.is_empty()) {
            Some(directory) => Self::at(Path::new(&directory).join("narrows/lab")),
            None => Self::at(format!("/tmp/narrows-{}/lab", process::user_id())),
        }
    }

    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn state_path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.json"))
    }

    pub(crate) fn socket_path(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.sock"))
    }

    /// The registered names, whether or not their labs still run.
    pub fn names(&self) -> Vec<String> {
        let files = files::list(&self.directory).unwrap_or_default();
        let names = files.iter().filter_map(|file| file.strip_suffix(".json"));
        names.filter(|name| check_name(name).is_ok()).map(str::to_owned).collect()
    }

    /// Refuses a directory below `/tmp` that another user made first.
    fn check(&self) -> Result<()> {
        let mut own = self.directory.ancestors().take(2).filter(|place| files::exists(place));
        Ok(own.try_for_each(files::check_own_directory)?)
    }

    pub(crate) fn write(&self, state: &State) -> Result<()> {
        files::make_directory(&self.directory)?;
        self.check()?;
        let format =
            |error: serde_json::Error| Error::Format { what: "the state".to_owned(), cause: error.to_string() };
        let text = serde_json::to_vec_pretty(state).map_err(format)?;
        Ok(files::write_whole(&self.state_path(&state.name), &text, 0o600)?)
    }

    /// The state of a lab whose process still runs.
    /// Errors: no such lab, one that was killed, an invalid file.
    pub fn running(&self, name: &str) -> Result<State> {
        check_name(name)?;
        self.check()?;
        let path = self.state_path(name);
        if !files::exists(&path) {
            let known = self.names().join(", ");
            let hint = if known.is_empty() { String::new() } else { format!(" (there is {known})") };
            return Err(Error::NotUp { name: name.to_owned(), hint });
        }
        let text = files::read_text(&path)?;
        let state: State = serde_json::from_str(&text)
            .map_err(|error| Error::Format { what: path.display().to_string(), cause: error.to_string() })?;
        if process::start_time(state.pid) == Some(state.started) {
            return Ok(state);
        }
        Err(Error::NotUp {
            name: name.to_owned(),
            hint: ": its process was killed, which removed the network".to_owned(),
        })
    }

    pub(crate) fn forget(&self, name: &str) -> Result<()> {
        files::remove(&self.socket_path(name))?;
        Ok(files::remove(&self.state_path(name))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_directory_that_another_user_can_change_is_not_used() {
        let above = std::env::temp_dir().join(format!("narrows-registry-{}", std::process::id()));
        let registry = Registry::at(above.join("lab"));
        files::make_directory(registry.directory()).expect("made");
        assert!(registry.running("a").expect_err("none").to_string().contains("a"));
        std::fs::set_permissions(&above, std::fs::Permissions::from_mode(0o777)).expect("owned");
        let error = registry.running("a").expect_err("not safe").to_string();
        assert!(error.contains("other users may write to it; remove it"), "{error}");
        files::remove_tree(&above).expect("removed");
    }
}
