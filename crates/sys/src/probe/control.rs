//! What the kernel reports beside the bytes of a received message: the ICMP error, its sender, the TTL, the time
//! (include/uapi/linux/errqueue.h, ip(7), ipv6(7)).

use std::net::IpAddr;

/// `struct sock_extended_err` and the address behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IcmpError {
    /// Of IPv4.
    pub ipv4: bool,
    pub kind: u8,
    pub code: u8,
    /// The MTU of *fragmentation needed* and *packet too big*.
    pub info: u32,
    /// Where the ICMP extensions are in the bytes that were received.
    pub extension_at: Option<usize>,
    pub from: IpAddr,
}

/// What a message reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Control {
    pub error: Option<IcmpError>,
    /// The path MTU of an `EMSGSIZE` that this host reports.
    pub local_mtu: Option<u32>,
    /// TTL or hop limit of the packet.
    pub ttl: Option<u8>,
    /// Nanoseconds since the Unix epoch when it arrived.
    pub stamp_ns: Option<u64>,
}

/// `SO_EE_RFC4884_FLAG_INVALID`
const INVALID: u8 = 1;

/// Parses control messages: `struct cmsghdr` is length (8 bytes, itself included), level (4), type (4), then the data, padded to 8.
pub fn parse(mut bytes: &[u8]) -> Control {
    let mut found = Control::default();
    while let Some((head, _)) = bytes.split_first_chunk::<16>() {
        let [l0, l1, l2, l3, l4, l5, l6, l7, v0, v1, v2, v3, t0, t1, t2, t3] = *head;
        let length = usize::from_ne_bytes([l0, l1, l2, l3, l4, l5, l6, l7]);
        let data = bytes.get(16..length.min(bytes.len())).unwrap_or_default();
        let number = || data.first_chunk().map(|raw| i32::from_ne_bytes(*raw));
        match (i32::from_ne_bytes([v0, v1, v2, v3]), i32::from_ne_bytes([t0, t1, t2, t3])) {
            (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => read_error(&mut found, data),
            (libc::SOL_IP, libc::IP_TTL) | (libc::SOL_IPV6, libc::IPV6_HOPLIMIT) => {
                found.ttl = number().and_then(|ttl| u8::try_from(ttl).ok());
            }
            (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => found.stamp_ns = stamp(data),
            _ => {}
        }
        match bytes.get(length.saturating_add(7).max(16) & !7..) {
            Some(rest) => bytes = rest,
            None => break,
        }
    }
    found
}

fn stamp(data: &[u8]) -> Option<u64> {
    let (seconds, rest) = data.split_first_chunk::<8>()?;
    let nanos = rest.first_chunk::<8>()?;
    Some(u64::from_ne_bytes(*seconds).wrapping_mul(1_000_000_000).wrapping_add(u64::from_ne_bytes(*nanos)))
}

fn read_error(found: &mut Control, data: &[u8]) {
    let Some((&[_, _, _, _, origin, kind, code, _, i0, i1, i2, i3, e0, e1, flags, _], offender)) =
        data.split_first_chunk::<16>()
    else {
        return;
    };
    let info = u32::from_ne_bytes([i0, i1, i2, i3]);
    let at = usize::from(u16::from_ne_bytes([e0, e1]));
    let extension_at = (at > 0 && flags & INVALID == 0).then_some(at);
    match origin {
        libc::SO_EE_ORIGIN_LOCAL => found.local_mtu = (info > 0).then_some(info),
        libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6 => {
            let ipv4 = origin == libc::SO_EE_ORIGIN_ICMP;
            let error = |from| IcmpError { ipv4, kind, code, info, extension_at, from };
            found.error = address(offender).map(error);
        }
        _ => {}
    }
}

/// From `struct sockaddr_in` or `struct sockaddr_in6`.
fn address(bytes: &[u8]) -> Option<IpAddr> {
    let family = u16::from_ne_bytes(*bytes.first_chunk()?);
    match i32::from(family) {
        libc::AF_INET => Some(IpAddr::from(*bytes.get(4..)?.first_chunk::<4>()?)),
        libc::AF_INET6 => Some(IpAddr::from(*bytes.get(8..)?.first_chunk::<16>()?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(level: i32, kind: i32, data: &[u8]) -> Vec<u8> {
        let mut out = (16 + data.len()).to_ne_bytes().to_vec();
        out.extend(level.to_ne_bytes());
        out.extend(kind.to_ne_bytes());
        out.extend(data);
        out.resize(out.len().next_multiple_of(8), 0);
        out
    }

    #[test]
    fn an_error_has_its_sender_its_ttl_and_its_time() {
        let mut error = vec![113, 0, 0, 0, libc::SO_EE_ORIGIN_ICMP, 3, 4, 0];
        error.extend(1400_u32.to_ne_bytes());
        error.extend(36_u16.to_ne_bytes());
        error.extend([0, 0]);
        error.extend((libc::AF_INET as u16).to_ne_bytes());
        error.extend([0, 0, 192, 0, 2, 7, 0, 0, 0, 0, 0, 0, 0, 0]);
        let stamp = [7_u64.to_ne_bytes(), 5_u64.to_ne_bytes()].concat();
        let all = [
            message(libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS, &stamp),
            message(libc::SOL_IP, libc::IP_TTL, &61_i32.to_ne_bytes()),
            message(libc::SOL_IP, libc::IP_RECVERR, &error),
        ];
        let found = parse(&all.concat());
        let from = IpAddr::from([192, 0, 2, 7]);
        let wanted = IcmpError { ipv4: true, kind: 3, code: 4, info: 1400, extension_at: Some(36), from };
        assert_eq!((found.error, found.ttl, found.stamp_ns), (Some(wanted), Some(61), Some(7_000_000_005)));
        error[4] = libc::SO_EE_ORIGIN_LOCAL;
        let found = parse(&message(libc::SOL_IP, libc::IP_RECVERR, &error));
        assert_eq!((found.error, found.local_mtu), (None, Some(1400)));
        assert_eq!(parse(&message(libc::SOL_IP, libc::IP_RECVERR, &error[..12])), Control::default(), "cut");
    }

    #[test]
    fn arbitrary_bytes_never_panic() {
        for bytes in [&[][..], &[0; 64], &[0xFF; 33], &[17; 40]] {
            let _ = parse(bytes);
        }
    }
}
