//! A TCP socket's options, its state under load, and the calls that move data. All take a connected or connecting socket.

use crate::deputy::{self, Wish};
use crate::error::{Result, check};
use crate::raw::{option_bytes, option_u32, set_option};
use narrows_model::{BufferLock, SocketMemory, TcpInfo};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::time::Duration;

/// `include/uapi/linux/tcp.h`, since Linux 6.15; not in libc.
const TCP_RTO_MAX_MS: libc::c_int = 44;
/// `struct tcp_info` has 280 bytes in 6.18; this leaves room for later fields.
const TCP_INFO_ROOM: usize = 512;

/// Sets the send buffer (`SO_SNDBUF`). The kernel doubles it for overhead, caps it at `net.core.wmem_max` and stops
/// autotuning.
pub fn set_send_buffer(socket: impl AsFd, bytes: u32) -> Result<()> {
    set_int(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, bytes, "set SO_SNDBUF to")
}

/// Sets the receive buffer (`SO_RCVBUF`). The kernel doubles it for overhead, caps it at `net.core.rmem_max` and stops
/// autotuning.
pub fn set_receive_buffer(socket: impl AsFd, bytes: u32) -> Result<()> {
    set_int(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, bytes, "set SO_RCVBUF to")
}

/// Gives a listening socket, and so the connections that it accepts, buffers to begin with as a socket that is made now gets them from
/// `tcp_rmem` and `tcp_wmem`: it keeps those of its own beginning otherwise. Autotuning goes on (`SO_BUF_LOCK`).
/// Errors: before Linux 5.15, where nothing unlocks a buffer that was set; the buffers stay.
pub fn set_initial_buffers(listener: impl AsFd, receive_bytes: u32, send_bytes: u32) -> Result<()> {
    let fd = listener.as_fd();
    get_u32(fd, libc::SOL_SOCKET, libc::SO_BUF_LOCK, "SO_BUF_LOCK")?;
    // The kernel doubles what is set.
    set_receive_buffer(fd, receive_bytes / 2)?;
    set_send_buffer(fd, send_bytes / 2)?;
    set_int(fd, libc::SOL_SOCKET, libc::SO_BUF_LOCK, 0, "set SO_BUF_LOCK to")
}

/// The send buffer's limit in bytes of kernel memory.
pub fn send_buffer(socket: impl AsFd) -> Result<u32> {
    get_u32(socket.as_fd(), libc::SOL_SOCKET, libc::SO_SNDBUF, "SO_SNDBUF")
}

/// The core that took in the last packet of a connection (`SO_INCOMING_CPU`, socket(7)); `None` where the kernel does not say.
pub fn incoming_cpu(socket: impl AsFd) -> Option<u32> {
    get_u32(socket.as_fd(), libc::SOL_SOCKET, libc::SO_INCOMING_CPU, "SO_INCOMING_CPU").ok()
}

/// The receive buffer's limit in bytes of kernel memory.
pub fn receive_buffer(socket: impl AsFd) -> Result<u32> {
    get_u32(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, "SO_RCVBUF")
}

/// Retransmits without waiting ever longer on a connection with little traffic that must survive an overload: a timeout is a second at most
/// (Linux 6.15 and later), under BBR where it may be chosen, since a loss-based congestion control has a window of one or two segments on
/// a path that others overload. Older kernels retransmit at an even pace six times (`TCP_THIN_LINEAR_TIMEOUTS`, kernel
/// Documentation/networking/tcp-thin.rst), under Reno, since they treat a connection as thin only after slow start
/// (`tcp_stream_is_thin`), which never ends with BBR.
/// Errors: the kernel's error for the pace.
pub fn set_thin(socket: impl AsFd) -> Result<()> {
    let bounded = set_int(socket.as_fd(), libc::IPPROTO_TCP, TCP_RTO_MAX_MS, 1_000, "set TCP_RTO_MAX_MS to").is_ok();
    if !(bounded && set_congestion_control(&socket, "bbr").is_ok()) {
        let _ = set_congestion_control(&socket, "reno");
    }
    set_int(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_THIN_LINEAR_TIMEOUTS, 1, "set TCP_THIN_LINEAR_TIMEOUTS to")
}

/// Ends a connection whose peer acknowledges nothing for this long, though there is something to acknowledge
/// (`TCP_USER_TIMEOUT`, tcp(7)); without it the kernel tries for about a quarter of an hour.
pub fn set_user_timeout(socket: impl AsFd, time: std::time::Duration) -> Result<()> {
    let ms = u32::try_from(time.as_millis()).unwrap_or(i32::MAX as u32);
    set_int(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, ms, "set TCP_USER_TIMEOUT to")
}

/// Probes a silent connection, so that one whose peer is gone ends after about `idle` and five seconds (`SO_KEEPALIVE`, tcp(7)).
pub fn set_keep_alive(socket: impl AsFd, idle: std::time::Duration) -> Result<()> {
    let (socket, idle_s) = (socket.as_fd(), u32::try_from(idle.as_secs()).unwrap_or(60).max(1));
    set_int(socket, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, idle_s, "set TCP_KEEPIDLE to")?;
    set_int(socket, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, 1, "set TCP_KEEPINTVL to")?;
    set_int(socket, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, 5, "set TCP_KEEPCNT to")?;
    set_int(socket, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1, "set SO_KEEPALIVE to")
}

/// Which buffers are fixed (`SO_BUF_LOCK`, Linux 5.15).
/// Errors: the kernel's error: older kernels do not have the option.
pub fn buffer_lock(socket: impl AsFd) -> Result<BufferLock> {
    let bits = get_u32(socket.as_fd(), libc::SOL_SOCKET, libc::SO_BUF_LOCK, "SO_BUF_LOCK")?;
    Ok(BufferLock { send: bits & 1 != 0, receive: bits & 2 != 0 })
}

/// Chooses the congestion control (`TCP_CONGESTION`).
/// Errors: the kernel's error: `ENOENT` for an unknown name, `EPERM` for one that needs privileges.
pub fn set_congestion_control(socket: impl AsFd, name: &str) -> Result<()> {
    let bytes = name.as_bytes();
    // SAFETY: the pointer and the length are of one slice.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_CONGESTION,
            bytes.as_ptr().cast(),
            bytes.len() as libc::socklen_t,
        )
    };
    match check(result, "set TCP_CONGESTION to", name) {
        Err(error) if error.errno() == Some(libc::EPERM) => {
            let wish = Wish::CongestionControl(name.to_owned());
            if deputy::ask(&socket, &wish) { Ok(()) } else { Err(error) }
        }
        set => set.map(drop),
    }
}

/// The congestion control in use.
pub fn congestion_control(socket: impl AsFd) -> Result<String> {
    let mut bytes = [0u8; 16];
    let length = get_bytes(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, &mut bytes, "TCP_CONGESTION")?;
    let text = &bytes[..length];
    let end = text.iter().position(|&byte| byte == 0).unwrap_or(length);
    Ok(String::from_utf8_lossy(&text[..end]).into_owned())
}

/// Limits the segment size of both directions (`TCP_MAXSEG`); works before the handshake only.
pub fn set_max_segment(socket: impl AsFd, bytes: u16) -> Result<()> {
    set_int(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_MAXSEG, u32::from(bytes), "set TCP_MAXSEG to")
}

/// Sets the DSCP (0 to 63) of sent packets, for both address families.
pub fn set_dscp(socket: impl AsFd, dscp: u8) -> Result<()> {
    let (socket, class) = (socket.as_fd(), u32::from(dscp) << 2);
    // An IPv6 socket may carry IPv4 (mapped addresses): it has a mark for each.
    if get_u32(socket, libc::SOL_SOCKET, libc::SO_DOMAIN, "SO_DOMAIN")? == libc::AF_INET6 as u32 {
        set_int(socket, libc::IPPROTO_IPV6, libc::IPV6_TCLASS, class, "set IPV6_TCLASS to")?;
    }
    set_int(socket, libc::IPPROTO_IP, libc::IP_TOS, class, "set IP_TOS to")
}

/// The current DSCP; `ipv6` selects which of the two marks to read.
pub fn dscp(socket: impl AsFd, ipv6: bool) -> Result<u8> {
    let class = if ipv6 {
        get_u32(socket.as_fd(), libc::IPPROTO_IPV6, libc::IPV6_TCLASS, "IPV6_TCLASS")?
    } else {
        get_u32(socket.as_fd(), libc::IPPROTO_IP, libc::IP_TOS, "IP_TOS")?
    };
    Ok(((class & 0xFF) >> 2) as u8)
}

/// Caps the pacing rate (`SO_MAX_PACING_RATE`, 64 bits wide).
pub fn set_max_pacing(socket: impl AsFd, bytes_per_s: u64) -> Result<()> {
    let (name, object) = (libc::SO_MAX_PACING_RATE, || format!("{bytes_per_s} bytes/s"));
    set_option(socket.as_fd(), libc::SOL_SOCKET, name, &bytes_per_s, "set SO_MAX_PACING_RATE to", object)
}

/// The cap on the pacing rate in bytes per second; all ones: none.
pub fn max_pacing(socket: impl AsFd) -> Result<u64> {
    let mut bytes = [0u8; 8];
    get_bytes(socket.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &mut bytes, "SO_MAX_PACING_RATE")?;
    Ok(u64::from_ne_bytes(bytes))
}

/// Makes the next close abortive (`SO_LINGER` with zero time): queued data is dropped and the peer gets a reset.
pub fn abort_on_close(socket: impl AsFd) -> Result<()> {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    set_option(socket.as_fd(), libc::SOL_SOCKET, libc::SO_LINGER, &linger, "set SO_LINGER to", || "0".to_owned())
}

/// Limits every blocking call on the socket: it returns what it moved so far, or `WouldBlock`. A call that already
/// waits keeps its old limit.
pub fn set_call_limit(socket: impl AsFd, limit: Duration) -> Result<()> {
    let micros = limit.as_micros().max(1);
    let time = libc::timeval {
        tv_sec: i64::try_from(micros / 1_000_000).unwrap_or(i64::MAX),
        tv_usec: (micros % 1_000_000) as i64,
    };
    let object = || format!("{micros} us");
    let socket = socket.as_fd();
    set_option(socket, libc::SOL_SOCKET, libc::SO_SNDTIMEO, &time, "set SO_SNDTIMEO to", object)?;
    set_option(socket, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &time, "set SO_RCVTIMEO to", object)
}

/// Wakes a reader only once this many bytes wait (`SO_RCVLOWAT`), the peer has closed its side, or the call limit is
/// over.
pub fn set_low_water(socket: impl AsFd, bytes: u32) -> Result<()> {
    set_int(socket.as_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes, "set SO_RCVLOWAT to")
}

/// Takes more of the sender only while less than this waits unsent (`TCP_NOTSENT_LOWAT`).
pub fn set_unsent_limit(socket: impl AsFd, bytes: u32) -> Result<()> {
    set_int(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes, "set TCP_NOTSENT_LOWAT to")
}

/// The kernel's state of the connection (`TCP_INFO`), with the length that it returned.
pub fn info(socket: impl AsFd) -> Result<TcpInfo> {
    let mut bytes = [0u8; TCP_INFO_ROOM];
    let length = get_bytes(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes, "TCP_INFO")?;
    Ok(TcpInfo::from_bytes(&bytes[..length]))
}

/// The socket's memory (`SO_MEMINFO`; the order is that of `SK_MEMINFO_*` in include/uapi/linux/sock_diag.h).
pub fn memory(socket: impl AsFd) -> Result<SocketMemory> {
    let mut bytes = [0u8; 64];
    let length = get_bytes(socket.as_fd(), libc::SOL_SOCKET, libc::SO_MEMINFO, &mut bytes, "SO_MEMINFO")?;
    Ok(memory_of(&bytes[..length]))
}

/// The words of `SK_MEMINFO_*`; those that an older kernel does not have are 0.
pub(crate) fn memory_of(bytes: &[u8]) -> SocketMemory {
    let word = |index: usize| {
        let word = bytes.get(index * 4..index * 4 + 4);
        word.and_then(|word| word.try_into().ok()).map_or(0, u32::from_ne_bytes)
    };
    SocketMemory {
        rmem_alloc_bytes: word(0),
        rcvbuf_bytes: word(1),
        wmem_alloc_bytes: word(2),
        sndbuf_bytes: word(3),
        wmem_queued_bytes: word(5),
        backlog_bytes: word(7),
        drops: word(8),
    }
}

/// Bytes received and not yet read (`SIOCINQ`).
pub fn queued_in(socket: impl AsFd) -> Result<u32> {
    queued(socket.as_fd(), libc::FIONREAD, "SIOCINQ")
}

/// Bytes written and not yet acknowledged (`SIOCOUTQ`); a FIN on its way counts as one.
pub fn queued_out(socket: impl AsFd) -> Result<u32> {
    queued(socket.as_fd(), libc::TIOCOUTQ, "SIOCOUTQ")
}

/// Sends bytes, which the kernel copies. Returns how many it accepted; never raises `SIGPIPE`.
/// Errors: the kernel's error; `WouldBlock` after the socket's call limit.
#[inline]
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length are of one slice.
    moved(unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) })
}

/// Receives bytes into a buffer. 0: the peer has closed its side.
/// Errors: the kernel's error; `WouldBlock` after the socket's call limit.
#[inline]
pub fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length are of one slice, which the kernel may fill.
    moved(unsafe { libc::recv(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0) })
}

/// Discards up to `most` received bytes inside the kernel, without copying (`MSG_TRUNC`, tcp(7)). 0: the peer has
/// closed its side.
/// Errors: the kernel's error; `WouldBlock` after the socket's call limit; `EFAULT` from a kernel that would copy.
#[inline]
pub fn discard(socket: BorrowedFd<'_>, most: usize) -> io::Result<usize> {
    // SAFETY: the buffer is null: a kernel that discards does not touch it, and one that would write fails with EFAULT.
    moved(unsafe { libc::recv(socket.as_raw_fd(), std::ptr::null_mut(), most, libc::MSG_TRUNC) })
}

/// The return convention of calls that move bytes.
#[inline]
pub(crate) fn moved(result: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(result).map_err(|_| io::Error::last_os_error())
}

fn set_int(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: u32,
    operation: &'static str,
) -> Result<()> {
    let plain = libc::c_int::try_from(value).unwrap_or(libc::c_int::MAX);
    set_option(socket, level, name, &plain, operation, || value.to_string())
}

fn get_bytes(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    bytes: &mut [u8],
    what: &'static str,
) -> Result<usize> {
    option_bytes(socket, level, name, bytes, "read socket option", what)
}

fn get_u32(socket: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int, what: &'static str) -> Result<u32> {
    option_u32(socket, level, name, "read socket option", what)
}

fn queued(socket: BorrowedFd<'_>, request: libc::Ioctl, what: &'static str) -> Result<u32> {
    let mut value: libc::c_int = 0;
    // SAFETY: both requests write one int.
    check(unsafe { libc::ioctl(socket.as_raw_fd(), request, &raw mut value) }, "read", what)?;
    Ok(u32::try_from(value).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accepted_connections_begin_with_the_buffers_that_were_renewed_and_go_on_tuning() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        set_initial_buffers(&listener, 40_000, 60_000).expect("Linux 5.15");
        let _client = std::net::TcpStream::connect(listener.local_addr().expect("its address")).expect("a connection");
        let (accepted, _) = listener.accept().expect("the other end");
        assert_eq!(
            (receive_buffer(&accepted).ok(), buffer_lock(&accepted).ok()),
            (Some(40_000), Some(BufferLock::default()))
        );
    }
}
