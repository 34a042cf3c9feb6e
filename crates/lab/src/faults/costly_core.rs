//! Makes one core receive all packets of a host, at a high cost per packet.

use super::Undo;
use crate::host::Host;
use crate::{Error, Result};
use narrows_sys::packet_tap::{INSTRUCTIONS_MAX, PacketTap};
use narrows_sys::rtnl::Links;
use narrows_sys::{files, process};
use std::path::PathBuf;

/// The maximum number of taps of a host.
const TAPS_MAX: u64 = 1024;

/// Steers all packets that the host's interface receives to the last core (`rps_cpus`), and makes each packet expensive
/// there: `taps` packet taps, each with the longest possible filter, about 4 µs. The path keeps off that core.
pub(super) fn steer(host: &Host, taps: u64) -> Result<Undo> {
    let name = host.device();
    let steering = PathBuf::from(format!("/sys/class/net/{name}/queues/rx-0/rps_cpus"));
    let core = process::cores().saturating_sub(1);
    let (taps, before) = host.run(|| -> Result<_> {
        let index = Links::open()?.get(name)?.index;
        let open = |_| PacketTap::open(name, index, INSTRUCTIONS_MAX);
        let taps = (0..taps.min(TAPS_MAX)).map(open).collect::<narrows_sys::Result<Vec<_>>>()?;
        let before = files::read_text(&steering)?;
        files::write_kernel(&steering, &mask(core)).map_err(explain)?;
        Ok((taps, before.trim().to_owned()))
    })??;
    host.reserved().take(core);
    Ok(Undo::new(move |host| {
        drop(taps);
        host.reserved().give_back(core);
        Ok(host.run(|| files::write_kernel(&steering, &before))??)
    }))
}

/// Only root of the first user namespace may write `rps_cpus` (net/core/net-sysfs.c).
fn explain(error: narrows_sys::Error) -> Error {
    match error.errno() {
        Some(1) if !process::is_root_of_machine() => Error::NeedsRoot { what: "steering packets to one core" },
        _ => error.into(),
    }
}

/// The kernel's notation of one core: hexadecimal groups of 32 cores, the highest first.
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
