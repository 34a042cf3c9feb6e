//! The stored runs in a directory.

use crate::id::ENDING;
use crate::{Error, load};
use narrows_model::Run;
use narrows_sys::files;
use std::path::{Path, PathBuf};

/// One file of a directory of runs.
#[derive(Debug)]
pub struct Entry {
    /// The file.
    pub path: PathBuf,
    /// The run, or why it cannot be read: one damaged file does not hide the others.
    pub run: Result<Run, Error>,
}

/// The runs in a directory, newest first, at most `most` of them. A missing directory holds none.
///
/// Ids begin with the time, so names sort by time and only the requested files are read.
///
/// # Errors
/// The directory cannot be listed.
pub fn list(directory: &Path, most: usize) -> Result<Vec<Entry>, Error> {
    if !files::exists(directory) {
        return Ok(Vec::new());
    }
    let mut names = files::list(directory)?;
    names.retain(|name| name.ends_with(ENDING) && !name.starts_with('.'));
    names.reverse();
    names.truncate(most);
    let read = |name: &String| {
        let path = directory.join(name);
        Entry { run: load(&path), path }
    };
    Ok(names.iter().map(read).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::tests::run;
    use crate::{file_name, save};

    #[test]
    fn newest_first_and_a_damaged_one_does_not_hide_the_others() {
        let directory = tempfile::tempdir().unwrap();
        let at = directory.path();
        for id in ["20240101-000000-00000001", "20250101-000000-00000000"] {
            save(&run(id), &at.join(file_name(id))).unwrap();
        }
        files::write_whole(&at.join("20240601-000000-00000000.run.json"), b"{", 0o600).unwrap();
        files::write_whole(&at.join("notes.txt"), b"not a run", 0o600).unwrap();
        files::write_whole(&at.join(".20250101-000000-00000000.run.json"), b"half", 0o600).unwrap();
        let entries = list(at, 10).unwrap();
        let ids: Vec<_> = entries.iter().map(|entry| entry.run.as_ref().map(|run| run.id.as_str()).ok()).collect();
        assert_eq!(ids, [Some("20250101-000000-00000000"), None, Some("20240101-000000-00000001")]);
        assert_eq!(list(at, 1).unwrap().len(), 1);
        assert!(list(&at.join("none"), 10).unwrap().is_empty());
    }
}
