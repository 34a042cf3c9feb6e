//! A file of `/proc` or `/sys` that is read repeatedly: opened once, read from its start each time.

use crate::{Error, Result};
use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

/// A file that stays open.
#[derive(Debug)]
pub struct KernelFile {
    file: fs::File,
    path: String,
    buffer: Vec<u8>,
}

/// Above the size of `/proc/stat` on the largest host.
const LIMIT: usize = 16 << 20;

impl KernelFile {
    /// Opens the file.
    pub fn open(path: &Path) -> Result<Self> {
        let shown = path.display().to_string();
        let file = fs::File::open(path).map_err(|error| Error::new("open", &shown, error))?;
        Ok(Self { file, path: shown, buffer: vec![0; 16 << 10] })
    }

    /// The current content; invalid UTF-8 is replaced.
    /// Errors: the file cannot be read or is larger than 16 MiB.
    pub fn read(&mut self) -> Result<String> {
        let mut length = 0;
        loop {
            if length == self.buffer.len() {
                if length >= LIMIT {
                    let cause = std::io::Error::other(format!("it is larger than {LIMIT} bytes"));
                    return Err(Error::new("read", &self.path, cause));
                }
                self.buffer.resize(length * 2, 0);
            }
            let rest = self.buffer.get_mut(length..).unwrap_or_default();
            let got = self.file.read_at(rest, length as u64).map_err(|error| Error::new("read", &self.path, error))?;
            if got == 0 {
                break;
            }
            length += got;
        }
        Ok(String::from_utf8_lossy(self.buffer.get(..length).unwrap_or_default()).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_again_from_its_start() {
        let mut file = KernelFile::open(Path::new("/proc/stat")).expect("every kernel has it");
        let (first, second) = (file.read().expect("read"), file.read().expect("read again"));
        assert!(first.starts_with("cpu ") && second.starts_with("cpu "));
        assert!(KernelFile::open(Path::new("/proc/no-such-file")).is_err());
    }
}
