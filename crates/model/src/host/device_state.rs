//! The state of a device under test around a trial: whether it was reset, whether its links stayed up, what interrupts cost it.

use crate::load::host::CpuTimes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One look at a device. Counts are since it booted; what cannot be read is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct DeviceState {
    /// Another one after each start of a Linux kernel (`/proc/sys/kernel/random/boot_id`).
    pub boot_id: Option<String>,
    /// Time since its start: of the kernel, or of its agent (sysUpTime).
    pub up_ms: Option<u64>,
    /// What `up_ms` begins anew at; `None`: never in practice. sysUpTime has 32 bits of hundredths: 497 days.
    pub up_wraps_ms: Option<u64>,
    /// Hard interrupts of all CPUs (`intr` of `/proc/stat`), timers among them.
    pub interrupts: Option<u64>,
    /// Runs of the network's receive soft interrupt on all CPUs (`NET_RX` of `/proc/softirqs`).
    pub net_rx: Option<u64>,
    /// Each CPU's times.
    pub cpus: Vec<CpuTimes>,
    /// Its interfaces on the way.
    pub links: Vec<LinkState>,
}

/// One interface of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LinkState {
    /// Its name.
    pub device: String,
    /// How often its link came or went (`IFLA_CARRIER_CHANGES`, Linux 3.15).
    pub changes: Option<u64>,
    /// When its state last changed by the agent's clock, hundredths of a second (ifLastChange).
    pub last_change: Option<u64>,
}

/// What became of a device over one trial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
pub struct DeviceSeen {
    /// The hop's name.
    pub hop: String,
    /// What was read.
    pub source: String,
    /// Whether the tester runs on the same kernel: interrupts and CPU times are those of both.
    pub shared: bool,
    /// From the first look to the second.
    pub took_us: u64,
    /// Time since its start at the second look.
    pub up_ms: Option<u64>,
    /// By what it is known that it was started anew between the looks, if so.
    pub reset: Option<String>,
    /// Interfaces whose link came or went between the looks, in words.
    pub links: Vec<String>,
    /// Hard interrupts between the looks, of all CPUs.
    pub interrupts: Option<u64>,
    /// Runs of the network's receive soft interrupt.
    pub net_rx: Option<u64>,
    /// How many CPUs it has.
    #[serde(default)]
    pub cpus: u64,
    /// The CPU that spent the most time in interrupts and soft interrupts: its times between the looks.
    pub busiest: Option<CpuTimes>,
    /// Why nothing is known, if so.
    pub silent: Option<String>,
}

impl DeviceSeen {
    /// The part of the time that the busiest CPU spent in interrupts and soft interrupts.
    pub fn interrupt_share(&self) -> Option<f64> {
        let cpu = self.busiest.as_ref()?;
        let total = cpu.total_us();
        (total > 0).then(|| cpu.irq_us.saturating_add(cpu.softirq_us) as f64 / total as f64)
    }

    /// Hard interrupts a second.
    pub fn interrupts_per_second(&self) -> Option<f64> {
        (self.took_us > 0).then_some(())?;
        Some(self.interrupts? as f64 * 1e6 / self.took_us as f64)
    }
}
