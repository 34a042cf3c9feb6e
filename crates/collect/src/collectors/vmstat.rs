//! Swapping and waiting for memory: `/proc/vmstat`, `/proc/pressure/memory`.
//! Source: kernel `Documentation/accounting/psi.rst`.

use crate::collector::{Class, Collector, Context, Sink, always};
use crate::{Missing, parse};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "vmstat",
    about: "swapping, major faults, time that tasks waited for memory",
    provides: &[
        keys::VMSTAT_PSWPIN,
        keys::VMSTAT_PSWPOUT,
        keys::VMSTAT_PGMAJFAULT,
        keys::MEMORY_PRESSURE_SOME_US,
        keys::MEMORY_PRESSURE_FULL_US,
    ],
    class: Class::Both,
    can_run: always,
    collect,
};

const VMSTAT: &str = "/proc/vmstat";
const PRESSURE: &str = "/proc/pressure/memory";

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let pressure = context.host.read(PRESSURE);
    for (key, word) in [(keys::MEMORY_PRESSURE_SOME_US, "some"), (keys::MEMORY_PRESSURE_FULL_US, "full")] {
        sink.put(key, pressure.as_ref().map_err(Clone::clone).and_then(|text| total(text, word)), PRESSURE);
    }
    let text = context.host.read(VMSTAT)?;
    for name in ["pswpin", "pswpout", "pgmajfault"] {
        let item = parse::key_values(VMSTAT, &text).find(|(found, _)| *found == name);
        let value = item.map_or_else(|| Err(Missing::because(format!("{VMSTAT} has no {name}"))), |(_, value)| value);
        sink.put(format!("vmstat.{name}"), value, VMSTAT);
    }
    Ok(())
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`
fn total(text: &str, word: &str) -> Result<u64, Missing> {
    let missing = || Missing::because(format!("{PRESSURE} gives no total of `{word}`"));
    let (line, content) = parse::lines(text).find(|(_, content)| content.starts_with(word)).ok_or_else(missing)?;
    let total = parse::words(content).find_map(|word| word.strip_prefix("total=")).ok_or_else(missing)?;
    parse::number(PRESSURE, line, total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_a_pressure_is_found() {
        let text = "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00\n";
        assert_eq!(total(text, "some"), Ok(1234));
        assert!(total(text, "full").is_err());
    }
}
