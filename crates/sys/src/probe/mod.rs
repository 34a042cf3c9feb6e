//! Probes of a path with a TTL, without privileges: connected UDP and ICMP echo sockets and TCP connections whose ICMP errors the kernel
//! queues (`IP_RECVERR`).
//!
//! A connected socket keeps its addresses and ports, so that all its probes take the same path of an equal-cost multipath. Nothing is
//! fragmented, and MTUs that the kernel remembers are ignored (`IP_PMTUDISC_PROBE`).

pub mod control;
mod receive;

pub use control::{Control, IcmpError};
pub use receive::{Handshake, Received, wait};

use crate::error::check;
use crate::raw::{self, set_option};
use crate::{Error, Result, net, random};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};

/// Since Linux 5.9 (include/uapi/linux/in.h and in6.h).
const IP_RECVERR_RFC4884: libc::c_int = 26;
const IPV6_RECVERR_RFC4884: libc::c_int = 31;

/// How a send went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    Gone,
    /// Larger than the first link takes.
    TooBig,
    /// This host rejects it: no route, or a filter of its own.
    Refused,
}

/// A socket of one flow to one target.
#[derive(Debug)]
pub struct ProbeSocket {
    fd: OwnedFd,
    ipv4: bool,
    stream: bool,
    /// The identifier of its echo requests, where the kernel sets none: of a raw socket.
    identifier: Option<u16>,
}

impl ProbeSocket {
    /// UDP, from a port (0: one of its own).
    /// Errors: no route to the target, out of descriptors, or another program has the port.
    pub fn udp(port: u16, target: SocketAddr) -> Result<Self> {
        let socket = Self::open(target, libc::SOCK_DGRAM, libc::IPPROTO_UDP, "open a UDP socket for")?;
        if port > 0 {
            // A server's own port has its listener; once connected the socket gets what is of its flow alone.
            net::set_flag(&socket.fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1, "set SO_REUSEPORT for", &target)?;
            net::bind(&socket.fd, &SocketAddr::new(any(target), port))?;
        }
        socket.connect(target)?;
        Ok(socket)
    }

    /// ICMP echo, with an identifier of its own (icmp(7), *ping sockets*); by a raw socket where only that is allowed.
    /// Errors: `net.ipv4.ping_group_range` lacks the groups of this user, who has no `CAP_NET_RAW` either; no route to
    /// the target.
    pub fn echo(target: IpAddr) -> Result<Self> {
        let protocol = if target.is_ipv4() { libc::IPPROTO_ICMP } else { libc::IPPROTO_ICMPV6 };
        let target = SocketAddr::new(target, 0);
        let open = |kind| Self::open(target, kind, protocol, "open an ICMP socket for");
        let socket = match open(libc::SOCK_DGRAM) {
            Err(refused) if refused.errno() == Some(libc::EACCES) => {
                let mut identifier = [0; 2];
                random::fill(&mut identifier)?;
                let socket = open(libc::SOCK_RAW).map_err(|_| refused)?;
                Self { identifier: Some(u16::from_ne_bytes(identifier)), ..socket }
            }
            opened => opened?,
        };
        socket.connect(target)?;
        Ok(socket)
    }

    /// A TCP connection that has begun, from a port (0: any) and with a TTL. It ends with a reset when it is dropped.
    /// Errors: no route to the target, or out of descriptors.
    pub fn tcp(port: u16, target: SocketAddr, ttl: u8) -> Result<Self> {
        let socket = Self::open(target, libc::SOCK_STREAM, libc::IPPROTO_TCP, "open a TCP socket for")?;
        net::set_flag(&socket.fd, libc::SOL_SOCKET, libc::SO_REUSEADDR, 1, "set SO_REUSEADDR for", &target)?;
        net::set_flag(&socket.fd, libc::IPPROTO_TCP, libc::TCP_SYNCNT, 1, "set TCP_SYNCNT for", &target)?;
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        set_option(&socket.fd, libc::SOL_SOCKET, libc::SO_LINGER, &linger, "set SO_LINGER for", || target.to_string())?;
        net::bind(&socket.fd, &SocketAddr::new(any(target), port))?;
        socket.set_ttl(ttl)?;
        match socket.connect(target) {
            // The answer of a near target may come before the call ends.
            Err(error)
                if !matches!(error.errno(), Some(libc::EINPROGRESS | libc::ECONNREFUSED | libc::EHOSTUNREACH)) =>
            {
                Err(error)
            }
            _ => Ok(socket),
        }
    }

    fn open(target: SocketAddr, kind: libc::c_int, protocol: libc::c_int, operation: &'static str) -> Result<Self> {
        let ipv4 = target.is_ipv4();
        let family = if ipv4 { libc::AF_INET } else { libc::AF_INET6 };
        let fd = raw::socket(family, kind | libc::SOCK_NONBLOCK, protocol, operation, target.ip().to_string())?;
        let set = |level, name, value, operation| net::set_flag(&fd, level, name, value, operation, &target);
        if ipv4 {
            set(libc::SOL_IP, libc::IP_RECVERR, 1, "set IP_RECVERR for")?;
            set(libc::SOL_IP, libc::IP_RECVTTL, 1, "set IP_RECVTTL for")?;
            set(libc::SOL_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE, "set IP_MTU_DISCOVER for")?;
            // Older kernels show no MPLS labels.
            let _ = set(libc::SOL_IP, IP_RECVERR_RFC4884, 1, "set IP_RECVERR_RFC4884 for");
        } else {
            set(libc::SOL_IPV6, libc::IPV6_RECVERR, 1, "set IPV6_RECVERR for")?;
            set(libc::SOL_IPV6, libc::IPV6_RECVHOPLIMIT, 1, "set IPV6_RECVHOPLIMIT for")?;
            set(libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE, "set IPV6_MTU_DISCOVER for")?;
            set(libc::SOL_IPV6, libc::IPV6_DONTFRAG, 1, "set IPV6_DONTFRAG for")?;
            let _ = set(libc::SOL_IPV6, IPV6_RECVERR_RFC4884, 1, "set IPV6_RECVERR_RFC4884 for");
            // A label of its own for each connection would be another path for each.
            let _ = set(libc::SOL_IPV6, libc::IPV6_AUTOFLOWLABEL, 0, "set IPV6_AUTOFLOWLABEL for");
        }
        set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1, "set SO_TIMESTAMPNS for")?;
        Ok(Self { fd, ipv4, stream: kind == libc::SOCK_STREAM, identifier: None })
    }

    fn connect(&self, target: SocketAddr) -> Result<()> {
        let (address, length) = net::raw_address(&target);
        // SAFETY: a socket address of `length` valid bytes that lives through the call.
        let result = unsafe { libc::connect(self.fd.as_raw_fd(), (&raw const address).cast(), length) };
        check(result, "find a route to", target.ip().to_string()).map(drop)
    }

    fn set_ttl(&self, ttl: u8) -> Result<()> {
        let (level, name) =
            if self.ipv4 { (libc::SOL_IP, libc::IP_TTL) } else { (libc::SOL_IPV6, libc::IPV6_UNICAST_HOPS) };
        set_option(&self.fd, level, name, &libc::c_int::from(ttl), "set the TTL of", || "a probe".to_owned())
    }

    /// Sends bytes with a TTL. Of an ICMP socket they are the whole message.
    /// Errors: the kernel's error, unless it is about the packet or reports an earlier one.
    pub fn send(&self, ttl: u8, bytes: &[u8]) -> Result<Sent> {
        self.set_ttl(ttl)?;
        let own = self.identifier.map(|identifier| identified(bytes, identifier));
        let bytes = own.as_deref().unwrap_or(bytes);
        // A send may return the error of an earlier probe instead: the queue has it as well.
        let mut last = None;
        for _ in 0..8 {
            // SAFETY: the slice and its length.
            let sent =
                unsafe { libc::send(self.fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), libc::MSG_DONTWAIT) };
            if sent >= 0 {
                return Ok(Sent::Gone);
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EMSGSIZE) if !self.take_error(libc::EMSGSIZE) => return Ok(Sent::TooBig),
                Some(libc::EPERM | libc::EACCES | libc::ENETUNREACH | libc::EHOSTUNREACH) if last.is_some() => {
                    return Ok(Sent::Refused);
                }
                _ => last = Some(error),
            }
        }
        Err(Error::new("send", "a probe", last.unwrap_or_else(io::Error::last_os_error)))
    }

    /// Whether that error was pending on the socket; it no longer is.
    fn take_error(&self, number: libc::c_int) -> bool {
        self.pending_error() == Some(number)
    }

    /// The error of the socket (`SO_ERROR`), which is cleared; `None`: there is none.
    pub fn pending_error(&self) -> Option<i32> {
        let error = raw::option_u32(&self.fd, libc::SOL_SOCKET, libc::SO_ERROR, "read SO_ERROR of", "a probe").ok()?;
        i32::try_from(error).ok().filter(|error| *error != 0)
    }

    /// Its own port or ICMP identifier.
    pub fn port(&self) -> Result<u16> {
        let wrap = |error| Error::new("read the port of", "a probe", error);
        let copy = self.fd.try_clone().map_err(wrap)?;
        // The call reads the name of a socket of any kind.
        Ok(std::net::UdpSocket::from(copy).local_addr().map_err(wrap)?.port())
    }

    /// The largest IP packet that the first link takes, bytes: the kernel names it when it rejects a larger one. At most 65,535.
    pub fn first_link_mtu(&self, largest: &[u8]) -> Option<u32> {
        match self.send(1, largest) {
            Ok(Sent::TooBig) => {
                std::iter::from_fn(|| self.receive()).take(64).filter_map(|it| it.control.local_mtu).last()
            }
            _ => None,
        }
    }
}

/// Any address of the target's family.
const fn any(target: SocketAddr) -> IpAddr {
    if target.is_ipv4() { IpAddr::V4(Ipv4Addr::UNSPECIFIED) } else { IpAddr::V6(Ipv6Addr::UNSPECIFIED) }
}

/// An echo request with its identifier and its checksum (RFC 792; of ICMPv6 the kernel overwrites that).
fn identified(bytes: &[u8], identifier: u16) -> Vec<u8> {
    let mut own = bytes.to_vec();
    if let Some(header) = own.first_chunk_mut::<8>() {
        header[2..4].fill(0);
        header[4..6].copy_from_slice(&identifier.to_be_bytes());
        let word = |pair: &[u8]| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0));
        let mut sum = own.chunks(2).map(word).fold(0_u32, |sum, word| (sum & 0xffff) + (sum >> 16) + word);
        sum = (sum & 0xffff) + (sum >> 16);
        sum += sum >> 16;
        own[2..4].copy_from_slice(&(!sum).to_be_bytes()[2..]);
    }
    own
}

impl AsFd for ProbeSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
