//! The interfaces that a packet to the peer passes on its way out of this host, from the one on the route down.

use crate::kernel::{Link, Route, Tunnel};
use crate::{Host, Missing};
use std::net::IpAddr;

/// The most interfaces on top of each other: more are a loop.
const DEPTH_MAX: usize = 8;

/// Follows VLANs, MACVLANs, bonds, bridges, veth pairs and tunnels from `top`, the interface of `route`; why it ends, where
/// more must follow that this host does not show. A tunnel has the other end that its packets for the peer go to.
pub(crate) fn below(host: &dyn Host, top: &Link, route: &Route, peer: Option<IpAddr>) -> (Vec<Link>, Option<Missing>) {
    let mut way = Way { host, top: top.name.clone(), next_hop: route.gateway.or(peer) };
    let mut layers = vec![top.clone()];
    while layers.len() < DEPTH_MAX {
        let from = layers.len().checked_sub(2).and_then(|at| layers.get(at)).map(|link| link.name.clone());
        let next = match layers.last_mut().map(|link| way.next(link, from.as_deref())) {
            Some(Ok(Some(name))) if layers.iter().all(|link| link.name != name) => host.link(&name),
            Some(Err(why)) => return (layers, Some(why)),
            _ => break,
        };
        match next {
            Ok(link) => layers.push(link),
            Err(why) => return (layers, Some(why)),
        }
    }
    (layers, None)
}

/// The packet on its way down.
struct Way<'a> {
    host: &'a dyn Host,
    /// The interface of the last route that was looked up.
    top: String,
    /// Whom it is sent to on that interface.
    next_hop: Option<IpAddr>,
}

impl Way<'_> {
    /// The interface below one; none where it leaves the host there.
    fn next(&mut self, link: &mut Link, from: Option<&str>) -> Result<Option<String>, Missing> {
        if let Some(tunnel) = link.tunnel.clone() {
            return self.underlay(link, &tunnel).map(Some);
        }
        if link.kind.as_deref() == Some("veth") {
            // It came in at the other end of the pair, whose bridge forwards it.
            return Ok(if link.twin.is_some() && link.twin.as_deref() == from {
                link.master.clone()
            } else {
                link.twin.clone()
            });
        }
        match (&link.lower, link.kind.as_deref()) {
            (None, Some("bridge")) => self.forwarding(&link.name).map(|(port, _)| Some(port)),
            (lower, _) => Ok(lower.clone()),
        }
    }

    fn underlay(&mut self, link: &mut Link, tunnel: &Tunnel) -> Result<String, Missing> {
        if tunnel.elsewhere {
            return Err(Missing::because(format!("{} leaves through another network namespace", link.name)));
        }
        let remote = match tunnel.remote {
            None if link.kind.as_deref() == Some("vxlan") => self.forwarding(&link.name).map(|(_, remote)| remote)?,
            remote => remote,
        };
        let Some(remote) = remote else {
            let unknown = || Missing::because(format!("the other end of the tunnel {} is not known", link.name));
            return tunnel.device.clone().or_else(|| link.lower.clone()).ok_or_else(unknown);
        };
        if let Some(tunnel) = &mut link.tunnel {
            tunnel.remote = Some(remote);
        }
        let route = self.host.underlay(&link.name, remote)?;
        self.next_hop = route.gateway.or(Some(remote));
        self.top = tunnel.device.clone().unwrap_or(route.device);
        Ok(self.top.clone())
    }

    /// Where a bridge or VXLAN sends what is for the next hop.
    fn forwarding(&self, device: &str) -> Result<(String, Option<IpAddr>), Missing> {
        let next_hop =
            self.next_hop.ok_or_else(|| Missing::because("without a peer or a gateway there is no next hop"))?;
        let unknown = || Missing::because(format!("the Ethernet address of {next_hop} is not known"));
        let address = self.host.neighbour(next_hop, &self.top)?.address.ok_or_else(unknown)?;
        let entry = self.host.forwarding(device, &address)?;
        Ok((entry.port, entry.remote))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::{Answer, Forwarding, Neighbour, Question};

    /// A host of these interfaces: 192.0.2.9 is behind the port `port`, and the underlay is `under`.
    struct Made(Vec<Link>);

    impl Host for Made {
        fn read(&self, _: &str) -> Result<String, Missing> {
            Err(Missing::because("no files"))
        }

        fn list(&self, _: &str) -> Result<Vec<String>, Missing> {
            Err(Missing::because("no files"))
        }

        fn target(&self, _: &str) -> Result<String, Missing> {
            Err(Missing::because("no files"))
        }

        fn ask(&self, question: &Question) -> Result<Answer, Missing> {
            let unknown = || Missing::because("no such device");
            Ok(match question {
                Question::Link { device } => {
                    Answer::Link(self.0.iter().find(|link| link.name == *device).cloned().ok_or_else(unknown)?)
                }
                Question::Underlay { .. } => Answer::Route(Route { device: "under".into(), ..Route::default() }),
                Question::Neighbour { .. } => {
                    Answer::Neighbour(Neighbour { state: "stale".into(), address: Some("02:00:00:00:00:09".into()) })
                }
                Question::Forwarding { device, .. } if device == "br0" => {
                    Answer::Forwarding(Forwarding { port: "port".into(), remote: None })
                }
                Question::Forwarding { .. } => {
                    Answer::Forwarding(Forwarding { port: "vx0".into(), remote: Some([198, 51, 100, 2].into()) })
                }
                _ => return Err(unknown()),
            })
        }

        fn taken_unix_us(&self) -> u64 {
            0
        }
    }

    fn link(name: &str, kind: &str) -> Link {
        Link { name: name.into(), kind: (!kind.is_empty()).then(|| kind.into()), ..Link::default() }
    }

    fn tunnel(name: &str, remote: Option<[u8; 4]>) -> Link {
        let tunnel = Tunnel { remote: remote.map(IpAddr::from), overhead_bytes: 50, ..Tunnel::default() };
        Link { tunnel: Some(tunnel), ..link(name, "vxlan") }
    }

    fn names(links: &[Link]) -> (Vec<String>, Option<String>) {
        let peer = Some([192, 0, 2, 9].into());
        let (layers, why) = below(&Made(links.to_vec()), &links[0], &Route::default(), peer);
        (layers.into_iter().map(|link| link.name).collect(), why.map(|why| why.to_string()))
    }

    #[test]
    fn a_tunnel_leads_to_the_device_of_its_remote_ends_route() {
        let under = || link("under", "");
        assert_eq!(names(&[tunnel("vx0", Some([198, 51, 100, 2])), under()]).0, ["vx0", "under"]);
        assert_eq!(names(&[tunnel("vx0", None), under()]).0, ["vx0", "under"], "by its forwarding table");
        let links = [tunnel("vx0", None), under()];
        let (layers, _) = below(&Made(links.to_vec()), &links[0], &Route::default(), Some([192, 0, 2, 9].into()));
        assert_eq!(layers[0].tunnel.as_ref().and_then(|it| it.remote), Some([198, 51, 100, 2].into()));
        let mut elsewhere = tunnel("vx0", None);
        elsewhere.tunnel.as_mut().expect("a tunnel").elsewhere = true;
        let (layers, why) = names(&[elsewhere, under()]);
        assert_eq!(
            (layers, why.as_deref()),
            (vec!["vx0".into()], Some("vx0 leaves through another network namespace"))
        );
    }

    #[test]
    fn a_bridge_leads_to_the_port_of_the_next_hop() {
        let port = Link { master: Some("br0".into()), ..link("port", "veth") };
        assert_eq!(names(&[link("br0", "bridge"), port]).0, ["br0", "port"]);
    }

    #[test]
    fn a_veth_leads_to_its_other_end_and_the_bridge_of_that() {
        let own = Link { twin: Some("v1".into()), ..link("v0", "veth") };
        let other = Link { twin: Some("v0".into()), master: Some("br0".into()), ..link("v1", "veth") };
        let bridge = Link { lower: Some("eth0".into()), ..link("br0", "bridge") };
        assert_eq!(names(&[own, other, bridge, link("eth0", "")]).0, ["v0", "v1", "br0", "eth0"]);
    }

    #[test]
    fn what_stands_on_itself_ends() {
        let loops = |name: &str, lower: &str| Link { lower: Some(lower.into()), ..link(name, "vlan") };
        assert_eq!(names(&[loops("a", "b"), loops("b", "a")]).0, ["a", "b"]);
    }
}
