//! The helper's process: it takes channels from the network process until that one ends, and gives each a thread.

use super::order::{Bounds, MAX_ORDER, MAX_ORDERS, Role};
use super::tuning::Tunes;
use super::watching::Watches;
use crate::tune::Tuner;
use narrows_sys::channel::Channel;
use narrows_sys::confine::capabilities::{self, Capability};
use narrows_sys::{clock, confine, files};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// For the order to follow its channel.
const ORDER: Duration = Duration::from_secs(10);
/// For what is being carried out when the network process ends.
const END: Duration = Duration::from_secs(10);

/// What each helper keeps of root's capabilities. Files of other users: the state directory may be one's.
const fn kept(role: Role) -> &'static [Capability] {
    match role {
        Role::Tune => &[Capability::NetAdmin, Capability::DacOverride],
        Role::Watch => &[
            Capability::NetAdmin,
            Capability::NetRaw,
            Capability::NetBindService,
            Capability::Bpf,
            Capability::Perfmon,
            Capability::SysPtrace,
            Capability::SysNice,
            Capability::SysAdmin,
            Capability::SysChroot,
            Capability::SysResource,
            Capability::IpcLock,
            Capability::DacReadSearch,
        ],
    }
}

enum Work {
    Tune(Tunes),
    Watch(Watches),
}

/// The life of a helper: a process whose standard input is its end of the line. Returns when the network process has ended, and what
/// that one had changed is undone.
/// Errors: it was not started by `narrows serve`, or it cannot drop its privileges, for example on a kernel without
/// seccomp or Landlock.
pub fn run(role: Role) -> narrows_sys::Result<()> {
    let line = Channel::of_standard_input()?;
    // Those of a terminal or of systemd go to the whole group; this process ends after the one that it works for.
    confine::ignore_ends();
    capabilities::keep_only(kept(role))?;
    confine::no_new_privileges()?;
    let Some((bounds, _)) = line.receive(MAX_ORDER)? else { return Ok(()) };
    let bounds: Bounds = serde_json::from_slice(&bounds)
        .map_err(|error| narrows_sys::Error::new("read", "the bounds of a helper", error.into()))?;
    confine(role, &bounds)?;
    serve(&line, role, bounds);
    Ok(())
}

/// Takes from a helper what its orders do not need. The files of the one that watches are not limited: Landlock would keep it from the
/// descriptors of other processes (`/proc/PID/fd`), by which it finds the owners of sockets.
fn confine(role: Role, bounds: &Bounds) -> narrows_sys::Result<()> {
    if role == Role::Tune {
        let journal = bounds.state.join("changes");
        files::make_directory(&journal)?;
        let read = ["/proc", "/sys"].map(PathBuf::from);
        confine::files::only(&read, &[journal, PathBuf::from("/proc/sys/net")])?;
    }
    confine::calls::no_intrusion(role == Role::Watch).map(drop)
}

/// Carries out orders until the line ends.
pub(super) fn serve(line: &Channel, role: Role, bounds: Bounds) {
    let work = Arc::new(match role {
        Role::Tune => Work::Tune(Tunes::new(Tuner::new(&bounds.state, "serve"), bounds.allow_tune)),
        Role::Watch => Work::Watch(Watches::new(bounds)),
    });
    // What is no message ends the line as well: only a broken process sends it.
    while let Ok(Some((_, descriptor))) = line.receive(0) {
        // Each thread has a share of the work.
        if Arc::strong_count(&work) <= MAX_ORDERS
            && let Some(channel) = descriptor
        {
            let work = work.clone();
            let attend = move || attend(&work, channel);
            // Without a thread the channel is closed, which is an answer.
            let _ = std::thread::Builder::new().name("order".to_owned()).spawn(attend);
        }
    }
    line.close();
    if let Work::Tune(tunes) = &*work {
        tunes.end().iter().for_each(|sentence| crate::say(sentence));
    }
    let since = clock::now();
    while Arc::strong_count(&work) > 1 && since.elapsed() < END {
        clock::sleep(Duration::from_millis(10));
    }
}

fn attend(work: &Work, channel: OwnedFd) {
    let channel = Channel::from(channel);
    if channel.set_limit(Some(ORDER)).is_ok() {
        match work {
            Work::Tune(tunes) => tunes.attend(&channel),
            Work::Watch(watches) => watches.attend(&channel),
        }
    }
    channel.close();
}
