//! CPU times of all CPUs together so far: `/proc/stat`.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, always};
use crate::cpu_times::parse;
use narrows_model::{CpuTimes, keys};

pub(super) const COLLECTOR: Collector = Collector {
    id: "cpu-time",
    about: "time of all CPUs by kind, in microseconds",
    provides: &[
        keys::CPU_TIME_USER,
        keys::CPU_TIME_SYSTEM,
        keys::CPU_TIME_IRQ,
        keys::CPU_TIME_SOFTIRQ,
        keys::CPU_TIME_STEAL,
        keys::CPU_TIME_IDLE,
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
    sink.fact(keys::CPU_TIME_USER, sum(|cpu| cpu.user_us), path);
    sink.fact(keys::CPU_TIME_SYSTEM, sum(|cpu| cpu.system_us), path);
    sink.fact(keys::CPU_TIME_IRQ, sum(|cpu| cpu.irq_us), path);
    sink.fact(keys::CPU_TIME_SOFTIRQ, sum(|cpu| cpu.softirq_us), path);
    sink.fact(keys::CPU_TIME_STEAL, sum(|cpu| cpu.steal_us), path);
    sink.fact(keys::CPU_TIME_IDLE, sum(|cpu| cpu.idle_us), path);
    Ok(())
}
