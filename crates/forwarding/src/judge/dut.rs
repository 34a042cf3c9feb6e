//! What became of a device over a trial, from a look before it and one after it.
//!
//! A device was reset where its kernel has another boot id or its clock went back; the turn of a clock of 32 bits is no reset.
//! A link that came or went is told by its own counter (Linux) or by the time of its last change (IF-MIB). Either makes a trial
//! say nothing: what was lost then is not what the device could not forward.

use narrows_model::host::device_state::{DeviceSeen, DeviceState, LinkState};
use narrows_model::load::host::CpuTimes;

/// How far two readings of one clock may be apart, ms.
const CLOCK_MS: u64 = 1_000;

/// The difference of two looks, `took_us` apart, at the hop of that name. `own_boot_id` is the tester's.
pub fn dut_seen(
    hop: &str,
    source: &str,
    before: &DeviceState,
    after: &DeviceState,
    took_us: u64,
    own_boot_id: Option<&str>,
) -> DeviceSeen {
    let grown = |of: fn(&DeviceState) -> Option<u64>| Some(of(after)?.saturating_sub(of(before)?));
    let reset = reset(before, after, took_us);
    // Counts that began anew say nothing of the time between.
    let sound = reset.is_none();
    DeviceSeen {
        hop: hop.to_owned(),
        source: source.to_owned(),
        shared: own_boot_id.is_some() && after.boot_id.as_deref() == own_boot_id,
        took_us,
        up_ms: after.up_ms,
        links: links(before, after),
        interrupts: grown(|it| it.interrupts).filter(|_| sound),
        net_rx: grown(|it| it.net_rx).filter(|_| sound),
        cpus: after.cpus.len() as u64,
        busiest: busiest(before, after).filter(|_| sound),
        reset,
        silent: None,
    }
}

/// By what it is known that the device was started anew, if so.
fn reset(before: &DeviceState, after: &DeviceState, took_us: u64) -> Option<String> {
    if let (Some(then), Some(now)) = (&before.boot_id, &after.boot_id)
        && then != now
    {
        return Some("its kernel has another boot id".to_owned());
    }
    let (then, now) = (before.up_ms?, after.up_ms?);
    if now.saturating_add(CLOCK_MS) >= then {
        return None;
    }
    let turned = before.up_wraps_ms.is_some_and(|wraps| {
        let due = then.saturating_add(took_us / 1_000);
        due.saturating_add(CLOCK_MS) >= wraps && now <= due.saturating_sub(wraps).saturating_add(2 * CLOCK_MS)
    });
    let seconds = |ms: u64| format!("{:.1} s", ms as f64 / 1e3);
    (!turned).then(|| format!("it had been up for {} before and for {} after", seconds(then), seconds(now)))
}

fn links(before: &DeviceState, after: &DeviceState) -> Vec<String> {
    let of = |now: &LinkState| {
        let then = before.links.iter().find(|then| then.device == now.device)?;
        let changes = now.changes.zip(then.changes).map_or(0, |(now, then)| now.saturating_sub(then));
        let name = &now.device;
        match (changes, then.last_change == now.last_change) {
            (0, true) => None,
            (0, false) => Some(format!("the state of {name} changed")),
            (1, _) => Some(format!("the link of {name} came or went")),
            (n, _) => Some(format!("the link of {name} came or went {n} times")),
        }
    };
    let gone = |then: &&LinkState| !after.links.iter().any(|now| now.device == then.device);
    let gone = before.links.iter().filter(gone).map(|then| format!("{} is gone", then.device));
    after.links.iter().filter_map(of).chain(gone).collect()
}

/// The CPU that spent the most time in interrupts and soft interrupts.
fn busiest(before: &DeviceState, after: &DeviceState) -> Option<CpuTimes> {
    let of = |now: &CpuTimes| {
        let then = before.cpus.iter().find(|then| then.cpu == now.cpu)?;
        Some(now.since(then))
    };
    after.cpus.iter().filter_map(of).max_by_key(|cpu| (cpu.irq_us.saturating_add(cpu.softirq_us), u32::MAX - cpu.cpu))
}

/// Why a trial says nothing, by what became of its devices.
pub(super) fn dut_trouble(devices: &[DeviceSeen]) -> Option<String> {
    let reset =
        |it: &DeviceSeen| it.reset.as_ref().map(|why| format!("the device was reset in mid-trial: {}: {why}", it.hop));
    let link = |it: &DeviceSeen| {
        it.links.first().map(|what| format!("a link of the device changed in mid-trial: {}: {what}", it.hop))
    };
    devices.iter().find_map(reset).or_else(|| devices.iter().find_map(link))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WRAPS_MS: u64 = (1 << 32) * 10;

    fn link(device: &str, changes: u64) -> LinkState {
        LinkState { device: device.to_owned(), changes: Some(changes), last_change: None }
    }

    fn state(up_ms: u64) -> DeviceState {
        let cpu = |cpu, softirq_us, idle_us| CpuTimes {
            cpu,
            user_us: 0,
            system_us: 0,
            irq_us: 0,
            softirq_us,
            steal_us: 0,
            idle_us,
        };
        DeviceState {
            boot_id: Some("one".to_owned()),
            up_ms: Some(up_ms),
            up_wraps_ms: None,
            interrupts: Some(up_ms * 10),
            net_rx: Some(up_ms * 2),
            cpus: vec![cpu(0, up_ms * 100, up_ms * 900), cpu(1, up_ms * 700, up_ms * 300)],
            links: vec![link("in0", 2), link("out0", 2)],
        }
    }

    fn seen(before: &DeviceState, after: &DeviceState) -> DeviceSeen {
        dut_seen("router", "kernel", before, after, 10_000_000, Some("tester"))
    }

    #[test]
    fn a_quiet_device_has_only_its_figures() {
        let seen = seen(&state(60_000), &state(70_000));
        assert_eq!((seen.reset.clone(), seen.links.len(), seen.shared), (None, 0, false));
        assert_eq!((seen.interrupts, seen.net_rx, seen.up_ms), (Some(100_000), Some(20_000), Some(70_000)));
        assert_eq!(seen.interrupts_per_second(), Some(10_000.0));
        assert_eq!(seen.busiest.as_ref().map(|cpu| cpu.cpu), Some(1));
        assert_eq!(seen.interrupt_share(), Some(0.7));
        assert_eq!(dut_trouble(&[seen]), None);
    }

    #[test]
    fn a_kernel_that_is_the_testers_own_is_shared() {
        let own = DeviceState { boot_id: Some("tester".to_owned()), ..state(1) };
        assert!(seen(&own, &own).shared);
        let unknown = DeviceState { boot_id: None, ..state(1) };
        assert!(!dut_seen("r", "", &unknown, &unknown, 1, None).shared, "two that are unknown are not the same");
    }

    #[test]
    fn a_reset_is_known_by_the_boot_id_or_by_the_clock() {
        let other = DeviceState { boot_id: Some("two".to_owned()), ..state(90_000) };
        let it = seen(&state(60_000), &other);
        assert_eq!(it.reset.as_deref(), Some("its kernel has another boot id"));
        assert_eq!((it.interrupts, it.busiest), (None, None), "counts that began anew are none");
        assert_eq!(
            dut_trouble(&[it]).as_deref(),
            Some("the device was reset in mid-trial: router: its kernel has another boot id")
        );
        let anew = seen(&state(60_000), &state(3_000));
        assert_eq!(anew.reset.as_deref(), Some("it had been up for 60.0 s before and for 3.0 s after"));
    }

    #[test]
    fn a_clock_that_turned_is_no_reset_and_one_that_merely_went_back_is() {
        let at = |up_ms| DeviceState { boot_id: None, up_wraps_ms: Some(WRAPS_MS), ..state(up_ms) };
        assert_eq!(seen(&at(WRAPS_MS - 4_000), &at(6_000)).reset, None);
        assert!(seen(&at(WRAPS_MS - 400_000), &at(6_000)).reset.is_some(), "it would not have turned by then");
        assert!(seen(&at(WRAPS_MS - 4_000), &at(600_000)).reset.is_some(), "it cannot have come so far");
        let endless = DeviceState { up_wraps_ms: None, ..at(WRAPS_MS - 4_000) };
        assert!(seen(&endless, &at(6_000)).reset.is_some());
    }

    #[test]
    fn a_link_that_came_or_went_is_named() {
        let after = DeviceState { links: vec![link("in0", 4)], ..state(70_000) };
        let it = seen(&state(60_000), &after);
        assert_eq!(it.links, ["the link of in0 came or went 2 times", "out0 is gone"]);
        assert!(dut_trouble(&[it]).is_some_and(|why| why.contains("router: the link of in0")));
        let snmp = |last_change| DeviceState {
            links: vec![LinkState { device: "Gi1".to_owned(), changes: None, last_change: Some(last_change) }],
            ..state(60_000)
        };
        assert_eq!(seen(&snmp(5), &snmp(5)).links, [""; 0]);
        assert_eq!(seen(&snmp(5), &snmp(6)).links, ["the state of Gi1 changed"]);
    }

    #[test]
    fn what_cannot_be_read_accuses_nobody() {
        let nothing = DeviceState::default();
        let it = seen(&nothing, &nothing);
        assert_eq!((it.reset.clone(), it.interrupts, it.interrupt_share()), (None, None, None));
        assert_eq!(dut_trouble(&[it]), None);
        assert_eq!(seen(&nothing, &state(1)).reset, None);
    }

    proptest! {
        #[test]
        fn a_device_that_stays_up_was_not_reset(up_ms in 0..WRAPS_MS, took_ms in 0..3_600_000_u64) {
            let at = |up_ms: u64| DeviceState { up_wraps_ms: Some(WRAPS_MS), ..state(up_ms % WRAPS_MS) };
            let (before, after) = (at(up_ms), at(up_ms + took_ms));
            let it = dut_seen("r", "", &before, &after, took_ms * 1_000, None);
            prop_assert_eq!(it.reset, None);
        }

        #[test]
        fn any_numbers_are_borne(then: [u64; 4], now: [u64; 4], took_us: u64) {
            let of = |[up, interrupts, changes, softirq_us]: [u64; 4]| DeviceState {
                up_ms: Some(up),
                interrupts: Some(interrupts),
                links: vec![link("in0", changes)],
                cpus: vec![CpuTimes {
                    cpu: 0, user_us: up, system_us: up, irq_us: softirq_us, softirq_us, steal_us: up, idle_us: up,
                }],
                ..DeviceState::default()
            };
            let it = dut_seen("r", "", &of(then), &of(now), took_us, None);
            prop_assert!(it.interrupt_share().is_none_or(|share| (0.0..=1.0).contains(&share)));
        }
    }
}
