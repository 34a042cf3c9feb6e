//! Times of each CPU, for frequent reading: `/proc/stat` through a file that stays open.

use narrows_model::CpuTimes;
use narrows_sys::kernel_file::KernelFile;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// `USER_HZ`: the unit of `/proc/stat` is 10 ms wherever narrows runs.
const TICK_US: u64 = 10_000;
/// Above the number of CPUs that the kernel supports.
const CPUS_MAX: usize = 16_384;

static STAT: Mutex<Option<KernelFile>> = Mutex::new(None);

/// The times of each online CPU of this host, by number; empty if `/proc/stat` cannot be read.
pub fn cpu_times() -> Vec<CpuTimes> {
    let mut slot = STAT.lock().unwrap_or_else(PoisonError::into_inner);
    if slot.is_none() {
        *slot = KernelFile::open(Path::new("/proc/stat")).ok();
    }
    slot.as_mut().and_then(|file| file.read().ok()).map(|text| parse(&text)).unwrap_or_default()
}

/// The lines `cpu0 …` of `/proc/stat`; a truncated or malformed line is left out.
pub(crate) fn parse(text: &str) -> Vec<CpuTimes> {
    let lines = text.lines().skip_while(|line| !line.starts_with("cpu"));
    lines.take_while(|line| line.starts_with("cpu")).take(CPUS_MAX).filter_map(one).collect()
}

fn one(line: &str) -> Option<CpuTimes> {
    let mut words = line.split_ascii_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    // user nice system idle iowait irq softirq steal; guest times are part of user and nice.
    let mut next = || words.next()?.parse::<u64>().ok()?.checked_mul(TICK_US);
    let (user, nice, system, idle) = (next()?, next()?, next()?, next()?);
    let (iowait, irq, softirq, steal) =
        (next().unwrap_or(0), next().unwrap_or(0), next().unwrap_or(0), next().unwrap_or(0));
    Some(CpuTimes {
        cpu,
        user_us: user.saturating_add(nice),
        system_us: system,
        irq_us: irq,
        softirq_us: softirq,
        steal_us: steal,
        idle_us: idle.saturating_add(iowait),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cpu_line_is_read_in_microseconds() {
        let text = "cpu  9 9 9 9\ncpu0 10 1 5 100 3 2 4 7 0 0\ncpu3 1 0 0 2\ncpuX 1\nintr 5\ncpu9 1 1 1 1\n";
        let cpus = parse(text);
        let first = CpuTimes {
            cpu: 0,
            user_us: 110_000,
            system_us: 50_000,
            irq_us: 20_000,
            softirq_us: 40_000,
            steal_us: 70_000,
            idle_us: 1_030_000,
        };
        assert_eq!(cpus.first(), Some(&first));
        assert_eq!(cpus.iter().map(|cpu| cpu.cpu).collect::<Vec<_>>(), [0, 3]);
    }

    #[test]
    fn this_host_has_cpus_and_time_passes() {
        let first = cpu_times();
        assert!(!first.is_empty());
        assert!(first.iter().all(|cpu| cpu.total_us() > 0));
        // The second reading uses the same open file.
        let second = cpu_times();
        assert_eq!(first.len(), second.len());
        assert!(first.iter().zip(&second).all(|(then, now)| now.user_us >= then.user_us));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(cpu[0-9]{0,12}( [0-9]{0,24}){0,12}\n){0,6}\\PC{0,60}") {
            parse(&text);
        }
    }
}
