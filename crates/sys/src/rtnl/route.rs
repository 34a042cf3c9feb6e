//! Addresses of a link and routes through it. Source: rtnetlink(7), kernel `include/uapi/linux/rtnetlink.h`, `if_addr.h`.

use super::{Builder, CREATE, EXCLUSIVE, Links, Result, octets};
use crate::netlink::find;
use std::net::IpAddr;

/// A gateway of the other family.
const RTA_VIA: u16 = 18;

/// The next hop of a network.
#[derive(Debug, Clone, Copy)]
pub struct Route {
    /// Any address of the network; unspecified with no bits: everything.
    pub destination: IpAddr,
    /// Prefix length in bits.
    pub prefix_bits: u8,
    /// The gateway; `None`: the network is on the link.
    pub gateway: Option<IpAddr>,
}

impl Links {
    /// The device of an address, if the address is on that link and not behind a gateway.
    pub fn on_link(&mut self, address: IpAddr) -> Result<Option<u32>> {
        let (family, octets) = octets(address);
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let mut request = Builder::with_header(&[family, bits, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        request.bytes(libc::RTA_DST, &octets);
        let replies = self.send("find a route to", address.to_string(), libc::RTM_GETROUTE, 0, request)?;
        // `struct rtmsg`
        let attributes = replies.first().and_then(|reply| reply.payload.get(12..)).unwrap_or_default();
        let direct = find(attributes, libc::RTA_GATEWAY).is_none() && find(attributes, RTA_VIA).is_none();
        Ok(find(attributes, libc::RTA_OIF).and_then(|device| device.u32()).filter(|_| direct))
    }

    /// Adds an address and the route to its network; an IPv6 one is usable at once (`IFA_F_NODAD`).
    /// Errors: it exists already, or no privilege.
    pub fn add_address(&mut self, name: &str, address: IpAddr, prefix_bits: u8) -> Result<()> {
        self.add_address_with(name, address, prefix_bits, libc::IFA_F_NODAD)
    }

    /// The same without a route: the neighbours on that link are given by explicit routes only.
    /// Errors: it exists already, or no privilege.
    pub fn add_address_alone(&mut self, name: &str, address: IpAddr, prefix_bits: u8) -> Result<()> {
        self.add_address_with(name, address, prefix_bits, libc::IFA_F_NODAD | libc::IFA_F_NOPREFIXROUTE)
    }

    fn add_address_with(&mut self, name: &str, address: IpAddr, prefix_bits: u8, flags: u32) -> Result<()> {
        let index = self.get(name)?.index;
        let (family, octets) = octets(address);
        let mut header = [family, prefix_bits, 0, 0, 0, 0, 0, 0];
        header[4..8].copy_from_slice(&index.to_ne_bytes());
        let mut request = Builder::with_header(&header);
        request.bytes(libc::IFA_LOCAL, &octets).bytes(libc::IFA_ADDRESS, &octets);
        request.u32(libc::IFA_FLAGS, flags);
        let object = format!("{address}/{prefix_bits} to {name}");
        self.send("add address", object, libc::RTM_NEWADDR, CREATE | EXCLUSIVE, request).map(drop)
    }

    /// Adds a route to `destination/prefix_bits` (unspecified/0: the default route) through a link, by way of
    /// `gateway` if given.
    /// Errors: it exists already, the gateway is not reachable, or no privilege.
    pub fn add_route(
        &mut self,
        name: &str,
        destination: IpAddr,
        prefix_bits: u8,
        gateway: Option<IpAddr>,
    ) -> Result<()> {
        self.add_routes(name, &[Route { destination, prefix_bits, gateway }])
    }

    /// Adds several routes through a link.
    /// Errors: one exists already, a gateway is not reachable, or no privilege; those before it are then added.
    pub fn add_routes(&mut self, name: &str, routes: &[Route]) -> Result<()> {
        let index = self.get(name)?.index;
        for route in routes {
            let Route { destination, prefix_bits, gateway } = *route;
            let (family, octets_to) = octets(destination);
            let scope = match (destination, gateway) {
                (IpAddr::V4(_), None) => libc::RT_SCOPE_LINK,
                _ => libc::RT_SCOPE_UNIVERSE,
            };
            let (table, by, kind) = (libc::RT_TABLE_MAIN, libc::RTPROT_STATIC, libc::RTN_UNICAST);
            let mut request = Builder::with_header(&[family, prefix_bits, 0, 0, table, by, scope, kind, 0, 0, 0, 0]);
            if prefix_bits > 0 {
                request.bytes(libc::RTA_DST, &octets_to);
            }
            request.u32(libc::RTA_OIF, index);
            if let Some(gateway) = gateway {
                request.bytes(libc::RTA_GATEWAY, &octets(gateway).1);
            }
            let object = format!("to {destination}/{prefix_bits} through {name}");
            self.send("add route", object, libc::RTM_NEWROUTE, CREATE | EXCLUSIVE, request)?;
        }
        Ok(())
    }
}
