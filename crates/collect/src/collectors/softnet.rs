//! The receive path of each CPU: `/proc/net/softnet_stat`. Source: kernel `net/core/net-procfs.c`, `softnet_seq_show`.

use crate::collector::{Class, Collector, Context, Sink, always};
use crate::{Missing, parse};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "softnet",
    about: "packets that each CPU received, dropped from its backlog, or deferred",
    provides: &[
        keys::SOFTNET_PROCESSED,
        keys::SOFTNET_DROPPED,
        keys::SOFTNET_TIME_SQUEEZE,
        keys::SOFTNET_RECEIVED_RPS,
        keys::SOFTNET_FLOW_LIMIT,
        keys::SOFTNET,
    ],
    class: Class::Both,
    can_run: always,
    collect,
};

const PATH: &str = "/proc/net/softnet_stat";

/// The name of a column and its position. Columns that a kernel does not have yet are missing.
const COLUMNS: [(&str, usize); 5] =
    [("processed", 0), ("dropped", 1), ("time_squeeze", 2), ("received_rps", 9), ("flow_limit", 10)];

/// The CPU's number (since Linux 5.10). Offline CPUs have no line, so the line number is not the CPU number.
const CPU: usize = 12;

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let text = context.host.read(PATH)?;
    let mut sums: [Option<u64>; COLUMNS.len()] = [None; COLUMNS.len()];
    for (line, content) in parse::lines(&text) {
        let values: Vec<Result<u64, Missing>> =
            parse::words(content).map(|word| parse::hexadecimal(PATH, line, word)).collect();
        let cpu = values.get(CPU).and_then(|cpu| cpu.as_ref().ok());
        for ((name, column), sum) in COLUMNS.iter().zip(&mut sums) {
            let Some(value) = values.get(*column) else {
                continue;
            };
            let value = value.clone()?;
            *sum = Some(sum.unwrap_or(0).saturating_add(value));
            if let Some(cpu) = cpu {
                sink.fact(format!("softnet.cpu{cpu}.{name}"), value, PATH);
            }
        }
    }
    for ((name, _), sum) in COLUMNS.iter().zip(sums) {
        let sum = sum.ok_or_else(|| Missing::because(format!("{PATH} of this kernel has no column {name}")));
        sink.put(format!("softnet.{name}"), sum, PATH);
    }
    Ok(())
}
