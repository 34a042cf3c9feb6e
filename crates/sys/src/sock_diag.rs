//! The state of one TCP connection, queried by its addresses: no descriptor is needed (include/uapi/linux/inet_diag.h,
//! net/ipv4/inet_diag.c).

use crate::netlink::{self, Family, Socket, find};
use narrows_model::TcpInfo;
use std::net::{IpAddr, SocketAddr};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const INET_DIAG_INFO: u16 = 2;
/// `struct inet_diag_msg`
const MESSAGE: usize = 72;

/// `TCP_INFO` of the connection with these ends, in the calling thread's network namespace. `None`: there is none.
///
/// # Errors
/// The kernel lacks `CONFIG_INET_DIAG`, or refuses.
pub fn tcp_info(local: SocketAddr, remote: SocketAddr) -> netlink::Result<Option<TcpInfo>> {
    let request = request(crate::net::canonical(local), crate::net::canonical(remote));
    match Socket::open(Family::SockDiag)?.request(SOCK_DIAG_BY_FAMILY, 0, &request) {
        Ok(replies) => Ok(replies
            .first()
            .and_then(|reply| find(reply.payload.get(MESSAGE..)?, INET_DIAG_INFO))
            .map(|info| TcpInfo::from_bytes(info.payload))),
        Err(error) if error.errno() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

/// `struct inet_diag_req_v2`
fn request(local: SocketAddr, remote: SocketAddr) -> Vec<u8> {
    let family = if local.is_ipv6() { libc::AF_INET6 } else { libc::AF_INET };
    let wanted = 1_u8 << (INET_DIAG_INFO - 1);
    let mut bytes = vec![family as u8, libc::IPPROTO_TCP as u8, wanted, 0];
    bytes.extend_from_slice(&u32::MAX.to_ne_bytes()); // any state
    bytes.extend_from_slice(&local.port().to_be_bytes());
    bytes.extend_from_slice(&remote.port().to_be_bytes());
    for address in [local.ip(), remote.ip()] {
        let mut field = [0_u8; 16];
        match address {
            IpAddr::V4(ip) => field[..4].copy_from_slice(&ip.octets()),
            IpAddr::V6(ip) => field.copy_from_slice(&ip.octets()),
        }
        bytes.extend_from_slice(&field);
    }
    let scope = match local {
        SocketAddr::V6(v6) => v6.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    bytes.extend_from_slice(&scope.to_ne_bytes());
    bytes.extend_from_slice(&[0xFF; 8]); // INET_DIAG_NOCOOKIE
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, Ipv6Addr};
    use std::time::Duration;

    #[test]
    fn a_connection_is_found_by_its_addresses_from_both_ends() {
        let listener = crate::net::listen(0).unwrap();
        let port = listener.local_addr().unwrap().port();
        for ip in [IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)] {
            let address = SocketAddr::from((ip, port));
            let Ok(mut stream) = crate::net::connect(address, Duration::from_secs(5), |_| Ok::<_, crate::Error>(()))
            else {
                continue; // a machine without IPv6
            };
            let (mut accepted, _) = listener.accept().unwrap();
            stream.write_all(b"twelve bytes").unwrap();
            accepted.read_exact(&mut [0; 12]).unwrap();
            for end in [&stream, &accepted] {
                let found = tcp_info(end.local_addr().unwrap(), end.peer_addr().unwrap());
                assert!(found.as_ref().is_ok_and(Option::is_some), "{ip}: {found:?}");
            }
            let received = tcp_info(accepted.local_addr().unwrap(), accepted.peer_addr().unwrap()).unwrap().unwrap();
            assert_eq!(received.bytes_received, Some(12));
        }
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 1));
        assert!(tcp_info(nowhere, nowhere).unwrap().is_none());
    }
}
