//! Ctrl-C and `SIGTERM`: the first requests a stop, the second ends the process.

use crate::{Error, Result, clock};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn on_signal(signal: libc::c_int) {
    if ASKED.swap(true, Ordering::SeqCst) {
        // SAFETY: _exit is async-signal-safe. Whoever asks twice does not want to wait for the tidying; the journal stays.
        unsafe { libc::_exit(128 + signal) };
    }
}

/// Calls `then` once, on a thread of its own, soon after the first `SIGINT` or `SIGTERM`.
///
/// # Errors
/// The kernel rejects the handler.
pub fn on_interrupt(then: impl FnOnce() + Send + 'static) -> Result<()> {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        // SAFETY: the handler touches an atomic and calls _exit, both async-signal-safe.
        let before = unsafe { libc::signal(signal, on_signal as *const () as libc::sighandler_t) };
        if before == libc::SIG_ERR {
            return Err(Error::last("handle signal", signal.to_string()));
        }
    }
    std::thread::Builder::new()
        .name("narrows-signals".to_owned())
        .spawn(move || {
            while !ASKED.load(Ordering::SeqCst) {
                clock::sleep(Duration::from_millis(20));
            }
            then();
        })
        .map(drop)
        .map_err(|error| Error::new("start", "the thread for signals", error))
}
