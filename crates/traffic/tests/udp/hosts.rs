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
