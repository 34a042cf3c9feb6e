//! # mtu-mismatch
//!
//! One interface's MTU differs from the others': a host with 9000 among hosts with 1500, or one with 1400; or a link in the
//! middle of the path has a smaller MTU than both hosts, and reports it by ICMP (RFC 1191, RFC 8201).

use super::{takes, Fault, Undo, Unit};
use crate::Result;
use crate::site::Site;
use narrows_sys::rtnl::Links;

pub(super) const FAULT: Fault = Fault {
    id: "mtu-mismatch",
    about: "one interface has a different MTU",
    places: &[Site::Client, Site::Server, Site::Path],
    parameter: takes(Unit::Count, "1400", "the MTU in bytes"),
    host: Some(|host, value| {
        let device = host.device();
        let mtu = value.number32();
        let before = host.run(|| -> Result<u32> {
            let mut links = Links::open()?;
            let before = links.get(device)?.mtu;
            links.set_mtu(device, mtu)?;
            Ok(before)
        })??;
        Ok(Undo::new(move |host| Ok(host.run(|| Links::open()?.set_mtu(device, before))??)))
    }),
    path: Some(|path, value, way| {
        if way.at == Site::Path {
            path.mtu = value.number32().max(576);
        }
    }),
};
