//! Files that stay open: one that is appended to, and one of which parts are read.

use crate::{Error, Result};
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Gives a file another name in the same file system, and replaces one that has it.
/// Errors: the path and the kernel's error.
pub fn rename(from: &Path, to: &Path) -> Result<()> {
    fs::rename(from, to).map_err(|error| Error::new("rename", from.display().to_string(), error))
}

/// A regular file of which parts are read.
#[derive(Debug)]
pub struct Reader {
    path: std::path::PathBuf,
    file: fs::File,
}

impl Reader {
    /// Opens a file.
    /// Errors: the path and the kernel's error.
    pub fn open(path: &Path) -> Result<Self> {
        let file = fs::File::open(path).map_err(|error| Error::new("read", path.display().to_string(), error))?;
        Ok(Self { path: path.to_owned(), file })
    }

    /// So many bytes from there on; fewer at the end of the file.
    /// Errors: the path and the kernel's error.
    pub fn read_at(&self, offset: u64, length: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; length];
        let mut got = 0;
        while got < length {
            match self.file.read_at(&mut bytes[got..], offset + got as u64) {
                Ok(0) => break,
                Ok(count) => got += count,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::new("read", self.path.display().to_string(), error)),
            }
        }
        bytes.truncate(got);
        Ok(bytes)
    }
}

/// A regular file that is appended to. It may be renamed or removed meanwhile, as long as this process may open it again.
#[derive(Debug)]
pub struct Appender {
    path: std::path::PathBuf,
    mode: u32,
    file: fs::File,
}

impl Appender {
    /// Opens a file, and creates it with this mode. A symbolic link is not followed.
    /// Errors: the path and the kernel's error.
    pub fn open(path: &Path, mode: u32) -> Result<Self> {
        let file = Self::opened(path, mode);
        let file = file.map_err(|error| Error::new("append to", path.display().to_string(), error))?;
        Ok(Self { path: path.to_owned(), mode, file })
    }

    fn opened(path: &Path, mode: u32) -> std::io::Result<fs::File> {
        let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
        let file = fs::OpenOptions::new().append(true).create(true).mode(mode).custom_flags(flags).open(path)?;
        if !file.metadata()?.is_file() {
            return Err(std::io::Error::other("it is not a regular file"));
        }
        Ok(file)
    }

    /// Appends in one call.
    /// Errors: the path and the kernel's error.
    pub fn append(&mut self, bytes: &[u8]) -> Result<()> {
        match Self::opened(&self.path, self.mode) {
            Ok(file) => self.file = file,
            // A process that gave up the right to open files goes on with the one that it has.
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {}
            Err(error) => return Err(Error::new("append to", self.path.display().to_string(), error)),
        }
        self.file.write_all(bytes).map_err(|error| Error::new("append to", self.path.display().to_string(), error))
    }
}
