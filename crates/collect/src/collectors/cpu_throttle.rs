//! What keeps the first processor below its best frequency: the cap of the policy, and heat.
//! Source: kernel `Documentation/admin-guide/pm/cpufreq.rst`, `drivers/thermal/intel/therm_throt.c`.

use crate::collector::{Class, Collector, always};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "cpu-throttle",
    about: "cap on the CPU frequency, time of thermal throttling",
    provides: &[keys::CPU_FREQUENCY_LIMIT, keys::CPU_THERMAL_THROTTLED_MS],
    class: Class::Both,
    can_run: always,
    collect: |context, sink| {
        let cap = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_max_freq";
        let hertz = context.host.number::<u64>(cap).map(|khz| khz.saturating_mul(1000));
        sink.put(keys::CPU_FREQUENCY_LIMIT, hertz, cap);
        let heat = "/sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_total_time_ms";
        sink.put(keys::CPU_THERMAL_THROTTLED_MS, context.host.number::<u64>(heat), heat);
        Ok(())
    },
};
