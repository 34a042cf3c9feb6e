//! The devices under test over the trials of a size.

use super::size::spread;
use crate::data::ForwardingTrial;
use crate::data::report::DeviceView;
use narrows_model::host::device_state::DeviceSeen;
use narrows_model::words::figures::float;

/// One for each device that was watched, in the order in which they are met.
pub(super) fn views<'a>(trials: impl Iterator<Item = &'a ForwardingTrial>) -> Vec<DeviceView> {
    let mut hops: Vec<(&str, Vec<(&DeviceSeen, u64)>)> = Vec::new();
    for trial in trials {
        let frames = trial.directions.iter().fold(0u64, |sum, it| sum.saturating_add(it.sent.sent()));
        for device in &trial.devices {
            match hops.iter_mut().find(|(hop, _)| *hop == device.hop) {
                Some((_, seen)) => seen.push((device, frames)),
                None => hops.push((&device.hop, vec![(device, frames)])),
            }
        }
    }
    hops.into_iter().map(|(hop, seen)| view(hop, &seen)).collect()
}

fn view(hop: &str, seen: &[(&DeviceSeen, u64)]) -> DeviceView {
    let heard = || seen.iter().filter(|(it, _)| it.silent.is_none());
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let rate = |n: Option<u64>, it: &DeviceSeen| (it.took_us > 0).then(|| Some(float(n?) * 1e6 / float(it.took_us)))?;
    DeviceView {
        hop: hop.to_owned(),
        trials: count(heard().count()),
        shared: heard().any(|(it, _)| it.shared),
        resets: count(heard().filter(|(it, _)| it.reset.is_some()).count()),
        link_changes: count(heard().filter(|(it, _)| !it.links.is_empty()).count()),
        interrupts_per_second: spread(heard().filter_map(|(it, _)| it.interrupts_per_second())),
        interrupts_per_frame: spread(
            heard()
                .filter(|(_, frames)| *frames > 0)
                .filter_map(|(it, frames)| Some(float(it.interrupts?) / float(*frames))),
        ),
        net_rx_per_second: spread(heard().filter_map(|(it, _)| rate(it.net_rx, it))),
        interrupt_share: spread(heard().filter_map(|(it, _)| it.interrupt_share())),
        silent: seen.iter().find_map(|(it, _)| it.silent.clone()),
    }
}
