//! Counters of one network interface, and drop counters of a host: for the accounting of a device under test, read before and
//! after each trial. All of the calling thread's network namespace.

use crate::kernel::{Link, Sockets, links, qdiscs, rules};
use crate::{Missing, parse};
use narrows_model::host::hop::DropCount;
use narrows_sys::files;
use std::path::Path;

/// Counters of an interface since it was created (`struct rtnl_link_stats64`, 64 bits each). Counters that an old
/// kernel lacks are `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkCounters {
    /// Packets received; for a veth also frames consumed by an XDP program.
    pub rx_packets: u64,
    /// Their bytes, without FCS.
    pub rx_bytes: u64,
    pub tx_packets: u64,
    /// Their bytes, without FCS.
    pub tx_bytes: u64,
    /// Received and dropped by the kernel before a protocol saw them.
    pub rx_dropped: Option<u64>,
    /// Dropped for lack of ring space.
    pub rx_missed: Option<u64>,
    pub rx_errors: Option<u64>,
    /// Dropped by the interface instead of sent.
    pub tx_dropped: Option<u64>,
    pub tx_errors: Option<u64>,
}

/// The counters of an interface by its name.
/// Errors: no such interface; the kernel provides no counters.
pub fn link_counters(device: &str) -> Result<LinkCounters, Missing> {
    of_link(&links::by_name(&Sockets::default(), device)?)
}

fn of_link(link: &Link) -> Result<LinkCounters, Missing> {
    let count = |name: &str| link.counters.get(name).copied();
    let needed = |name: &str| {
        count(name).ok_or_else(|| Missing::because(format!("the kernel does not report {name} of {}", link.name)))
    };
    Ok(LinkCounters {
        rx_packets: needed("rx_packets")?,
        rx_bytes: needed("rx_bytes")?,
        tx_packets: needed("tx_packets")?,
        tx_bytes: needed("tx_bytes")?,
        rx_dropped: count("rx_dropped"),
        rx_missed: count("rx_missed_errors"),
        rx_errors: count("rx_errors"),
        tx_dropped: count("tx_dropped"),
        tx_errors: count("tx_errors"),
    })
}

/// Where the kernel counts IP drops: the file, the group of a pair of lines, the member, and its meaning. Source: RFC
/// 4293; kernel net/ipv4/ip_forward.c, ip_input.c, route.c.
const DROPS_OF_IPV4: [(&str, &str, &str, &str); 8] = [
    ("snmp", "Ip", "InHdrErrors", "bad header or time to live"),
    ("snmp", "Ip", "InAddrErrors", "address not accepted"),
    ("snmp", "Ip", "InUnknownProtos", "unknown protocol"),
    ("snmp", "Ip", "InDiscards", "discarded on the way in"),
    ("snmp", "Ip", "OutDiscards", "discarded on the way out"),
    ("snmp", "Ip", "OutNoRoutes", "no route on the way out"),
    ("netstat", "IpExt", "InNoRoutes", "no route"),
    ("netstat", "IpExt", "InTruncatedPkts", "truncated"),
];

/// The same of `/proc/net/snmp6`. Source: kernel net/ipv6/ip6_input.c, ip6_output.c.
const DROPS_OF_IPV6: [(&str, &str); 9] = [
    ("Ip6InHdrErrors", "bad header or hop limit"),
    ("Ip6InTooBigErrors", "too big"),
    ("Ip6InAddrErrors", "address not accepted"),
    ("Ip6InUnknownProtos", "unknown protocol"),
    ("Ip6InDiscards", "discarded on the way in"),
    ("Ip6OutDiscards", "discarded on the way out"),
    ("Ip6InNoRoutes", "no route"),
    ("Ip6OutNoRoutes", "no route on the way out"),
    ("Ip6InTruncatedPkts", "truncated"),
];

/// All drops of this network namespace so far, by reason: the interfaces with these names and their queueing
/// disciplines, the packet filter, IP. Reasons without drops are included with 0, so that two readings can be compared;
/// counters that the kernel does not provide are left out. Disciplines and rules count from their creation.
/// Errors: an interface that does not exist, or without counters.
pub fn drops_by_reason(devices: &[&str]) -> Result<Vec<DropCount>, Missing> {
    let sockets = Sockets::default();
    let mut drops = Vec::new();
    for device in devices {
        let counters = of_link(&links::by_name(&sockets, device)?)?;
        let tree = qdiscs::of(&sockets, device)?;
        drops.extend(of_device(device, &counters, tree.root().and_then(|root| root.drops)));
    }
    // A kernel without a packet filter has no filter drops.
    let filter = rules::drops(&sockets).ok();
    drops.extend(filter.map(|filter| DropCount { reason: "nftables rule".to_owned(), frames: filter.packets }));
    let read = |name: &str| {
        let path = format!("/proc/thread-self/net/{name}");
        files::read_text(Path::new(&path)).map_err(|error| Missing::file(&path, &error))
    };
    drops.extend(of_ipv4([&read("snmp")?, &read("netstat")?]));
    // Absent if IPv6 is disabled.
    drops.extend(read("snmp6").map(|text| of_ipv6(&text)).unwrap_or_default());
    Ok(drops)
}

fn of_device(device: &str, counters: &LinkCounters, qdisc: Option<u64>) -> Vec<DropCount> {
    let counts = [
        ("rx_dropped", counters.rx_dropped),
        ("rx_missed", counters.rx_missed),
        ("rx_errors", counters.rx_errors),
        ("tx_dropped", counters.tx_dropped),
        ("tx_errors", counters.tx_errors),
        ("qdisc", qdisc),
    ];
    let told = counts.into_iter().filter_map(|(word, count)| Some((word, count?)));
    told.map(|(word, frames)| DropCount { reason: format!("{word} {device}"), frames }).collect()
}

/// `files`: the texts of `snmp` and `netstat`.
fn of_ipv4(files: [&str; 2]) -> Vec<DropCount> {
    let [snmp, netstat] = files;
    let texts = [("snmp", snmp), ("netstat", netstat)];
    let parsed = texts.map(|(name, text)| (name, parse::paired_lines(name, text)));
    let find = |file: &str, group: &str, member: &str| {
        let (_, items) = parsed.iter().find(|(name, _)| *name == file)?;
        let (_, _, value) = items.iter().find(|(prefix, name, _)| *prefix == group && *name == member)?;
        value.as_ref().ok().and_then(|count| u64::try_from(*count).ok())
    };
    let of = |(file, group, member, words): (&str, &str, &str, &str)| {
        Some(DropCount { reason: format!("IPv4 {words}"), frames: find(file, group, member)? })
    };
    DROPS_OF_IPV4.into_iter().filter_map(of).collect()
}

fn of_ipv6(snmp6: &str) -> Vec<DropCount> {
    let items: Vec<_> = parse::key_values("snmp6", snmp6).collect();
    let find = |member: &str| {
        let (_, value) = items.iter().find(|(name, _)| *name == member)?;
        value.as_ref().ok().and_then(|count| u64::try_from(*count).ok())
    };
    let of = |(member, words): (&str, &str)| Some(DropCount { reason: format!("IPv6 {words}"), frames: find(member)? });
    DROPS_OF_IPV6.into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn a_missing_counter_is_not_zero() {
        let mut link = Link { name: "in0".to_owned(), ..Link::default() };
        assert!(of_link(&link).expect_err("no counters").to_string().contains("rx_packets of in0"));
        let names = ["rx_packets", "rx_bytes", "tx_packets", "tx_bytes", "rx_dropped", "rx_missed_errors"];
        link.counters = names.iter().zip(1..).map(|(name, n)| ((*name).to_owned(), n)).collect::<BTreeMap<_, _>>();
        let read = of_link(&link).expect("all that is needed");
        assert_eq!([read.rx_packets, read.rx_bytes, read.tx_packets, read.tx_bytes], [1, 2, 3, 4]);
        assert_eq!((read.rx_dropped, read.rx_missed, read.tx_dropped), (Some(5), Some(6), None));
        let reasons = of_device("in0", &read, Some(9));
        let shown: Vec<_> = reasons.iter().map(|drop| format!("{} {}", drop.frames, drop.reason)).collect();
        assert_eq!(shown, ["5 rx_dropped in0", "6 rx_missed in0", "9 qdisc in0"]);
    }

    #[test]
    fn ip_drops_have_descriptions() {
        let snmp = "Ip: Forwarding InHdrErrors InDiscards OutNoRoutes\nIp: 1 3 0 7\nUdp: InDatagrams\nUdp: 99\n";
        let netstat = "TcpExt: InNoRoutes\nTcpExt: 98\nIpExt: InNoRoutes InOctets\nIpExt: 5 1000\n";
        let shown = |drops: Vec<DropCount>| {
            drops.iter().map(|drop| format!("{} {}", drop.frames, drop.reason)).collect::<Vec<_>>()
        };
        assert_eq!(
            shown(of_ipv4([snmp, netstat])),
            [
                "3 IPv4 bad header or time to live",
                "0 IPv4 discarded on the way in",
                "7 IPv4 no route on the way out",
                "5 IPv4 no route"
            ]
        );
        let snmp6 = "Ip6InReceives                   \t20\nIp6InHdrErrors \t2\nIp6InNoRoutes \t4\nIcmp6InMsgs 7\n";
        assert_eq!(shown(of_ipv6(snmp6)), ["2 IPv6 bad header or hop limit", "4 IPv6 no route"]);
    }

    #[test]
    fn the_loopback_device_is_read_and_a_missing_one_named() {
        assert!(link_counters("lo").is_ok());
        let reasons = drops_by_reason(&["lo"]).expect("netlink and proc");
        assert!(reasons.iter().any(|drop| drop.reason == "rx_dropped lo"), "{reasons:?}");
        assert!(link_counters("none0").expect_err("none").to_string().contains("none0"));
        assert!(drops_by_reason(&["lo", "none0"]).is_err());
    }
}
