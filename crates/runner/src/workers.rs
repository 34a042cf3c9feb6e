//! How many workers a generator gets where the user does not say: as many as the load needs, on the cores that are free.

use narrows_model::CpuTimes;
use narrows_model::load::frames::{FrameLoad, GeneratePlan};
use narrows_sys::{clock, cpu, ethtool};
use std::time::Duration;

/// One worker sends this rate with room to spare: below it one worker keeps one order.
const PPS_OF_ONE_WORKER: f64 = 4e6;
/// How long the use of the cores is observed.
const OBSERVED: Duration = Duration::from_millis(100);
/// Drivers whose frames are received on the same machine.
const LOCAL_DRIVERS: &[&str] = &["tun", "veth"];

/// The number of workers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workers {
    pub(crate) count: u32,
    /// Why it is less than the load needs.
    pub(crate) note: Option<String>,
}

/// The workers for a load on this device; takes [`OBSERVED`].
pub(crate) fn choose(device: &str, load: FrameLoad, counted: bool) -> Result<Workers, narrows_sys::Error> {
    let allowed = cpu::allowed_cpus()?;
    let before = narrows_collect::cpu_times();
    clock::sleep(OBSERVED);
    let busy = busy(&allowed, &before, &narrows_collect::cpu_times());
    let driver = ethtool::Device::open(device).and_then(|device| device.driver());
    let local = driver.is_ok_and(|driver| LOCAL_DRIVERS.contains(&driver.name.as_str()));
    let cores = u32::try_from(allowed.len()).unwrap_or(u32::MAX);
    Ok(of(load, counted, cores, busy, local))
}

/// How many of these cores were busy for at least half of the time between two readings.
fn busy(cores: &[u32], before: &[CpuTimes], after: &[CpuTimes]) -> u32 {
    let is_busy = |now: &&CpuTimes| {
        let passed = before.iter().find(|earlier| earlier.cpu == now.cpu).map(|earlier| now.since(earlier));
        cores.contains(&now.cpu) && passed.is_some_and(|it| it.total_us() > 0 && 2 * it.idle_us < it.total_us())
    };
    u32::try_from(after.iter().filter(is_busy).count()).unwrap_or(u32::MAX)
}

/// `counted`: the frames end the load, so one worker is enough for it as fast as possible. `local`: this machine receives the
/// frames, too, and needs a core for it.
fn of(load: FrameLoad, counted: bool, cores: u32, busy: u32, local: bool) -> Workers {
    let cores = cores.clamp(1, GeneratePlan::MAX_STREAMS);
    let needed = match load {
        FrameLoad::Max if !counted => cores,
        FrameLoad::Max => 1,
        FrameLoad::FramesPerSecond(pps) => ((pps / PPS_OF_ONE_WORKER).ceil() as u32).clamp(1, cores),
    };
    let free = cores.saturating_sub(busy).saturating_sub(u32::from(local)).max(1);
    if needed <= free {
        return Workers { count: needed, note: None };
    }
    let mut reasons = Vec::new();
    if busy > 0 {
        reasons.push(format!("{busy} busy"));
    }
    if local {
        reasons.push("1 reserved for the receiver on this host".to_owned());
    }
    Workers { count: free, note: Some(format!("of {cores} cores {}", reasons.join(", "))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIVE: FrameLoad = FrameLoad::FramesPerSecond(5e6);

    #[test]
    fn the_load_and_the_free_cores_choose() {
        let count = |load, cores, busy, local| of(load, false, cores, busy, local).count;
        assert_eq!([count(FIVE, 2, 0, false), count(FIVE, 2, 0, true), count(FIVE, 2, 1, false)], [2, 1, 1]);
        assert_eq!([count(FIVE, 4, 0, true), count(FIVE, 4, 2, true), count(FIVE, 4, 4, true)], [2, 1, 1]);
        assert_eq!([count(FrameLoad::Max, 4, 0, false), count(FrameLoad::Max, 4, 1, true)], [4, 2]);
        assert_eq!(of(FrameLoad::Max, true, 4, 0, false).count, 1);
        assert_eq!(count(FrameLoad::FramesPerSecond(1e3), 2, 2, true), 1);
    }

    #[test]
    fn fewer_workers_than_needed_have_a_note() {
        assert_eq!(of(FIVE, false, 2, 0, false).note, None);
        let note = of(FIVE, false, 2, 0, true).note;
        assert_eq!(note.as_deref(), Some("of 2 cores 1 reserved for the receiver on this host"));
        let note = of(FrameLoad::Max, false, 8, 3, true).note;
        assert_eq!(note.as_deref(), Some("of 8 cores 3 busy, 1 reserved for the receiver on this host"));
    }

    #[test]
    fn a_core_is_busy_from_half_of_the_time_on() {
        let times = |cpu, user_us, idle_us| CpuTimes { cpu, user_us, idle_us, ..CpuTimes::default() };
        let before = [times(0, 0, 0), times(1, 0, 0), times(2, 0, 0)];
        let after = [times(0, 60, 40), times(1, 40, 60), times(2, 100, 0)];
        assert_eq!(busy(&[0, 1], &before, &after), 1);
        assert_eq!(busy(&[0, 1, 2], &before, &after), 2);
    }
}
