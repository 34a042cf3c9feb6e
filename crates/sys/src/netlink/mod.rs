//! A blocking netlink socket for every family: route, generic, socket diagnosis, netfilter.
//!
//! A socket belongs to the network namespace that its thread was in when it was opened, and stays there.
//! Source: `include/uapi/linux/netlink.h`, RFC 3549; kernel `net/netlink/af_netlink.c`.

pub mod attributes;
mod error;

pub use attributes::{Attribute, Attributes, Builder, attributes, find};
pub use error::{Error, Result};

use crate::raw;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// The numbers of messages and attributes of `NETLINK_ROUTE` that readers need.
pub mod numbers {
    pub use libc::{
        IFLA_ADDRESS, IFLA_CARRIER, IFLA_CARRIER_CHANGES, IFLA_IFNAME, IFLA_INFO_DATA, IFLA_INFO_KIND, IFLA_LINK,
        IFLA_LINK_NETNSID, IFLA_LINKINFO, IFLA_MASTER, IFLA_MTU, IFLA_STATS64, IFLA_TXQLEN, NDA_DST, NDA_LLADDR,
        RT_TABLE_MAIN, RTA_DST, RTA_GATEWAY, RTA_METRICS, RTA_OIF, RTA_PREFSRC, RTA_PRIORITY, RTM_GETLINK,
        RTM_GETNEIGH, RTM_GETQDISC, RTM_GETROUTE, RTM_GETTCLASS, TCA_KIND, TCA_OPTIONS, TCA_STATS2,
    };
}

/// The family of an address and its bytes, as messages hold them.
pub fn octets(address: IpAddr) -> (u8, Vec<u8>) {
    match address {
        IpAddr::V4(address) => (libc::AF_INET as u8, address.octets().to_vec()),
        IpAddr::V6(address) => (libc::AF_INET6 as u8, address.octets().to_vec()),
    }
}

/// The address of a family from its bytes.
pub fn address(family: u8, bytes: &[u8]) -> Option<IpAddr> {
    match libc::c_int::from(family) {
        libc::AF_INET => Some(IpAddr::from(*bytes.first_chunk::<4>()?)),
        libc::AF_INET6 => Some(IpAddr::from(*bytes.first_chunk::<16>()?)),
        _ => None,
    }
}

/// The protocol of a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// Links, addresses, routes, neighbours, queueing disciplines (`NETLINK_ROUTE`).
    Route,
    /// Families by name: ethtool, `nl80211`, … (`NETLINK_GENERIC`).
    Generic,
    /// Sockets of this namespace (`NETLINK_SOCK_DIAG`).
    SockDiag,
    /// `nf_tables`, conntrack (`NETLINK_NETFILTER`).
    Netfilter,
}

impl Family {
    const fn number(self) -> libc::c_int {
        match self {
            Self::Route => libc::NETLINK_ROUTE,
            Self::Generic => libc::NETLINK_GENERIC,
            Self::SockDiag => libc::NETLINK_SOCK_DIAG,
            Self::Netfilter => libc::NETLINK_NETFILTER,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Route => "netlink route",
            Self::Generic => "netlink generic",
            Self::SockDiag => "netlink sock_diag",
            Self::Netfilter => "netlink netfilter",
        }
    }
}

/// One message of an answer, without its netlink header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// The message's type: `RTM_NEWLINK`, a generic family's id, …
    pub kind: u16,
    /// Everything after the netlink header: the family's own header, then attributes.
    pub payload: Vec<u8>,
}

/// One message of a [`Socket::batch`].
#[derive(Debug, Clone, Copy)]
pub struct Outgoing<'a> {
    pub kind: u16,
    /// `NLM_F_*`; `NLM_F_REQUEST` is added. Only messages with `NLM_F_ACK` are awaited.
    pub flags: u16,
    /// The family's own header, then attributes.
    pub payload: &'a [u8],
}

/// An open netlink socket.
#[derive(Debug)]
pub struct Socket {
    fd: OwnedFd,
    family: Family,
    sequence: u32,
    size_limit: usize,
    buffer: Vec<u8>,
}

/// Dumps the whole table (`NLM_F_DUMP`).
pub const DUMP: u16 = libc::NLM_F_DUMP as u16;
/// Requests an acknowledgement (`NLM_F_ACK`); [`Socket::request`] adds it itself.
pub const ACK: u16 = libc::NLM_F_ACK as u16;
/// Creates the object if it does not exist (`NLM_F_CREATE`).
pub const CREATE: u16 = libc::NLM_F_CREATE as u16;
/// Fails if the object exists (`NLM_F_EXCL`).
pub const EXCLUSIVE: u16 = libc::NLM_F_EXCL as u16;
const HEADER: usize = 16;
const REQUEST: u16 = libc::NLM_F_REQUEST as u16;
const INTERRUPTED: u16 = libc::NLM_F_DUMP_INTR as u16;
/// The refused request is not repeated in full.
const CAPPED: u16 = libc::NLM_F_CAPPED as u16;
/// Attributes follow in an error.
const ACK_ATTRIBUTES: u16 = libc::NLM_F_ACK_TLVS as u16;
/// `NLMSGERR_ATTR_MSG`
const ERROR_TEXT: u16 = 1;
const ATTEMPTS: u32 = 5;
const TIME_LIMIT: Duration = Duration::from_secs(2);

enum Progress {
    More,
    Finished,
}

impl Socket {
    /// Opens a socket in the calling thread's network namespace, with limits of 2 s and 64 MiB per answer.
    /// Errors: the kernel lacks the family, or sockets are forbidden.
    pub fn open(family: Family) -> Result<Self> {
        let word = family.word();
        let fd = raw::socket(libc::AF_NETLINK, libc::SOCK_RAW, family.number(), "open", format!("a {word} socket"))?;
        let socket = Self { fd, family, sequence: 0, size_limit: 64 << 20, buffer: vec![0; 256 << 10] };
        // Optional on newer kernels: errors with a message, and errors that do not repeat the request.
        let _ = socket.set_option(libc::NETLINK_EXT_ACK, "set NETLINK_EXT_ACK of");
        let _ = socket.set_option(libc::NETLINK_CAP_ACK, "set NETLINK_CAP_ACK of");
        Ok(socket)
    }

    fn set_option(&self, option: libc::c_int, operation: &'static str) -> crate::Result<()> {
        let (on, object): (libc::c_int, _) = (1, || format!("a {} socket", self.family.word()));
        raw::set_option(&self.fd, libc::SOL_NETLINK, option, &on, operation, object)
    }

    /// Sends one request and returns the messages of its answer; an empty list is a plain acknowledgement.
    ///
    /// `flags` are `NLM_F_*`: `NLM_F_DUMP` for a whole table, `NLM_F_CREATE | NLM_F_EXCL` and so on to set.
    /// `NLM_F_REQUEST` is added, and `NLM_F_ACK` unless it is a dump, so that the end of each answer is known.
    /// `payload` is the family's own header, then attributes ([`Builder`]).
    /// Errors: the kernel's error number and message; the time or size limit.
    pub fn request(&mut self, kind: u16, flags: u16, payload: &[u8]) -> Result<Vec<Message>> {
        let dump = flags & DUMP == DUMP;
        let flags = if dump { flags } else { flags | ACK };
        for _ in 0..ATTEMPTS {
            let mut replies = Vec::new();
            let first = self.send(&[Outgoing { kind, flags, payload }])?;
            if self.receive(kind, first, 1, 1, &mut keep(&mut replies))? {
                return Ok(replies);
            }
        }
        Err(Error::Unsteady { family: self.family.word(), kind, attempts: ATTEMPTS })
    }

    /// Dumps a whole table without keeping it: `each` gets the messages as they come, without their netlink headers. A change of
    /// the table meanwhile is not seen.
    pub fn dump(&mut self, kind: u16, payload: &[u8], each: &mut dyn FnMut(&[u8])) -> Result<()> {
        let first = self.send(&[Outgoing { kind, flags: DUMP, payload }])?;
        self.receive(kind, first, 1, 1, &mut |_, body| each(body)).map(drop)
    }

    /// Sends several messages at once (`nf_tables` transactions) and waits for those with `NLM_F_ACK`.
    /// Errors: the first error; the time or size limit.
    pub fn batch(&mut self, messages: &[Outgoing<'_>]) -> Result<Vec<Message>> {
        let first = self.send(messages)?;
        let awaited = messages.iter().filter(|message| message.flags & ACK != 0).count();
        let mut replies = Vec::new();
        if awaited > 0 {
            let kind = messages.first().map_or(0, |message| message.kind);
            let count = u32::try_from(messages.len()).unwrap_or(u32::MAX);
            self.receive(kind, first, count, awaited, &mut keep(&mut replies))?;
        }
        Ok(replies)
    }

    /// Sends messages, and returns the sequence number of the first.
    fn send(&mut self, messages: &[Outgoing<'_>]) -> Result<u32> {
        let first = self.sequence.wrapping_add(1);
        let mut bytes = Vec::new();
        for message in messages {
            self.sequence = self.sequence.wrapping_add(1);
            let length = HEADER + message.payload.len();
            let length_field = u32::try_from(length).map_err(|_| Error::TooLarge {
                family: self.family.word(),
                kind: message.kind,
                limit: u32::MAX as usize,
            })?;
            bytes.extend_from_slice(&length_field.to_ne_bytes());
            bytes.extend_from_slice(&message.kind.to_ne_bytes());
            bytes.extend_from_slice(&(message.flags | REQUEST).to_ne_bytes());
            bytes.extend_from_slice(&self.sequence.to_ne_bytes());
            bytes.extend_from_slice(&0_u32.to_ne_bytes());
            bytes.extend_from_slice(message.payload);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        // SAFETY: sockaddr_nl is plain data for which zeroes are valid.
        let mut kernel: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        kernel.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        // SAFETY: buffer and address live through the call, and their lengths are given.
        let sent = unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                bytes.as_ptr().cast(),
                bytes.len(),
                0,
                (&raw const kernel).cast(),
                size_of::<libc::sockaddr_nl>() as libc::socklen_t,
            )
        };
        if sent < 0 {
            return Err(crate::Error::last("send on", format!("a {} socket", self.family.word())).into());
        }
        Ok(first)
    }

    /// Reads until `awaited` requests of `first..first + count` are finished. `false`: the table changed meanwhile.
    fn receive(
        &mut self,
        kind: u16,
        first: u32,
        count: u32,
        awaited: usize,
        each: &mut dyn FnMut(u16, &[u8]),
    ) -> Result<bool> {
        let deadline = Instant::now() + TIME_LIMIT;
        let (mut finished, mut steady, mut size) = (0, true, 0);
        while finished < awaited {
            let length = self.receive_datagram(kind, deadline)?;
            size += length;
            if size > self.size_limit {
                return Err(Error::TooLarge { family: self.family.word(), kind, limit: self.size_limit });
            }
            let datagram = self.buffer.get(..length).unwrap_or_default();
            for (header, body) in Messages(datagram) {
                if header.sequence.wrapping_sub(first) >= count {
                    continue; // a late answer to an earlier request
                }
                steady &= header.flags & INTERRUPTED == 0;
                match take(self.family, kind, header, body, each)? {
                    Progress::More => {}
                    Progress::Finished => finished += 1,
                }
            }
        }
        Ok(steady)
    }

    /// Reads one datagram from the kernel into the buffer; returns its length.
    fn receive_datagram(&mut self, kind: u16, deadline: Instant) -> Result<usize> {
        let family = self.family.word();
        loop {
            // SAFETY: sockaddr_nl is plain data for which zeroes are valid.
            let mut from: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
            let mut from_length = size_of::<libc::sockaddr_nl>() as libc::socklen_t;
            // SAFETY: buffer and address are valid for writing through the call, and their lengths are given.
            let got = unsafe {
                libc::recvfrom(
                    self.fd.as_raw_fd(),
                    self.buffer.as_mut_ptr().cast(),
                    self.buffer.len(),
                    libc::MSG_DONTWAIT | libc::MSG_TRUNC,
                    (&raw mut from).cast(),
                    &raw mut from_length,
                )
            };
            if let Ok(length) = usize::try_from(got) {
                if length > self.buffer.len() {
                    return Err(Error::TooLarge { family, kind, limit: self.buffer.len() });
                }
                if from.nl_pid == 0 {
                    return Ok(length);
                }
                continue; // not from the kernel
            }
            let error = io::Error::last_os_error();
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock => self.wait(kind, deadline)?,
                _ => return Err(crate::Error::new("receive from", format!("a {family} socket"), error).into()),
            }
        }
    }

    fn wait(&self, kind: u16, deadline: Instant) -> Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        let events = raw::poll([(self.fd.as_fd(), libc::POLLIN)], Some(left));
        if events.is_ok_and(|events| events == [0]) && Instant::now() >= deadline {
            return Err(Error::TimedOut { family: self.family.word(), kind, limit: TIME_LIMIT });
        }
        Ok(())
    }
}

fn keep(replies: &mut Vec<Message>) -> impl FnMut(u16, &[u8]) {
    |kind, body| replies.push(Message { kind, payload: body.to_vec() })
}

fn take(family: Family, kind: u16, header: Header, body: &[u8], each: &mut dyn FnMut(u16, &[u8])) -> Result<Progress> {
    let code = u32_at(body, 0).unwrap_or(0).cast_signed();
    match libc::c_int::from(header.kind) {
        libc::NLMSG_NOOP => Ok(Progress::More),
        libc::NLMSG_ERROR | libc::NLMSG_DONE if code < 0 => Err(Error::Refused {
            family: family.word(),
            kind,
            errno: code.saturating_neg(),
            text: error_text(header, body),
        }),
        libc::NLMSG_ERROR | libc::NLMSG_DONE => Ok(Progress::Finished),
        _ => {
            each(header.kind, body);
            Ok(Progress::More)
        }
    }
}

/// The kernel's message in an error: after the code, and for `NLMSG_ERROR` after the repeated request.
fn error_text(header: Header, body: &[u8]) -> Option<String> {
    if header.flags & ACK_ATTRIBUTES == 0 {
        return None;
    }
    let offset = if libc::c_int::from(header.kind) == libc::NLMSG_DONE {
        4
    } else if header.flags & CAPPED != 0 {
        4 + HEADER
    } else {
        4 + usize::try_from(u32_at(body, 4)?).ok()?.next_multiple_of(4)
    };
    find(body.get(offset..)?, ERROR_TEXT)?.text()
}

#[derive(Clone, Copy)]
struct Header {
    kind: u16,
    flags: u16,
    sequence: u32,
}

/// Reads any bytes as a datagram of the kernel, for `fuzz/`.
#[doc(hidden)]
pub fn read_any(bytes: &[u8]) -> usize {
    let mut replies = Vec::new();
    for (header, body) in Messages(bytes) {
        let taken = take(Family::Route, header.kind, header, body, &mut keep(&mut replies));
        debug_assert!(taken.is_ok() || bytes.len() >= HEADER + 4);
        attributes(body).for_each(|it| drop((it.u8(), it.u64(), it.be32(), it.text(), it.nested().count())));
    }
    replies.iter().map(|reply| reply.payload.len()).sum()
}

/// The messages of a datagram; stops where one does not fit.
struct Messages<'a>(&'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = (Header, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::try_from(u32_at(self.0, 0)?).ok()?;
        let body = self.0.get(HEADER..length)?;
        let header = Header { kind: u16_at(self.0, 4)?, flags: u16_at(self.0, 6)?, sequence: u32_at(self.0, 8)? };
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((header, body))
    }
}

/// The bytes of a number inside `bytes`.
fn number_at<const N: usize>(bytes: &[u8], offset: usize) -> Option<[u8; N]> {
    bytes.get(offset..offset.checked_add(N)?)?.try_into().ok()
}

/// A 16-bit number of the host's byte order inside `bytes`.
pub fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    number_at(bytes, offset).map(u16::from_ne_bytes)
}

/// A 32-bit number of the host's byte order inside `bytes`.
pub fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    number_at(bytes, offset).map(u32::from_ne_bytes)
}

/// A 64-bit number of the host's byte order inside `bytes`.
pub fn u64_at(bytes: &[u8], offset: usize) -> Option<u64> {
    number_at(bytes, offset).map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `struct ifinfomsg` with everything unset.
    const ANY_LINK: [u8; 16] = [0; 16];

    #[test]
    fn a_dump_of_links_holds_loopback() {
        let mut socket = Socket::open(Family::Route).expect("netlink route");
        let links = socket.request(libc::RTM_GETLINK, DUMP, &ANY_LINK).expect("a dump of links");
        let names: Vec<_> =
            links.iter().filter_map(|link| find(link.payload.get(16..)?, libc::IFLA_IFNAME)?.text()).collect();
        assert!(names.iter().any(|name| name == "lo"), "{names:?}");
    }

    #[test]
    fn one_link_is_queried_by_name() {
        let mut socket = Socket::open(Family::Route).expect("netlink route");
        let mut request = Builder::with_header(&ANY_LINK);
        request.text(libc::IFLA_IFNAME, "lo");
        let links =
            socket.request(libc::RTM_GETLINK, 0, &request.finish().expect("it is short")).expect("the loopback link");
        assert_eq!(links.len(), 1);
        assert_eq!(links[0].kind, libc::RTM_NEWLINK);
        assert_eq!(u32_at(&links[0].payload, 4), Some(1), "the index of lo is 1");
    }

    #[test]
    fn a_refusal_has_the_kernels_number_and_message() {
        let mut socket = Socket::open(Family::Route).expect("netlink route");
        let mut request = Builder::with_header(&ANY_LINK);
        request.text(libc::IFLA_IFNAME, "no-such-link");
        let error = socket.request(libc::RTM_GETLINK, 0, &request.finish().expect("short")).expect_err("none");
        assert_eq!(error.errno(), Some(libc::ENODEV));
        // With strict checks (Linux 4.20) the kernel explains a missing header.
        socket.set_option(libc::NETLINK_GET_STRICT_CHK, "set NETLINK_GET_STRICT_CHK of").expect("Linux 4.20");
        let error = socket.request(libc::RTM_GETLINK, DUMP, &[0; 4]).expect_err("no header");
        assert!(matches!(&error, Error::Refused { text: Some(text), .. } if text.contains("header")), "{error}");
    }

    #[test]
    fn the_size_of_an_answer_is_limited() {
        let mut socket = Socket { size_limit: 64, ..Socket::open(Family::Route).expect("netlink route") };
        let error = socket.request(libc::RTM_GETLINK, DUMP, &ANY_LINK).expect_err("a link has more than 64 bytes");
        assert!(matches!(error, Error::TooLarge { limit: 64, .. }), "{error}");
    }

    #[test]
    fn messages_that_do_not_fit_end_the_list() {
        for length in 0..40_u8 {
            let mut bytes = vec![length, 0, 0, 0];
            bytes.resize(32, 0);
            for (_, body) in Messages(&bytes) {
                assert!(body.len() <= 16);
            }
        }
    }
}
