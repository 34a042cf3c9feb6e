//! Datagrams with what their IP header said: TTL, DSCP, ECN; with the kernel's time of arrival and the local address. Source: ip(7),
//! ipv6(7), socket(7); net/ipv4/ip_sockglue.c (`ip_cmsg_send`).

use crate::raw::{set_control, set_option};
use crate::{Result, net};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd as _;

/// Room for address, TTL, class and time as control messages, of either family.
const CONTROL: usize = 256;

/// What the kernel told of a datagram beside its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks {
    /// TTL or hop limit on arrival.
    pub ttl: Option<u8>,
    /// Traffic class: DSCP in the upper six bits, ECN in the lower two.
    pub class: Option<u8>,
    /// When it entered the host, ns since the Unix epoch.
    pub at_ns: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Marked {
    /// Its length, even if the buffer was shorter.
    pub bytes: usize,
    /// The sender; an IPv4 address as such, even on an IPv6 socket.
    pub source: Option<SocketAddr>,
    /// See [`Marks`].
    pub marks: Marks,
    to: Option<(IpAddr, u32)>,
}

impl Marked {
    /// The local address it was sent to, with this port, if the socket asks for it.
    pub fn local(&self, port: u16) -> Option<SocketAddr> {
        self.to.map(|(ip, link)| match ip {
            IpAddr::V4(_) => SocketAddr::new(ip, port),
            IpAddr::V6(ip) => with_scope(ip, port, link),
        })
    }
}

/// Asks for the marks of what arrives, and sets TTL or hop limit of what is sent to 255 (RFC 8762 section 4.1).
pub fn ask(socket: &UdpSocket, ipv6: bool) -> Result<()> {
    let mut options = vec![
        (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1),
        (libc::IPPROTO_IP, libc::IP_RECVTTL, 1),
        (libc::IPPROTO_IP, libc::IP_RECVTOS, 1),
        (libc::IPPROTO_IP, libc::IP_TTL, 255),
    ];
    if ipv6 {
        options.extend([
            (libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 1),
            (libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1),
            (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, 255),
        ]);
    }
    options.into_iter().try_for_each(|(level, name, value)| {
        set_option(socket, level, name, &value, "set an option of", || "a UDP socket".to_owned())
    })
}

/// Sets the traffic class of all that a socket sends.
pub fn set_class(socket: &UdpSocket, ipv6: bool, class: u8) -> Result<()> {
    let (level, name) = if ipv6 { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) } else { (libc::IPPROTO_IP, libc::IP_TOS) };
    set_option(socket, level, name, &libc::c_int::from(class), "set the DSCP of", || "a UDP socket".to_owned())
}

/// The next datagram, without blocking.
/// Errors: `WouldBlock`: there is none; `ConnectionRefused`: an ICMP error came for one that was sent; otherwise the
/// kernel's error.
pub fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<Marked> {
    // SAFETY: all zero bytes are a valid sockaddr_storage and a valid msghdr.
    let (mut source, mut message): (libc::sockaddr_storage, libc::msghdr) = unsafe { std::mem::zeroed() };
    // Words, for the alignment of a header.
    let mut control = [0_u64; CONTROL / 8];
    let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
    message.msg_name = (&raw mut source).cast();
    message.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    set_control(&mut message, control.as_mut_ptr().cast(), CONTROL);
    let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
    // SAFETY: the message points to a name, a buffer and a control buffer that live through the call, with their lengths.
    let bytes = crate::tcp::moved(unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) })?;
    let (to, marks) = told(&message);
    // SAFETY: the kernel filled in an address of the family that it names.
    let source = unsafe { address_of(&source) };
    Ok(Marked { bytes, source, marks, to })
}

/// Sends one datagram from this local address with this traffic class, without blocking.
/// Errors: `WouldBlock`: no room now; otherwise the kernel's error.
pub fn send(socket: &UdpSocket, ipv6: bool, bytes: &[u8], to: SocketAddr, from: IpAddr, class: u8) -> io::Result<()> {
    let mapped = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    // An IPv6 socket wants IPv4 addresses mapped.
    let target = match to {
        SocketAddr::V4(v4) if ipv6 => SocketAddr::new(mapped(to.ip()).into(), v4.port()),
        to => to,
    };
    let (mut name, length) = net::raw_address(&target);
    // SAFETY: all zero bytes are a valid msghdr.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    // Words, for the alignment of a header.
    let mut control = [0_u64; CONTROL / 8];
    let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    message.msg_name = (&raw mut name).cast();
    message.msg_namelen = length;
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    set_control(&mut message, control.as_mut_ptr().cast(), CONTROL);
    let class = libc::c_int::from(class);
    // SAFETY: the control buffer is large enough for both messages, aligned, and alive through the call.
    let used = unsafe {
        let first = libc::CMSG_FIRSTHDR(&raw const message);
        let used = if ipv6 {
            let link = if let SocketAddr::V6(v6) = to { v6.scope_id() } else { 0 };
            let info = libc::in6_pktinfo {
                ipi6_addr: libc::in6_addr { s6_addr: mapped(from).octets() },
                ipi6_ifindex: link as _,
            };
            put(first, libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info)
        } else {
            let IpAddr::V4(from) = from else { return Err(io::ErrorKind::InvalidInput.into()) };
            let info = libc::in_pktinfo {
                ipi_ifindex: 0,
                ipi_spec_dst: libc::in_addr { s_addr: u32::from_ne_bytes(from.octets()) },
                ipi_addr: libc::in_addr { s_addr: 0 },
            };
            put(first, libc::IPPROTO_IP, libc::IP_PKTINFO, info)
        };
        let second = first.byte_add(used);
        let (level, name) =
            if to.is_ipv6() { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) } else { (libc::IPPROTO_IP, libc::IP_TOS) };
        used + put(second, level, name, class)
    };
    set_control(&mut message, control.as_mut_ptr().cast(), used);
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: as above.
    crate::tcp::moved(unsafe { libc::sendmsg(socket.as_raw_fd(), &raw const message, flags) }).map(|_| ())
}

/// Writes a control message, and returns the bytes that it takes.
///
/// # Safety
/// There is room for it at an aligned place.
unsafe fn put<T>(at: *mut libc::cmsghdr, level: libc::c_int, kind: libc::c_int, value: T) -> usize {
    let bytes = size_of::<T>() as libc::c_uint;
    // SAFETY: as the caller says.
    unsafe {
        (*at).cmsg_level = level;
        (*at).cmsg_type = kind;
        (*at).cmsg_len = libc::CMSG_LEN(bytes) as _;
        libc::CMSG_DATA(at).cast::<T>().write_unaligned(value);
        libc::CMSG_SPACE(bytes) as usize
    }
}

/// The local address with its interface, and the marks, in the control messages of a received datagram.
fn told(message: &libc::msghdr) -> (Option<(IpAddr, u32)>, Marks) {
    let (mut to, mut marks) = (None, Marks::default());
    // SAFETY: the kernel filled the control buffer of the message, which is alive; the macros stay within its length.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(found) = header.as_ref() {
            let data = libc::CMSG_DATA(header);
            let number = || u8::try_from(data.cast::<libc::c_int>().read_unaligned()).ok();
            match (found.cmsg_level, found.cmsg_type) {
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                    to = Some((Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into(), 0));
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                    to = Some((Ipv6Addr::from(info.ipi6_addr.s6_addr).into(), info.ipi6_ifindex as u32));
                }
                (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => marks.ttl = number(),
                // One byte (ip_cmsg_recv_tos).
                (libc::IPPROTO_IP, libc::IP_TOS) => marks.class = Some(data.read()),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => marks.class = number(),
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time = data.cast::<libc::timespec>().read_unaligned();
                    let part = |value: i64| u64::try_from(value).ok();
                    marks.at_ns =
                        part(time.tv_sec as i64).zip(part(time.tv_nsec as i64)).map(|(s, ns)| s * 1_000_000_000 + ns);
                }
                _ => {}
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
    (to, marks)
}

/// # Safety
/// The storage holds an address of the family that it names.
unsafe fn address_of(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    match libc::c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: a sockaddr_in, as the family says.
            let raw = unsafe { &*std::ptr::from_ref(storage).cast::<libc::sockaddr_in>() };
            let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddr::new(ip.into(), u16::from_be(raw.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: a sockaddr_in6, as the family says.
            let raw = unsafe { &*std::ptr::from_ref(storage).cast::<libc::sockaddr_in6>() };
            Some(with_scope(Ipv6Addr::from(raw.sin6_addr.s6_addr), u16::from_be(raw.sin6_port), raw.sin6_scope_id))
        }
        _ => None,
    }
}

/// The canonical address; only a link-local one needs a scope.
fn with_scope(ip: Ipv6Addr, port: u16, link: u32) -> SocketAddr {
    match IpAddr::V6(ip).to_canonical() {
        IpAddr::V6(ip) if ip.is_unicast_link_local() => SocketAddrV6::new(ip, port, 0, link).into(),
        ip => SocketAddr::new(ip, port),
    }
}

#[cfg(test)]
mod tests {
    use super::super::UdpListener;
    use super::*;
    use crate::event::{Event, wait_readable};
    use std::os::fd::AsFd as _;
    use std::time::Duration;

    #[test]
    fn marks_come_with_what_arrives_and_go_with_what_is_sent() {
        let listener = UdpListener::bind(0).expect("a free port");
        listener.mark().expect("options");
        let never = Event::new().expect("an event");
        for ip in [IpAddr::from([127, 0, 0, 9]), IpAddr::from(Ipv6Addr::LOCALHOST)] {
            let Ok(client) = super::super::socket::connect(SocketAddr::new(ip, listener.port())) else {
                continue; // a machine without IPv6
            };
            let before = crate::nanos::real();
            ask(&client, ip.is_ipv6()).expect("options");
            set_class(&client, ip.is_ipv6(), 46 << 2).expect("an option");
            client.send(&[7; 40]).expect("sent");
            let mut buffer = [0; 64];
            let _ = wait_readable([listener.as_fd(), never.as_fd()], Some(Duration::from_secs(5)));
            let arrival = listener.receive(&mut buffer).expect("received").expect("a datagram");
            assert_eq!((arrival.bytes, arrival.local), (40, SocketAddr::new(ip, listener.port())));
            assert_eq!((arrival.marks.ttl, arrival.marks.class), (Some(255), Some(46 << 2)));
            assert!(arrival.marks.at_ns.expect("a time") >= before);

            listener.answer_marked(b"back", &arrival, 10 << 2 | 1).expect("answered");
            let _ = wait_readable([client.as_fd(), never.as_fd()], Some(Duration::from_secs(5)));
            let back = receive(&client, &mut buffer).expect("an answer from that address");
            assert_eq!((back.bytes, back.source), (4, Some(arrival.local)));
            assert_eq!((back.marks.ttl, back.marks.class), (Some(255), Some(10 << 2 | 1)));
            assert_eq!(receive(&client, &mut buffer).expect_err("no more").kind(), io::ErrorKind::WouldBlock);
        }
    }
}
