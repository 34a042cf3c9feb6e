//! How often each CPU ran the network softirqs: `/proc/softirqs`.

use crate::collector::{Class, Collector, Context, Sink, always};
use crate::{Missing, parse};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "softirq",
    about: "network soft interrupts of all CPUs",
    provides: &[keys::SOFTIRQ_NET_RX, keys::SOFTIRQ_NET_TX],
    class: Class::Both,
    can_run: always,
    collect,
};

const PATH: &str = "/proc/softirqs";

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let text = context.host.read(PATH)?;
    for (key, name) in [(keys::SOFTIRQ_NET_RX, "NET_RX:"), (keys::SOFTIRQ_NET_TX, "NET_TX:")] {
        sink.put(key, sum(&text, name), PATH);
    }
    Ok(())
}

fn sum(text: &str, name: &str) -> Result<u64, Missing> {
    let found = parse::lines(text).find(|(_, content)| content.trim_start().starts_with(name));
    let (line, content) = found.ok_or_else(|| Missing::because(format!("{PATH} has no line {name}")))?;
    parse::words(content).skip(1).try_fold(0_u64, |sum, word| Ok(sum.saturating_add(parse::number(PATH, line, word)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpus_of_a_line_are_summed() {
        let text = "          CPU0  CPU1\n  NET_TX:  1  2\n  NET_RX:  30  x\n";
        assert_eq!(sum(text, "NET_TX:"), Ok(3));
        assert!(sum(text, "NET_RX:").is_err());
        assert!(sum("", "NET_RX:").is_err());
    }
}
