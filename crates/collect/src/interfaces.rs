//! All network interfaces with their traffic so far, for frequent reading: one dump of `RTM_GETLINK`.

use crate::Missing;
use crate::kernel::{Link, Sockets, links};
use narrows_model::InterfaceSample;
use narrows_sys::clock;
use std::sync::OnceLock;
use std::time::Instant;

/// When this process read them first: time zero of the samples.
static FIRST: OnceLock<Instant> = OnceLock::new();

/// Every interface of the calling thread's network namespace, in the kernel's order. Counts are the kernel's own
/// (`IFLA_STATS64`), times are since the first call.
/// Errors: the kernel does not answer.
pub fn interfaces() -> Result<Vec<InterfaceSample>, Missing> {
    let first = *FIRST.get_or_init(clock::now);
    let links = links::all(&Sockets::default())?;
    let at_us = clock::micros_since(first);
    // An interface without counters was not read; that is not the same as no traffic.
    Ok(links.into_iter().filter(|link| !link.counters.is_empty()).map(|link| sample(link, at_us)).collect())
}

fn sample(link: Link, at_us: u64) -> InterfaceSample {
    let count = |name: &str| link.counters.get(name).copied().unwrap_or(0);
    InterfaceSample {
        at_us,
        rx_bytes: count("rx_bytes"),
        rx_packets: count("rx_packets"),
        // The kernel counts drops for lack of ring space separately.
        rx_dropped: count("rx_dropped").saturating_add(count("rx_missed_errors")),
        tx_bytes: count("tx_bytes"),
        tx_packets: count("tx_packets"),
        tx_dropped: count("tx_dropped"),
        name: link.name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_become_a_sample() {
        let names =
            ["rx_bytes", "rx_packets", "rx_dropped", "rx_missed_errors", "tx_bytes", "tx_packets", "tx_dropped"];
        let counters = names.iter().zip(1..).map(|(name, n)| ((*name).to_owned(), n)).collect();
        let read = sample(Link { name: "eth0".into(), counters, ..Link::default() }, 9);
        assert_eq!((read.name.as_str(), read.at_us), ("eth0", 9));
        assert_eq!([read.rx_bytes, read.rx_packets, read.rx_dropped], [1, 2, 3 + 4]);
        assert_eq!([read.tx_bytes, read.tx_packets, read.tx_dropped], [5, 6, 7]);
    }

    #[test]
    fn this_host_has_a_loopback_device_and_time_passes() {
        let [before, after] = [(), ()].map(|()| interfaces().expect("netlink"));
        let loopback = |samples: &[InterfaceSample]| samples.iter().find(|it| it.name == "lo").cloned().expect("lo");
        let (before, after) = (loopback(&before), loopback(&after));
        assert!(after.at_us > before.at_us && after.rx_bytes >= before.rx_bytes);
    }
}
