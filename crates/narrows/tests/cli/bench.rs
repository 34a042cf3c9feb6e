//! A bench: the ports of a tester in the test's own network, and a router between them in another one.

use crate::world::{World, on_loopback};
use narrows_sys::netns::Namespaces;
use narrows_sys::rtnl::Links;

/// The beginning of a plan for it.
pub(crate) const PORTS: &str = r#"name = "a router"
link = "1G"
max-load = "20kpps"

[generator]
device = "gen0"
address = "198.18.0.2"
gateway = "198.18.0.1"

[receiver]
device = "rcv0"
address = "198.19.0.2"
gateway = "198.19.0.1"
"#;

/// Runs a test there. The router does not forward yet: `net.ipv4.conf.in0.forwarding`.
pub(crate) fn with_router(test: impl FnOnce(&World, &Namespaces) + Send) {
    on_loopback(|world| {
        let made = Namespaces::create("router", || Ok::<_, narrows_sys::Error>(()));
        let (router, ()) = made.expect("a network");
        let mut links = Links::open().expect("links");
        for (near, far, network) in [("gen0", "in0", 18), ("rcv0", "out0", 19)] {
            links.add_veth(near, far, router.network()).expect("a pair");
            links.add_address(near, [198, network, 0, 2].into(), 24).expect("an address");
            links.set_up(near, true).expect("a device");
            let there = router.run(|| {
                let mut links = Links::open()?;
                links.add_address(far, [198, network, 0, 1].into(), 24)?;
                links.set_up(far, true)
            });
            there.expect("a network").expect("a device");
        }
        test(world, &router);
    });
}
