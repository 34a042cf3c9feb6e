//! # softirq-core-saturated
//!
//! Each packet that the host receives costs so much in the softirq that one core is full of it. The cost is a number of packet
//! taps on the device, each with the longest filter there is, and packet steering (`rps_cpus`) brings all packets of the device to
//! one core, as a NIC with a single queue does. The backlog of that core overflows when it cannot keep up.

use super::{Fault, HOSTS, Parameter, Undo, Unit, Value};
use crate::Result;
use crate::host::Host;
use narrows_sys::packet_tap::{INSTRUCTIONS_MAX, PacketTap};
use narrows_sys::rtnl::Links;
use narrows_sys::{files, process};
use std::path::PathBuf;

pub(super) const FAULT: Fault = Fault {
    id: "softirq-core-saturated",
    about: "each received packet costs much in the softirq of one core",
    places: HOSTS,
    parameter: Some(Parameter {
        unit: Unit::Count,
        default: "128",
        about: "packet taps, each with a filter of 4096 steps",
    }),
    host: Some(inject),
    path: None,
};

fn inject(host: &Host, value: &Value) -> Result<Undo> {
    let name = host.device();
    let steering = PathBuf::from(format!("/sys/class/net/{name}/queues/rx-0/rps_cpus"));
    let core = process::cores().saturating_sub(1);
    let (taps, before) = host.run(|| -> Result<_> {
        let index = Links::open()?.get(name)?.index;
        let open = |_| PacketTap::open(name, index, INSTRUCTIONS_MAX);
        let taps = (0..value.number().min(1024)).map(open).collect::<narrows_sys::Result<Vec<_>>>()?;
        let before = files::read_text(&steering)?;
        files::write_kernel(&steering, &mask(core))?;
        Ok((taps, before.trim().to_owned()))
    })??;
    Ok(Undo::new(move |host| {
        drop(taps);
        Ok(host.run(|| files::write_kernel(&steering, &before))??)
    }))
}

/// The word of the kernel for one core: hexadecimal groups of 32 cores, the highest first.
fn mask(core: usize) -> String {
    let groups = core / 32;
    format!("{:x}{}", 1_u32 << (core % 32), ",00000000".repeat(groups))
}

#[cfg(test)]
mod tests {
    use super::mask;

    #[test]
    fn a_core_has_its_bit() {
        assert_eq!(mask(1), "2");
        assert_eq!(mask(33), "2,00000000");
    }
}
