//! How busy each core of a host was.

use crate::layers::layers;
use narrows_model::load::host::{CpuTimes, HostSample};
use narrows_model::{Snapshot, keys};

/// A core with less left has none: sampling ticks leave the rest, as for a full machine (tester-limited).
pub(crate) const NO_TIME_LEFT: f64 = 0.93;

/// Devices whose packets a program or the kernel encrypts on this host.
const TUNNELS: [&str; 7] = ["tun", "wireguard", "ovpn", "xfrm", "vti", "vti6", "macsec"];

/// Whether packets go through a tunnel whose program or kernel thread may be what fills a core: not a data thread, not soft interrupts. It
/// costs UDP as much as TCP, so that a full path by its profile says nothing.
pub(crate) fn may_encrypt(host: &Snapshot, cores: &[CoreShare], thread: f64) -> bool {
    let layers = layers(host);
    let kinds = || layers.iter().map(|layer| layer.kind).chain(host.text(keys::NIC_KIND));
    // What the kernel encrypts is no user's code; a program that does may be any.
    let by_program = kinds().any(|kind| kind == "tun");
    let full = |core: &CoreShare| {
        let busy = core.busy + core.steal - if by_program { 0.0 } else { core.user };
        busy >= NO_TIME_LEFT && core.softirq < 0.5 && (thread < 0.5 || thread + core.softirq < NO_TIME_LEFT)
    };
    kinds().any(|kind| TUNNELS.contains(&kind)) && cores.iter().any(full)
}

/// Fractions of one core's time over the counted part of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CoreShare {
    pub cpu: u32,
    /// All but idle and stolen.
    pub busy: f64,
    /// Soft interrupts and interrupts.
    pub softirq: f64,
    /// Kernel code in system calls.
    pub system: f64,
    pub user: f64,
    /// Given to other guests by the hypervisor.
    pub steal: f64,
}

/// Each core between the first sample after `from_us` and the last one.
pub(crate) fn shares(samples: &[HostSample], from_us: u64) -> Vec<CoreShare> {
    shares_between(samples, from_us, u64::MAX)
}

/// The same up to the last sample before `to_us`.
pub(crate) fn shares_between(samples: &[HostSample], from_us: u64, to_us: u64) -> Vec<CoreShare> {
    let counted: Vec<&HostSample> = samples.iter().filter(|sample| (from_us..=to_us).contains(&sample.at_us)).collect();
    let (Some(first), Some(last)) = (counted.first(), counted.last()) else { return Vec::new() };
    last.cpus.iter().filter_map(|now| share(now, first.cpus.iter().find(|then| then.cpu == now.cpu)?)).collect()
}

fn share(now: &CpuTimes, then: &CpuTimes) -> Option<CoreShare> {
    let spent = now.since(then);
    let total = spent.total_us();
    if total == 0 {
        return None;
    }
    let of = |us: u64| us as f64 / total as f64;
    Some(CoreShare {
        cpu: now.cpu,
        busy: of(spent.busy_us()),
        softirq: of(spent.softirq_us.saturating_add(spent.irq_us)),
        system: of(spent.system_us),
        user: of(spent.user_us),
        steal: of(spent.steal_us),
    })
}
