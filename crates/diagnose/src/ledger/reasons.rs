//! What a host dropped by a reason of its drop watch, as far as it was its own.
//!
//! Without BPF a watch counts the whole kernel, with the routers and containers of the machine. Then no more of it was this host's than
//! the counters of its own network namespace miss at that place.

use narrows_model::keys;
use std::collections::BTreeMap;

/// By how much the counters of one end grew.
pub(super) type Counts = BTreeMap<String, u64>;

/// Packets that this host dropped by a reason; `None` where there was no watch, it lost records, or nothing says which were this host's.
pub(crate) fn own(counts: &Counts, reason: &str) -> Option<u64> {
    if counts.get(keys::DROP_LOST_RECORDS.name).copied()? > 0 {
        return None;
    }
    let counted = counts.get(&format!("drop.reason.{reason}")).copied().unwrap_or(0);
    if counted == 0 || counts.contains_key(keys::DROP_ELSEWHERE.name) {
        return Some(counted);
    }
    missed(counts, reason).map(|most| counted.min(most))
}

/// The most that this host's network namespace can have dropped by a reason, from its counters.
fn missed(counts: &Counts, reason: &str) -> Option<u64> {
    let sum = |names: [&str; 2]| names.iter().filter_map(|name| counts.get(*name).copied()).reduce(u64::saturating_add);
    match reason {
        "NETFILTER_DROP" => filtered(counts),
        "SOCKET_RCVBUFF" => sum(["snmp.Udp.RcvbufErrors", "snmp6.Udp6RcvbufErrors"]),
        "PROTO_MEM" => sum(["snmp.Udp.MemErrors", "snmp6.Udp6MemErrors"]),
        "UDP_CSUM" => sum(["snmp.Udp.InCsumErrors", "snmp6.Udp6InCsumErrors"]),
        "QDISC_DROP" | "QDISC_OVERLIMIT" | "QDISC_CONGESTED" | "FQ_FLOW_LIMIT" => {
            counts.get(keys::QDISC_DROPS.name).copied()
        }
        // A full backlog is also counted by the device whose packet it was (net/core/dev.c, enqueue_to_backlog).
        "CPU_BACKLOG" => counts.get(keys::NIC_COUNTER_RX_DROPPED.name).copied(),
        _ => None,
    }
}

/// Of the packets that the backlogs of the machine refused, those of this host.
pub(super) fn backlog(counts: &Counts) -> Option<u64> {
    let dropped = counts.get(keys::SOFTNET_DROPPED.name).copied()?;
    let own = own(counts, "CPU_BACKLOG").filter(|_| counts.contains_key(keys::DROP_ELSEWHERE.name));
    Some(dropped.min(own.or_else(|| missed(counts, "CPU_BACKLOG")).unwrap_or(dropped)))
}

/// The counters of IP of one family: their prefix, that of forwarded packets, and what ends packets that no filter dropped.
struct Family {
    prefix: &'static str,
    forwarded: &'static str,
    errors: &'static [&'static str],
}

/// `net/ipv4/ip_input.c`, `net/ipv4/route.c`, `net/ipv4/fib_frontend.c`.
const V4: Family = Family {
    prefix: "snmp.Ip.",
    forwarded: "snmp.Ip.ForwDatagrams",
    errors: &[
        "snmp.Ip.InHdrErrors",
        "snmp.Ip.InAddrErrors",
        "snmp.Ip.InUnknownProtos",
        "snmp.Ip.InDiscards",
        "netstat.IpExt.InNoRoutes",
        "netstat.TcpExt.IPReversePathFilter",
    ],
};

/// `net/ipv6/ip6_input.c`.
const V6: Family = Family {
    prefix: "snmp6.Ip6",
    forwarded: "snmp6.Ip6OutForwDatagrams",
    errors: &[
        "snmp6.Ip6InHdrErrors", "snmp6.Ip6InAddrErrors", "snmp6.Ip6InUnknownProtos", "snmp6.Ip6InDiscards",
        "snmp6.Ip6InNoRoutes",
    ],
};

impl Family {
    fn count(&self, counts: &Counts, name: &str) -> Option<u64> {
        counts.get(&format!("{}{name}", self.prefix)).copied()
    }

    /// Packets that IP received and neither delivered nor forwarded, for no reason that it counts: what a filter dropped.
    fn received(&self, counts: &Counts) -> Option<u64> {
        let count = |name| self.count(counts, name);
        let fragments = count("ReasmReqds")?.saturating_sub(count("ReasmOKs")?);
        let passed = [count("InDelivers")?, counts.get(self.forwarded).copied()?, fragments];
        let passed = passed.into_iter().chain(self.errors.iter().filter_map(|key| counts.get(*key).copied()));
        Some(count("InReceives")?.saturating_sub(passed.fold(0, u64::saturating_add)))
    }

    /// Packets that IP was to send and did not: it counts them before its filters and behind them since Linux 6.7 (net/ipv4/ip_output.c).
    fn kept(&self, counts: &Counts) -> Option<u64> {
        let asked = self.count(counts, "OutRequests")?.saturating_add(counts.get(self.forwarded).copied()?);
        Some(asked.saturating_sub(self.count(counts, "OutTransmits")?))
    }
}

/// Packets that IP of this host received and that its filter dropped, by what is missing.
pub(super) fn received_and_dropped(counts: &Counts) -> Option<u64> {
    [V4, V6].iter().filter_map(|family| family.received(counts)).reduce(u64::saturating_add)
}

/// The most that filters behind IP's counters can have dropped; what they kept from UDP any kernel counts (`OutDiscards`).
fn filtered(counts: &Counts) -> Option<u64> {
    let sent = [V4, V6].iter().fold(0_u64, |sum, family| {
        let kept = family.kept(counts).max(family.count(counts, "OutDiscards"));
        sum.saturating_add(kept.unwrap_or(0))
    });
    received_and_dropped(counts).map(|received| received.saturating_add(sent))
}

/// Packets that a filter of this host kept from being sent: missing behind its filters, and dropped by a rule or for that reason.
/// `None` where that is not known.
pub(super) fn unsent_by_filter(counts: &Counts, ipv6: bool) -> Option<u64> {
    let by_rules = counts.get(keys::FILTER_DROP_PACKETS.name).copied();
    match [by_rules, own(counts, "NETFILTER_DROP")].into_iter().flatten().reduce(u64::max)? {
        0 => Some(0),
        dropped => Some((if ipv6 { V6 } else { V4 }).kept(counts)?.min(dropped)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: &[(&str, u64)]) -> Counts {
        let ip = ["InReceives", "InDelivers", "ForwDatagrams", "ReasmReqds", "ReasmOKs"];
        let ip = ip.iter().map(|name| (format!("snmp.Ip.{name}"), 0));
        let of = of.iter().map(|(key, n)| ((*key).to_owned(), *n));
        ip.chain([("drop.lost_records".to_owned(), 0)]).chain(of).collect()
    }

    #[test]
    fn of_a_whole_kernel_no_more_is_a_hosts_than_its_own_ip_misses() {
        let filter = ("drop.reason.NETFILTER_DROP", 900);
        let of = |more: &[(&str, u64)]| own(&counts(&[&[filter], more].concat()), "NETFILTER_DROP");
        assert_eq!(of(&[]), Some(0), "a router or container on the same machine");
        assert_eq!(of(&[("drop.elsewhere", 5)]), Some(900), "the watch is of this namespace");
        assert_eq!(of(&[("snmp.Ip.InReceives", 5_000), ("snmp.Ip.InDelivers", 4_300)]), Some(700));
        let spoofed = ("netstat.TcpExt.IPReversePathFilter", 690);
        assert_eq!(of(&[("snmp.Ip.InReceives", 5_000), ("snmp.Ip.InDelivers", 4_300), spoofed]), Some(10));
        assert_eq!(of(&[("snmp.Ip.OutRequests", 5_000), ("snmp.Ip.OutTransmits", 4_800)]), Some(200));
        assert_eq!(of(&[("drop.lost_records", 1)]), None);
        let deaf = counts(&[("snmp.Ip.InReceives", 5_000), ("snmp.Ip.InDelivers", 4_300), ("snmp.Ip.OutRequests", 9)]);
        assert_eq!(received_and_dropped(&deaf), Some(700), "no privilege is needed to see it");
        assert_eq!(own(&counts(&[("drop.reason.XDP", 9)]), "XDP"), None, "nothing says whose they were");
    }

    #[test]
    fn sockets_queues_and_backlogs_have_counters_of_their_own() {
        for (reason, key) in [
            ("SOCKET_RCVBUFF", "snmp.Udp.RcvbufErrors"),
            ("PROTO_MEM", "snmp6.Udp6MemErrors"),
            ("UDP_CSUM", "snmp.Udp.InCsumErrors"),
            ("QDISC_DROP", "qdisc.drops"),
            ("CPU_BACKLOG", "nic.counter.rx_dropped"),
        ] {
            let seen = format!("drop.reason.{reason}");
            assert_eq!(own(&counts(&[(&seen, 900), (key, 20)]), reason), Some(20));
            assert_eq!(own(&counts(&[(&seen, 900)]), reason), None);
        }
        assert_eq!(backlog(&counts(&[("softnet.dropped", 50)])), Some(50), "nothing says that others have some of it");
        assert_eq!(backlog(&counts(&[("softnet.dropped", 50), ("nic.counter.rx_dropped", 3)])), Some(3));
        let here = [("softnet.dropped", 50), ("drop.elsewhere", 40), ("drop.reason.CPU_BACKLOG", 10)];
        assert_eq!(backlog(&counts(&here)), Some(10));
    }
}
