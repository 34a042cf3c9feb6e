//! Files: each read has a limit, each write is atomic.

pub use crate::lock::{Locked, lock, try_lock};
pub use crate::open_file::{Appender, Reader, rename};
use crate::{Error, Result};
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Distinguishes the temporary files of threads.
static SERIAL: AtomicU32 = AtomicU32::new(0);

/// Reads a file of at most `limit` bytes.
/// Errors: the file cannot be read or is larger.
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

/// Reads a file of at most 16 MiB as text; invalid UTF-8 is replaced.
/// Errors: the file cannot be read or is larger.
pub fn read_text(path: &Path) -> Result<String> {
    let bytes = read(path, 16 << 20)?;
    Ok(String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// The file behind symbolic links.
fn target(path: &Path) -> std::io::Result<PathBuf> {
    let real = match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => fs::canonicalize(path).or_else(|_| {
            let to = fs::read_link(path)?;
            Ok::<_, std::io::Error>(path.parent().unwrap_or(Path::new("")).join(to))
        })?,
        _ => path.to_owned(),
    };
    match fs::metadata(&real) {
        Ok(found) if found.is_dir() => Err(std::io::Error::other("it is a directory; name a file in it")),
        _ if real.file_name().is_none() => Err(std::io::Error::other("it is not a file name")),
        _ => Ok(real),
    }
}

/// The temporary name of a file while it is written.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().map_or_else(Default::default, |name| name.to_string_lossy().into_owned());
    path.with_file_name(format!(".{name}.{}.part", std::process::id()))
}

/// Whether the path is something that a file must not replace: a pipe, `/dev/null`.
fn special(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| !found.is_file())
}

/// Writes a temporary file, syncs it and renames it: a reader sees the old or the new content, never a part. A special
/// file (a pipe, `/dev/null`) is written directly instead.
pub fn write_whole(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    let failed = |error| Error::new("write", path.display().to_string(), error);
    let path_to = target(path).map_err(failed)?;
    let beside = beside(&path_to);
    let write = || -> std::io::Result<()> {
        if special(&path_to) {
            return fs::OpenOptions::new().write(true).open(&path_to)?.write_all(bytes);
        }
        write_synced(&beside, bytes, mode)?;
        fs::rename(&beside, &path_to)?;
        // The name is durable with its directory only.
        sync_directory(&path_to)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&beside);
        failed(error)
    })
}

/// Writes a file, whole and synced, unless one with that name exists; returns whether it was written. Of several
/// processes or threads that try at once, one succeeds and the others find its file.
pub fn write_if_absent(path: &Path, bytes: &[u8], mode: u32) -> Result<bool> {
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let beside = beside(&path.with_extension(format!("{serial}.new")));
    let write = || -> std::io::Result<bool> {
        write_synced(&beside, bytes, mode)?;
        // A service's umask must not take from its group what the mode gives.
        fs::set_permissions(&beside, fs::Permissions::from_mode(mode))?;
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

fn write_synced(path: &Path, bytes: &[u8], mode: u32) -> std::io::Result<()> {
    // What a killed process left; a link that another user put there is not followed.
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

fn sync_directory(of: &Path) -> std::io::Result<()> {
    match of.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => fs::File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}

/// Checks whether [`write_whole`] could write there, without changing anything.
/// Errors: the path, and why it cannot be written.
pub fn check_writable(path: &Path) -> Result<()> {
    let failed = |error| Error::new("write", path.display().to_string(), error);
    let path = target(path).map_err(failed)?;
    if special(&path) {
        return Ok(());
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    if let Some(parent) = parent {
        match fs::metadata(parent) {
            Ok(found) if found.is_dir() => {}
            Ok(_) => return Err(failed(std::io::Error::other(format!("{} is not a directory", parent.display())))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                let why = format!("directory {} does not exist; create it first", parent.display());
                return Err(failed(std::io::Error::other(why)));
            }
            Err(error) => return Err(failed(error)),
        }
    }
    let beside = beside(&path);
    // A file or link that another user put there is neither opened nor emptied.
    remove(&beside)?;
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside).map_err(failed)?;
    fs::remove_file(&beside).map_err(failed)
}

/// Writes to an existing kernel file (`/proc`, `/sys`) in one call.
/// Errors: the path and the kernel's error.
pub fn write_kernel(path: &Path, text: &str) -> Result<()> {
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Error::new("write", path.display().to_string(), error))
}

/// Creates a directory and its parents, readable only by the owner.
/// Errors: the path and the kernel's error.
pub fn make_directory(path: &Path) -> Result<()> {
    make_directory_of_mode(path, 0o700)
}

/// Creates a directory and its parents for results, with permissions from the user's umask.
/// Errors: the path and the kernel's error.
pub fn make_public_directory(path: &Path) -> Result<()> {
    make_directory_of_mode(path, 0o755)
}

fn make_directory_of_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new()
        .recursive(true)
        .mode(mode)
        .create(path)
        .map_err(|error| Error::new("make directory", path.display().to_string(), error))
}

/// The names in a directory, sorted.
/// Errors: the path and the kernel's error.
pub fn list(path: &Path) -> Result<Vec<String>> {
    let wrap = |error| Error::new("list", path.display().to_string(), error);
    let mut names = Vec::new();
    for entry in fs::read_dir(path).map_err(wrap)? {
        names.push(entry.map_err(wrap)?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

/// Whether new files in a directory take its group, and the group may list it: its owner shares it on purpose.
pub fn is_shared_with_group(directory: &Path) -> bool {
    fs::metadata(directory).is_ok_and(|found| found.permissions().mode() & 0o2040 == 0o2040)
}

/// The target of a symbolic link.
/// Errors: the path and the kernel's error.
pub fn read_link(path: &Path) -> Result<std::path::PathBuf> {
    fs::read_link(path).map_err(|error| Error::new("read link", path.display().to_string(), error))
}

/// The inode of a file or directory.
/// Errors: the path and the kernel's error.
pub fn inode(path: &Path) -> Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::metadata(path).map_err(|error| Error::new("stat", path.display().to_string(), error))?;
    Ok(found.ino())
}

/// When a file was last modified, microseconds since the Unix epoch.
/// Errors: the path and the kernel's error.
pub fn modified_unix_us(path: &Path) -> Result<u64> {
    let modified = fs::metadata(path).and_then(|it| it.modified());
    let modified = modified.map_err(|error| Error::new("stat", path.display().to_string(), error))?;
    let since = modified.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ok(u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

/// Removes a file; a missing one is not an error.
/// Errors: the path and the kernel's error.
pub fn remove(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::new("remove", path.display().to_string(), error))
        }
        _ => Ok(()),
    }
}

/// Removes a directory and its content; a missing one is not an error.
/// Errors: the path and the kernel's error.
pub fn remove_tree(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::new("remove", path.display().to_string(), error))
        }
        _ => Ok(()),
    }
}

/// Which other users may read or write a file or directory: `its group`, `everybody`; `None`: nobody but its owner and root.
pub fn shared_with(path: &Path) -> Option<&'static str> {
    let mode = fs::metadata(path).ok()?.permissions().mode();
    if mode & 0o007 != 0 {
        return Some("everybody");
    }
    (mode & 0o070 != 0).then_some("its group")
}

/// Checks that this is a directory, not a link; that this user or root owns it; and that others cannot write to it unless it is sticky.
/// Errors: the path, and what is wrong with it.
pub fn check_own_directory(path: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let check = || {
        let found = fs::symlink_metadata(path)?;
        let own = [0, crate::process::user_id()];
        let why = match found.mode() {
            _ if !found.is_dir() => "it is not a directory",
            _ if !own.contains(&found.uid()) => "it belongs to another user",
            // In a sticky directory nobody can replace what another user made.
            mode if mode & 0o022 != 0 && mode & 0o1000 == 0 => "other users may write to it",
            _ => return Ok(()),
        };
        Err(std::io::Error::other(format!("{why}; remove it")))
    };
    check().map_err(|error| Error::new("use", path.display().to_string(), error))
}

/// As [`check_own_directory`], for a directory that may not exist yet: of the nearest one above it that does, in which nobody else may make
/// it first, so that one that is sticky does not suffice; and of all above that one, which nobody else may replace.
/// Errors: the path, and what is wrong with it.
pub fn check_own_place(path: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt as _;
    let mut existing = path.ancestors().filter(|place| fs::symlink_metadata(place).is_ok());
    let Some(nearest) = existing.next() else { return Ok(()) };
    check_own_directory(nearest)?;
    if fs::metadata(nearest).is_ok_and(|found| found.mode() & 0o022 != 0) {
        let why =
            if nearest == path { "other users may write to it" } else { "other users may make it first; make it" };
        return Err(Error::new("use", path.display().to_string(), std::io::Error::other(why)));
    }
    // What is above a user namespace belongs to nobody of it.
    if !crate::process::is_root_of_machine() {
        return Ok(());
    }
    let real =
        |place: &Path| fs::canonicalize(place).map_err(|error| Error::new("use", place.display().to_string(), error));
    // A link is as good as where it stands, and where it leads.
    let links = existing.filter(|place| place.is_symlink()).map(|link| real(link.parent().unwrap_or(link)));
    let places = links.chain([real(nearest)]).collect::<Result<Vec<_>>>()?;
    places.iter().flat_map(|place| place.ancestors()).try_for_each(check_own_directory)
}

/// Whether the path exists.
pub fn exists(path: &Path) -> bool {
    path.exists()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn folder() -> PathBuf {
        let folder = std::env::temp_dir().join(format!(
            "narrows-files-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).expect("a directory");
        folder
    }

    #[test]
    fn check_writable_predicts_the_write() {
        let folder = folder();
        let file = folder.join("a");
        let why = |path: &Path| check_writable(path).expect_err("not writable").source.to_string();
        check_writable(&file).expect("writable");
        assert_eq!(list(&folder).expect("a list"), Vec::<String>::new(), "nothing is left");
        write_whole(&file, b"old", 0o644).expect("written");
        check_writable(&file).expect("writable");
        assert_eq!(read_text(&file).expect("it is there"), "old");
        assert_eq!(why(&folder), "it is a directory; name a file in it");
        assert_eq!(
            why(&folder.join("none/a")),
            format!("directory {} does not exist; create it first", folder.join("none").display())
        );
        assert_eq!(why(&file.join("b")), format!("{} is not a directory", file.display()));
        let (victim, link) = (folder.join("victim"), beside(&folder.join("b")));
        fs::write(&victim, b"kept").expect("written");
        symlink(&victim, &link).expect("a link");
        check_writable(&folder.join("b")).expect("writable");
        assert_eq!(fs::read(&victim).expect("there"), b"kept", "a link at the temporary name is not followed");
        check_writable(Path::new("/dev/null")).expect("a device is written into");
        assert_eq!(why(Path::new("/proc/a")), "No such file or directory (os error 2)");
        assert_eq!(why(Path::new("")), "it is not a file name");
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn links_and_devices_are_kept() {
        let folder = folder();
        let (file, link) = (folder.join("a"), folder.join("link"));
        symlink("a", &link).expect("a link");
        for bytes in [b"one", b"two"] {
            write_whole(&link, bytes, 0o644).expect("written");
            assert!(fs::symlink_metadata(&link).expect("it is there").is_symlink());
            assert_eq!(fs::read(&file).expect("it is there"), bytes);
        }
        write_whole(Path::new("/dev/null"), b"x", 0o644).expect("written into");
        assert!(special(Path::new("/dev/null")));
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn results_may_be_read_by_others_and_state_may_not() {
        let folder = folder();
        let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o7777;
        let usual = folder.join("usual");
        fs::create_dir(&usual).expect("made");
        make_public_directory(&folder.join("public")).expect("made");
        make_directory(&folder.join("private")).expect("made");
        assert_eq!(mode(&folder.join("public")), mode(&usual) & 0o755, "as the umask says");
        assert_eq!(mode(&folder.join("private")) & 0o077, 0);
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn lines_are_appended_to_a_regular_file_alone() {
        let folder = folder();
        let (file, link) = (folder.join("log"), folder.join("link"));
        let mut appended = Appender::open(&file, 0o600).expect("opened");
        appended.append(b"one\n").expect("appended");
        appended.append(b"two\n").expect("appended");
        assert_eq!(fs::read(&file).expect("it is there"), b"one\ntwo\n");
        fs::rename(&file, folder.join("log.1")).expect("renamed");
        appended.append(b"three\n").expect("appended");
        assert_eq!(fs::read(&file).expect("a new one"), b"three\n");
        assert_eq!(shared_with(&file), None);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("owned");
        assert_eq!(shared_with(&file), Some("its group"));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o604)).expect("owned");
        assert_eq!(shared_with(&file), Some("everybody"));
        symlink("log", &link).expect("a link");
        assert_eq!(Appender::open(&link, 0o600).expect_err("a link").errno(), Some(libc::ELOOP));
        let device = Appender::open(Path::new("/dev/null"), 0o600).expect_err("a device").to_string();
        assert_eq!(device, "cannot append to /dev/null: it is not a regular file");
        fs::remove_dir_all(&folder).expect("removed");
    }

    #[test]
    fn a_directory_that_others_may_change_is_not_used() {
        let folder = folder();
        let (own, link) = (folder.join("own"), folder.join("link"));
        make_directory(&own).expect("made");
        check_own_directory(&own).expect("own");
        symlink("own", &link).expect("a link");
        let why = |path: &Path| check_own_directory(path).expect_err("refused").source.to_string();
        assert_eq!(why(&link), "it is not a directory; remove it");
        fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).expect("owned");
        assert_eq!(why(&own), "other users may write to it; remove it");
        assert!(check_own_place(&own.join("a/b")).is_err());
        fs::set_permissions(&own, fs::Permissions::from_mode(0o1777)).expect("owned");
        check_own_directory(&own).expect("sticky");
        let why = check_own_place(&own.join("a/b")).expect_err("another user may make it").source.to_string();
        assert_eq!(why, "other users may make it first; make it");
        let why = check_own_place(&own).expect_err("another user may write").source.to_string();
        assert_eq!(why, "other users may write to it");
        make_directory(&own.join("a/b")).expect("made");
        check_own_place(&own.join("a/b")).expect("own");
        let linked = own.join("a/b/link");
        symlink("../b", &linked).expect("a link");
        check_own_place(&linked.join("c")).expect_err("no directory");
        if crate::process::is_root_of_machine() {
            fs::set_permissions(&own, fs::Permissions::from_mode(0o777)).expect("owned");
            let error = check_own_place(&own.join("a/b")).expect_err("another user may replace it");
            assert_eq!(error.object, own.display().to_string());
        } else {
            println!("NOT CHECKED: directories above, since they belong to nobody of a user namespace");
        }
        fs::remove_dir_all(&folder).expect("removed");
    }

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
