//! The state of a host that is a device under test, sampled before and after each trial: its boot, its interrupts, its links.
//! Links are those of the calling thread's network namespace; CPUs and interrupts those of the whole kernel.

use crate::Missing;
use crate::cpu_times::cpu_times;
use crate::kernel::{Sockets, links};
use crate::parse;
use narrows_model::host::device_state::{DeviceState, LinkState};
use narrows_sys::files;
use std::path::Path;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const UPTIME: &str = "/proc/uptime";
const STAT: &str = "/proc/stat";
const SOFTIRQS: &str = "/proc/softirqs";

/// One sample of this host and of these interfaces. What cannot be read is left out.
/// Errors: an interface does not exist.
pub fn device_state(devices: &[&str]) -> Result<DeviceState, Missing> {
    let sockets = Sockets::default();
    let link = |device: &&str| {
        let link = links::by_name(&sockets, device)?;
        Ok(LinkState { device: (*device).to_owned(), changes: link.carrier_changes, last_change: None })
    };
    let links = devices.iter().map(link).collect::<Result<Vec<_>, Missing>>()?;
    let read = |path: &str| files::read_text(Path::new(path)).ok();
    Ok(DeviceState {
        boot_id: boot_id(),
        up_ms: read(UPTIME).as_deref().and_then(up_ms),
        up_wraps_ms: None,
        interrupts: read(STAT).as_deref().and_then(interrupts),
        net_rx: read(SOFTIRQS).as_deref().and_then(net_rx),
        cpus: cpu_times(),
        links,
    })
}

/// The id of the kernel's boot; none if the kernel does not provide it.
pub fn boot_id() -> Option<String> {
    files::read_text(Path::new(BOOT_ID)).ok().map(|text| text.trim().to_owned()).filter(|id| !id.is_empty())
}

/// `12345.67 23456.78`: uptime and idle time in seconds.
fn up_ms(text: &str) -> Option<u64> {
    let (seconds, parts) = text.split_ascii_whitespace().next()?.split_once('.')?;
    let hundredths: u64 = parts.get(..2)?.parse().ok()?;
    seconds.parse::<u64>().ok()?.checked_mul(1_000)?.checked_add(hundredths * 10)
}

/// `intr 123 …`: of all CPUs since boot, timers included.
fn interrupts(text: &str) -> Option<u64> {
    let (_, line) = parse::lines(text).find(|(_, line)| line.starts_with("intr "))?;
    line.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn net_rx(text: &str) -> Option<u64> {
    let (_, line) = parse::lines(text).find(|(_, line)| line.trim_start().starts_with("NET_RX:"))?;
    parse::words(line).skip(1).try_fold(0_u64, |sum, word| Some(sum.saturating_add(word.parse::<u64>().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn kernel_files_are_parsed() {
        assert_eq!(up_ms("12345.67 45678.90\n"), Some(12_345_670));
        assert_eq!(interrupts("cpu 1 2\ncpu0 1 2\nintr 98765 1 2 3\nctxt 5\n"), Some(98_765));
        assert_eq!(net_rx("      CPU0 CPU1\n NET_TX: 1 2\n NET_RX: 30 12\n"), Some(42));
        assert_eq!((up_ms("soon"), interrupts("ctxt 5"), net_rx("NET_RX: 1 x")), (None, None, None));
    }

    #[test]
    fn this_host_has_a_state() {
        let state = device_state(&["lo"]).expect("the loopback device is there");
        assert!(state.boot_id.is_some() && state.up_ms.is_some_and(|ms| ms > 0), "{state:?}");
        assert!(state.interrupts.is_some() && state.net_rx.is_some() && !state.cpus.is_empty());
        assert_eq!(state.links[0].device, "lo");
        assert!(state.links[0].changes.is_some(), "{:?}", state.links);
        assert!(device_state(&["none0"]).expect_err("none").to_string().contains("none0"));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(intr|NET_RX:|[0-9]{0,25})[ .0-9]{0,60}\\PC{0,40}") {
            let _ = (up_ms(&text), interrupts(&text), net_rx(&text));
        }
    }
}
