//! Hosts of their own: network namespaces with veth pairs between them, gone with the test.

use narrows_sys::netns::Namespaces;
use narrows_sys::rtnl::Links;
use std::net::IpAddr;

/// A host without links.
pub(crate) fn host(name: &str) -> Namespaces {
    let made = Namespaces::create(name, || Ok::<_, narrows_sys::Error>(()));
    made.expect("this test makes network namespaces and needs root").0
}

/// Sets links up inside a host.
pub(crate) fn links(host: &Namespaces, work: impl FnOnce(&mut Links) -> narrows_sys::rtnl::Result<()> + Send) {
    host.run(|| Links::open().and_then(|mut links| work(&mut links))).expect("entered").expect("the kernel takes it");
}

/// The addresses of two neighbours, of one family.
pub(crate) fn addresses(ipv6: bool) -> [IpAddr; 2] {
    [1_u8, 2].map(|host| {
        if ipv6 { IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(host)]) } else { IpAddr::from([10, 77, 0, host]) }
    })
}

/// Two hosts on one wire, `near0` and `far0`, with these MTUs. What is larger than the other end's MTU vanishes.
pub(crate) fn neighbours(near_mtu: u32, far_mtu: u32) -> (Namespaces, Namespaces) {
    let (near, far) = (host("near"), host("far"));
    links(&near, |links| {
        links.add_veth("near0", "far0", far.network())?;
        finish(links, "near0", near_mtu, 0)
    });
    links(&far, |links| finish(links, "far0", far_mtu, 1));
    (near, far)
}

fn finish(links: &mut Links, name: &str, mtu: u32, which: usize) -> narrows_sys::rtnl::Result<()> {
    links.set_mtu(name, mtu)?;
    links.add_address(name, addresses(false)[which], 24)?;
    links.set_up("lo", true)?;
    links.set_up(name, true)?;
    links.add_address(name, addresses(true)[which], 64)
}

/// Two hosts with a router between them, whose second wire carries less; it says so by ICMP.
pub(crate) fn routed(far_mtu: u32) -> (Namespaces, Namespaces, Namespaces) {
    let (near, router, far) = (host("near"), host("router"), host("far"));
    let net = |wire: u8, host: u8| {
        [
            (IpAddr::from([10, 78, wire, host]), 24),
            (IpAddr::from([0xfd01, u16::from(wire), 0, 0, 0, 0, 0, u16::from(host)]), 64),
        ]
    };
    let end = |links: &mut Links, name: &str, wire, host| {
        links.set_up("lo", true)?;
        links.set_up(name, true)?;
        net(wire, host).into_iter().try_for_each(|(address, bits)| links.add_address(name, address, bits))
    };
    let gateways = |links: &mut Links, name: &str, wire| {
        let [(v4, _), (v6, _)] = net(wire, 9);
        links.add_route(name, IpAddr::from([0; 4]), 0, Some(v4))?;
        links.add_route(name, IpAddr::from([0_u16; 8]), 0, Some(v6))
    };
    links(&router, |links| {
        links.add_veth("r1", "near0", near.network())?;
        links.add_veth("r2", "far0", far.network())?;
        links.set_mtu("r2", far_mtu)?;
        end(links, "r1", 1, 9)?;
        end(links, "r2", 2, 9)
    });
    let forward = ["net.ipv4.ip_forward", "net.ipv6.conf.all.forwarding"];
    router.run(|| forward.iter().for_each(|key| narrows_sys::sysctl::write(key, "1").unwrap())).unwrap();
    links(&near, |links| {
        end(links, "near0", 1, 1)?;
        gateways(links, "near0", 1)
    });
    links(&far, |links| {
        links.set_mtu("far0", far_mtu)?;
        end(links, "far0", 2, 2)?;
        gateways(links, "far0", 2)
    });
    (near, router, far)
}

/// The address of the far one of two hosts with a router between them.
pub(crate) fn far_address(ipv6: bool) -> IpAddr {
    if ipv6 { IpAddr::from([0xfd01, 2, 0, 0, 0, 0, 0, 2]) } else { IpAddr::from([10, 78, 2, 2]) }
}
