//! The system calls that this process may make, by seccomp filters: those of a network server with threads are allowed, those that an
//! intruder wants end the process, and all others do not exist (`ENOSYS`, which libraries expect of older kernels).
//!
//! Calls without a condition cost nothing more: the kernel keeps a bitmap of them (Linux 5.11).
//!
//! Source: kernel `Documentation/userspace-api/seccomp_filter.rst`, seccomp(2).

use crate::{Error, Result};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::collections::BTreeMap;
use std::io;

/// Allowed whatever the arguments.
const ALLOWED: &[libc::c_long] = &[
    // The data path.
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_sendto,
    libc::SYS_recvfrom,
    libc::SYS_sendmsg,
    libc::SYS_recvmsg,
    libc::SYS_sendmmsg,
    libc::SYS_recvmmsg,
    libc::SYS_ppoll,
    libc::SYS_pselect6,
    libc::SYS_epoll_pwait,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_create1,
    libc::SYS_eventfd2,
    libc::SYS_futex,
    libc::SYS_clock_gettime,
    libc::SYS_clock_getres,
    libc::SYS_clock_nanosleep,
    libc::SYS_nanosleep,
    libc::SYS_gettimeofday,
    libc::SYS_timerfd_create,
    libc::SYS_timerfd_settime,
    libc::SYS_timerfd_gettime,
    libc::SYS_sched_yield,
    libc::SYS_restart_syscall,
    // Sockets.
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_setsockopt,
    libc::SYS_getsockopt,
    libc::SYS_shutdown,
    // Files, as far as Landlock lets them be opened.
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_close_range,
    libc::SYS_dup,
    libc::SYS_dup3,
    libc::SYS_pipe2,
    libc::SYS_fcntl,
    libc::SYS_fstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_lseek,
    libc::SYS_pread64,
    libc::SYS_readlinkat,
    libc::SYS_getdents64,
    libc::SYS_getcwd,
    libc::SYS_faccessat,
    libc::SYS_faccessat2,
    // Pages that are sent by reference: files without a name.
    libc::SYS_memfd_create,
    libc::SYS_ftruncate,
    libc::SYS_tee,
    libc::SYS_splice,
    // Memory.
    libc::SYS_mmap,
    libc::SYS_mprotect,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_membarrier,
    // Threads, signals and the process itself.
    libc::SYS_set_robust_list,
    libc::SYS_set_tid_address,
    libc::SYS_rseq,
    libc::SYS_sigaltstack,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_getcpu,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_getscheduler,
    libc::SYS_sched_setscheduler,
    libc::SYS_getpriority,
    libc::SYS_setpriority,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_getppid,
    libc::SYS_getuid,
    libc::SYS_geteuid,
    libc::SYS_getgid,
    libc::SYS_getegid,
    libc::SYS_getrandom,
    libc::SYS_getrusage,
    libc::SYS_uname,
    libc::SYS_sysinfo,
    libc::SYS_wait4,
    libc::SYS_waitid,
    libc::SYS_pidfd_open,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// The same by their older names, which not every architecture has.
#[cfg(target_arch = "x86_64")]
const ALLOWED_HERE: &[libc::c_long] = &[
    libc::SYS_poll,
    libc::SYS_select,
    libc::SYS_epoll_wait,
    libc::SYS_open,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_access,
    libc::SYS_readlink,
    libc::SYS_dup2,
    libc::SYS_time,
    libc::SYS_arch_prctl,
];
#[cfg(not(target_arch = "x86_64"))]
const ALLOWED_HERE: &[libc::c_long] = &[];

/// What no part of narrows does there, and an intruder would: the process ends.
const DEADLY: &[libc::c_long] = &[
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    libc::SYS_fsopen,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_fsconfig,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_setfsuid,
    libc::SYS_setfsgid,
    libc::SYS_capset,
    libc::SYS_personality,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_acct,
    libc::SYS_quotactl,
];

/// Of these, what the helper that watches needs: programs and counters of the kernel, the namespaces of other processes, a view of
/// tracefs where it is not mounted, and namespaces of its own, in which a generator is tried before a benchmark.
const WATCHING: &[libc::c_long] = &[
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_sethostname,
    libc::SYS_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
];

/// Lengths of the addresses of IPv4 and IPv6.
const ADDRESS: [u64; 2] = [size_of::<libc::sockaddr_in>() as u64, size_of::<libc::sockaddr_in6>() as u64];

/// What a new thread shares, and the namespaces that it must not make.
const CLONE: u64 = (libc::CLONE_THREAD
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWNET
    | libc::CLONE_NEWNS
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWUTS) as u64;

/// Flags of descriptors, what waits in a queue, and whether it is a terminal; not what types into a terminal.
const REQUESTS: [u64; 8] = [0x5421, 0x5451, 0x5450, 0x541B, 0x5411, 0x894B, 0x5401, 0x5413];

/// Names, the slack of timers, names of memory.
const PRCTL: [u64; 5] = [15, 16, 29, 30, 0x5356_4d41];

fn failed(error: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::new("restrict", "system calls by seccomp", io::Error::other(error))
}

/// A rule for each value of an argument.
fn one_of(argument: u8, values: &[u64]) -> Result<Vec<SeccompRule>> {
    let rule = |value: &u64| when(&[(argument, SeccompCmpOp::Eq, *value)]);
    values.iter().map(rule).collect()
}

/// A rule of which each condition holds: argument, operator, value.
fn when(conditions: &[(u8, SeccompCmpOp, u64)]) -> Result<SeccompRule> {
    let condition = |(argument, operator, value): &(u8, SeccompCmpOp, u64)| {
        SeccompCondition::new(*argument, SeccompCmpArgLen::Dword, operator.clone(), *value)
    };
    let conditions = conditions.iter().map(condition).collect::<std::result::Result<_, _>>().map_err(failed)?;
    SeccompRule::new(conditions).map_err(failed)
}

/// `None`: this architecture is not known here.
fn compile(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<Option<BpfProgram>> {
    let Ok(architecture) = std::env::consts::ARCH.try_into() else { return Ok(None) };
    let filter = SeccompFilter::new(rules, otherwise, matched, architecture).map_err(failed)?;
    filter.try_into().map(Some).map_err(failed)
}

fn numbers<'a>(of: impl IntoIterator<Item = &'a libc::c_long>) -> BTreeMap<i64, Vec<SeccompRule>> {
    #[allow(clippy::useless_conversion)] // a `long` of 32 bits elsewhere
    of.into_iter().map(|number| (i64::from(*number), Vec::new())).collect()
}

/// Installs a filter; `false`: there is no seccomp here.
fn install(program: Option<BpfProgram>) -> Result<bool> {
    let Some(program) = program else { return Ok(false) };
    let length = u16::try_from(program.len()).map_err(failed)?;
    let filter = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut().cast() };
    // The mitigation for programs that run foreign code, which older kernels add, would slow this one down for nothing.
    let flags = libc::SECCOMP_FILTER_FLAG_TSYNC | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // SAFETY: the program lives through the call, which reads it; its instructions have the layout of `sock_filter`.
    let set = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const filter) };
    match Error::last("restrict", "system calls by seccomp") {
        _ if set == 0 => Ok(true),
        error if error.errno() == Some(libc::ENOSYS) => Ok(false),
        error => Err(error),
    }
}

fn without_intruders(kept: &[libc::c_long]) -> Result<bool> {
    let deadly = numbers(DEADLY.iter().filter(|number| !kept.contains(number)));
    install(compile(deadly, SeccompAction::Allow, SeccompAction::KillProcess)?)
}

/// From here on what an intruder wants ends this process, also as root; `watching` leaves the calls that readings of the host need.
/// Needs [`super::no_new_privileges`]. Returns whether there is seccomp here.
/// Errors: there is, and it refuses the filter.
pub fn no_intrusion(watching: bool) -> Result<bool> {
    without_intruders(if watching { WATCHING } else { &[] })
}

/// From here on only the calls of this file can be made. Needs [`super::no_new_privileges`]. Returns whether there is seccomp here.
/// Errors: there is, and it refuses the filters.
pub fn only_network() -> Result<bool> {
    let mut allowed = numbers(ALLOWED.iter().chain(ALLOWED_HERE));
    // Of UDP, of echoes by ICMP, and the two kinds of netlink that are read: TCP connections are accepted, not opened, and behind Unix
    // sockets there are the services of the host.
    let is = |argument: u8, value: libc::c_int| (argument, SeccompCmpOp::Eq, value as u64);
    let datagrams = (1, SeccompCmpOp::MaskedEq(0xf), libc::SOCK_DGRAM as u64);
    let mut sockets = Vec::new();
    for (family, echo) in [(libc::AF_INET, libc::IPPROTO_ICMP), (libc::AF_INET6, libc::IPPROTO_ICMPV6)] {
        for protocol in [0, libc::IPPROTO_UDP, echo] {
            sockets.push(when(&[is(0, family), datagrams.clone(), is(2, protocol)])?);
        }
    }
    for protocol in [libc::NETLINK_ROUTE, libc::NETLINK_SOCK_DIAG] {
        sockets.push(when(&[is(0, libc::AF_NETLINK), is(2, protocol)])?);
    }
    allowed.insert(libc::SYS_socket, sockets);
    allowed.insert(libc::SYS_socketpair, one_of(0, &[libc::AF_UNIX as u64])?);
    // The family of an address cannot be seen. Where Landlock does not know TCP, an accepted connection can still be dissolved
    // (`AF_UNSPEC`) and opened to another address.
    allowed.insert(libc::SYS_connect, one_of(2, &ADDRESS)?);
    // clone3 does not exist, since its flags cannot be seen: libraries take clone instead.
    let thread = when(&[(0, SeccompCmpOp::MaskedEq(CLONE), libc::CLONE_THREAD as u64)])?;
    allowed.insert(libc::SYS_clone, vec![thread]);
    // Signals go to this process alone.
    allowed.insert(libc::SYS_tgkill, one_of(0, &[u64::from(std::process::id())])?);
    allowed.insert(libc::SYS_ioctl, one_of(1, &REQUESTS)?);
    allowed.insert(libc::SYS_prctl, one_of(0, &PRCTL)?);
    // Limits are read, not set.
    let read = SeccompCondition::new(2, SeccompCmpArgLen::Qword, SeccompCmpOp::Eq, 0).map_err(failed)?;
    allowed.insert(libc::SYS_prlimit64, vec![SeccompRule::new(vec![read]).map_err(failed)?]);
    let absent = SeccompAction::Errno(libc::ENOSYS as u32);
    let allowed = compile(allowed, absent, SeccompAction::Allow)?;
    Ok(without_intruders(&[])? && install(allowed)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::{UnixDatagram, UnixStream};
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::Command;

    const INSIDE: &str = "NARROWS_TEST_CALLS";

    /// Whether this is a process for the test alone, which its last call ends. Otherwise such a one has run, and ended so.
    fn inside(test: &str) -> bool {
        if std::env::var_os(INSIDE).is_some() {
            return true;
        }
        let mut inside = Command::new(std::env::current_exe().expect("a test program"));
        let name = format!("confine::calls::tests::{test}");
        let inside = inside.args(["--exact", &name, "--nocapture"]).env(INSIDE, "1").output().expect("it runs");
        assert_eq!(inside.status.signal(), Some(libc::SIGSYS), "{inside:?}");
        false
    }

    /// The error of a call.
    fn errno(result: libc::c_long) -> Option<i32> {
        (result < 0).then(|| io::Error::last_os_error().raw_os_error())?
    }

    #[test]
    fn a_helper_watches_and_a_program_ends_the_process() {
        if !inside("a_helper_watches_and_a_program_ends_the_process") {
            return;
        }
        super::super::no_new_privileges().expect("always allowed");
        assert!(no_intrusion(true).expect("seccomp"));
        // SAFETY: invalid descriptors.
        let entered = unsafe { libc::syscall(libc::SYS_setns, -1, 0) };
        assert_eq!(errno(entered), Some(libc::EBADF));
        // SAFETY: no flags.
        assert_eq!(errno(unsafe { libc::syscall(libc::SYS_unshare, 0) }), None);
        let _ = Command::new("true").exec();
    }

    #[test]
    fn a_helper_that_tunes_enters_no_namespace() {
        if !inside("a_helper_that_tunes_enters_no_namespace") {
            return;
        }
        super::super::no_new_privileges().expect("always allowed");
        assert!(no_intrusion(false).expect("seccomp"));
        // SAFETY: an invalid descriptor.
        unsafe { libc::syscall(libc::SYS_setns, -1, 0) };
    }

    #[test]
    fn a_kernel_without_seccomp_is_no_error_and_a_refusal_is_one() {
        for (answer, found) in [(libc::ENOSYS, Some(false)), (libc::EPERM, None)] {
            // Filters bind the thread alone.
            let confined = std::thread::spawn(move || {
                let refused = SeccompAction::Errno(answer as u32);
                let filter = compile(numbers(&[libc::SYS_seccomp]), SeccompAction::Allow, refused);
                seccompiler::apply_filter(&filter.expect("a filter").expect("known")).expect("set");
                [only_network(), no_intrusion(true)].map(Result::ok)
            });
            assert_eq!(confined.join().expect("no panic"), [found; 2], "{answer}");
        }
    }

    #[test]
    fn a_server_works_and_a_program_ends_the_process() {
        if !inside("a_server_works_and_a_program_ends_the_process") {
            return;
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        super::super::no_new_privileges().expect("always allowed");
        assert!(only_network().expect("seccomp"));
        let socket = |family: i32, kind: i32, protocol: i32| {
            // SAFETY: plain numbers.
            errno(unsafe { libc::syscall(libc::SYS_socket, family, kind, protocol) })
        };
        for protocol in [libc::NETLINK_ROUTE, libc::NETLINK_SOCK_DIAG] {
            assert_eq!(socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol), None);
        }
        for protocol in [libc::NETLINK_AUDIT, libc::NETLINK_GENERIC, libc::NETLINK_NETFILTER] {
            assert_eq!(socket(libc::AF_NETLINK, libc::SOCK_RAW, protocol), Some(libc::ENOSYS), "{protocol}");
        }
        for (family, udp_lite) in [(libc::AF_INET, 136), (libc::AF_INET6, 136)] {
            assert_eq!(socket(family, libc::SOCK_DGRAM, udp_lite), Some(libc::ENOSYS));
            assert_eq!(socket(family, libc::SOCK_STREAM, 0), Some(libc::ENOSYS));
        }
        let unspecified = [0_u8; 2];
        // SAFETY: the address lives through the call.
        let dissolved = unsafe { libc::syscall(libc::SYS_connect, 0, unspecified.as_ptr(), unspecified.len()) };
        assert_eq!(errno(dissolved), Some(libc::ENOSYS));
        let mut pair = [0_i32; 2];
        // SAFETY: room for two descriptors.
        let paired =
            unsafe { libc::syscall(libc::SYS_socketpair, libc::AF_TIPC, libc::SOCK_DGRAM, 0, pair.as_mut_ptr()) };
        assert_eq!(errno(paired), Some(libc::ENOSYS));
        let bound = UdpSocket::bind("127.0.0.1:0").expect("UDP");
        bound.connect(bound.local_addr().expect("bound")).expect("connected");
        UnixStream::pair().expect("a pair");
        assert_eq!(std::thread::spawn(|| 7).join().expect("a thread"), 7);
        let absent = |error: io::Error| assert_eq!(error.raw_os_error(), Some(libc::ENOSYS));
        absent(TcpStream::connect(listener.local_addr().expect("bound")).expect_err("no TCP"));
        absent(UnixDatagram::unbound().expect_err("no Unix socket"));
        absent(Command::new("true").spawn().expect_err("no process"));
        // SAFETY: plain numbers; signal 0 is none.
        let signalled = unsafe { libc::syscall(libc::SYS_tgkill, libc::getppid(), libc::getppid(), 0) };
        assert_eq!((signalled, io::Error::last_os_error().raw_os_error()), (-1, Some(libc::ENOSYS)));
        let _ = Command::new("true").exec();
    }
}
