//! TCP sockets: listen on one dual-stack port, connect within a time limit with options set before the handshake, peek at the
//! first bytes.

use crate::error::{Error, Result, check};
use crate::raw;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Connections that wait for `accept`; the kernel caps it at `net.core.somaxconn`.
const BACKLOG: libc::c_int = 1024;

/// Listens on a port of all addresses, IPv6 and IPv4 on one socket; on a host without IPv6, on all IPv4 addresses. Port
/// 0 takes a free one.
/// Errors: the port, and the kernel's error: usually that it is in use.
pub fn listen(port: u16) -> Result<TcpListener> {
    listen_everywhere(port, Carried::Plain)
}

/// The same for connections that are carried so.
pub fn listen_everywhere(port: u16, carried: Carried) -> Result<TcpListener> {
    match listen_by(SocketAddr::from((Ipv6Addr::UNSPECIFIED, port)), carried) {
        Err(error) if matches!(error.errno(), Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL)) => {
            listen_by(SocketAddr::from((Ipv4Addr::UNSPECIFIED, port)), carried)
        }
        done => done,
    }
}

/// What carries a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carried {
    Plain,
    /// Multipath TCP where both ends have it, else plain TCP.
    Multipath,
}

/// Listens at one address; the unspecified IPv6 address takes IPv4 connections as well.
/// Errors: the address, and the kernel's error.
pub fn listen_at(address: SocketAddr) -> Result<TcpListener> {
    listen_by(address, Carried::Plain)
}

/// The same for connections that are carried so.
pub fn listen_by(address: SocketAddr, carried: Carried) -> Result<TcpListener> {
    let socket = socket_of(&address, carried)?;
    set_flag(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1, "set SO_REUSEADDR of", &address)?;
    if address.is_ipv6() {
        set_flag(&socket, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 0, "clear IPV6_V6ONLY of", &address)?;
    }
    // A SYN in a victim's name is answered twice, not six times as by default (`reqsk_timer_handler`, net/ipv4/inet_connection_sock.c);
    // a client whose answers are lost repeats its SYN.
    // A listener of Multipath TCP does not have the option.
    if carried == Carried::Plain {
        set_flag(&socket, libc::IPPROTO_TCP, libc::TCP_SYNCNT, 1, "set TCP_SYNCNT of", &address)?;
    }
    bind(&socket, &address)?;
    // SAFETY: listen takes plain numbers.
    check(unsafe { libc::listen(socket.as_raw_fd(), BACKLOG) }, "listen at", address.to_string())?;
    Ok(TcpListener::from(socket))
}

/// Connects within a time limit. `before` sets what must be set before the handshake (receive buffer, MSS, DSCP).
/// The stream is blocking.
/// Errors: the error of `before`, or the address and the kernel's error; `TimedOut` after the limit.
pub fn connect<E: From<Error>>(
    address: SocketAddr,
    limit: Duration,
    before: impl FnOnce(BorrowedFd<'_>) -> std::result::Result<(), E>,
) -> std::result::Result<TcpStream, E> {
    connect_by(address, limit, Carried::Plain, before)
}

/// The same for a connection that is carried so.
pub fn connect_by<E: From<Error>>(
    address: SocketAddr,
    limit: Duration,
    carried: Carried,
    before: impl FnOnce(BorrowedFd<'_>) -> std::result::Result<(), E>,
) -> std::result::Result<TcpStream, E> {
    let socket = socket_of(&address, carried)?;
    before(socket.as_fd())?;
    let stream = TcpStream::from(socket);
    let wrap = |error| Error::new("connect to", address.to_string(), error);
    stream.set_nonblocking(true).map_err(wrap)?;
    let (raw, length) = raw_address(&address);
    // SAFETY: `raw` is a socket address of `length` valid bytes that lives over the call.
    if unsafe { libc::connect(stream.as_raw_fd(), (&raw const raw).cast(), length) } < 0 {
        let error = io::Error::last_os_error();
        if error.raw_os_error() != Some(libc::EINPROGRESS) {
            return Err(wrap(error).into());
        }
        if !poll(stream.as_fd(), libc::POLLOUT, limit).map_err(wrap)? {
            let within = format!("no answer within {} ms", limit.as_millis());
            return Err(wrap(io::Error::new(io::ErrorKind::TimedOut, within)).into());
        }
        if let Some(error) = stream.take_error().map_err(wrap)? {
            return Err(wrap(error).into());
        }
    }
    stream.set_nonblocking(false).map_err(wrap)?;
    Ok(stream)
}

/// Peeks at the first bytes of a stream, waiting up to `limit` for the first one. 0 bytes: the peer closed. It may
/// return fewer bytes than requested; call it again for more.
/// Errors: the kernel's error; `TimedOut` after the limit.
pub fn peek(stream: &TcpStream, bytes: &mut [u8], limit: Duration) -> Result<usize> {
    let wrap = |error| Error::new("peek at", name_of(stream), error);
    if !poll(stream.as_fd(), libc::POLLIN, limit).map_err(wrap)? {
        let within = format!("no byte within {} ms", limit.as_millis());
        return Err(wrap(io::Error::new(io::ErrorKind::TimedOut, within)));
    }
    stream.peek(bytes).map_err(wrap)
}

/// The canonical address: an IPv4 address on an IPv6 socket becomes an IPv4 address.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// `peer's address:port`, for errors; a closed socket has none.
pub fn name_of(stream: &TcpStream) -> String {
    stream.peer_addr().map_or_else(|_| "a closed connection".to_owned(), |address| canonical(address).to_string())
}

/// Waits for events on a descriptor; false after the limit. An interrupted wait continues.
fn poll(descriptor: BorrowedFd<'_>, events: libc::c_short, limit: Duration) -> io::Result<bool> {
    let start = crate::clock::now();
    loop {
        let left = limit.saturating_sub(start.elapsed());
        if raw::poll([(descriptor, events)], Some(left))? != [0] {
            return Ok(true);
        }
        if left.is_zero() {
            return Ok(false);
        }
    }
}

pub(crate) fn tcp_socket(address: &SocketAddr) -> Result<OwnedFd> {
    socket_of(address, Carried::Plain)
}

fn socket_of(address: &SocketAddr, carried: Carried) -> Result<OwnedFd> {
    let family = if address.is_ipv6() { libc::AF_INET6 } else { libc::AF_INET };
    let (protocol, operation) = match carried {
        Carried::Plain => (libc::IPPROTO_TCP, "open a TCP socket for"),
        Carried::Multipath => (libc::IPPROTO_MPTCP, "open a socket of Multipath TCP (net.mptcp.enabled) for"),
    };
    raw::socket(family, libc::SOCK_STREAM, protocol, operation, address.to_string())
}

/// Binds a socket to an address.
pub(crate) fn bind(socket: impl AsFd, address: &SocketAddr) -> Result<()> {
    let (raw, length) = raw_address(address);
    raw::bind(socket, &raw, length as usize, "bind", address.to_string())
}

/// Sets an option that is one number, on a socket for that address.
pub(crate) fn set_flag(
    socket: &OwnedFd,
    level: libc::c_int,
    name: libc::c_int,
    value: libc::c_int,
    operation: &'static str,
    address: &SocketAddr,
) -> Result<()> {
    raw::set_option(socket, level, name, &value, operation, || address.to_string())
}

/// The kernel's form of an address and its length.
pub(crate) fn raw_address(address: &SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all zero bytes are a valid sockaddr_storage.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let length = match address.ip() {
        IpAddr::V4(ip) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(ip.octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_storage is at least as large and as aligned as every socket address.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(raw) };
            size_of::<libc::sockaddr_in>()
        }
        IpAddr::V6(ip) => {
            let (flow, scope) = match address {
                SocketAddr::V6(v6) => (v6.flowinfo(), v6.scope_id()),
                SocketAddr::V4(_) => (0, 0),
            };
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: flow,
                sin6_addr: libc::in6_addr { s6_addr: ip.octets() },
                sin6_scope_id: scope,
            };
            // SAFETY: as above.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(raw) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, length as libc::socklen_t)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn plain(address: SocketAddr) -> Result<TcpStream> {
        connect(address, Duration::from_secs(5), |_| Ok::<(), Error>(()))
    }

    #[test]
    fn one_port_takes_both_families() {
        let listener = listen(0).unwrap();
        let port = listener.local_addr().unwrap().port();
        for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
            let stream = match plain(SocketAddr::from((ip, port))) {
                // A machine without IPv6 has the IPv4 half only.
                Err(error) if ip.is_ipv6() && error.errno() == Some(libc::EADDRNOTAVAIL) => continue,
                done => done.unwrap(),
            };
            let (accepted, peer) = listener.accept().unwrap();
            assert_eq!(canonical(peer), stream.local_addr().unwrap());
            assert_eq!(canonical(accepted.local_addr().unwrap()).ip(), ip);
        }
    }

    #[test]
    fn a_port_in_use_is_named() {
        let listener = listen(0).unwrap();
        let port = listener.local_addr().unwrap().port();
        let error = listen(port).unwrap_err();
        assert_eq!(error.errno(), Some(libc::EADDRINUSE));
        assert!(error.to_string().contains(&format!(":{port}")), "{error}");
    }

    #[test]
    fn a_refused_connection_is_named() {
        let port = listen(0).unwrap().local_addr().unwrap().port();
        let error = plain(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).unwrap_err();
        assert_eq!(error.errno(), Some(libc::ECONNREFUSED));
        assert_eq!(error.object, format!("127.0.0.1:{port}"));
    }

    #[test]
    fn peeking_consumes_nothing_and_is_limited() {
        let listener = listen(0).unwrap();
        let port = listener.local_addr().unwrap().port();
        let mut stream = plain(SocketAddr::from((Ipv4Addr::LOCALHOST, port))).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        let mut bytes = [0; 8];
        let error = peek(&accepted, &mut bytes, Duration::from_millis(20)).unwrap_err();
        assert_eq!(error.source.kind(), io::ErrorKind::TimedOut);
        stream.write_all(b"GET ").unwrap();
        for _ in 0..2 {
            assert_eq!(peek(&accepted, &mut bytes, Duration::from_secs(5)).unwrap(), 4);
            assert_eq!(&bytes[..4], b"GET ");
        }
        drop(stream);
    }
}
