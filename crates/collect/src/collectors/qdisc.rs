//! The queueing disciplines of the interface on the route, or of the one below it in which packets queue: kinds, rates, limits,
//! counters.

use crate::Missing;
use crate::collector::{Class as RunsAt, Collector, Context, Sink, with_device};
use crate::kernel::{Class, Link, Qdiscs};
use narrows_model::{FactKey, Value, keys};

pub(super) const COLLECTOR: Collector = Collector {
    id: "qdisc",
    about: "queueing disciplines: kinds, configured rate, limits, drops, backlog",
    provides: &[
        keys::QDISC_DEVICE,
        keys::QDISC_ROOT_KIND,
        keys::QDISC_KINDS,
        keys::QDISC_RATE,
        keys::QDISC_RATE_KIND,
        keys::QDISC_CLASS_RATE,
        keys::QDISC_CLASS_SENT,
        keys::QDISC_LIMIT_PACKETS,
        keys::QDISC_LIMIT_BYTES,
        keys::QDISC_SENT_BYTES,
        keys::QDISC_SENT_PACKETS,
        keys::QDISC_DROPS,
        keys::QDISC_OVERLIMITS,
        keys::QDISC_REQUEUES,
        keys::QDISC_BACKLOG_BYTES,
        keys::QDISC_BACKLOG_PACKETS,
        keys::QDISC_LEAF_DROPS,
        keys::QDISC_LEAF_OVERLIMITS,
    ],
    class: RunsAt::Both,
    can_run: with_device,
    collect,
};

const SOURCE: &str = "netlink RTM_GETQDISC";

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let (link, tree) = queueing(context)?;
    sink.fact(keys::QDISC_DEVICE, link.name.as_str(), SOURCE);
    let root = tree.root().ok_or_else(|| Missing::because(format!("{} has no queueing discipline", link.name)))?;
    sink.fact(keys::QDISC_ROOT_KIND, root.kind.as_str(), SOURCE);
    sink.fact(keys::QDISC_KINDS, Value::List(kinds(&tree)), SOURCE);
    // A queue of `fq` counts its own flows, and the root above several queues knows nothing of them.
    let leaves = sum(tree.leaves().map(|leaf| leaf.overlimits));
    let of_flows = tree.lowest_rate().is_some_and(|(_, kind)| kind == "fq");
    let overlimits = if of_flows { leaves } else { root.overlimits };
    for (key, count) in [
        (keys::QDISC_SENT_BYTES, root.sent_bytes),
        (keys::QDISC_SENT_PACKETS, root.sent_packets),
        (keys::QDISC_DROPS, root.drops),
        (keys::QDISC_OVERLIMITS, overlimits),
        (keys::QDISC_REQUEUES, root.requeues),
        (keys::QDISC_BACKLOG_BYTES, root.backlog_bytes),
        (keys::QDISC_BACKLOG_PACKETS, root.backlog_packets),
        (keys::QDISC_LEAF_DROPS, sum(tree.leaves().map(|leaf| leaf.drops))),
        (keys::QDISC_LEAF_OVERLIMITS, leaves),
    ] {
        sink.put(key, count.ok_or_else(|| Missing::because("the queueing discipline tells no such count")), SOURCE);
    }
    let rate = tree.lowest_rate().ok_or_else(|| Missing::because("no queueing discipline of the device has a rate"));
    sink.put(keys::QDISC_RATE, rate.clone().map(|(bps, _)| bps), SOURCE);
    sink.put(keys::QDISC_RATE_KIND, rate.map(|(_, kind)| kind), SOURCE);
    for class in busiest(&tree) {
        let of = |key: FactKey| key.name.replace('*', &class.handle);
        if let (Some(rate), Some(sent)) = (class.ceil_bps, class.sent_bytes) {
            sink.fact(of(keys::QDISC_CLASS_RATE), rate, "netlink RTM_GETTCLASS");
            sink.fact(of(keys::QDISC_CLASS_SENT), sent, "netlink RTM_GETTCLASS");
        }
    }
    let packets = tree.egress().filter_map(|qdisc| match qdisc.kind.as_str() {
        "pfifo_fast" => link.txqueuelen, // each of its bands holds that many; it reports no limit itself
        _ => qdisc.limit_packets,
    });
    let none = |what: &str| Missing::because(format!("no queueing discipline of the device has a limit in {what}"));
    sink.put(keys::QDISC_LIMIT_PACKETS, packets.min().ok_or_else(|| none("packets")), SOURCE);
    let bytes = tree.egress().filter_map(|qdisc| qdisc.limit_bytes);
    sink.put(keys::QDISC_LIMIT_BYTES, bytes.min().ok_or_else(|| none("bytes")), SOURCE);
    Ok(())
}

/// A host that shapes its customers has thousands of classes: a load is in one of those that sent most.
const MANY_CLASSES: usize = 64;

/// The classes that sent most, in their order in the tree.
fn busiest(tree: &Qdiscs) -> Vec<&Class> {
    let mut classes: Vec<&Class> = tree.classes.iter().collect();
    classes.sort_by_key(|class| std::cmp::Reverse(class.sent_bytes));
    classes.truncate(MANY_CLASSES);
    classes.sort_by(|a, b| a.handle.cmp(&b.handle));
    classes
}

/// The interface in which packets queue: that with the lowest configured rate, else the first that has a queue at all. Virtual
/// devices have none (`IFF_NO_QUEUE`: `noqueue`), so packets wait below them.
fn queueing<'a>(context: &'a Context<'_>) -> Result<(&'a Link, Qdiscs), Missing> {
    let (links, _) = context.layers()?;
    let mut trees: Vec<(&Link, Qdiscs)> = vec![(context.link()?, context.host.qdiscs(&context.link()?.name)?)];
    // What cannot be read of the others must not hide the first.
    trees.extend(links.iter().skip(1).filter_map(|link| Some((link, context.host.qdiscs(&link.name).ok()?))));
    let rate = |(_, tree): &(&Link, Qdiscs)| tree.lowest_rate().map(|(bps, _)| bps);
    let slowest = (0..trees.len()).filter_map(|at| Some((rate(trees.get(at)?)?, at))).min().map(|(_, at)| at);
    let queues = |(_, tree): &(&Link, Qdiscs)| tree.root().is_some_and(|root| root.kind != "noqueue");
    let at = slowest.or_else(|| trees.iter().position(queues)).unwrap_or(0);
    Ok(trees.swap_remove(at))
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
