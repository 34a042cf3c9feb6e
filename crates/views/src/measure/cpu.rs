//! What a trial cost one end, over its counted part.

use narrows_model::run::measure::{CpuShare, EndCpu, HostCpu};
use narrows_model::words::figures::float;
use narrows_model::{CpuTimes, EndRecord, HostSample};

/// A thread's CPU time at its samples: when, and how much so far.
type ThreadTimes = Vec<(u64, Option<u64>)>;

/// The cost of a trial on one end, by what that end recorded of it: of a load beside another one there are two records, and the
/// first one has the host's CPUs. `None` where nothing of it was recorded.
pub(crate) fn cost(records: &[&dyn EndRecord], omit_us: u64) -> Option<EndCpu> {
    let threads: Vec<ThreadTimes> = records
        .iter()
        .flat_map(|end| end.samples())
        .map(|samples| samples.iter().map(|sample| (sample.at_us(), sample.thread_cpu_us())).collect())
        .collect();
    cost_of(records.first()?.host(), &threads, omit_us)
}

fn cost_of(samples: &[HostSample], streams: &[ThreadTimes], omit_us: u64) -> Option<EndCpu> {
    let cores = cores(samples, omit_us);
    let shares: Vec<CpuShare> = cores.iter().filter_map(share).collect();
    let busiest = shares.iter().copied().min_by(|a, b| a.idle.total_cmp(&b.idle));
    let busy = |times: &CpuTimes| float(times.busy_us()) / float(times.total_us().max(1));
    let busy_cores = (!cores.is_empty()).then(|| cores.iter().map(busy).sum());
    let data_threads_cores = threads(streams, omit_us);
    (busiest.is_some() || data_threads_cores.is_some()).then(|| EndCpu {
        busiest,
        busy_cores,
        data_threads_cores,
        host: whole(&shares),
    })
}

fn whole(shares: &[CpuShare]) -> Option<HostCpu> {
    let sum = |part: fn(&CpuShare) -> f64| shares.iter().map(part).sum();
    (!shares.is_empty()).then(|| HostCpu {
        cores: u32::try_from(shares.len()).unwrap_or(u32::MAX),
        user: sum(|it| it.user),
        system: sum(|it| it.system),
        softirq: sum(|it| it.softirq + it.irq),
        steal: sum(|it| it.steal),
        idle: sum(|it| it.idle),
    })
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
fn threads(streams: &[ThreadTimes], omit_us: u64) -> Option<f64> {
    let of = |samples: &ThreadTimes| {
        let mut counted = samples.iter().filter(|(at_us, _)| *at_us >= omit_us);
        let (first, last) = (counted.next()?, counted.next_back()?);
        let spent = last.1?.saturating_sub(first.1?);
        let time = last.0.checked_sub(first.0).filter(|time| *time > 0)?;
        Some(float(spent) / float(time))
    };
    (!streams.is_empty()).then(|| streams.iter().map(of).sum::<Option<f64>>())?
}
