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
    libc::SYS_socketpair,
    libc::SYS_bind,
    libc::SYS_connect,
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
    libc::SYS_sendfile,
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

fn compile(
    rules: BTreeMap<i64, Vec<SeccompRule>>,
    otherwise: SeccompAction,
    matched: SeccompAction,
) -> Result<BpfProgram> {
    let architecture = std::env::consts::ARCH.try_into().map_err(failed)?;
    let filter = SeccompFilter::new(rules, otherwise, matched, architecture).map_err(failed)?;
    filter.try_into().map_err(failed)
}

fn numbers<'a>(of: impl IntoIterator<Item = &'a libc::c_long>) -> BTreeMap<i64, Vec<SeccompRule>> {
    #[allow(clippy::useless_conversion)] // a `long` of 32 bits elsewhere
    of.into_iter().map(|number| (i64::from(*number), Vec::new())).collect()
}

fn install(program: &BpfProgram) -> Result<()> {
    let length = u16::try_from(program.len()).map_err(failed)?;
    let filter = libc::sock_fprog { len: length, filter: program.as_ptr().cast_mut().cast() };
    // The mitigation for programs that run foreign code, which older kernels add, would slow this one down for nothing.
    let flags = libc::SECCOMP_FILTER_FLAG_TSYNC | libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    // SAFETY: the program lives through the call, which reads it; its instructions have the layout of `sock_filter`.
    let set = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &raw const filter) };
    if set == 0 { Ok(()) } else { Err(Error::last("restrict", "system calls by seccomp")) }
}

/// From here on only the calls of this file can be made. Needs [`super::no_new_privileges`].
///
/// # Errors
/// An architecture that is not known here, or a kernel without seccomp filters.
pub fn only_network() -> Result<()> {
    let mut allowed = numbers(ALLOWED.iter().chain(ALLOWED_HERE));
    // Of UDP and netlink: TCP connections are accepted, not opened, and behind Unix sockets there are the services of the host.
    let of = |family: libc::c_int| (0, SeccompCmpOp::Eq, family as u64);
    let datagrams = (1, SeccompCmpOp::MaskedEq(0xf), libc::SOCK_DGRAM as u64);
    let sockets = [
        when(&[of(libc::AF_INET), datagrams.clone()])?,
        when(&[of(libc::AF_INET6), datagrams])?,
        when(&[of(libc::AF_NETLINK)])?,
    ];
    allowed.insert(libc::SYS_socket, sockets.into());
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
    let deadly = compile(numbers(DEADLY), SeccompAction::Allow, SeccompAction::KillProcess)?;
    install(&deadly)?;
    install(&allowed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::unix::net::{UnixDatagram, UnixStream};
    use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
    use std::process::Command;

    const NAME: &str = "confine::calls::tests::a_server_works_and_a_program_ends_the_process";
    const INSIDE: &str = "NARROWS_TEST_CALLS";

    #[test]
    fn a_server_works_and_a_program_ends_the_process() {
        if std::env::var_os(INSIDE).is_none() {
            // In a process of its own, which the last call ends.
            let mut inside = Command::new(std::env::current_exe().expect("a test program"));
            let inside = inside.args(["--exact", NAME, "--nocapture"]).env(INSIDE, "1").output().expect("it runs");
            return assert_eq!(inside.status.signal(), Some(libc::SIGSYS), "{inside:?}");
        }
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        super::super::no_new_privileges().expect("always allowed");
        only_network().expect("seccomp");
        UdpSocket::bind("127.0.0.1:0").expect("UDP");
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
