//! The NIC's driver: `ETHTOOL_GDRVINFO`.

use crate::Missing;
use crate::collector::{Class, Collector, with_device};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "nic-driver",
    about: "driver, its version, firmware, bus address, NUMA node, IOMMU",
    provides: &[
        keys::NIC_DRIVER,
        keys::NIC_DRIVER_VERSION,
        keys::NIC_FIRMWARE,
        keys::NIC_BUS,
        keys::NIC_NUMA_NODE,
        keys::NIC_IOMMU,
    ],
    class: Class::Inventory,
    can_run: with_device,
    collect: |context, sink| {
        let driver = context.ethtool()?.driver.get()?;
        let source = "ioctl ETHTOOL_GDRVINFO";
        for (key, value, what) in [
            (keys::NIC_DRIVER, &driver.name, "name"),
            (keys::NIC_DRIVER_VERSION, &driver.version, "version"),
            (keys::NIC_FIRMWARE, &driver.firmware, "firmware"),
            (keys::NIC_BUS, &driver.bus, "bus address"),
        ] {
            let known = !value.is_empty() && value != "N/A";
            let value = known.then_some(value.as_str());
            sink.put(key, value.ok_or_else(|| Missing::because(format!("the driver gives no {what}"))), source);
        }
        let path = format!("{}/numa_node", context.pci()?);
        let node = match context.host.number::<i64>(&path)? {
            node if node >= 0 => Ok(node),
            _ => Err(Missing::because("the device belongs to no NUMA node")),
        };
        sink.put(keys::NIC_NUMA_NODE, node, path);
        // The mode of its domain: `DMA`, `DMA-FQ`, `identity` (Documentation/ABI/testing/sysfs-kernel-iommu_groups).
        let path = format!("{}/iommu_group/type", context.pci()?);
        let mode = context.host.read(&path).map(|text| text.trim().chars().take(16).collect::<String>());
        sink.put(keys::NIC_IOMMU, mode.map_err(|_| Missing::because("the device is behind no IOMMU")), path);
        Ok(())
    },
};
