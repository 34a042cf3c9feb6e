//! Files: each read has a limit, each write is whole or not at all.

use crate::{Error, Result};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Reads a file of at most `limit` bytes.
///
/// # Errors
/// The path, where it cannot be read or is larger.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let object = || path.display().to_string();
    let file = fs::File::open(path).map_err(|error| Error::new("open", object(), error))?;
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| Error::new("read", object(), error))?;
    if bytes.len() as u64 > limit {
        let too_large = std::io::Error::other(format!("it is larger than {limit} bytes"));
        return Err(Error::new("read", object(), too_large));
    }
    Ok(bytes)
}

/// Reads a file of at most 16 MiB as text; bytes that are no UTF-8 are replaced.
///
/// # Errors
/// The path, where it cannot be read or is larger.
pub fn read_text(path: &Path) -> Result<String> {
    let bytes = read(path, 16 << 20)?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Writes a file beside its place, syncs it and renames it: a reader sees the old or the new one, never a half. What is there
/// and is no file of a disk (a pipe, `/dev/null`) is written into instead.
///
/// # Errors
/// The path, where it cannot be written.
pub fn write_whole(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let beside = beside(path);
    let write = || -> std::io::Result<()> {
        if special(path) {
            return fs::OpenOptions::new().write(true).open(path)?.write_all(bytes);
        }
        let mut file = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(mode).open(&beside)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&beside);
        Error::new("write", path.display().to_string(), error)
    })
}

/// Whether [`write_whole`] will be able to write there, as far as can be told before: for what is to be kept of something that
/// takes long. Leaves nothing behind.
///
/// # Errors
/// The path, where it cannot be written.
pub fn check_writable(path: &Path) -> Result<()> {
    let beside = beside(path);
    let tried = if special(path) {
        // A pipe would wait for its reader; a directory says that it is one.
        if fs::metadata(path).is_ok_and(|found| found.is_dir()) {
            Err(std::io::Error::from_raw_os_error(libc::EISDIR))
        } else {
            Ok(())
        }
    } else {
        fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&beside)
            .and_then(|_| fs::remove_file(&beside))
    };
    tried.map_err(|error| Error::new("write", path.display().to_string(), error))
}

/// Where a file grows until it is whole.
fn beside(path: &Path) -> std::path::PathBuf {
    let name = path.file_name().map_or_else(Default::default, |name| name.to_string_lossy().into_owned());
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

/// Whether something is there that a file must not take the place of.
fn special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file())
}

/// Writes into an existing file of the kernel (`/proc`, `/sys`), in one call.
///
/// # Errors
/// The path and what the kernel said.
pub fn write_kernel(path: &Path, text: &str) -> Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Error::new("write", path.display().to_string(), error))
}

/// Makes a directory and its parents, readable by the owner alone.
///
/// # Errors
/// The path and what the kernel said.
pub fn make_directory(path: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| Error::new("make directory", path.display().to_string(), error))
}

/// The names in a directory, sorted.
///
/// # Errors
/// The path and what the kernel said.
pub fn list(path: &Path) -> Result<Vec<String>> {
    let wrap = |error| Error::new("list", path.display().to_string(), error);
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(wrap)? {
        names.push(entry.map_err(wrap)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Where a symbolic link points.
///
/// # Errors
/// The path and what the kernel said.
pub fn read_link(path: &Path) -> Result<std::path::PathBuf> {
    fs::read_link(path).map_err(|error| Error::new("read link", path.display().to_string(), error))
}

/// Removes a file; one that is not there is fine.
///
/// # Errors
/// The path and what the kernel said.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::new("remove", path.display().to_string(), error))
        }
        _ => Ok(()),
    }
}

/// Removes a directory and all in it; one that is not there is fine.
///
/// # Errors
/// The path and what the kernel said.
pub fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::new("remove", path.display().to_string(), error))
        }
        _ => Ok(()),
    }
}

/// Whether something is there.
#[must_use]
pub fn exists(path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_written_is_told_before_and_nothing_is_left() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("result.json");
        check_writable(&file).unwrap();
        assert!(list(directory.path()).unwrap().is_empty(), "nothing is left");
        write_whole(&file, b"{}", 0o644).unwrap();
        check_writable(&file).unwrap();
        assert_eq!(read_text(&file).unwrap(), "{}", "what is there stays");
        assert_eq!(list(directory.path()).unwrap(), ["result.json"]);
        let refused = |path: &Path| check_writable(path).unwrap_err().errno();
        assert_eq!(refused(&directory.path().join("none/result.json")), Some(libc::ENOENT));
        assert_eq!(refused(directory.path()), Some(libc::EISDIR));
    }

    #[test]
    fn a_device_is_written_into_and_stays_one() {
        let null = Path::new("/dev/null");
        check_writable(null).unwrap();
        write_whole(null, b"{}", 0o644).unwrap();
        assert!(special(null));
    }
}
