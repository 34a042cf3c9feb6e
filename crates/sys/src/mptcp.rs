//! Multipath TCP (RFC 8684): the subflows of a connection, as the kernel shows them (net/mptcp/sockopt.c, Linux 5.16).

use crate::error::Result;
use crate::raw::{self, option_bytes, option_u32};
use narrows_model::{TcpInfo, TcpSubflow};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd;

/// `include/uapi/linux/mptcp.h`; not in libc.
const SOL_MPTCP: libc::c_int = 284;
const MPTCP_INFO: libc::c_int = 1;
const MPTCP_TCPINFO: libc::c_int = 2;
const MPTCP_SUBFLOW_ADDRS: libc::c_int = 3;
const MPTCP_INFO_FLAG_FALLBACK: u8 = 1;
/// The kernel has no more subflows of a connection than addresses: 8 (`MPTCP_PM_ADDR_MAX`), and the first.
const SUBFLOWS_MAX: usize = 32;
/// `struct mptcp_subflow_data`, before the elements.
const HEAD: usize = 16;
/// Bytes of an element: two `sockaddr_storage`; as much of `struct tcp_info` as there is.
const ELEMENT: usize = 256;

/// The subflows of a connection. `None`: it is plain TCP, or fell back to it.
/// Errors: the kernel's, as before Linux 5.16.
pub fn subflows(socket: impl AsFd) -> Result<Option<Vec<TcpSubflow>>> {
    let protocol = option_u32(&socket, libc::SOL_SOCKET, libc::SO_PROTOCOL, "read SO_PROTOCOL of", "a socket")?;
    if protocol != libc::IPPROTO_MPTCP.unsigned_abs() {
        return Ok(None);
    }
    let mut info = [0; 96];
    match option_bytes(&socket, SOL_MPTCP, MPTCP_INFO, &mut info, "read MPTCP_INFO of", "a socket") {
        // One that fell back to TCP does not have it, and before 5.16 none has.
        Err(error) => return if has_info() { Ok(None) } else { Err(error) },
        // After six numbers of a byte, and two for the alignment, `mptcpi_flags`.
        Ok(_)
            if u32::from_ne_bytes([info[8], info[9], info[10], info[11]]) & u32::from(MPTCP_INFO_FLAG_FALLBACK) > 0 =>
        {
            return Ok(None);
        }
        Ok(_) => {}
    }
    let addresses = elements(&socket, MPTCP_SUBFLOW_ADDRS, "read MPTCP_SUBFLOW_ADDRS of")?;
    let infos = elements(&socket, MPTCP_TCPINFO, "read MPTCP_TCPINFO of")?;
    // Both lists are in the order of the connection's own.
    let pairs = addresses.iter().zip(infos);
    let of = |(ends, info): (&Vec<u8>, Vec<u8>)| {
        let (local, remote) = ends.split_at_checked(ELEMENT / 2)?;
        let (local, remote) = (address(local)?, address(remote)?);
        Some(TcpSubflow { local: local.to_string(), remote: remote.to_string(), tcp: TcpInfo::from_bytes(&info) })
    };
    Ok(Some(pairs.filter_map(of).collect()))
}

/// Whether this kernel shows what it knows of Multipath TCP.
fn has_info() -> bool {
    let fresh = raw::socket(libc::AF_INET, libc::SOCK_STREAM, libc::IPPROTO_MPTCP, "open", "a socket of Multipath TCP");
    fresh
        .is_ok_and(|it| option_bytes(it, SOL_MPTCP, MPTCP_INFO, &mut [0; 96], "read MPTCP_INFO of", "a socket").is_ok())
}

/// The elements of an option that is a list with one for each subflow, each as long as the kernel has it.
fn elements(socket: impl AsFd, name: libc::c_int, operation: &'static str) -> Result<Vec<Vec<u8>>> {
    let mut bytes = vec![0; HEAD + SUBFLOWS_MAX * ELEMENT];
    // Its own length, two that the kernel sets, and that of an element.
    for (at, number) in [(0, HEAD as u32), (12, ELEMENT as u32)] {
        bytes[at..at + 4].copy_from_slice(&number.to_ne_bytes());
    }
    let length = option_bytes(socket, SOL_MPTCP, name, &mut bytes, operation, "a socket")?;
    let size = u32::from_ne_bytes([bytes[12], bytes[13], bytes[14], bytes[15]]);
    let size = usize::try_from(size).unwrap_or(ELEMENT).clamp(1, ELEMENT);
    Ok(bytes[HEAD.min(length)..length].chunks_exact(size).map(<[u8]>::to_vec).collect())
}

/// A `sockaddr_in` or `sockaddr_in6`.
fn address(bytes: &[u8]) -> Option<SocketAddr> {
    let part = |at: usize| bytes.get(at..);
    let family = u16::from_ne_bytes(part(0)?.first_chunk().copied()?);
    let port = u16::from_be_bytes(part(2)?.first_chunk().copied()?);
    let ip = match libc::c_int::from(family) {
        libc::AF_INET => IpAddr::V4(Ipv4Addr::from(part(4)?.first_chunk::<4>().copied()?)),
        libc::AF_INET6 => IpAddr::V6(Ipv6Addr::from(part(8)?.first_chunk::<16>().copied()?)).to_canonical(),
        _ => return None,
    };
    Some(SocketAddr::new(ip, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Carried, connect_by, listen_by};
    use std::time::Duration;

    #[test]
    fn a_connection_shows_its_subflows_and_plain_tcp_has_none() {
        let Ok(listener) = listen_by(SocketAddr::from(([127, 0, 0, 1], 0)), Carried::Multipath) else {
            println!("NOT CHECKED: subflows, since this kernel has no Multipath TCP");
            return;
        };
        let at = listener.local_addr().unwrap();
        let of = |carried| {
            let none = |_: std::os::fd::BorrowedFd<'_>| Ok::<(), crate::Error>(());
            let stream = connect_by(at, Duration::from_secs(5), carried, none).unwrap();
            let _accepted = listener.accept().unwrap();
            let found = subflows(&stream).unwrap();
            (stream.local_addr().unwrap(), found)
        };
        assert_eq!(of(Carried::Plain).1, None);
        let (own, found) = of(Carried::Multipath);
        let found = found.expect("Multipath TCP");
        assert_eq!(found.len(), 1);
        assert_eq!((&*found[0].local, &*found[0].remote), (&*own.to_string(), &*at.to_string()));
        assert_eq!(found[0].tcp.state, Some(1));
    }
}
