//! The state directory, for what outlives a command: the server's key and token, the journal of changes, stored runs.

use std::path::{Path, PathBuf};

/// The state directory: `$NARROWS_STATE` itself, else `$XDG_STATE_HOME/narrows`, else `/var/lib/narrows` for root and `~/.local/state/narrows` for others.
/// Without `HOME` the home is that of the user database. `None` where there is no home at all. Root follows no variable to a place that
/// another user can change: key, tokens and the journal of changes would be that user's.
pub fn directory() -> Option<PathBuf> {
    let root = narrows_sys::process::is_root();
    let named = variable("NARROWS_STATE").or_else(|| variable("XDG_STATE_HOME").map(|home| home.join("narrows")));
    if let Some(state) = named.filter(|path| unusable(path).is_none()) {
        return Some(state);
    }
    if root {
        return Some(PathBuf::from("/var/lib/narrows"));
    }
    let home = variable("HOME").or_else(std::env::home_dir).filter(|home| home.is_absolute());
    home.map(|home| home.join(".local/state/narrows"))
}

fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

fn unusable(path: &Path) -> Option<String> {
    if !path.is_absolute() {
        return Some(format!("cannot use {}: not an absolute path", path.display()));
    }
    let wrong = narrows_sys::process::is_root().then(|| narrows_sys::files::check_own_place(path).err()).flatten()?;
    Some(format!(
        "{wrong}; root keeps keys, tokens and the journal of changes only where no other user can change them"
    ))
}

/// Why `NARROWS_STATE` cannot be the state directory. It is for narrows alone, so it is not replaced by another one.
pub fn refused() -> Option<String> {
    Some(format!("NARROWS_STATE: {}", unusable(&variable("NARROWS_STATE")?)?))
}
