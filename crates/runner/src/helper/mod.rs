//! Privilege separation of the server: what speaks to the network has no privileges, and what has them speaks to one process alone.
//!
//! ```text
//! narrows serve (root)  --starts-->  narrows helper tune    settings with undo; only with --allow-tune
//!        |              --starts-->  narrows helper watch   readings, drops by reason, BPF programs, socket buffers, raw frames
//!        v
//! becomes an ordinary user without capabilities, files (Landlock) and most system calls (seccomp): TLS, HTTP, data, UDP
//! ```
//!
//! A helper is this program again, started while there is one thread and before anything comes from the network. Its standard input is
//! a socket pair ([`narrows_sys::channel`]). For each order the network process passes one end of a further pair, so that an order ends
//! with its channel, and everything with the line: a helper ends when the network process does, after it has undone the changes. The
//! orders are a fixed list ([`order`]); a helper repeats each check.
//!
//! After OpenSSH's privilege separation.

mod answering;
mod line;
mod order;
mod reading;
mod separation;
mod serving;
mod tuning;
mod watching;

pub use order::Role;
pub use separation::{Separation, SeparationError};
pub use serving::run;

pub(crate) use order::Bounds;
pub(crate) use reading::{HelperWatch, Reading};
pub(crate) use tuning::Tuning;

use crate::tune::Tuner;
use line::Line;
use narrows_sys::channel::Channel;
use narrows_sys::confine::files::Enforced;
use narrows_sys::confine::user::{self, User};
use narrows_sys::confine::{self, calls, capabilities};
use narrows_sys::udp::UdpListener;
use narrows_sys::{clock, cpu, process};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::watch;

/// The users of the network process where none is named; the first that exists.
const USERS: [&str; 2] = ["narrows", "nobody"];

/// The same where there is no `/etc/passwd`, as in a container of one program: the kernel's overflow user.
const NOBODY: &str = "65534";

/// The files that the network process reads once it has begun: CPU times, its own threads, the allowed congestion controls, the
/// host's name, the number of CPUs.
const READ: [&str; 6] = [
    "/proc/self", "/proc/stat", "/proc/sys/net", "/proc/sys/kernel/hostname", "/sys/devices/system/cpu",
    "/sys/fs/cgroup",
];

/// For a helper to end after its line: it undoes changes first.
const END: Duration = Duration::from_secs(20);

/// Who does what for a server.
#[derive(Debug)]
pub(crate) struct Deputies {
    pub(crate) tuning: Tuning,
    pub(crate) reading: Reading,
}

/// The helpers of a server. They end when dropped.
#[derive(Debug, Default)]
pub(crate) struct Helpers {
    lines: Vec<Line>,
    watched: Vec<JoinHandle<()>>,
    children: Vec<(Role, Child)>,
    ending: Arc<AtomicBool>,
}

impl Deputies {
    /// Everything in this process.
    pub(crate) const fn here(tuner: Tuner) -> Self {
        Self { tuning: Tuning::Here(tuner), reading: Reading::Here }
    }
}

fn failed(what: &'static str) -> impl Fn(narrows_sys::Error) -> SeparationError {
    move |source| SeparationError::System { what, source }
}

/// The user to become; `None`: this process's user namespace has none of the usual ones, and its root is an ordinary user outside.
fn chosen(separation: &Separation) -> Result<Option<User>, SeparationError> {
    let Separation::User(name) = separation else {
        let usual = USERS.into_iter().find_map(user::find).or_else(|| user::numbered(NOBODY));
        return Ok(usual.filter(user::is_mapped));
    };
    match user::find(name).or_else(|| user::numbered(name)) {
        Some(user) if user.id == 0 => Err(SeparationError::IsRoot(name.clone())),
        Some(user) if user::is_mapped(&user) => Ok(Some(user)),
        _ => Err(SeparationError::NoUser(name.clone())),
    }
}

/// Starts the helpers and takes the privileges from this process. Returns who does what, the helpers, and a sentence on both for the
/// user. `datagrams`: whose port the streams of the network process share.
pub(crate) fn separate(
    separation: &Separation,
    bounds: &Bounds,
    tuner: Tuner,
    datagrams: &[&UdpListener],
) -> Result<(Deputies, Helpers, String), SeparationError> {
    let uid = process::user_id();
    let in_one = |word: String| Ok((Deputies::here(tuner), Helpers::default(), word));
    // It is asked for when there are no files any more.
    cpu::machine();
    match separation {
        Separation::None => return in_one(format!("everything runs as user {uid} in one process")),
        Separation::User(name) if !process::is_root() => return Err(SeparationError::NotRoot(name.clone())),
        Separation::Usual if !process::is_root() => {
            let calls = without_intruders(true)?;
            let word = "without root; values that need it are reported as missing";
            return in_one(format!("everything runs as user {uid} in one process, {word}; {calls}"));
        }
        _ => {}
    }
    let user = chosen(separation)?;
    if !confine::is_single() {
        return Err(SeparationError::Threads);
    }
    let mut helpers = Helpers::default();
    let tuning = if bounds.allow_tune {
        Tuning::Helper(helpers.start(Role::Tune, bounds)?, bounds.state.join("changes"))
    } else {
        Tuning::Nobody(bounds.state.join("changes"))
    };
    let reading = Reading::Helper(helpers.start(Role::Watch, bounds)?);
    reading.appoint();
    if let Some(user) = &user {
        for listener in datagrams {
            listener.give_to(user).map_err(failed("give the UDP port away"))?;
        }
    }
    let word = renounce(user.as_ref())?;
    let pids = helpers.children.iter().map(|(role, child)| format!("{} (process {})", role.word(), child.id()));
    let word = format!("{word}; helpers as root: {}", pids.collect::<Vec<_>>().join(", "));
    Ok((Deputies { tuning, reading }, helpers, word))
}

/// Takes all privileges from this process; a sentence on what it is now.
fn renounce(user: Option<&User>) -> Result<String, SeparationError> {
    confine::set_limits();
    capabilities::bound(&[]);
    let who = match user {
        Some(user) => {
            user::become_user(user).map_err(failed("become an ordinary user"))?;
            format!("user {} ({})", user.name, user.id)
        }
        None => "root of this user namespace, which has no other user".to_owned(),
    };
    capabilities::keep_only(&[]).map_err(failed("drop capabilities"))?;
    confine::no_new_privileges().map_err(failed("renounce new privileges"))?;
    let files = match confine::files::only(&READ.map(PathBuf::from), &[]).map_err(failed("limit files"))? {
        Enforced::Whole | Enforced::Partly { tcp: true } => "files limited (Landlock)",
        Enforced::Partly { tcp: false } => {
            "files limited (Landlock), connections that it accepted not, since that needs Linux 6.7"
        }
        Enforced::Not => "files not limited, since this kernel has no Landlock",
    };
    let calls = in_words(calls::only_network().map_err(failed("limit system calls"))?);
    Ok(format!("the network process runs as {who} without capabilities, {files}, {calls}"))
}

/// Lets this process gain no privileges, and ends it where it makes a call of an intruder; a sentence on it.
fn without_intruders(watching: bool) -> Result<&'static str, SeparationError> {
    confine::no_new_privileges().map_err(failed("renounce new privileges"))?;
    calls::no_intrusion(watching).map(in_words).map_err(failed("limit system calls"))
}

const fn in_words(seccomp: bool) -> &'static str {
    if seccomp { "system calls limited (seccomp)" } else { "system calls not limited, since there is no seccomp here" }
}

impl Helpers {
    fn start(&mut self, role: Role, bounds: &Bounds) -> Result<Line, SeparationError> {
        let (ours, theirs) = Channel::pair().map_err(failed("start a helper"))?;
        // This very program, also where its file was replaced meanwhile.
        let mut command = process::free_command("/proc/self/exe");
        command.arg0("narrows").args(["helper", role.word()]).env_clear();
        // Standard output is left as it is: a root of one program has no /dev/null.
        command.stdin(Stdio::from(OwnedFd::from(theirs)));
        let child = command.spawn().map_err(SeparationError::Start)?;
        let bounds = serde_json::to_vec(bounds).map_err(|error| SeparationError::Start(error.into()))?;
        ours.send(&bounds, None).map_err(failed("start a helper"))?;
        let line = Line::new(ours);
        self.lines.push(line.clone());
        self.children.push((role, child));
        Ok(line)
    }

    /// Stops the server when a helper ends before it. `lost` gets its role.
    pub(crate) fn watch(&mut self, stop: &watch::Sender<bool>, lost: &Arc<std::sync::OnceLock<Role>>) {
        for (role, mut child) in self.children.drain(..) {
            let (ending, stop, lost) = (self.ending.clone(), stop.clone(), lost.clone());
            let watch = move || {
                let _ = child.wait();
                if !ending.load(Ordering::Relaxed) {
                    let _ = lost.set(role);
                    stop.send_replace(true);
                }
            };
            // Without a thread the orders fail, each with its reason.
            self.watched.extend(std::thread::Builder::new().name("helper-watch".to_owned()).spawn(watch));
        }
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        self.ending.store(true, Ordering::Relaxed);
        self.lines.iter().for_each(Line::close);
        let since = clock::now();
        while self.watched.iter().any(|thread| !thread.is_finished()) && since.elapsed() < END {
            clock::sleep(Duration::from_millis(5));
        }
    }
}

#[cfg(test)]
mod tests;
