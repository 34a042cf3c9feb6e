//! The PCI Express path from the NIC to the CPU: the link of the device and of every bridge above it.
//!
//! A card in a slot with fewer lanes than it has works, but more slowly: nothing reports an error.
//! Source: kernel `Documentation/ABI/testing/sysfs-bus-pci`; encodings from the PCI Express base specification.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, with_device};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "pcie",
    about: "PCI Express speed and width along every parent, and the bandwidth that is left",
    provides: &[
        keys::PCIE_SPEED,
        keys::PCIE_SPEED_MAX,
        keys::PCIE_WIDTH,
        keys::PCIE_WIDTH_MAX,
        keys::PCIE_BANDWIDTH,
        keys::PCIE_BANDWIDTH_MAX,
        keys::PCIE_NARROWEST,
        keys::PCIE_PARENTS_SPEED,
        keys::PCIE_PARENTS_SPEED_MAX,
        keys::PCIE_PARENTS_WIDTH,
        keys::PCIE_PARENTS_WIDTH_MAX,
        keys::PCIE_PARENTS_BANDWIDTH,
    ],
    class: Class::Inventory,
    can_run: with_device,
    collect,
};

/// The maximum number of bridges above a device.
const DEPTH_MAX: usize = 32;

/// One link: transfers per second per lane, and lanes.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Port {
    gt_per_s: f64,
    lanes: u32,
}

impl Port {
    /// Bits per second of the data that the encoding leaves: 8b/10b up to 5 GT/s, 128b/130b up to 32, none above.
    fn bandwidth(self) -> f64 {
        let encoding = match self.gt_per_s {
            speed if speed <= 5.0 => 8.0 / 10.0,
            speed if speed <= 32.0 => 128.0 / 130.0,
            _ => 1.0,
        };
        (self.gt_per_s * 1e9 * encoding * f64::from(self.lanes)).round()
    }
}

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let directory = context.pci()?;
    // Plain PCI and most virtual machines have no such files.
    let own = port(context, &directory, "current")
        .map_err(|why| Missing::because(format!("the device has no PCI Express link that is known here ({why})")))?;
    let most = port(context, &directory, "max");
    let source = |file: &str| format!("{directory}/{file}");
    sink.fact(keys::PCIE_SPEED, own.gt_per_s, source("current_link_speed"));
    sink.fact(keys::PCIE_WIDTH, own.lanes, source("current_link_width"));
    let get = |take: fn(&Port) -> f64| most.as_ref().map(take).map_err(Clone::clone);
    sink.put(keys::PCIE_SPEED_MAX, get(|port| port.gt_per_s), source("max_link_speed"));
    sink.put(
        keys::PCIE_WIDTH_MAX,
        most.as_ref().map(|port| port.lanes).map_err(Clone::clone),
        source("max_link_width"),
    );
    sink.put(keys::PCIE_BANDWIDTH_MAX, get(|port| port.bandwidth()), source("max_link_*: speed x width x encoding"));

    let address = directory.rsplit('/').next().unwrap_or_default().to_owned();
    let mut narrowest = (own.bandwidth(), address.clone());
    let parents = parents(&context.host.target(&directory)?, &address);
    for parent in &parents {
        let directory = format!("/sys/bus/pci/devices/{parent}");
        // A bridge inside the processor or a virtual machine has no link of its own and limits nothing.
        let Ok(now) = port(context, &directory, "current") else {
            continue;
        };
        sink.fact(format!("pcie.parents.speed.{parent}"), now.gt_per_s, format!("{directory}/current_link_speed"));
        sink.fact(format!("pcie.parents.width.{parent}"), now.lanes, format!("{directory}/current_link_width"));
        sink.fact(format!("pcie.parents.bandwidth.{parent}"), now.bandwidth(), format!("{directory}/current_link_*"));
        if let Ok(most) = port(context, &directory, "max") {
            sink.fact(format!("pcie.parents.speed_max.{parent}"), most.gt_per_s, format!("{directory}/max_link_speed"));
            sink.fact(format!("pcie.parents.width_max.{parent}"), most.lanes, format!("{directory}/max_link_width"));
        }
        if now.bandwidth() < narrowest.0 {
            narrowest = (now.bandwidth(), parent.clone());
        }
    }
    let source = "/sys/bus/pci/devices/*/current_link_*: speed x width x encoding, the lowest up to the root";
    sink.fact(keys::PCIE_BANDWIDTH, narrowest.0, source);
    sink.fact(keys::PCIE_NARROWEST, narrowest.1, source);
    Ok(())
}

/// `which` is `current` or `max`.
fn port(context: &Context<'_>, directory: &str, which: &str) -> Result<Port, Missing> {
    let (speed, width) = (format!("{directory}/{which}_link_speed"), format!("{directory}/{which}_link_width"));
    let unknown = |path: &str, word: &str| Missing::because(format!("{path} says `{word}`: it is no PCI Express link"));
    let word = context.host.word(&speed)?;
    let gt_per_s: f64 = word.split(' ').next().and_then(|n| n.parse().ok()).ok_or_else(|| unknown(&speed, &word))?;
    let word = context.host.word(&width)?;
    // 255 means unknown, 0 a link that is down.
    let lanes = word.parse().ok().filter(|lanes| (1..=64).contains(lanes)).ok_or_else(|| unknown(&width, &word))?;
    if !(gt_per_s > 0.0 && gt_per_s < 1000.0) {
        return Err(unknown(&speed, &word));
    }
    Ok(Port { gt_per_s, lanes })
}

/// The bridges in `../../../devices/pci0000:00/0000:00:1c.0/0000:03:00.0`, the nearest to the device first.
fn parents(target: &str, device: &str) -> Vec<String> {
    let is_function = |part: &&str| part.contains('.') && part.split(':').count() == 3;
    let above = target.rsplit('/').filter(is_function).filter(|part| *part != device);
    above.take(DEPTH_MAX).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidth_is_speed_times_width_times_encoding() {
        let gbit = |gt_per_s, lanes| Port { gt_per_s, lanes }.bandwidth() / 1e9;
        // The figures that the makers of cards give.
        assert_eq!((gbit(2.5, 4), gbit(2.5, 8), gbit(5.0, 8)), (8.0, 16.0, 32.0));
        assert!((gbit(8.0, 4) - 31.5).abs() < 0.02 && (gbit(8.0, 16) - 126.0).abs() < 0.1);
        assert!((gbit(16.0, 16) - 252.06).abs() < 0.01);
    }

    #[test]
    fn parents_are_the_bridges_from_the_device_up() {
        let target = "../../../devices/pci0000:00/0000:00:1c.0/0000:02:00.0/0000:03:00.0";
        assert_eq!(parents(target, "0000:03:00.0"), ["0000:02:00.0", "0000:00:1c.0"]);
        assert_eq!(parents("../../../devices/pci0000:00/0000:00:03.0", "0000:00:03.0"), [""; 0]);
    }
}
