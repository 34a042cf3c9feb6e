//! Many routes and neighbours at once: messages are sent in batches, and the routes carry an origin of their own, so that they are
//! known among others. Source: rtnetlink(7), kernel `include/uapi/linux/rtnetlink.h`, `neighbour.h`; `net/core/rtnetlink.c`.

use super::{Builder, CREATE, EXCLUSIVE, Error, Links, Result, Route, neighbour_header, octets};
use crate::netlink::{ACK, Outgoing};
use std::net::IpAddr;

/// `rtm_protocol` of these routes: one that no routing program has.
const ORIGIN: u8 = 218;
/// `RTM_F_FIB_MATCH`: the entry of the table, not the route that follows from it.
const FIB_MATCH: u32 = 0x2000;
/// Messages of a batch: their errors fit into a receive buffer of the usual size.
const AT_ONCE: usize = 128;
/// What a table lacks.
const ABSENT: [i32; 2] = [libc::ESRCH, libc::ENOENT];

/// A message's type, its `NLM_F_*` and its payload.
type Part = (u16, u16, Vec<u8>);

impl Links {
    /// Adds routes through a link; `go_on` hears how many are added, and ends it with `false`. Returns how many were added.
    /// Errors: one exists already, the gateway is not reachable, no memory, or no privilege; those of the batches
    /// before are then added.
    pub fn add_many(
        &mut self,
        name: &str,
        routes: impl Iterator<Item = Route>,
        go_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<usize> {
        let index = self.get(name)?.index;
        self.many("add routes through", name, routes.map(|it| route(libc::RTM_NEWROUTE, index, &it)), false, go_on)
    }

    /// Removes routes that [`Links::add_many`] has added; those that are not there are skipped.
    /// Errors: no such link, or no privilege.
    pub fn delete_many(&mut self, name: &str, routes: impl Iterator<Item = Route>) -> Result<usize> {
        let index = self.get(name)?.index;
        let parts = routes.map(|it| route(libc::RTM_DELROUTE, index, &it));
        self.many("remove routes through", name, parts, true, &mut |_| true)
    }

    /// Adds static neighbours that share an Ethernet address; `go_on` as above.
    /// Errors: no such link, no memory, or no privilege.
    pub fn add_neighbours(
        &mut self,
        name: &str,
        addresses: impl Iterator<Item = IpAddr>,
        mac: [u8; 6],
        go_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<usize> {
        let index = self.get(name)?.index;
        let part = |address| neighbour(libc::RTM_NEWNEIGH, CREATE | EXCLUSIVE, index, address, Some(mac));
        self.many("add neighbours of", name, addresses.map(part), false, go_on)
    }

    /// Removes neighbours; those that are not there are skipped.
    /// Errors: no such link, or no privilege.
    pub fn delete_neighbours(&mut self, name: &str, addresses: impl Iterator<Item = IpAddr>) -> Result<usize> {
        let index = self.get(name)?.index;
        let part = |address| neighbour(libc::RTM_DELNEIGH, 0, index, address, None);
        self.many("remove neighbours of", name, addresses.map(part), true, &mut |_| true)
    }

    /// Whether the longest match of an address is a route of [`Links::add_many`].
    /// Errors: the kernel refuses to tell.
    pub fn is_added(&mut self, address: IpAddr) -> Result<bool> {
        let (family, octets) = octets(address);
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let mut header = [family, bits, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        header[8..].copy_from_slice(&FIB_MATCH.to_ne_bytes());
        let mut request = Builder::with_header(&header);
        request.bytes(libc::RTA_DST, &octets);
        match self.send("find a route to", address.to_string(), libc::RTM_GETROUTE, 0, request) {
            // `rtm_protocol`
            Ok(replies) => Ok(replies.first().is_some_and(|reply| reply.payload.get(5) == Some(&ORIGIN))),
            Err(Error { source, .. })
                if matches!(source.errno(), Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ESRCH)) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// Sends the messages batch by batch; only the last one of each is acknowledged, errors are always reported.
    fn many(
        &mut self,
        operation: &'static str,
        name: &str,
        parts: impl Iterator<Item = Part>,
        skip_absent: bool,
        go_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<usize> {
        let mut parts = parts.peekable();
        let mut done = 0;
        while parts.peek().is_some() && go_on(done) {
            let batch: Vec<Part> = parts.by_ref().take(AT_ONCE).collect();
            let messages: Vec<Outgoing<'_>> = (1..)
                .zip(&batch)
                .map(|(nth, (kind, flags, payload))| {
                    let acknowledged = if nth == batch.len() { ACK } else { 0 };
                    Outgoing { kind: *kind, flags: flags | acknowledged, payload }
                })
                .collect();
            match self.socket.batch(&messages) {
                Ok(_) => {}
                // The kernel has gone through the whole batch before it answers.
                Err(source) if skip_absent && source.errno().is_some_and(|it| ABSENT.contains(&it)) => {}
                Err(source) => return Err(Error { operation, object: name.to_owned(), source }),
            }
            done += batch.len();
        }
        go_on(done);
        Ok(done)
    }
}

fn route(kind: u16, index: u32, of: &Route) -> Part {
    let (family, to) = octets(of.destination);
    let scope = if of.destination.is_ipv4() && of.gateway.is_none() { libc::RT_SCOPE_LINK } else { 0 };
    let header = [family, of.prefix_bits, 0, 0, libc::RT_TABLE_MAIN, ORIGIN, scope, libc::RTN_UNICAST, 0, 0, 0, 0];
    let mut request = Builder::with_header(&header);
    request.bytes(libc::RTA_DST, &to).u32(libc::RTA_OIF, index);
    if let Some(gateway) = of.gateway {
        request.bytes(libc::RTA_GATEWAY, &octets(gateway).1);
    }
    let flags = if kind == libc::RTM_NEWROUTE { CREATE | EXCLUSIVE } else { 0 };
    // Four short attributes fit.
    (kind, flags, request.finish().unwrap_or_default())
}

fn neighbour(kind: u16, flags: u16, index: u32, address: IpAddr, mac: Option<[u8; 6]>) -> Part {
    let (family, octets) = octets(address);
    let state = if mac.is_some() { libc::NUD_PERMANENT } else { 0 };
    let mut request = Builder::with_header(&neighbour_header(family, index, state, 0));
    request.bytes(libc::NDA_DST, &octets);
    if let Some(mac) = mac {
        request.bytes(libc::NDA_LLADDR, &mac);
    }
    (kind, flags, request.finish().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::Namespaces;
    use crate::rtnl::VethEnd;
    use std::net::{Ipv4Addr, Ipv6Addr};

    #[test]
    fn many_routes_and_neighbours_come_and_go() {
        let made = |name| Namespaces::create(name, || -> std::result::Result<_, crate::Error> { Ok(()) });
        let (here, ()) = made("here").expect("this test makes network namespaces and needs root");
        let (there, ()) = made("there").expect("as above");
        let run = here.run(|| -> Result<()> {
            let mut links = Links::open()?;
            let end = |name| VethEnd { name, mac: None, queues: 1 };
            links.add_veth_pair(end("near0"), end("far0"), there.network())?;
            links.set_up("near0", true)?;
            there.run(|| Links::open()?.set_up("far0", true)).expect("entered")?;
            let hop = [IpAddr::from([198, 19, 0, 2]), "2001:2:0:200::2".parse().expect("an address")];
            for (gateway, bits) in hop.into_iter().zip([32, 128]) {
                links.add_route("near0", gateway, bits, None)?;
            }
            let v4 = |nth: u32| IpAddr::from(Ipv4Addr::from_bits((16 << 24) + (nth << 8)));
            let v6 = |nth: u32| IpAddr::from(Ipv6Addr::from_bits((0x3fff << 112) + (u128::from(nth) << 80)));
            let addresses: [&dyn Fn(u32) -> IpAddr; 2] = [&v4, &v6];
            for ((address, prefix_bits), gateway) in addresses.into_iter().zip([24, 48]).zip(hop) {
                let route = |nth| Route { destination: address(nth), prefix_bits, gateway: Some(gateway) };
                let routes = || (0..1_000).map(route);
                assert!(!links.is_added(address(999))?);
                let mut heard = 0;
                let added = links.add_many("near0", routes(), &mut |done| {
                    heard = done;
                    true
                })?;
                assert_eq!((added, heard, links.is_added(address(999))?), (1_000, 1_000, true));
                assert!(!links.is_added(address(1_000))?);
                let twice = links.add_many("near0", routes(), &mut |_| true).expect_err("they are there");
                assert_eq!(twice.source.errno(), Some(libc::EEXIST), "{twice}");
                // Also where some are gone already.
                links.delete_many("near0", (300..500).map(route))?;
                assert!(!links.is_added(address(400))?);
                links.delete_many("near0", routes())?;
                assert!(!links.is_added(address(0))? && !links.is_added(address(999))?);
                let ended = links.add_many("near0", routes(), &mut |done| done < 200)?;
                assert_eq!(ended, 256);
                links.delete_many("near0", routes())?;

                let index = links.get("near0")?.index;
                let known = |nth| crate::neighbour::permanent(address(nth), index).expect("a device");
                links.add_neighbours("near0", (0..2_000).map(address), [2, 0, 0, 0, 0, 9], &mut |_| true)?;
                assert_eq!((known(0), known(1_999)), (Some([2, 0, 0, 0, 0, 9]), Some([2, 0, 0, 0, 0, 9])));
                links.delete_neighbours("near0", (0..2_100).map(address))?;
                assert_eq!((known(0), known(1_999)), (None, None));
            }
            Ok(())
        });
        run.expect("entered").expect("the kernel takes it");
    }
}
