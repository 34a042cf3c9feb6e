//! Reassembly of IP fragments: memory in use and its limit. Source: kernel `Documentation/networking/ip-sysctl.rst`,
//! `net/ipv4/ip_fragment.c`, `net/ipv6/reassembly.c`.

use crate::collector::{Class, Collector, Context, Sink, always};
use super::settings;
use crate::{Missing, parse};
use narrows_model::host::settings::Group;
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "ip-fragments",
    about: "memory of datagrams that wait for their other fragments, and its limits",
    provides: &[keys::IP_FRAG_MEM_USED, keys::IP6_FRAG_MEM_USED, keys::IP_FRAG_HIGH, keys::IP6_FRAG_HIGH],
    class: Class::Both,
    can_run: always,
    collect,
};

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    settings::read(context, sink, Group::Fragments)?;
    for (key, path, line) in [
        (keys::IP_FRAG_MEM_USED, "/proc/net/sockstat", "FRAG:"),
        (keys::IP6_FRAG_MEM_USED, "/proc/net/sockstat6", "FRAG6:"),
    ] {
        sink.put(key, context.host.read(path).and_then(|text| parse::number_after(path, &text, line, "memory")), path);
    }
    Ok(())
}
