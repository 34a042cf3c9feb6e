//! Virtual Ethernet devices: pairs with several queues, VXLAN, bridges, their ports and static neighbours. Source: kernel
//! `include/uapi/linux/if_link.h`, `neighbour.h`; `drivers/net/veth.c`, `net/bridge/br_netlink.c`.

use super::{Builder, CREATE, EXCLUSIVE, Links, Result, link_header, octets};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsRawFd as _, BorrowedFd};

/// One end of a pair.
#[derive(Debug, Clone, Copy)]
pub struct VethEnd<'a> {
    pub name: &'a str,
    /// Its Ethernet address; `None`: chosen by the kernel.
    pub mac: Option<[u8; 6]>,
    /// Number of receive queues, and of send queues; 0: chosen by the kernel.
    pub queues: u32,
}

impl VethEnd<'_> {
    fn fill(&self, request: &mut Builder) {
        request.text(libc::IFLA_IFNAME, self.name);
        if self.queues > 0 {
            request.u32(libc::IFLA_NUM_TX_QUEUES, self.queues).u32(libc::IFLA_NUM_RX_QUEUES, self.queues);
        }
        if let Some(mac) = self.mac {
            request.bytes(libc::IFLA_ADDRESS, &mac);
        }
    }
}

/// `struct ndmsg`
pub(crate) fn neighbour_header(family: u8, index: u32, state: u16, flags: u8) -> [u8; 12] {
    let mut header = [family, 0, 0, 0, 0, 0, 0, 0, 0, 0, flags, 0];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..10].copy_from_slice(&state.to_ne_bytes());
    header
}

impl Links {
    /// Creates a pair of virtual Ethernet devices with several queues, the far end in another network namespace.
    /// Errors: the name exists, more queues than the kernel supports, or no privilege.
    pub fn add_veth_pair(&mut self, near: VethEnd<'_>, far: VethEnd<'_>, far_namespace: BorrowedFd<'_>) -> Result<()> {
        let fd = u32::try_from(far_namespace.as_raw_fd()).unwrap_or(u32::MAX);
        let mut request = Builder::with_header(&link_header(0, 0, 0));
        near.fill(&mut request);
        request.nest(libc::IFLA_LINKINFO, |info| {
            info.bytes(libc::IFLA_INFO_KIND, b"veth");
            info.nest(libc::IFLA_INFO_DATA, |data| {
                const VETH_INFO_PEER: u16 = 1;
                data.nest_with_header(VETH_INFO_PEER, &link_header(0, 0, 0), |peer| {
                    far.fill(peer);
                    peer.u32(libc::IFLA_NET_NS_FD, fd);
                });
            });
        });
        self.send("make veth", near.name, libc::RTM_NEWLINK, CREATE | EXCLUSIVE, request).map(drop)
    }

    /// Creates a VXLAN tunnel to another host.
    /// Errors: the name or number exists, the kernel has no VXLAN, or no privilege.
    pub fn add_vxlan(&mut self, name: &str, number: u32, remote: Ipv4Addr) -> Result<()> {
        let (id, group, port) = (1, 2, 15); // IFLA_VXLAN_*
        let mut request = Builder::with_header(&link_header(0, 0, 0));
        request.text(libc::IFLA_IFNAME, name);
        request.nest(libc::IFLA_LINKINFO, |info| {
            info.bytes(libc::IFLA_INFO_KIND, b"vxlan");
            info.nest(libc::IFLA_INFO_DATA, |data| {
                // RFC 7348 section 8; the kernel's own default is older.
                data.u32(id, number).bytes(group, &remote.octets()).bytes(port, &4789_u16.to_be_bytes());
            });
        });
        self.send("make vxlan", name, libc::RTM_NEWLINK, CREATE | EXCLUSIVE, request).map(drop)
    }

    /// Creates a bridge without spanning tree protocol and multicast snooping.
    /// Errors: the name exists, the kernel has no bridges, or no privilege.
    pub fn add_bridge(&mut self, name: &str) -> Result<()> {
        let (stp_state, multicast_snooping) = (5, 23);
        let mut request = Builder::with_header(&link_header(0, 0, 0));
        request.text(libc::IFLA_IFNAME, name);
        request.nest(libc::IFLA_LINKINFO, |info| {
            info.bytes(libc::IFLA_INFO_KIND, b"bridge");
            info.nest(libc::IFLA_INFO_DATA, |data| {
                data.u32(stp_state, 0).u8(multicast_snooping, 0);
            });
        });
        self.send("make bridge", name, libc::RTM_NEWLINK, CREATE | EXCLUSIVE, request).map(drop)
    }

    /// Makes a device a port of a bridge.
    /// Errors: one of them does not exist, or no privilege.
    pub fn add_port(&mut self, bridge: &str, name: &str) -> Result<()> {
        let master = self.get(bridge)?.index;
        self.change("add to a bridge link", name, |request| {
            request.u32(libc::IFLA_MASTER, master);
        })
    }

    /// Adds a static entry for an Ethernet address behind a port of a bridge.
    /// Errors: the device is not a port of a bridge, or no privilege.
    pub fn add_port_address(&mut self, port: &str, mac: [u8; 6]) -> Result<()> {
        let index = self.get(port)?.index;
        let family = libc::AF_BRIDGE as u8;
        // For a bridge, `NUD_NOARP` is a static address that does not age.
        let mut request = Builder::with_header(&neighbour_header(family, index, libc::NUD_NOARP, libc::NTF_MASTER));
        request.bytes(libc::NDA_LLADDR, &mac);
        let flags = CREATE | libc::NLM_F_REPLACE as u16;
        self.send("add an Ethernet address to port", port, libc::RTM_NEWNEIGH, flags, request).map(drop)
    }

    /// Adds a static neighbour entry: its Ethernet address is never resolved.
    /// Errors: no such device, the device is down, or no privilege.
    pub fn add_neighbour(&mut self, name: &str, address: IpAddr, mac: [u8; 6]) -> Result<()> {
        let index = self.get(name)?.index;
        let (family, octets) = octets(address);
        let mut request = Builder::with_header(&neighbour_header(family, index, libc::NUD_PERMANENT, 0));
        request.bytes(libc::NDA_DST, &octets).bytes(libc::NDA_LLADDR, &mac);
        let flags = CREATE | libc::NLM_F_REPLACE as u16;
        let object = format!("{address} of {name}");
        self.send("add neighbour", object, libc::RTM_NEWNEIGH, flags, request).map(drop)
    }

    /// Removes a static neighbour entry: the kernel resolves the address when needed. A missing one is not an
    /// error.
    /// Errors: no such device, or no privilege.
    pub fn delete_neighbour(&mut self, name: &str, address: IpAddr) -> Result<()> {
        let index = self.get(name)?.index;
        let (family, octets) = octets(address);
        let mut request = Builder::with_header(&neighbour_header(family, index, 0, 0));
        request.bytes(libc::NDA_DST, &octets);
        match self.send("forget neighbour", format!("{address} of {name}"), libc::RTM_DELNEIGH, 0, request) {
            Err(error) if error.source.errno() == Some(libc::ENOENT) => Ok(()),
            other => other.map(drop),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netns::Namespaces;

    #[test]
    fn a_pair_with_queues_becomes_ports_and_knows_its_neighbours() {
        let made = |name| Namespaces::create(name, || -> std::result::Result<_, crate::Error> { Ok(()) });
        let (here, ()) = made("here").expect("this test makes network namespaces and needs root");
        let (there, ()) = made("there").expect("as above");
        let run = here.run(|| -> Result<()> {
            let mut links = Links::open()?;
            let mac = [2, 0, 0, 0, 0, 1];
            let near = VethEnd { name: "near0", mac: Some(mac), queues: 2 };
            links.add_veth_pair(near, VethEnd { name: "far0", mac: None, queues: 2 }, there.network())?;
            let text = std::fs::read_to_string("/proc/thread-self/net/dev").expect("proc");
            assert!(text.contains("near0"), "{text}");
            links.set_up("near0", true)?;
            there.run(|| Links::open()?.set_up("far0", true)).expect("entered")?;
            links.add_neighbour("near0", IpAddr::from([198, 18, 0, 2]), [2, 0, 0, 0, 0, 9])?;
            let arp = std::fs::read_to_string("/proc/thread-self/net/arp").expect("proc");
            assert!(arp.contains("198.18.0.2") && arp.contains("02:00:00:00:00:09") && arp.contains("0x6"), "{arp}");
            let address = IpAddr::from([198, 18, 0, 2]);
            let index = links.get("near0")?.index;
            let known = || crate::neighbour::permanent(address, index).expect("a device");
            assert_eq!(known(), Some([2, 0, 0, 0, 0, 9]));
            for _ in 0..2 {
                links.delete_neighbour("near0", address)?;
                assert_eq!(known(), None);
            }
            links.add_bridge("br0")?;
            links.add_port("br0", "near0")?;
            links.add_port_address("near0", [2, 0, 0, 0, 0, 8])?;
            let error = links.add_port_address("br0", [2, 0, 0, 0, 0, 8]).expect_err("no port").to_string();
            assert!(error.contains("br0"), "{error}");
            Ok(())
        });
        run.expect("entered").expect("the kernel takes it");
    }
}
