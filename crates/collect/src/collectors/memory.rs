//! Memory and swap: `/proc/meminfo`.

use crate::collector::{Class, Collector, always};
use crate::{Missing, parse};
use narrows_model::{Key, Unit};

pub(super) const COLLECTOR: Collector = Collector {
    id: "memory",
    about: "memory and swap, total and left",
    provides: &[
        Key::new("memory.total", Unit::Bytes),
        Key::new("memory.available", Unit::Bytes),
        Key::new("swap.total", Unit::Bytes),
        Key::new("swap.used", Unit::Bytes),
    ],
    class: Class::Inventory,
    can_run: always,
    collect: |context, sink| {
        let path = "/proc/meminfo";
        let text = context.host.read(path)?;
        let bytes = |wanted: &str| -> Result<i64, Missing> {
            let item = parse::key_values(path, &text).find(|(name, _)| *name == wanted);
            let (_, kibibytes) = item.ok_or_else(|| Missing::because(format!("{path} has no {wanted}")))?;
            Ok(kibibytes?.saturating_mul(1024))
        };
        sink.put("memory.total", bytes("MemTotal"), path);
        // Kernels before 3.14 do not report MemAvailable.
        sink.put("memory.available", bytes("MemAvailable"), path);
        sink.put("swap.total", bytes("SwapTotal"), path);
        let used = bytes("SwapTotal").and_then(|total| Ok(total.saturating_sub(bytes("SwapFree")?)));
        sink.put("swap.used", used, path);
        Ok(())
    },
};
