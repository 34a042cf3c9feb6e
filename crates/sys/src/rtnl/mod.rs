//! Links, addresses and routes over `NETLINK_ROUTE`. Source: rtnetlink(7), kernel `include/uapi/linux/if_link.h`.

mod bridge;
mod bulk;
mod ethernet;
pub mod qdisc;
mod route;

pub use bridge::BridgeOption;
pub use ethernet::VethEnd;
pub(crate) use ethernet::neighbour_header;
pub use qdisc::{Qdisc, QdiscCounters};
pub use route::Route;

use crate::netlink::{self, Builder, CREATE, EXCLUSIVE, Family, Socket, find, octets, u32_at, u64_at};
use std::os::fd::BorrowedFd;
use thiserror::Error;

/// The operation, the device, and the kernel's error.
#[derive(Debug, Error)]
#[error("cannot {operation} {object}: {source}")]
pub struct Error {
    /// A verb in the infinitive with its object's kind.
    pub operation: &'static str,
    /// The device, address or route.
    pub object: String,
    #[source]
    pub source: netlink::Error,
}

impl From<Error> for crate::Error {
    /// The kernel's error number, if there is one.
    fn from(error: Error) -> Self {
        let source = match error.source.errno() {
            Some(number) => std::io::Error::from_raw_os_error(number),
            None => std::io::Error::other(error.source.to_string()),
        };
        Self::new(error.operation, error.object, source)
    }
}

/// A result of this module.
pub type Result<T> = std::result::Result<T, Error>;

/// One link as the kernel describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    /// Its index in its namespace.
    pub index: u32,
    /// MTU in bytes.
    pub mtu: u32,
    /// Length of its queue in packets.
    pub tx_queue_length: u32,
    /// Whether it is administratively up.
    pub up: bool,
    /// Whether it has a link.
    pub carrier: bool,
    /// Its Ethernet address; `None` if it has another kind or none.
    pub address: Option<[u8; 6]>,
    pub tx_packets: u64,
    /// Packets dropped instead of sent.
    pub tx_dropped: u64,
    pub rx_packets: u64,
    /// Packets received and dropped.
    pub rx_dropped: u64,
}

/// The links of one network namespace.
#[derive(Debug)]
pub struct Links {
    socket: Socket,
}

/// `struct ifinfomsg`
fn link_header(index: u32, flags: u32, change: u32) -> [u8; 16] {
    let mut header = [0; 16];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&change.to_ne_bytes());
    header
}

impl Links {
    /// The links of the calling thread's network namespace.
    pub fn open() -> Result<Self> {
        let socket = Socket::open(Family::Route).map_err(|source| Error {
            operation: "open",
            object: "the links of the namespace".to_owned(),
            source,
        })?;
        Ok(Self { socket })
    }

    fn send(
        &mut self,
        operation: &'static str,
        object: impl Into<String>,
        kind: u16,
        flags: u16,
        request: Builder,
    ) -> Result<Vec<netlink::Message>> {
        let sent = request.finish().and_then(|payload| self.socket.request(kind, flags, &payload));
        sent.map_err(|source| Error { operation, object: object.into(), source })
    }

    /// Reads a link.
    pub fn get(&mut self, name: &str) -> Result<Link> {
        let mut request = Builder::with_header(&link_header(0, 0, 0));
        request.text(libc::IFLA_IFNAME, name);
        let replies = self.send("find link", name, libc::RTM_GETLINK, 0, request)?;
        let payload = replies.first().map(|reply| reply.payload.as_slice()).unwrap_or_default();
        let attributes = payload.get(16..).unwrap_or_default();
        let number = |kind| find(attributes, kind).and_then(|attribute| attribute.u32()).unwrap_or(0);
        let statistics = find(attributes, libc::IFLA_STATS64).map(|attribute| attribute.payload).unwrap_or_default();
        let count = |index: usize| u64_at(statistics, index * 8).unwrap_or(0);
        Ok(Link {
            index: u32_at(payload, 4).unwrap_or(0),
            mtu: number(libc::IFLA_MTU),
            tx_queue_length: number(libc::IFLA_TXQLEN),
            up: u32_at(payload, 8).unwrap_or(0) & libc::IFF_UP as u32 != 0,
            carrier: u32_at(payload, 8).unwrap_or(0) & libc::IFF_RUNNING as u32 != 0,
            address: find(attributes, libc::IFLA_ADDRESS).and_then(|attribute| attribute.payload.try_into().ok()),
            rx_packets: count(0),
            tx_packets: count(1),
            rx_dropped: count(6),
            tx_dropped: count(7),
        })
    }

    fn change(&mut self, operation: &'static str, name: &str, fill: impl FnOnce(&mut Builder)) -> Result<()> {
        let index = self.get(name)?.index;
        let mut request = Builder::with_header(&link_header(index, 0, 0));
        fill(&mut request);
        self.send(operation, name, libc::RTM_NEWLINK, 0, request).map(drop)
    }

    /// Sets a link up or down.
    /// Errors: no such link, or no privilege.
    pub fn set_up(&mut self, name: &str, up: bool) -> Result<()> {
        let index = self.get(name)?.index;
        let flag = libc::IFF_UP as u32;
        let request = Builder::with_header(&link_header(index, if up { flag } else { 0 }, flag));
        self.send("set up or down link", name, libc::RTM_NEWLINK, 0, request).map(drop)
    }

    /// Sets the MTU in bytes.
    /// Errors: out of the device's range.
    pub fn set_mtu(&mut self, name: &str, mtu: u32) -> Result<()> {
        self.change("set the MTU of link", name, |request| {
            request.u32(libc::IFLA_MTU, mtu);
        })
    }

    /// Sets the length of the device's queue in packets.
    /// Errors: no such link, or no privilege.
    pub fn set_tx_queue_length(&mut self, name: &str, packets: u32) -> Result<()> {
        self.change("set the queue length of link", name, |request| {
            request.u32(libc::IFLA_TXQLEN, packets);
        })
    }

    /// Renames a link that is down.
    /// Errors: the name is taken, or the link is up on an old kernel.
    pub fn rename(&mut self, name: &str, to: &str) -> Result<()> {
        self.change("rename link", name, |request| {
            request.text(libc::IFLA_IFNAME, to);
        })
    }

    /// Removes a link, of a pair both ends.
    /// Errors: no such link, not a virtual one, or no privilege.
    pub fn delete(&mut self, name: &str) -> Result<()> {
        let index = self.get(name)?.index;
        let request = Builder::with_header(&link_header(index, 0, 0));
        self.send("remove link", name, libc::RTM_DELLINK, 0, request).map(drop)
    }

    /// Creates a pair of virtual Ethernet devices, the peer in another network namespace.
    /// Errors: a name is taken, or no privilege.
    pub fn add_veth(&mut self, name: &str, peer: &str, peer_namespace: BorrowedFd<'_>) -> Result<()> {
        let end = |name| VethEnd { name, mac: None, queues: 0 };
        self.add_veth_pair(end(name), end(peer), peer_namespace)
    }

    /// Replaces the queueing discipline at the root of a device.
    /// Errors: the kernel does not have it, rejects its options, or no privilege.
    pub fn replace_qdisc(&mut self, name: &str, qdisc: &Qdisc) -> Result<()> {
        // The kernel would change a discipline of the same kind in place, which not every kind supports.
        self.delete_qdisc(name)?;
        let index = self.get(name)?.index;
        for part in qdisc.parts(index) {
            let flags = CREATE | libc::NLM_F_REPLACE as u16;
            let sent = self.socket.request(part.kind, flags, &part.payload);
            sent.map_err(|source| Error {
                operation: "set the queueing discipline of link",
                object: name.to_owned(),
                source,
            })?;
        }
        Ok(())
    }

    /// The counters of the queueing discipline at the root of a device; `None` if there is none.
    pub fn root_qdisc(&mut self, name: &str) -> Result<Option<QdiscCounters>> {
        let index = self.get(name)?.index;
        let request = Builder::with_header(&qdisc::header(index, 0, 0));
        let operation = "read the queueing discipline of link";
        let replies = self.send(operation, name, libc::RTM_GETQDISC, netlink::DUMP, request)?;
        Ok(replies.iter().find_map(|reply| QdiscCounters::of_root(&reply.payload, index)))
    }

    /// Removes the queueing discipline at the root: the kernel restores its default. A missing one is not an error.
    pub fn delete_qdisc(&mut self, name: &str) -> Result<()> {
        let index = self.get(name)?.index;
        let request = Builder::with_header(&qdisc::header(index, 0, qdisc::ROOT));
        match self.send("remove the queueing discipline of link", name, libc::RTM_DELQDISC, 0, request) {
            Err(error) if error.source.errno() == Some(libc::ENOENT) => Ok(()),
            other => other.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::Namespaces;
    use std::net::{Ipv4Addr, Ipv6Addr};

    /// Runs in a separate network namespace; without the privilege for that it fails, and says so.
    fn in_a_namespace(work: impl FnOnce(&mut Links) -> Result<()> + Send) {
        let made = Namespaces::create("test", || -> std::result::Result<_, crate::Error> { Ok(()) });
        let (namespaces, ()) = made.expect("this test makes network namespaces and needs root");
        let run = namespaces.run(|| Links::open().and_then(|mut links| work(&mut links)));
        run.expect("the namespace is entered").expect("the kernel takes it");
    }

    #[test]
    fn a_veth_is_made_addressed_routed_and_shaped() {
        let (other, ()) =
            Namespaces::create("other", || -> std::result::Result<_, crate::Error> { Ok(()) }).expect("needs root");
        in_a_namespace(|links| {
            links.add_veth("a0", "b0", other.network())?;
            links.rename("a0", "lan0")?;
            links.set_mtu("lan0", 1400)?;
            links.set_tx_queue_length("lan0", 77)?;
            links.add_address("lan0", Ipv4Addr::new(10, 1, 0, 1).into(), 24)?;
            links.add_address("lan0", Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 0, 1).into(), 64)?;
            links.set_up("lan0", true)?;
            links.add_route("lan0", Ipv4Addr::UNSPECIFIED.into(), 0, Some(Ipv4Addr::new(10, 1, 0, 2).into()))?;
            links.add_route("lan0", Ipv6Addr::UNSPECIFIED.into(), 0, None)?;
            let link = links.get("lan0")?;
            assert_eq!((link.mtu, link.tx_queue_length, link.up), (1400, 77, true));
            for qdisc in [
                Qdisc::TokenBucket { rate_bps: 100_000_000, burst_bytes: 20_000, limit_bytes: 100_000 },
                Qdisc::TokenBucket { rate_bps: 50_000_000_000, burst_bytes: 200_000, limit_bytes: 100_000 },
                Qdisc::HierarchicalTokenBucket { rate_bps: 900_000_000, burst_bytes: 20_000, limit_packets: 10 },
                Qdisc::PacketFifo { limit_packets: 5 },
            ] {
                links.replace_qdisc("lan0", &qdisc)?;
            }
            other.run(|| Links::open()?.set_up("b0", true)).expect("entered")?;
            let full = Qdisc::TokenBucket { rate_bps: 8_000, burst_bytes: 2000, limit_bytes: 3000 };
            links.replace_qdisc("lan0", &full)?;
            let before = links.root_qdisc("lan0")?.expect("one is there");
            assert_eq!((before.kind.as_str(), before.drops), ("tbf", 0));
            let socket = std::net::UdpSocket::bind("10.1.0.1:0").expect("the address is there");
            // A broadcast needs no neighbour.
            socket.set_broadcast(true).expect("set");
            for _ in 0..10 {
                socket.send_to(&[0; 958], "10.1.0.255:9").expect("dropped without a word");
            }
            let after = links.root_qdisc("lan0")?.expect("one is there");
            // Of 1000 bytes each, two pass at once and three wait; the kernel may send packets of its own.
            assert!(after.drops >= 5 && after.packets + u64::from(after.waiting + after.drops) >= 10, "{after:?}");
            links.delete_qdisc("lan0")?;
            links.delete_qdisc("lan0")?;
            assert_ne!(links.root_qdisc("lan0")?.map(|qdisc| qdisc.kind).as_deref(), Some("tbf"));
            Ok(())
        });
    }

    #[test]
    fn an_error_names_the_device() {
        in_a_namespace(|links| {
            let error = links.set_mtu("none0", 1400).expect_err("no such device").to_string();
            assert!(error.contains("none0") && error.contains("No such device"), "{error}");
            Ok(())
        });
    }
}
