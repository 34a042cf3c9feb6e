//! # bpf-programs
//!
//! An XDP program takes time for each packet that the host receives, as an agent of security or monitoring does. Packet steering
//! (`rps_cpus`) brings all packets of the interface to one core, as a NIC with a single queue does.

use super::costly_core::steer;
use super::{Fault, HOSTS, Undo, Unit, takes};
use narrows_sys::bpf_programs::Costly;
use narrows_sys::rtnl::Links;

pub(super) const FAULT: Fault = Fault {
    id: "bpf-programs",
    about: "an XDP program takes time for each received packet, on one core",
    places: HOSTS,
    parameter: takes(Unit::Count, "60000", "to which number the program counts for each packet"),
    host: Some(|host, value| {
        let steered = steer(host, 0)?;
        let loops = u16::try_from(value.number()).unwrap_or(u16::MAX);
        let attached = host.run(|| Costly::attach(Links::open()?.get(host.device())?.index, loops))??;
        Ok(steered.then(Undo::new(move |_| {
            drop(attached);
            Ok(())
        })))
    }),
    ..Fault::NONE
};
