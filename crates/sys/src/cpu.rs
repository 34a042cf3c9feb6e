//! Threads and CPUs: affinity, names, and the CPU time of another thread of this process.

use crate::error::{Error, Result, check};
use std::sync::OnceLock;

/// The kernel's id of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadId(pub i32);

pub fn this_thread() -> ThreadId {
    // SAFETY: gettid has no preconditions and cannot fail.
    ThreadId(unsafe { libc::gettid() })
}

/// CPU time of a thread of this process so far, user and system, in microseconds; `None` once it has ended.
///
/// The clock's id is derived from the thread's as the kernel defines it (include/linux/posix-timers_types.h,
/// `CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED`), so no handle of the thread needs to be kept.
pub fn thread_cpu_us(thread: ThreadId) -> Option<u64> {
    crate::nanos::read((!thread.0 << 3) | 4 | 2).map(|ns| ns / 1_000)
}

/// How long a thread of this process was ready to run and waited for a CPU so far, in microseconds (the second field of
/// `/proc/self/task/TID/schedstat`, Documentation/scheduler/sched-stats.rst); `None` once it has ended, or where the kernel does not
/// count it.
pub fn thread_wait_us(thread: ThreadId) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{}/schedstat", thread.0)).ok()?;
    text.split_ascii_whitespace().nth(1)?.parse::<u64>().ok().map(|ns| ns / 1_000)
}

/// The CPUs that the calling thread may run on, ascending.
pub fn allowed_cpus() -> Result<Vec<u32>> {
    // SAFETY: all zero bytes are an empty cpu_set_t.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `set` is a valid cpu_set_t of the size given.
    let result = unsafe { libc::sched_getaffinity(0, size_of::<libc::cpu_set_t>(), &raw mut set) };
    check(result, "read CPU affinity of", "this thread")?;
    // SAFETY: CPU_ISSET reads within the set for every number below CPU_SETSIZE.
    Ok((0..libc::CPU_SETSIZE as u32).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu as usize, &set) }).collect())
}

/// Where this process runs, as of the first call.
#[derive(Debug)]
pub struct Machine {
    /// Equal in two processes only where the kernel and the CPUs that they may use are the same: then both ends of a connection can run on
    /// one core.
    pub word: String,
    /// The CPUs that this process may use, ascending, …
    pub cpus: Vec<u32>,
    /// … of each the list of those that share its core, itself included, and of those that share its last cache; empty where the kernel
    /// does not say.
    pub near: Vec<[String; 2]>,
}

/// Where this process runs. A process that gives up its files asks once before.
pub fn machine() -> &'static Machine {
    static MACHINE: OnceLock<Machine> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let cpus = allowed_cpus().unwrap_or_default();
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        let near = |cpu: &u32| {
            let list = |of: &str| {
                let file = format!("/sys/devices/system/cpu/cpu{cpu}/{of}");
                std::fs::read_to_string(file).unwrap_or_default()
            };
            [list("topology/thread_siblings_list"), list("cache/index3/shared_cpu_list")]
        };
        // Nobody learns the kernel's own word.
        let known = format!("{} {cpus:?}", boot.trim());
        let hash = known
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
        // Two processes that know nothing have nothing in common.
        let word = if boot.is_empty() { String::new() } else { format!("{hash:016x}") };
        Machine { word, near: cpus.iter().map(near).collect(), cpus }
    })
}

/// Lets the calling thread run on these CPUs only.
/// Errors: the CPUs, and the kernel's error; a number beyond `CPU_SETSIZE` is invalid.
pub fn pin(cpus: &[u32]) -> Result<()> {
    pin_thread(ThreadId(0), cpus)
}

/// Lets a thread, including kernel threads, run on these CPUs only; thread 0 is the calling one.
pub fn pin_thread(thread: ThreadId, cpus: &[u32]) -> Result<()> {
    // SAFETY: all zero bytes are an empty cpu_set_t.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    for &cpu in cpus {
        if cpu >= libc::CPU_SETSIZE as u32 {
            let invalid = std::io::Error::from_raw_os_error(libc::EINVAL);
            return Err(Error::new("pin this thread to CPU", cpu.to_string(), invalid));
        }
        // SAFETY: the number is within the set, as just checked.
        unsafe { libc::CPU_SET(cpu as usize, &mut set) };
    }
    // SAFETY: `set` is a valid cpu_set_t of the size given.
    let result = unsafe { libc::sched_setaffinity(thread.0, size_of::<libc::cpu_set_t>(), &raw const set) };
    check(result, "pin this thread to CPUs", format!("{cpus:?}")).map(drop)
}

/// Names the calling thread for `ps` and `top`; the kernel keeps the first 15 bytes.
pub fn name_this_thread(name: &str) {
    let mut bytes = [0u8; 16];
    let length = name.len().min(15);
    bytes[..length].copy_from_slice(&name.as_bytes()[..length]);
    // SAFETY: PR_SET_NAME reads a NUL-terminated string of at most 16 bytes; a failure leaves the old name, which harms nobody.
    unsafe { libc::prctl(libc::PR_SET_NAME, bytes.as_ptr()) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_threads_time_is_seen_while_it_lives() {
        let (tell, told) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            while crate::clock::thread_cpu_us() < 3_000 {
                std::hint::spin_loop();
            }
            tell.send(this_thread()).unwrap();
            let _ = ended.recv();
        });
        let id = told.recv().unwrap();
        assert!(thread_cpu_us(id).unwrap() >= 3_000);
        end.send(()).unwrap();
        thread.join().unwrap();
        // The id cannot be reused this soon: the kernel assigns them in turn. A join may return before the kernel has let the thread go.
        let gone = (0..1_000).any(|_| {
            crate::clock::sleep(std::time::Duration::from_millis(1));
            thread_cpu_us(id).is_none()
        });
        assert!(gone);
        assert_eq!(thread_wait_us(id), None);
        assert!(thread_wait_us(this_thread()).is_some());
    }

    #[test]
    fn a_machine_is_known_by_its_kernel_and_cpus() {
        let machine = machine();
        assert_eq!((machine.word.len(), machine.near.len()), (16, machine.cpus.len()));
    }

    #[test]
    fn a_thread_can_be_pinned_to_each_cpu_it_may_use() {
        std::thread::spawn(|| {
            let cpus = allowed_cpus().unwrap();
            let last = *cpus.last().unwrap();
            pin(&[last]).unwrap();
            assert_eq!(allowed_cpus().unwrap(), vec![last]);
            assert!(pin(&[5000]).is_err());
        })
        .join()
        .unwrap();
    }
}
