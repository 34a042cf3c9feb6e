//! A host read back from a capture: a directory with `meta.json`, `files/proc/…`, `files/sys/…` and `kernel/*.json`.

use super::Host;
use crate::Missing;
use crate::kernel::{Answer, Question};
use narrows_sys::files;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::{Component, Path, PathBuf};
use thiserror::Error;

/// The format name at the start of `meta.json`.
pub(super) const FORMAT: &str = "narrows.capture/1";
const META_MAX: u64 = 4 << 20;

/// `meta.json` of a capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meta {
    /// `narrows.capture/1`
    pub format: String,
    /// When it was taken, microseconds since the Unix epoch by the host's clock.
    pub taken_unix_us: u64,
    /// The peer of the capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peer: Option<IpAddr>,
    /// What could not be read on the host, and why: paths, or names of files below `kernel/`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<String, String>,
    /// Directories and their entries.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub directories: BTreeMap<String, Vec<String>>,
    /// Symbolic links and their targets.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub links: BTreeMap<String, String>,
}

/// Why a capture cannot be read or written.
#[derive(Debug, Error)]
pub enum CaptureError {
    #[error(transparent)]
    File(#[from] narrows_sys::Error),
    /// A file of it is malformed.
    #[error("cannot read the capture's {path}: {source}")]
    Json {
        path: String,
        /// What is wrong with it.
        #[source]
        source: serde_json::Error,
    },
    #[error("the capture {path} has the format `{format}`; this version of narrows reads `narrows.capture/1`")]
    Format {
        path: String,
        /// The format it names.
        format: String,
    },
    /// A name from the host that must not become a path.
    #[error("the host has the name `{name}`, which a capture cannot hold")]
    Name { name: String },
}

/// A host read back from a capture.
#[derive(Debug, Clone)]
pub struct Recorded {
    directory: PathBuf,
    meta: Meta,
}

impl Recorded {
    /// Opens a capture.
    /// Errors: `meta.json` cannot be read or has another format.
    pub fn open(directory: &Path) -> Result<Self, CaptureError> {
        let path = directory.join("meta.json");
        let bytes = files::read(&path, META_MAX)?;
        let shown = path.display().to_string();
        let meta: Meta =
            serde_json::from_slice(&bytes).map_err(|source| CaptureError::Json { path: shown.clone(), source })?;
        if meta.format != FORMAT {
            return Err(CaptureError::Format { path: shown, format: meta.format });
        }
        Ok(Self { directory: directory.to_owned(), meta })
    }

    /// The metadata of the capture.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    fn missing(&self, what: &str) -> Missing {
        match self.meta.missing.get(what) {
            Some(why) => Missing::because(why),
            // Without the path: everything that a capture leaves out has the same reason.
            None => Missing::because("not in the capture"),
        }
    }
}

/// Where a capture keeps a path of the host; none for a path that would escape it.
pub(super) fn inside(directory: &Path, path: &str) -> Option<PathBuf> {
    let relative = Path::new(path.strip_prefix('/').unwrap_or(path));
    let plain = relative.components().all(|part| matches!(part, Component::Normal(_)));
    plain.then(|| directory.join(relative))
}

impl Host for Recorded {
    fn read(&self, path: &str) -> Result<String, Missing> {
        inside(&self.directory.join("files"), path)
            .and_then(|file| files::read_text(&file).ok())
            .ok_or_else(|| self.missing(path))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Missing> {
        if let Some(names) = self.meta.directories.get(path) {
            return Ok(names.clone());
        }
        inside(&self.directory.join("files"), path)
            .and_then(|directory| files::list(&directory).ok())
            .ok_or_else(|| self.missing(path))
    }

    fn target(&self, path: &str) -> Result<String, Missing> {
        self.meta.links.get(path).cloned().ok_or_else(|| self.missing(path))
    }

    fn ask(&self, question: &Question) -> Result<Answer, Missing> {
        let name = question.file();
        let path = inside(&self.directory.join("kernel"), &name)
            .filter(|path| files::exists(path))
            .ok_or_else(|| self.missing(&format!("kernel/{name}")))?;
        let because = |why: String| Missing::File { path: format!("kernel/{name}"), why };
        let bytes = files::read(&path, META_MAX).map_err(|error| because(error.to_string()))?;
        serde_json::from_slice(&bytes).map_err(|error| because(error.to_string()))
    }

    fn taken_unix_us(&self) -> u64 {
        self.meta.taken_unix_us
    }

    fn peer(&self) -> Option<IpAddr> {
        self.meta.peer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_cannot_leave_the_capture() {
        let capture = Path::new("/c");
        assert_eq!(inside(capture, "/proc/stat"), Some(PathBuf::from("/c/proc/stat")));
        for path in ["/proc/../../etc/shadow", "..", "//etc/shadow", "/./x"] {
            assert!(inside(capture, path).is_none_or(|path| path.starts_with("/c/")), "{path}");
            assert!(inside(capture, path).is_none_or(|path| !path.to_string_lossy().contains("..")), "{path}");
        }
    }

    #[test]
    fn a_capture_of_another_format_is_refused_with_both_names() {
        let directory = tempfile::tempdir().expect("a directory");
        let meta = r#"{"format": "narrows.capture/9", "taken_unix_us": 0}"#;
        files::write_whole(&directory.path().join("meta.json"), meta.as_bytes(), 0o600).expect("written");
        let error = Recorded::open(directory.path()).expect_err("another format").to_string();
        assert!(error.contains("narrows.capture/9") && error.contains("narrows.capture/1"), "{error}");
    }
}
