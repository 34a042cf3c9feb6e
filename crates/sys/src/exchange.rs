//! Calls for short request/response messages: non-blocking send and receive, a wait with nanosecond resolution, and
//! connecting in portions of time, so that a thread can stop. All but connecting work on TCP and connected UDP sockets.

use crate::error::{Error, Result};
use crate::net::{raw_address, tcp_socket};
use crate::raw::poll;
use crate::tcp::{moved, set_call_limit};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::time::Duration;

/// Sends what fits now, never blocks, never raises `SIGPIPE`.
/// Errors: the kernel's error; `WouldBlock` if nothing fits.
#[inline]
pub fn send_now(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: the pointer and the length are of one slice.
    moved(unsafe { libc::send(socket.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) })
}

/// Receives what is available now, never blocks. 0 on a TCP socket: the peer has closed its side.
/// Errors: the kernel's error; `WouldBlock` if there is nothing.
#[inline]
pub fn receive_now(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length are of one slice, which the kernel may fill.
    moved(unsafe { libc::recv(socket.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT) })
}

/// What a socket is ready for. One with an error or a closed peer is ready for both: the next call reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ready {
    /// Data can be received.
    pub read: bool,
    /// There is room to send.
    pub write: bool,
}

/// Waits until a socket can be read or, with `write`, written; nothing is ready after `limit` or an interruption.
pub fn wait(socket: BorrowedFd<'_>, write: bool, limit: Duration) -> io::Result<Ready> {
    let events = libc::POLLIN | if write { libc::POLLOUT } else { 0 };
    let [ready] = poll([(socket, events)], Some(limit))?;
    let broken = ready & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0;
    Ok(Ready { read: broken || ready & libc::POLLIN != 0, write: broken || ready & libc::POLLOUT != 0 })
}

/// A TCP socket for [`connect_on`], no call on which lasts longer than `call_limit`.
/// Errors: the kernel's error: usually out of descriptors.
pub fn open(address: SocketAddr, call_limit: Duration) -> Result<TcpStream> {
    let socket = tcp_socket(&address)?;
    set_call_limit(&socket, call_limit)?;
    let socket = TcpStream::from(socket);
    socket.set_nodelay(true).map_err(|error| Error::new("set TCP_NODELAY of", "a TCP socket", error))?;
    Ok(socket)
}

/// Connects, or continues connecting, within the socket's call limit: true once it is connected, false if it must be
/// called again. (A `connect` that `SO_SNDTIMEO` ended continues in the background, and the next one waits for it:
/// net/ipv4/af_inet.c, `__inet_stream_connect`.)
/// Errors: the kernel's error; the socket is then unusable.
pub fn connect_on(socket: &TcpStream, address: SocketAddr) -> io::Result<bool> {
    let (raw, length) = raw_address(&address);
    // SAFETY: `raw` is a socket address of `length` valid bytes that lives over the call.
    if unsafe { libc::connect(socket.as_raw_fd(), (&raw const raw).cast(), length) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EISCONN) => Ok(true),
        Some(libc::EINPROGRESS | libc::EALREADY | libc::EINTR) => Ok(false),
        _ => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{canonical, listen};
    use std::net::{Ipv4Addr, UdpSocket};
    use std::os::fd::AsFd as _;

    const LIMIT: Duration = Duration::from_millis(30);

    #[test]
    fn nonblocking_calls_never_block() {
        let a = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let b = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        a.connect(b.local_addr().expect("bound")).expect("connected");
        let mut bytes = [0; 8];
        assert_eq!(receive_now(b.as_fd(), &mut bytes).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert_eq!(wait(b.as_fd(), false, Duration::from_micros(50)).unwrap(), Ready::default());
        assert_eq!(wait(b.as_fd(), true, LIMIT).unwrap(), Ready { read: false, write: true });
        assert_eq!(send_now(a.as_fd(), b"abc").unwrap(), 3);
        assert_eq!(wait(b.as_fd(), true, LIMIT).unwrap(), Ready { read: true, write: true });
        assert_eq!(receive_now(b.as_fd(), &mut bytes).unwrap(), 3);
    }

    #[test]
    fn connecting_takes_as_many_portions_as_it_needs() {
        let listener = listen(0).expect("a port");
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, listener.local_addr().expect("bound").port()));
        // SAFETY: listen takes plain numbers; on a listening socket it sets the backlog anew.
        assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
        let first = open(address, LIMIT).expect("a socket");
        assert!(connect_on(&first, address).expect("the queue has room for one"));
        let second = open(address, LIMIT).expect("a socket");
        for _ in 0..3 {
            assert!(!connect_on(&second, address).expect("it goes on"));
        }
        // Once there is room the next SYN (after one second) is accepted.
        drop(listener.accept().expect("the first"));
        let mut portions = 0;
        while !connect_on(&second, address).expect("it goes on") {
            portions += 1;
            assert!(portions < 1000, "30 s");
        }
        let (_, peer) = listener.accept().expect("the second");
        assert_eq!(canonical(peer), second.local_addr().expect("connected"));
    }

    #[test]
    fn a_refusal_is_an_error() {
        let port = listen(0).expect("a port").local_addr().expect("bound").port();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let error = connect_on(&open(address, LIMIT).expect("a socket"), address).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
