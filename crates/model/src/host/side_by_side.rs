//! Both hosts side by side: which facts make a row, in which group, under which label. One line of [`ROWS`] a row.

use crate::host::fact::{Absent, Fact, Snapshot, Value};
use crate::run::report::HostView;
use crate::words::show;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A group of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Group {
    /// The machine and its kernel.
    Host,
    /// The network interface on the route to the peer.
    Nic,
    /// The bus that it sits on.
    Pcie,
    /// The TCP stack.
    Tcp,
    /// UDP's own settings.
    Udp,
    /// Queues between the stack and the interface.
    Queueing,
    /// The way to the peer, as the host sees it.
    Path,
    /// What was counted since boot.
    Counters,
}

impl Group {
    /// As a heading.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::Host => "Host",
            Self::Nic => "Network interface",
            Self::Pcie => "PCIe",
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Queueing => "Queueing",
            Self::Path => "Path",
            Self::Counters => "Counters since boot",
        }
    }
}

/// One row: a key, or several that only together say something.
#[derive(Debug)]
pub struct RowSpec {
    /// Where it stands.
    pub group: Group,
    /// What it is called.
    pub label: &'static str,
    /// Text before each fact, and its key. The first key names the row and must be known; of the others,
    /// one that is not known is left out with its text.
    pub parts: &'static [(&'static str, &'static str)],
    /// Whether a difference between the hosts is worth a mark.
    pub compare: bool,
    /// Whether it belongs into the short form.
    pub brief: bool,
}

impl RowSpec {
    /// The row's key: that of its first part.
    #[must_use]
    pub fn key(&self) -> &'static str {
        self.parts.first().map_or("", |(_, key)| key)
    }
}

/// How much a row matters: only `SHOWN`; `MARKED` where the hosts differ; in the `BRIEF` form too.
const SHOWN: (bool, bool) = (false, false);
const MARKED: (bool, bool) = (true, false);
const BRIEF: (bool, bool) = (true, true);

const fn row(
    group: Group,
    label: &'static str,
    (compare, brief): (bool, bool),
    parts: &'static [(&'static str, &'static str)],
) -> RowSpec {
    RowSpec { group, label, parts, compare, brief }
}

/// Every row, in the order of reading.
#[rustfmt::skip]
pub const ROWS: &[RowSpec] = &[
    row(Group::Host, "name", SHOWN, &[("", "host.name")]),
    row(Group::Host, "kernel", BRIEF, &[("", "host.kernel")]),
    row(Group::Host, "virtualisation", MARKED, &[("", "host.virtualisation")]),
    row(Group::Host, "CPU", MARKED, &[("", "cpu.model")]),
    row(Group::Host, "CPUs", MARKED, &[("", "cpu.count")]),
    row(Group::Host, "NUMA nodes", MARKED, &[("", "cpu.numa_nodes")]),
    row(Group::Host, "frequency", SHOWN, &[("", "cpu.frequency"), (" of ", "cpu.frequency.max")]),
    row(Group::Host, "governor", MARKED, &[("", "cpu.governor")]),
    row(Group::Host, "CPU quota (cores)", MARKED, &[("", "cgroup.cpu_quota")]),
    row(Group::Host, "memory", MARKED, &[("", "memory.total")]),
    row(Group::Host, "available memory", SHOWN, &[("", "memory.available")]),
    row(Group::Host, "swap in use", SHOWN, &[("", "swap.used"), (" of ", "swap.total")]),
    row(Group::Nic, "interface", SHOWN, &[("", "nic.name"), (", ", "nic.kind")]),
    row(Group::Nic, "driver", MARKED, &[("", "nic.driver"), (" ", "nic.driver_version")]),
    row(Group::Nic, "firmware", MARKED, &[("", "nic.firmware")]),
    row(Group::Nic, "bus", SHOWN, &[("", "nic.bus")]),
    row(Group::Nic, "link up", MARKED, &[("", "nic.carrier")]),
    row(Group::Nic, "link speed", BRIEF, &[("", "nic.speed"), (" of ", "nic.speed.max")]),
    row(Group::Nic, "duplex", MARKED, &[("", "nic.duplex")]),
    row(Group::Nic, "autonegotiation", MARKED, &[("", "nic.autoneg")]),
    row(Group::Nic, "flow control autoneg", MARKED, &[("", "nic.pause.autoneg")]),
    row(Group::Nic, "flow control rx", MARKED, &[("", "nic.pause.rx")]),
    row(Group::Nic, "flow control tx", MARKED, &[("", "nic.pause.tx")]),
    row(Group::Nic, "MTU", BRIEF, &[("", "nic.mtu")]),
    row(Group::Nic, "rx ring", MARKED, &[("", "nic.ring.rx"), (" of ", "nic.ring.rx.max")]),
    row(Group::Nic, "tx ring", MARKED, &[("", "nic.ring.tx"), (" of ", "nic.ring.tx.max")]),
    row(Group::Nic, "channels", MARKED, &[("", "nic.channels.combined"), (" of ", "nic.channels.combined.max")]),
    row(Group::Nic, "rx coalescing", MARKED, &[("", "nic.coalesce.rx_usecs"), (", adaptive ", "nic.coalesce.adaptive_rx")]),
    row(Group::Nic, "TSO", MARKED, &[("", "nic.feature.tso")]),
    row(Group::Nic, "GSO", MARKED, &[("", "nic.feature.gso")]),
    row(Group::Nic, "GRO", MARKED, &[("", "nic.feature.gro")]),
    row(Group::Nic, "LRO", MARKED, &[("", "nic.feature.lro")]),
    row(Group::Nic, "tx checksums", MARKED, &[("", "nic.feature.tx_checksum")]),
    row(Group::Nic, "rx checksums", MARKED, &[("", "nic.feature.rx_checksum")]),
    row(Group::Nic, "scatter-gather", MARKED, &[("", "nic.feature.scatter_gather")]),
    row(Group::Nic, "txqueuelen", MARKED, &[("", "nic.txqueuelen")]),
    row(Group::Nic, "interrupts", MARKED, &[("", "nic.irq.count")]),
    row(Group::Nic, "interrupt CPUs", SHOWN, &[("", "nic.irq.cpus")]),
    row(Group::Nic, "NUMA node", SHOWN, &[("", "nic.numa_node")]),
    row(Group::Nic, "RPS CPUs", MARKED, &[("", "rps.cpus")]),
    row(Group::Pcie, "link", BRIEF, &[("", "pcie.speed"), (" ", "pcie.width")]),
    row(Group::Pcie, "link of the card", MARKED, &[("", "pcie.speed.max"), (" ", "pcie.width.max")]),
    row(Group::Pcie, "bandwidth", MARKED, &[("", "pcie.bandwidth"), (" of ", "pcie.bandwidth.max")]),
    row(Group::Pcie, "narrowest link", SHOWN, &[("", "pcie.narrowest")]),
    row(Group::Tcp, "tcp_rmem", BRIEF, &[("", "tcp.rmem.min"), (" / ", "tcp.rmem.default"), (" / ", "tcp.rmem.max")]),
    row(Group::Tcp, "tcp_wmem", BRIEF, &[("", "tcp.wmem.min"), (" / ", "tcp.wmem.default"), (" / ", "tcp.wmem.max")]),
    row(Group::Tcp, "tcp_mem", MARKED, &[("", "tcp.mem.low"), (" / ", "tcp.mem.pressure"), (" / ", "tcp.mem.high")]),
    row(Group::Tcp, "core rmem default", MARKED, &[("", "core.rmem.default")]),
    row(Group::Tcp, "core rmem max", MARKED, &[("", "core.rmem.max")]),
    row(Group::Tcp, "core wmem default", MARKED, &[("", "core.wmem.default")]),
    row(Group::Tcp, "core wmem max", MARKED, &[("", "core.wmem.max")]),
    row(Group::Tcp, "congestion control", BRIEF, &[("", "tcp.congestion_control")]),
    row(Group::Tcp, "available", MARKED, &[("", "tcp.congestion_control.available")]),
    row(Group::Tcp, "window scaling", MARKED, &[("", "tcp.window_scaling")]),
    row(Group::Tcp, "SACK", MARKED, &[("", "tcp.sack")]),
    row(Group::Tcp, "timestamps", MARKED, &[("", "tcp.timestamps")]),
    row(Group::Tcp, "ECN", MARKED, &[("", "tcp.ecn")]),
    row(Group::Tcp, "receive autotuning", MARKED, &[("", "tcp.moderate_rcvbuf")]),
    row(Group::Tcp, "slow start after idle", MARKED, &[("", "tcp.slow_start_after_idle")]),
    row(Group::Tcp, "no_metrics_save", MARKED, &[("", "tcp.no_metrics_save")]),
    row(Group::Tcp, "MTU probing", MARKED, &[("", "tcp.mtu_probing")]),
    row(Group::Udp, "udp_mem", MARKED, &[("", "udp.mem.low"), (" / ", "udp.mem.pressure"), (" / ", "udp.mem.high")]),
    row(Group::Udp, "least receive buffer", MARKED, &[("", "udp.rmem_min")]),
    row(Group::Udp, "least send buffer", MARKED, &[("", "udp.wmem_min")]),
    row(Group::Queueing, "default qdisc", MARKED, &[("", "core.default_qdisc")]),
    row(Group::Queueing, "root qdisc", BRIEF, &[("", "qdisc.root.kind")]),
    row(Group::Queueing, "qdisc rate", BRIEF, &[("", "qdisc.rate")]),
    row(Group::Queueing, "qdisc drops", SHOWN, &[("", "qdisc.drops")]),
    row(Group::Queueing, "netdev_max_backlog", MARKED, &[("", "core.netdev_max_backlog")]),
    row(Group::Queueing, "netdev_budget", MARKED, &[("", "core.netdev_budget"), (" in ", "core.netdev_budget_usecs")]),
    row(Group::Path, "device", SHOWN, &[("", "route.device")]),
    row(Group::Path, "address", SHOWN, &[("", "route.source")]),
    row(Group::Path, "gateway", SHOWN, &[("", "route.gateway")]),
    row(Group::Path, "MTU of the route", MARKED, &[("", "route.mtu")]),
    row(Group::Path, "path MTU", MARKED, &[("", "path.mtu")]),
    row(Group::Path, "neighbour", SHOWN, &[("", "neighbour.state")]),
    row(Group::Path, "tracked connections", SHOWN, &[("", "conntrack.count"), (" of ", "conntrack.max")]),
    row(Group::Path, "filter rules", SHOWN, &[("", "netfilter.rules")]),
    row(Group::Path, "packet taps", SHOWN, &[("", "taps.count")]),
    row(Group::Counters, "packets received", SHOWN, &[("", "nic.counter.rx_packets")]),
    row(Group::Counters, "packets sent", SHOWN, &[("", "nic.counter.tx_packets")]),
    row(Group::Counters, "bytes received", SHOWN, &[("", "nic.counter.rx_bytes")]),
    row(Group::Counters, "bytes sent", SHOWN, &[("", "nic.counter.tx_bytes")]),
    row(Group::Counters, "receive errors", SHOWN, &[("", "nic.counter.rx_errors")]),
    row(Group::Counters, "send errors", SHOWN, &[("", "nic.counter.tx_errors")]),
    row(Group::Counters, "receive drops", SHOWN, &[("", "nic.counter.rx_dropped")]),
    row(Group::Counters, "send drops", SHOWN, &[("", "nic.counter.tx_dropped")]),
    row(Group::Counters, "missed by the card", SHOWN, &[("", "nic.counter.rx_missed_errors")]),
];

/// One host's side of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// For a reader; `–` where the fact is missing.
    pub text: String,
    /// The value of the row's key; `None` where it is missing.
    pub value: Option<Value>,
    /// Why it is missing, where a collector said so.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub why_missing: Option<String>,
}

/// What is known of one host, wherever it is held.
#[derive(Debug, Clone, Copy)]
pub struct Known<'a> {
    /// The facts.
    pub facts: &'a [Fact],
    /// What could not be read.
    pub absent: &'a [Absent],
}

impl<'a> From<&'a Snapshot> for Known<'a> {
    fn from(snapshot: &'a Snapshot) -> Self {
        Self { facts: &snapshot.facts, absent: &snapshot.absent }
    }
}

impl<'a> From<&'a HostView> for Known<'a> {
    fn from(host: &'a HostView) -> Self {
        Self { facts: &host.facts, absent: &host.absent }
    }
}

impl Known<'_> {
    fn get(&self, key: &str) -> Option<&Fact> {
        self.facts.iter().find(|fact| fact.key == key)
    }

    /// The row's cell of this host.
    #[must_use]
    pub fn cell(&self, spec: &RowSpec) -> Cell {
        let Some(first) = self.get(spec.key()) else {
            return Cell { text: "–".to_owned(), value: None, why_missing: self.why(spec.key()) };
        };
        let known = spec.parts.iter().filter_map(|(before, key)| Some((before, self.get(key)?)));
        let text =
            known.fold(String::new(), |text, (before, fact)| text + before + &show::value(&fact.value, fact.unit));
        Cell { text: text.trim().to_owned(), value: Some(first.value.clone()), why_missing: None }
    }

    fn why(&self, key: &str) -> Option<String> {
        let covers = |what: &str| what == key || what.strip_suffix('*').is_some_and(|prefix| key.starts_with(prefix));
        self.absent.iter().find(|absent| covers(&absent.what)).map(|absent| absent.why.clone())
    }
}

/// Whether two known cells of a row say different things; a missing one differs from nothing.
#[must_use]
pub fn differs(spec: &RowSpec, client: Option<&Cell>, server: Option<&Cell>) -> bool {
    match (client, server) {
        (Some(a), Some(b)) if a.value.is_some() && b.value.is_some() => spec.compare && a.text != b.text,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::fact::Unit;
    use std::collections::BTreeSet;

    fn host(facts: &[(&str, Value, Unit)]) -> Snapshot {
        Snapshot {
            facts: facts
                .iter()
                .map(|(key, value, unit)| Fact {
                    key: (*key).into(),
                    value: value.clone(),
                    unit: *unit,
                    source: "test".into(),
                })
                .collect(),
            absent: vec![Absent { collector: "nic".into(), what: "nic.ring.*".into(), why: "no driver call".into() }],
            ..Snapshot::default()
        }
    }

    #[test]
    fn rows_are_unique_grouped_and_have_a_key() {
        let keys: BTreeSet<_> = ROWS.iter().map(RowSpec::key).collect();
        assert_eq!(keys.len(), ROWS.len());
        assert!(!keys.contains(""));
        assert!(ROWS.is_sorted_by_key(|row| row.group));
    }

    #[test]
    fn parts_join_and_a_missing_one_is_left_out() {
        let ring = ROWS.iter().find(|row| row.label == "rx ring").unwrap();
        let full = host(&[
            ("nic.ring.rx", Value::Integer(256), Unit::Number),
            ("nic.ring.rx.max", Value::Integer(4096), Unit::Number),
        ]);
        assert_eq!(Known::from(&full).cell(ring).text, "256 of 4096");
        let part = host(&[("nic.ring.rx", Value::Integer(256), Unit::Number)]);
        assert_eq!(Known::from(&part).cell(ring).text, "256");
        let none = Known::from(&host(&[])).cell(ring);
        assert_eq!((none.text.as_str(), none.why_missing.as_deref()), ("–", Some("no driver call")));
        let (full, part) = (Known::from(&full).cell(ring), Known::from(&part).cell(ring));
        assert!(differs(ring, Some(&full), Some(&part)));
        assert!(!differs(ring, Some(&full), Some(&none)), "what is missing differs from nothing");
        assert!(!differs(ring, Some(&full), None));
    }
}
