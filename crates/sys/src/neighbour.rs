//! The Ethernet address of an IP address: from the kernel's neighbour table, or resolved if it is missing there.
//!
//! Source: kernel `include/uapi/linux/neighbour.h`, `net/core/neighbour.c`.

use crate::netlink::{self, Builder, Family, Socket, find};
use crate::{Error, Result, clock, rtnl};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

/// `struct ndmsg`
const HEADER: usize = 12;
/// How long resolution may take, and how often the table is read meanwhile.
const LIMIT: Duration = Duration::from_secs(2);
const STEP: Duration = Duration::from_millis(20);

/// An entry of the kernel's table.
struct Entry {
    mac: Option<[u8; 6]>,
    state: u16,
}

fn entry(address: IpAddr, index: u32) -> std::result::Result<Option<Entry>, netlink::Error> {
    let (family, bytes) = netlink::octets(address);
    let mut request = Builder::with_header(&rtnl::neighbour_header(family, index, 0, 0));
    request.bytes(libc::NDA_DST, &bytes);
    match Socket::open(Family::Route)?.request(libc::RTM_GETNEIGH, 0, &request.finish()?) {
        Ok(replies) => {
            let Some(reply) = replies.first() else { return Ok(None) };
            let body = reply.payload.get(HEADER..).unwrap_or_default();
            let mac = find(body, libc::NDA_LLADDR).and_then(|it| it.payload.try_into().ok());
            Ok(Some(Entry { mac, state: netlink::u16_at(&reply.payload, 8).unwrap_or(0) }))
        }
        Err(error) if error.errno() == Some(libc::ENOENT) => Ok(None),
        Err(error) => Err(error),
    }
}

fn look(address: IpAddr, index: u32) -> std::result::Result<Option<[u8; 6]>, netlink::Error> {
    Ok(entry(address, index)?.and_then(|entry| entry.mac))
}

/// The Ethernet address of a static neighbour; `None` if the kernel resolves it or has none.
pub fn permanent(address: IpAddr, index: u32) -> Result<Option<[u8; 6]>> {
    let failed = |source| rtnl::Error { operation: "look up the neighbour", object: address.to_string(), source };
    let found = entry(address, index).map_err(failed)?;
    Ok(found.filter(|entry| entry.state & libc::NUD_PERMANENT != 0).and_then(|entry| entry.mac))
}

/// The Ethernet address of a neighbour on the device with that index, in the calling thread's network namespace. If the
/// kernel does not know it, a datagram to the discard port triggers resolution, for up to two seconds.
/// Errors: no host answers for that address.
pub fn resolve(address: IpAddr, index: u32) -> Result<[u8; 6]> {
    let failed = |source: std::io::Error| Error::new("find the Ethernet address of", address.to_string(), source);
    let table = |error: netlink::Error| failed(std::io::Error::other(error.to_string()));
    if let Some(found) = look(address, index).map_err(table)? {
        return Ok(found);
    }
    let any: SocketAddr = if address.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any).map_err(failed)?;
    socket.send_to(&[], (address, 9)).map_err(failed)?;
    let started = clock::now();
    while started.elapsed() < LIMIT {
        clock::sleep(STEP);
        if let Some(found) = look(address, index).map_err(table)? {
            return Ok(found);
        }
    }
    Err(failed(std::io::Error::other(
        "no answer to address resolution; check that it is on this link and that the interface has an address of the \
        same network",
    )))
}
