//! CPU times of all CPUs together so far: `/proc/stat`.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, always};
use crate::cpu_times::parse;
use narrows_model::{CpuTimes, Key, Unit};

pub(super) const COLLECTOR: Collector = Collector {
    id: "cpu-time",
    about: "time of all CPUs by kind, in microseconds",
    provides: &[
        Key::new("cpu.time.user", Unit::Count),
        Key::new("cpu.time.system", Unit::Count),
        Key::new("cpu.time.irq", Unit::Count),
        Key::new("cpu.time.softirq", Unit::Count),
        Key::new("cpu.time.steal", Unit::Count),
        Key::new("cpu.time.idle", Unit::Count),
    ],
    class: Class::Both,
    can_run: always,
    collect,
};

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let path = "/proc/stat";
    let cpus = parse(&context.host.read(path)?);
    if cpus.is_empty() {
        return Err(Missing::because("/proc/stat names no CPU"));
    }
    let sum = |take: fn(&CpuTimes) -> u64| cpus.iter().map(take).fold(0, u64::saturating_add);
    sink.fact("cpu.time.user", sum(|cpu| cpu.user_us), path);
    sink.fact("cpu.time.system", sum(|cpu| cpu.system_us), path);
    sink.fact("cpu.time.irq", sum(|cpu| cpu.irq_us), path);
    sink.fact("cpu.time.softirq", sum(|cpu| cpu.softirq_us), path);
    sink.fact("cpu.time.steal", sum(|cpu| cpu.steal_us), path);
    sink.fact("cpu.time.idle", sum(|cpu| cpu.idle_us), path);
    Ok(())
}
