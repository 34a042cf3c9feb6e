//! How the kernel schedules the calling thread: timers, priority, signals.

use crate::deputy::{self, Wish};

/// Sets the calling thread's timer slack to the minimum (50 µs otherwise, `PR_SET_TIMERSLACK`).
pub fn exact_timers() {
    // SAFETY: prctl with plain numbers. It cannot fail for this option.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64) };
}

/// Sets the calling thread's nice value, if permitted; returns whether it was.
pub fn set_nice(nice: i32) -> bool {
    // SAFETY: plain numbers; 0 is the calling thread (on Linux, nice values belong to threads).
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) == 0 }
}

/// The same for another thread, including kernel threads.
pub fn set_nice_of(thread: crate::cpu::ThreadId, nice: i32) -> bool {
    let Ok(id) = libc::id_t::try_from(thread.0) else { return false };
    // SAFETY: plain numbers; a thread that is gone is not found.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, id, nice) == 0 }
}

fn schedule(thread: u32, policy: libc::c_int, priority: libc::c_int) -> bool {
    // By number: musl's `sched_setscheduler` only returns ENOSYS, since POSIX means processes and Linux threads by it. The
    // kernel's `struct sched_param` is one int.
    // SAFETY: 0 is the calling thread; the parameter lives through the call.
    unsafe { libc::syscall(libc::SYS_sched_setscheduler, thread, policy, &raw const priority) == 0 }
}

/// Lets the calling thread run only on an otherwise idle CPU (`SCHED_IDLE`); needs no privilege. Returns whether it
/// succeeded.
pub fn set_idle() -> bool {
    schedule(0, libc::SCHED_IDLE, 0)
}

/// Lets the calling thread run before every ordinary one (`SCHED_RR`, lowest real-time priority); threads that it
/// starts do not inherit that. Returns whether it was permitted: it needs root, a limit (`RLIMIT_RTPRIO`) or a deputy.
pub fn set_real_time() -> bool {
    // SAFETY: gettid has no preconditions.
    let own = || unsafe { libc::gettid() }.unsigned_abs();
    set_real_time_of(0) || deputy::ask_alone(&Wish::RealTime(own()))
}

/// The same for another thread; 0 is the calling one.
pub(crate) fn set_real_time_of(thread: u32) -> bool {
    schedule(thread, libc::SCHED_RR | libc::SCHED_RESET_ON_FORK, 1)
}

/// Undoes [`set_real_time`]. Needs no privilege: an ordinary user, to whom real time was granted by a limit, keeps the flag that
/// threads do not inherit it, which the kernel lets nobody else take back.
pub fn set_ordinary() {
    if !schedule(0, libc::SCHED_OTHER, 0) {
        schedule(0, libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK, 0);
    }
}

/// The signal that ends a call of one thread early; programs and libraries do not use it.
const INTERRUPT: libc::c_int = libc::SIGURG;

extern "C" fn nothing(_: libc::c_int) {}

/// Lets [`interrupt`] end calls of this process's threads: the signal is caught, does nothing, and restarts nothing.
pub fn interruptible() -> crate::Result<()> {
    // SAFETY: zeroes are a valid sigaction: an empty mask and no flags, so calls are not restarted.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    action.sa_sigaction = nothing as extern "C" fn(libc::c_int) as usize;
    // SAFETY: the action outlives the call, and its handler touches nothing.
    let result = unsafe { libc::sigaction(INTERRUPT, &raw const action, std::ptr::null_mut()) };
    crate::error::check(result, "catch", "SIGURG").map(drop)
}

/// Ends the current call of a thread of this process (`EINTR`), if the kernel permits it. A thread between two calls
/// misses it: repeat it until the thread has ended.
pub fn interrupt(thread: crate::cpu::ThreadId) {
    // SAFETY: tgkill takes plain numbers; a thread that has ended is not found, which harms nobody.
    unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), thread.0, INTERRUPT) };
}
