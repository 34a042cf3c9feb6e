//! What comes back to a probe socket: its error queue, its data, and the end of a TCP handshake.

use super::ProbeSocket;
use super::control::{self, Control};
use crate::raw::{control_bytes, set_control};
use crate::{Error, Result};
use std::io;
use std::os::fd::AsRawFd as _;
use std::time::Duration;

/// Bytes of a message that are kept: an ICMP error quotes at most 1232 (RFC 4443).
const ROOM: usize = 2048;
const CONTROL: usize = 512;

/// How a TCP handshake ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handshake {
    /// SYN and ACK came.
    Accepted,
    /// A reset came.
    Refused,
    /// The kernel gave up.
    Failed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// What the kernel says of it.
    pub control: Control,
    /// The data; of an error, what it quotes behind the headers of the probe (ICMP and TCP: from their header on).
    pub bytes: Vec<u8>,
}

impl ProbeSocket {
    /// The next message, errors first; `None`: nothing is there.
    pub fn receive(&self) -> Option<Received> {
        // A raw socket hears what other programs ask the same target, too.
        let is_own = |it: &Received| {
            let own = |identifier: u16| it.bytes.get(4..6) == Some(&identifier.to_be_bytes()[..]);
            it.control.local_mtu.is_some() || self.identifier.is_none_or(own)
        };
        (0..64).map_while(|_| self.next()).find(is_own)
    }

    fn next(&self) -> Option<Received> {
        if let Ok(error) = self.take(libc::MSG_ERRQUEUE) {
            return Some(error);
        }
        if self.stream {
            return None;
        }
        // A pending error of a probe is returned first, in front of the data.
        (0..8).find_map(|_| match self.take(0) {
            Ok(mut data) => {
                // IPv4 hands its header over to raw sockets.
                if self.identifier.is_some() && self.ipv4 {
                    let header = data.bytes.first().map_or(0, |first| usize::from(first & 15) * 4);
                    data.bytes.drain(..header.min(data.bytes.len()));
                }
                Some(Some(data))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(None),
            Err(_) => None,
        })?
    }

    /// The end of a TCP handshake; `None`: not yet.
    pub fn handshake(&self) -> Option<Handshake> {
        let mut poll = libc::pollfd { fd: self.fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
        // SAFETY: one pollfd that lives through the call; it does not wait.
        if unsafe { libc::poll(&raw mut poll, 1, 0) } < 1 || poll.revents & (libc::POLLOUT | libc::POLLHUP) == 0 {
            return None;
        }
        Some(match self.pending_error() {
            None => Handshake::Accepted,
            Some(libc::ECONNREFUSED) => Handshake::Refused,
            Some(_) => Handshake::Failed,
        })
    }

    fn take(&self, flags: libc::c_int) -> io::Result<Received> {
        let mut bytes = vec![0_u8; ROOM];
        let mut controls = [0_u64; CONTROL / 8];
        let mut part = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: ROOM };
        // SAFETY: all zero bytes are a valid msghdr.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        set_control(&mut header, controls.as_mut_ptr().cast(), CONTROL);
        // SAFETY: the header points to one part and one control buffer, which live through the call, with their lengths.
        let got = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut header, flags | libc::MSG_DONTWAIT) };
        let Ok(got) = usize::try_from(got) else { return Err(io::Error::last_os_error()) };
        bytes.truncate(got.min(ROOM));
        let controls: Vec<u8> = controls.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let used = control_bytes(&header).min(CONTROL);
        Ok(Received { control: control::parse(controls.get(..used).unwrap_or_default()), bytes })
    }
}

/// Waits until one of the sockets has something, or the time is over.
/// Errors: the kernel's error; an interrupted wait is none.
pub fn wait<'a>(sockets: impl Iterator<Item = &'a ProbeSocket>, time: Duration) -> Result<()> {
    let events = |stream| libc::POLLIN | libc::POLLERR | if stream { libc::POLLOUT } else { 0 };
    let poll = |it: &ProbeSocket| libc::pollfd { fd: it.fd.as_raw_fd(), events: events(it.stream), revents: 0 };
    let mut polls: Vec<libc::pollfd> = sockets.map(poll).collect();
    let limit = libc::timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: libc::c_long::from(time.subsec_nanos()),
    };
    let count = polls.len() as libc::nfds_t;
    // SAFETY: the pollfds and the timespec live through the call, their number is given; no signal mask.
    let ready = unsafe { libc::ppoll(polls.as_mut_ptr(), count, &raw const limit, std::ptr::null()) };
    let error = io::Error::last_os_error();
    if ready < 0 && error.kind() != io::ErrorKind::Interrupted {
        return Err(Error::new("wait for", "answers to probes", error));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{SocketAddr, UdpSocket};

    #[test]
    fn a_closed_port_and_an_open_one_answer_through_the_queue_and_as_data() {
        let open = UdpSocket::bind("127.0.0.1:0").expect("loopback");
        let port = open.local_addr().expect("bound").port();
        let probe = ProbeSocket::udp(0, SocketAddr::from(([127, 0, 0, 1], port))).expect("a route");
        probe.send(1, b"to the open").expect("sent");
        let mut bytes = [0; 32];
        let (got, from) = open.recv_from(&mut bytes).expect("received");
        open.send_to(&bytes[..got], from).expect("sent");
        wait([&probe].into_iter(), Duration::from_secs(5)).expect("a wait");
        let data = probe.receive().expect("data");
        assert_eq!((data.bytes.as_slice(), data.control.error), (&b"to the open"[..], None));
        drop(open);
        probe.send(9, b"to the closed").expect("sent");
        wait([&probe].into_iter(), Duration::from_secs(5)).expect("a wait");
        let error = probe.receive().expect("an error");
        let icmp = error.control.error.expect("of ICMP");
        assert_eq!((icmp.kind, icmp.code, error.bytes.as_slice()), (3, 3, &b"to the closed"[..]));
        assert!(error.control.ttl.is_some() && error.control.stamp_ns.is_some(), "{error:?}");
        assert_eq!(probe.receive(), None);
    }

    #[test]
    fn an_echo_is_answered_by_a_raw_socket_as_by_a_ping_socket() {
        for target in ["127.0.0.1", "::1"] {
            let target: std::net::IpAddr = target.parse().expect("an address");
            // Who may open neither has nothing to compare.
            let Ok(probe) = ProbeSocket::echo(target) else { continue };
            let other = ProbeSocket::echo(target).expect("as before");
            let request = [if target.is_ipv4() { 8 } else { 128 }, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5];
            probe.send(9, &request).expect("sent");
            other.send(9, &request).expect("sent");
            let reply = (0..100).find_map(|_| {
                wait([&probe].into_iter(), Duration::from_millis(50)).expect("a wait");
                probe.receive().filter(|it| it.bytes.first() == Some(&if target.is_ipv4() { 0 } else { 129 }))
            });
            let reply = reply.unwrap_or_else(|| panic!("no reply of {target}"));
            assert_eq!(&reply.bytes[6..], &request[6..], "{target}");
            assert!(
                std::iter::from_fn(|| probe.receive()).all(|it| it.bytes[4..6] == reply.bytes[4..6]),
                "own ones only"
            );
        }
    }

    #[test]
    fn a_tcp_target_answers_by_accepting_and_by_refusing() {
        let listener = crate::net::listen_at(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        let target = listener.local_addr().expect("bound");
        for _ in 0..2 {
            let probe = ProbeSocket::tcp(0, target, 3).expect("begun");
            wait([&probe].into_iter(), Duration::from_secs(5)).expect("a wait");
            assert_eq!(probe.handshake(), Some(Handshake::Accepted));
        }
        drop(listener);
        let probe = ProbeSocket::tcp(0, target, 3).expect("begun");
        wait([&probe].into_iter(), Duration::from_secs(5)).expect("a wait");
        assert_eq!((probe.receive(), probe.handshake()), (None, Some(Handshake::Refused)));
    }
}
