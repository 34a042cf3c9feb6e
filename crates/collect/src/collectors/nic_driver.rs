//! The NIC's driver: `ETHTOOL_GDRVINFO`.

use crate::Missing;
use crate::collector::{Class, Collector, with_device};
use narrows_model::{Key, Unit};

pub(super) const COLLECTOR: Collector = Collector {
    id: "nic-driver",
    about: "driver, its version, firmware, bus address, NUMA node",
    provides: &[
        Key::new("nic.driver", Unit::Text),
        Key::new("nic.driver_version", Unit::Text),
        Key::new("nic.firmware", Unit::Text),
        Key::new("nic.bus", Unit::Text),
        Key::new("nic.numa_node", Unit::Number),
    ],
    class: Class::Inventory,
    can_run: with_device,
    collect: |context, sink| {
        let driver = context.ethtool()?.driver.get()?;
        let source = "ioctl ETHTOOL_GDRVINFO";
        for (key, value, what) in [
            ("nic.driver", &driver.name, "name"),
            ("nic.driver_version", &driver.version, "version"),
            ("nic.firmware", &driver.firmware, "firmware"),
            ("nic.bus", &driver.bus, "bus address"),
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
        sink.put("nic.numa_node", node, path);
        Ok(())
    },
};
