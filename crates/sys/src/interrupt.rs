//! Ctrl-C and `SIGTERM`: the first requests a stop, a later one ends the process.

use crate::{Error, Result, clock};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// When the first signal came, in nanoseconds of the monotonic clock; 0 before it.
static ASKED_NS: AtomicU64 = AtomicU64::new(0);

/// A signal that comes so soon after the first is the same request: `timeout -s INT` and terminals send it to the process and to its group.
const SAME_NS: u64 = 500_000_000;

extern "C" fn on_signal(signal: libc::c_int) {
    let now_ns = clock::monotonic_ns().max(1);
    let Err(first_ns) = ASKED_NS.compare_exchange(0, now_ns, Ordering::SeqCst, Ordering::SeqCst) else { return };
    if now_ns.saturating_sub(first_ns) >= SAME_NS {
        // SAFETY: _exit is async-signal-safe. Whoever asks twice does not want to wait for the tidying; the journal stays.
        unsafe { libc::_exit(128 + signal) };
    }
}

/// Calls `then` once, on a thread of its own, soon after the first `SIGINT` or `SIGTERM`.
/// Errors: the kernel rejects the handler.
pub fn on_interrupt(then: impl FnOnce() + Send + 'static) -> Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler reads a clock, touches an atomic and calls _exit, all async-signal-safe.
        let before = unsafe { libc::signal(signal, on_signal as *const () as libc::sighandler_t) };
        if before == libc::SIG_ERR {
            return Err(Error::last("handle signal", signal.to_string()));
        }
    }
    std::thread::Builder::new()
        .name("narrows-signals".to_owned())
        .spawn(move || {
            while ASKED_NS.load(Ordering::SeqCst) == 0 {
                clock::sleep(Duration::from_millis(20));
            }
            then();
        })
        .map(drop)
        .map_err(|error| Error::new("start", "the thread for signals", error))
}
