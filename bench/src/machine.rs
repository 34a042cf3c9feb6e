//! CPU time of the whole machine, from `/proc/stat`: both ends of the veth pair, the kernel between them, and all else.

use std::time::{Duration, Instant};

/// The unit of `/proc/stat`: `USER_HZ`, which is 100 on every architecture of Linux that narrows runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// Busy CPU seconds since boot: user, nice, system, interrupts, soft interrupts. Idle, iowait and steal are left out.
pub(crate) fn busy_seconds() -> Result<f64, String> {
    let text = std::fs::read_to_string("/proc/stat").map_err(|error| format!("cannot read /proc/stat: {error}"))?;
    parse(&text).ok_or_else(|| "cannot read /proc/stat: its first line is no `cpu` line".to_owned())
}

fn parse(text: &str) -> Option<f64> {
    let ticks: Vec<f64> =
        text.lines().next()?.strip_prefix("cpu ")?.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, ..] = ticks[..] else { return None };
    Some((user + nice + system + irq + softirq) / TICKS_PER_SECOND)
}

/// How busy the machine is, as a fraction of all its cores, over some time without doing anything.
pub(crate) fn busy_fraction(time: Duration) -> Result<f64, String> {
    let (begin, before) = (Instant::now(), busy_seconds()?);
    std::thread::sleep(time);
    let busy = busy_seconds()? - before;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    #[allow(clippy::cast_precision_loss)]
    Ok(busy / begin.elapsed().as_secs_f64() / cores as f64)
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn busy_is_what_is_neither_idle_nor_stolen() {
        assert_eq!(parse("cpu  100 10 200 9000 50 5 35 7 0 0\ncpu0 1 2 3\n"), Some(3.5));
        assert_eq!(parse("cpu  1 2\n"), None);
    }
}
