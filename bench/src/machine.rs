//! CPU time of the whole machine: both ends of the veth pair, the kernel between them, and everything else.
//!
//! Computed as non-idle time. The busy columns of `/proc/stat` are not accurate: most kernels sample, at each tick, who runs
//! (`CONFIG_TICK_CPU_ACCOUNTING`), and never see a sender whose timer coincides with the tick. Idle time is measured (kernel
//! `kernel/time/tick-sched.c`, `get_cpu_idle_time_us`).

use std::time::{Duration, Instant};

/// The unit of `/proc/stat`: `USER_HZ`, which is 100 on every architecture of Linux that narrows runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// The start of a measurement of busy time.
pub(crate) struct Machine {
    at: Instant,
    stat: Stat,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Stat {
    cores: f64,
    /// Seconds of idle, I/O wait and steal time since boot.
    away_s: f64,
}

impl Machine {
    pub(crate) fn now() -> Result<Self, String> {
        Ok(Self { at: Instant::now(), stat: stat()? })
    }

    /// Busy CPU seconds of all cores since then.
    pub(crate) fn busy_seconds(&self) -> Result<f64, String> {
        let now = Self::now()?;
        let passed = now.at.duration_since(self.at).as_secs_f64() * now.stat.cores;
        Ok((passed - (now.stat.away_s - self.stat.away_s)).max(0.0))
    }
}

/// The machine's utilisation as a fraction of all its cores, over some time without load.
pub(crate) fn busy_fraction(time: Duration) -> Result<f64, String> {
    let machine = Machine::now()?;
    std::thread::sleep(time);
    Ok(machine.busy_seconds()? / machine.at.elapsed().as_secs_f64() / machine.stat.cores)
}

fn stat() -> Result<Stat, String> {
    let text = std::fs::read_to_string("/proc/stat").map_err(|error| format!("cannot read /proc/stat: {error}"))?;
    parse(&text).ok_or_else(|| "cannot read /proc/stat: it lacks a `cpu` line".to_owned())
}

fn parse(text: &str) -> Option<Stat> {
    let ticks: Vec<f64> =
        text.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [_user, _nice, _system, idle, iowait, _irq, _softirq, steal, ..] = ticks[..] else { return None };
    let cores = text.lines().skip(1).take_while(|line| line.starts_with("cpu")).count();
    #[allow(clippy::cast_precision_loss)]
    (cores > 0).then_some(Stat { cores: cores as f64, away_s: (idle + iowait + steal) / TICKS_PER_SECOND })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_includes_iowait_and_steal() {
        let stat = "cpu  100 10 200 9000 50 5 35 7 0 0\ncpu0 1 2 3\ncpu1 1 2 3\nintr 5\n";
        assert_eq!(parse(stat), Some(Stat { cores: 2.0, away_s: 90.57 }));
        assert_eq!(parse("cpu  1 2\ncpu0 1 2\n"), None);
    }
}
