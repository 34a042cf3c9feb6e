//! The processors: model, number, NUMA nodes, frequency and governor.

use crate::collector::{Class, Collector, Context, always};
use crate::{Missing, parse};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "cpu",
    about: "CPU model, number, NUMA nodes, frequency and governor",
    provides: &[
        keys::CPU_MODEL,
        keys::CPU_COUNT,
        keys::CPU_NUMA_NODES,
        keys::CPU_GOVERNOR,
        keys::CPU_FREQUENCY,
        keys::CPU_FREQUENCY_MAX,
    ],
    class: Class::Inventory,
    can_run: always,
    collect: |context, sink| {
        let host = context.host;
        let cpuinfo = "/proc/cpuinfo";
        sink.put(keys::CPU_MODEL, host.read(cpuinfo).and_then(|text| model(&text)), cpuinfo);
        for (key, path) in [
            (keys::CPU_COUNT, "/sys/devices/system/cpu/online"),
            (keys::CPU_NUMA_NODES, "/sys/devices/system/node/online"),
        ] {
            let count = host.read(path).and_then(|text| parse::cpu_list(path, &text)).map(|list| list.len() as u64);
            sink.put(key, count, path);
        }
        let governor = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";
        sink.put(keys::CPU_GOVERNOR, host.word(governor), governor);
        let (frequency, source) = frequency(context);
        sink.put(keys::CPU_FREQUENCY, frequency, source);
        let max = "/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq";
        sink.put(keys::CPU_FREQUENCY_MAX, host.number::<u64>(max).map(|khz| khz.saturating_mul(1000)), max);
        Ok(())
    },
};

/// The value of a line `name : value`.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    parse::lines(cpuinfo).find_map(|(_, line)| {
        let (found, value) = line.split_once(':')?;
        (found.trim() == name).then(|| value.trim()).filter(|value| !value.is_empty())
    })
}

fn model(cpuinfo: &str) -> Result<String, Missing> {
    // x86, then MIPS and 32-bit ARM, POWER, and the part number that 64-bit ARM reports instead of a name.
    let names = ["model name", "cpu model", "Model", "cpu", "CPU part"];
    names
        .iter()
        .find_map(|name| Some((*name, field(cpuinfo, name)?)))
        .map(|(name, value)| if name == "CPU part" { format!("ARM part {value}") } else { value.to_owned() })
        .ok_or_else(|| Missing::because("/proc/cpuinfo names no model"))
}

/// Of the first CPU, from the frequency driver, otherwise from `/proc/cpuinfo`.
fn frequency(context: &Context<'_>) -> (Result<u64, Missing>, &'static str) {
    let scaling = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq";
    if let Ok(khz) = context.host.number::<u64>(scaling) {
        return (Ok(khz.saturating_mul(1000)), scaling);
    }
    let cpuinfo = "/proc/cpuinfo";
    let mhz = context.host.read(cpuinfo).and_then(|text| {
        let word = field(&text, "cpu MHz").ok_or_else(|| Missing::because("/proc/cpuinfo gives no frequency"))?;
        parse::number::<f64>(cpuinfo, 1, word)
    });
    (mhz.map(|mhz| (mhz * 1e6).round() as u64), cpuinfo)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_found_on_x86_and_arm() {
        let x86 = "processor\t: 0\nmodel\t\t: 15\nmodel name\t: Intel(R) Core(TM)2 Duo CPU\ncpu MHz\t: 2333.000\n";
        assert_eq!(model(x86).expect("a name"), "Intel(R) Core(TM)2 Duo CPU");
        assert_eq!(field(x86, "cpu MHz"), Some("2333.000"));
        assert_eq!(model("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n").expect("a number"), "ARM part 0xd0c");
        assert!(model("").is_err());
    }
}
