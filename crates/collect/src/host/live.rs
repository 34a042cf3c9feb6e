//! The host that this process runs on.

use super::Host;
use crate::Missing;
use crate::kernel::{self, Answer, Question};
use narrows_sys::{clock, files};
use std::borrow::Cow;
use std::path::Path;

/// The host that this process runs on, as the calling thread's network namespace shows it.
///
/// `/proc/net` is a link to the network namespace of the *process*, so this reads `/proc/thread-self/net`, which is
/// that of the thread. Netlink sockets are opened on first use and stay in the namespace that they were opened in.
#[derive(Debug, Default)]
pub struct Live {
    sockets: kernel::Sockets,
    process: Option<u32>,
}

impl Live {
    pub fn new() -> Self {
        Self::default()
    }

    /// As another process sees it that moves the data: its control groups may be others.
    pub fn of_process(process: u32) -> Self {
        Self { process: Some(process), ..Self::default() }
    }

    fn seen<'p>(&self, path: &'p str) -> Cow<'p, str> {
        match (path.strip_prefix("/proc/net/"), path.strip_prefix("/proc/self/"), self.process) {
            (Some(rest), ..) => Cow::Owned(format!("/proc/thread-self/net/{rest}")),
            (_, Some(rest), Some(process)) => Cow::Owned(format!("/proc/{process}/{rest}")),
            _ => Cow::Borrowed(path),
        }
    }
}

impl Host for Live {
    fn read(&self, path: &str) -> Result<String, Missing> {
        files::read_text(Path::new(&*self.seen(path))).map_err(|error| Missing::file(path, &error))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, Missing> {
        files::list(Path::new(&*self.seen(path))).map_err(|error| Missing::file(path, &error))
    }

    fn target(&self, path: &str) -> Result<String, Missing> {
        let target = files::read_link(Path::new(path)).map_err(|error| Missing::file(path, &error))?;
        Ok(target.display().to_string())
    }

    fn ask(&self, question: &Question) -> Result<Answer, Missing> {
        kernel::ask(&self.sockets, question)
    }

    fn taken_unix_us(&self) -> u64 {
        clock::unix_us()
    }
}
