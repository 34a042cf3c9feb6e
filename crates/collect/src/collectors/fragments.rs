//! Reassembly of IP fragments: memory in use and its limit. Source: kernel `Documentation/networking/ip-sysctl.rst`,
//! `net/ipv4/ip_fragment.c`, `net/ipv6/reassembly.c`.

use crate::collector::{Class, Collector, Context, Sink, always};
use crate::settings::{self, Form, Setting};
use crate::{Missing, parse};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "ip-fragments",
    about: "memory of datagrams that wait for their other fragments, and its limits",
    provides: &[keys::IP_FRAG_MEM_USED, keys::IP6_FRAG_MEM_USED, keys::IP_FRAG_HIGH, keys::IP6_FRAG_HIGH],
    class: Class::Both,
    can_run: always,
    collect,
};

const SETTINGS: &[Setting] = &[
    ("ipv4/ipfrag_high_thresh", Form::Number(keys::IP_FRAG_HIGH)),
    ("ipv6/ip6frag_high_thresh", Form::Number(keys::IP6_FRAG_HIGH)),
];

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    settings::read(context, sink, SETTINGS);
    for (key, path, line) in [
        (keys::IP_FRAG_MEM_USED, "/proc/net/sockstat", "FRAG:"),
        (keys::IP6_FRAG_MEM_USED, "/proc/net/sockstat6", "FRAG6:"),
    ] {
        sink.put(key, context.host.read(path).and_then(|text| memory(path, &text, line)), path);
    }
    Ok(())
}

/// The number after `memory`: `FRAG: inuse 0 memory 0`.
fn memory(path: &str, text: &str, protocol: &str) -> Result<i64, Missing> {
    let missing = || Missing::because(format!("{path} gives no memory of {protocol}"));
    let (line, content) = parse::lines(text).find(|(_, content)| content.starts_with(protocol)).ok_or_else(missing)?;
    let word = parse::words(content).skip_while(|word| *word != "memory").nth(1).ok_or_else(missing)?;
    parse::number(path, line, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_parsed_after_its_name() {
        let text = "UDP6: inuse 2\nFRAG6: inuse 3 memory 13312\n";
        assert_eq!(memory("f", text, "FRAG6:"), Ok(13_312));
        assert!(memory("f", "FRAG: inuse 3\n", "FRAG:").is_err());
    }
}
