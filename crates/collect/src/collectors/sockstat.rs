//! Memory that the sockets of the host hold: `/proc/net/sockstat`.

use crate::collector::{Class, Collector, Context, Sink, always};
use crate::{Missing, parse};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "sockstat",
    about: "memory that TCP and UDP sockets hold",
    provides: &[keys::TCP_MEM_USED, keys::UDP_MEM_USED],
    class: Class::Both,
    can_run: always,
    collect,
};

const PATH: &str = "/proc/net/sockstat";

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let text = context.host.read(PATH)?;
    sink.put(keys::TCP_MEM_USED, pages(&text, "TCP:"), PATH);
    sink.put(keys::UDP_MEM_USED, pages(&text, "UDP:"), PATH);
    Ok(())
}

/// The number behind `mem` on the protocol's line: `TCP: inuse 5 orphan 0 tw 0 alloc 7 mem 2`.
fn pages(text: &str, protocol: &str) -> Result<i64, Missing> {
    let missing = || Missing::because(format!("{PATH} gives no memory of {protocol}"));
    let found = parse::lines(text).find(|(_, content)| content.starts_with(protocol));
    let (line, content) = found.ok_or_else(missing)?;
    let word = parse::words(content).skip_while(|word| *word != "mem").nth(1).ok_or_else(missing)?;
    parse::number(PATH, line, word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_parsed_after_its_name() {
        let text = "sockets: used 40\nTCP: inuse 5 orphan 0 tw 0 alloc 7 mem 2\nUDP: inuse 1\n";
        assert_eq!(pages(text, "TCP:"), Ok(2));
        assert!(pages(text, "UDP:").is_err());
    }
}
