//! Files that only one process creates, whichever is first.

use crate::{Error, Result};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

static SERIAL: AtomicU32 = AtomicU32::new(0);

/// Writes a file, whole and synced, unless one with that name exists; returns whether it was written. Of several
/// processes that try at once, one succeeds and the others find its file.
///
/// # Errors
/// The file cannot be written.
pub fn write_if_absent(path: &Path, bytes: &[u8], mode: u32) -> Result<bool> {
    let name = path.file_name().map_or_else(Default::default, |name| name.to_string_lossy().into_owned());
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let beside = path.with_file_name(format!(".{name}.{}-{serial}.new", std::process::id()));
    let write = || -> std::io::Result<bool> {
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        // link(2) fails if the name exists; rename(2) would replace it.
        match fs::hard_link(&beside, path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
            Err(error) => Err(error),
        }
    };
    let written = write().map_err(|error| Error::new("write", path.display().to_string(), error));
    let _ = fs::remove_file(&beside);
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_file_wins() {
        let path = std::env::temp_dir().join(format!("narrows-exclusive-{}", std::process::id()));
        assert!(write_if_absent(&path, b"first", 0o600).expect("a temporary directory"));
        assert!(!write_if_absent(&path, b"second", 0o600).expect("a temporary directory"));
        assert_eq!(fs::read(&path).expect("readable"), b"first");
        fs::remove_file(&path).expect("removable");
        let error = write_if_absent(Path::new("/no/such/place"), b"", 0o600).expect_err("no directory");
        assert_eq!(error.object, "/no/such/place");
    }
}
