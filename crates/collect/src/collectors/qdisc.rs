//! The queueing disciplines of the interface on the route: kinds, rates, limits, counters.

use crate::Missing;
use crate::collector::{Class, Collector, Context, Sink, with_device};
use crate::kernel::Qdiscs;
use narrows_model::{Key, Unit, Value};

pub(super) const COLLECTOR: Collector = Collector {
    id: "qdisc",
    about: "queueing disciplines: kinds, configured rate, limits, drops, backlog",
    provides: &[
        Key::new("qdisc.root.kind", Unit::Text),
        Key::new("qdisc.kinds", Unit::Text),
        Key::new("qdisc.rate", Unit::BitsPerSecond),
        Key::new("qdisc.rate.kind", Unit::Text),
        Key::new("qdisc.limit.packets", Unit::Packets),
        Key::new("qdisc.limit.bytes", Unit::Bytes),
        Key::new("qdisc.sent.bytes", Unit::Count),
        Key::new("qdisc.sent.packets", Unit::Count),
        Key::new("qdisc.drops", Unit::Count),
        Key::new("qdisc.overlimits", Unit::Count),
        Key::new("qdisc.requeues", Unit::Count),
        Key::new("qdisc.backlog.bytes", Unit::Bytes),
        Key::new("qdisc.backlog.packets", Unit::Packets),
        Key::new("qdisc.leaf.drops", Unit::Count),
        Key::new("qdisc.leaf.overlimits", Unit::Count),
    ],
    class: Class::Both,
    can_run: with_device,
    collect,
};

const SOURCE: &str = "netlink RTM_GETQDISC";

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let link = context.link()?;
    let tree = context.host.qdiscs(&link.name)?;
    let root = tree.root().ok_or_else(|| Missing::because(format!("{} has no queueing discipline", link.name)))?;
    sink.fact("qdisc.root.kind", root.kind.as_str(), SOURCE);
    sink.fact("qdisc.kinds", Value::List(kinds(&tree)), SOURCE);
    for (key, count) in [
        ("qdisc.sent.bytes", root.sent_bytes),
        ("qdisc.sent.packets", root.sent_packets),
        ("qdisc.drops", root.drops),
        ("qdisc.overlimits", root.overlimits),
        ("qdisc.requeues", root.requeues),
        ("qdisc.backlog.bytes", root.backlog_bytes),
        ("qdisc.backlog.packets", root.backlog_packets),
        ("qdisc.leaf.drops", sum(tree.leaves().map(|leaf| leaf.drops))),
        ("qdisc.leaf.overlimits", sum(tree.leaves().map(|leaf| leaf.overlimits))),
    ] {
        sink.put(key, count.ok_or_else(|| Missing::because("the queueing discipline tells no such count")), SOURCE);
    }
    let rate = tree.lowest_rate().ok_or_else(|| Missing::because("no queueing discipline of the device has a rate"));
    sink.put("qdisc.rate", rate.clone().map(|(bps, _)| bps), SOURCE);
    sink.put("qdisc.rate.kind", rate.map(|(_, kind)| kind), SOURCE);
    let packets = tree.egress().filter_map(|qdisc| match qdisc.kind.as_str() {
        "pfifo_fast" => link.txqueuelen, // each of its bands holds that many; it reports no limit itself
        _ => qdisc.limit_packets,
    });
    let none = |what: &str| Missing::because(format!("no queueing discipline of the device has a limit in {what}"));
    sink.put("qdisc.limit.packets", packets.min().ok_or_else(|| none("packets")), SOURCE);
    let bytes = tree.egress().filter_map(|qdisc| qdisc.limit_bytes);
    sink.put("qdisc.limit.bytes", bytes.min().ok_or_else(|| none("bytes")), SOURCE);
    Ok(())
}

/// The sum; none if one is missing.
fn sum(mut counts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    counts.try_fold(0_u64, |sum, count| Some(sum.saturating_add(count?)))
}

/// Each kind once, in tree order.
fn kinds(tree: &Qdiscs) -> Vec<String> {
    let mut kinds: Vec<String> = Vec::new();
    for qdisc in &tree.qdiscs {
        if !kinds.contains(&qdisc.kind) {
            kinds.push(qdisc.kind.clone());
        }
    }
    kinds
}
