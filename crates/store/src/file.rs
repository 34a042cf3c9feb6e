//! One run per file.

use crate::{Error, compat};
use narrows_model::Run;
use narrows_sys::files;
use std::path::Path;

/// The maximum size of a run's file, in bytes (256 MiB).
pub const LARGEST: u64 = 256 << 20;

/// Writes a run: atomically, and readable only by the owner, since it contains an inventory.
///
/// Call it after every step of a run: a later call replaces the file of an earlier one, and a crash in between leaves
/// the earlier one. A directory that is missing is not made: it may be a typing error.
pub fn save(run: &Run, path: &Path) -> Result<(), Error> {
    // Compact: a run is for programs, and half of an indented one would be blanks.
    let mut bytes = serde_json::to_vec(run).map_err(|error| Error::Encode(run.id.clone(), error.to_string()))?;
    bytes.push(b'\n');
    Ok(files::write_whole(path, &bytes, 0o600)?)
}

/// Reads a run of this or an earlier format.
/// Errors: the file cannot be read, is larger than [`LARGEST`], is not a run or has a newer format.
pub fn load(path: &Path) -> Result<Run, Error> {
    compat::read(&files::read(path, LARGEST)?, path)
}

/// The host of a run, in the user's words, without the rest of the run: for a list of runs. Runs above 8 MiB are not read.
/// Errors: the file cannot be read, is larger, or is not a run.
pub fn host(path: &Path) -> Result<String, Error> {
    #[derive(serde::Deserialize)]
    struct Head {
        target: narrows_model::Target,
    }
    let bytes = files::read(path, 8 << 20)?;
    let head: Head =
        serde_json::from_slice(&bytes).map_err(|error| Error::NoRun(path.to_owned(), error.to_string()))?;
    Ok(head.target.asked)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use narrows_model::run::RunPlan;
    use narrows_model::{Ending, Family, Snapshot, Target, TcpPlan};

    /// A run without trials.
    pub(crate) fn run(id: &str) -> Run {
        Run {
            format: Run::FORMAT,
            id: id.to_owned(),
            made_by: "narrows 0.1.0".into(),
            started_unix_us: 1_190_232_884_000_000,
            elapsed_us: 0,
            plan: RunPlan::Measure(TcpPlan::default().into()),
            target: Target { asked: "umfs05".into(), address: "[2001:db8::5]:5220".into(), family: Family::Ipv6 },
            client: Snapshot::default(),
            server: Snapshot::default(),
            idle_rtt_us: vec![34_851, 35_002],
            trials: vec![],
            search: None,
            sweep: None,
            path: None,
            attempts: vec![],
            ending: Ending::Complete,
        }
    }

    #[test]
    fn a_run_is_read_back_and_replaces_the_old_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.run.json");
        let mut a = run("a");
        save(&a, &path).unwrap();
        a.ending = Ending::Failed("the server was lost".into());
        a.elapsed_us = 12;
        save(&a, &path).unwrap();
        assert_eq!(load(&path).unwrap(), a);
        assert_eq!(files::list(path.parent().unwrap()).unwrap(), ["a.run.json"], "no part is left beside it");
    }

    #[test]
    fn others_cannot_read_it() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.run.json");
        save(&run("a"), &path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn errors_name_the_file() {
        let directory = tempfile::tempdir().unwrap();
        let missing = directory.path().join("none.run.json");
        let error = load(&missing).unwrap_err().to_string();
        assert!(error.contains("none.run.json") && error.contains("No such file"), "{error}");
        let blocked = directory.path().join("file");
        files::write_whole(&blocked, b"x", 0o600).unwrap();
        let typo = directory.path().join("nonexist/a.run.json");
        assert!(
            save(&run("a"), &typo).is_err() && !typo.parent().unwrap().exists(),
            "no directory is made of a typing error"
        );
        let error = save(&run("a"), &blocked.join("a.run.json")).unwrap_err().to_string();
        assert!(error.contains("file/a.run.json") && error.contains("Not a directory"), "{error}");
    }

    #[test]
    fn a_huge_file_is_refused_before_it_is_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("huge.run.json");
        // Sparse: it occupies no disk space.
        let file = std::fs::OpenOptions::new().create(true).write(true).truncate(true).open(&path).unwrap();
        file.set_len(LARGEST + 1).unwrap();
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("huge.run.json") && error.contains("larger than 268435456 bytes"), "{error}");
    }
}
