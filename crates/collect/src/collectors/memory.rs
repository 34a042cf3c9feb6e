//! Memory and swap: `/proc/meminfo`.

use crate::collector::{Class, Collector, always};
use crate::{Missing, parse};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "memory",
    about: "memory and swap, total and left",
    provides: &[keys::MEMORY_TOTAL, keys::MEMORY_AVAILABLE, keys::SWAP_TOTAL, keys::SWAP_USED],
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
        sink.put(keys::MEMORY_TOTAL, bytes("MemTotal"), path);
        // Kernels before 3.14 do not report MemAvailable.
        sink.put(keys::MEMORY_AVAILABLE, bytes("MemAvailable"), path);
        sink.put(keys::SWAP_TOTAL, bytes("SwapTotal"), path);
        let used = bytes("SwapTotal").and_then(|total| Ok(total.saturating_sub(bytes("SwapFree")?)));
        sink.put(keys::SWAP_USED, used, path);
        Ok(())
    },
};
