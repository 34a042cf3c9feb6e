//! Identifies the running kernel. Two ends of a path may be network namespaces of one kernel, and then share its global
//! counters: `softnet_stat`, drop reasons, CPU times.

use crate::Missing;
use crate::collector::{Class, Collector, always};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "kernel-id",
    about: "a mark of the running kernel, new at each boot",
    provides: &[keys::HOST_BOOT],
    class: Class::Both,
    can_run: always,
    collect: |context, sink| {
        let path = "/proc/sys/kernel/random/boot_id";
        let id = context.host.word(path)?;
        // A part is enough to distinguish two kernels, and too little to identify one later. A capture holds no
        // identifiers.
        let is_mark = |mark: &&str| mark.bytes().all(|byte| byte.is_ascii_hexdigit()) && *mark != "00000000";
        let mark = id.get(..8).filter(is_mark);
        let mark = mark.ok_or_else(|| Missing::because(format!("{path} holds no mark here")))?;
        sink.fact(keys::HOST_BOOT, mark, path);
        Ok(())
    },
};
