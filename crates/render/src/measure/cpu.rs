//! What a trial cost one end, over its counted part.

use super::reading::float;
use narrows_model::measure::{CpuShare, EndCpu};
use narrows_model::{CpuTimes, EndRecord, HostSample};

/// The cost of a trial on one end; `None` where nothing of it was recorded.
pub(crate) fn cost(end: &EndRecord, omit_us: u64) -> Option<EndCpu> {
    let cores = cores(&end.host, omit_us);
    let shares: Vec<CpuShare> = cores.iter().filter_map(share).collect();
    let busiest = shares.iter().copied().min_by(|a, b| a.idle.total_cmp(&b.idle));
    let busy = |times: &CpuTimes| float(times.busy_us()) / float(times.total_us().max(1));
    let busy_cores = (!cores.is_empty()).then(|| cores.iter().map(busy).sum());
    let data_threads_cores = threads(end, omit_us);
    (busiest.is_some() || data_threads_cores.is_some()).then_some(EndCpu { busiest, busy_cores, data_threads_cores })
}

/// What passed on each core between the first counted sample and the last.
fn cores(samples: &[HostSample], omit_us: u64) -> Vec<CpuTimes> {
    let mut counted = samples.iter().filter(|sample| sample.at_us >= omit_us);
    let (Some(first), Some(last)) = (counted.next(), counted.next_back()) else { return Vec::new() };
    let earlier = |cpu: u32| first.cpus.iter().find(|times| times.cpu == cpu);
    last.cpus
        .iter()
        .filter_map(|times| Some(times.since(earlier(times.cpu)?)))
        .filter(|times| times.total_us() > 0)
        .collect()
}

fn share(times: &CpuTimes) -> Option<CpuShare> {
    let total = float(times.total_us());
    let part = |us: u64| float(us) / total;
    (total > 0.0).then(|| CpuShare {
        cpu: times.cpu,
        user: part(times.user_us),
        system: part(times.system_us),
        irq: part(times.irq_us),
        softirq: part(times.softirq_us),
        steal: part(times.steal_us),
        idle: part(times.idle_us),
    })
}

/// Cores that the threads which move the data took; `None` where a stream does not know.
fn threads(end: &EndRecord, omit_us: u64) -> Option<f64> {
    let of = |stream: &narrows_model::StreamRecord| {
        let mut counted = stream.samples.iter().filter(|sample| sample.at_us >= omit_us);
        let (first, last) = (counted.next()?, counted.next_back()?);
        let spent = last.thread_cpu_us?.saturating_sub(first.thread_cpu_us?);
        let time = last.at_us.checked_sub(first.at_us).filter(|time| *time > 0)?;
        Some(float(spent) / float(time))
    };
    (!end.streams.is_empty()).then(|| end.streams.iter().map(of).sum::<Option<f64>>())?
}
