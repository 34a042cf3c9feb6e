//! Both hosts side by side: which facts make a row, in which group, under which label. One line of [`ROWS`] a row.

use crate::host::fact::{Absent, Fact, FactKey, Snapshot, Value};
use crate::host::keys;
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
    /// What it is called: the label of its first key.
    pub label: &'static str,
    /// Text before each fact, and its key. The first key names the row and must be known; of the others,
    /// one that is not known is left out with its text.
    pub parts: &'static [(&'static str, FactKey)],
    /// Whether a difference between the hosts is worth a mark.
    pub compare: bool,
    /// Whether it belongs into the short form.
    pub brief: bool,
}

impl RowSpec {
    /// The row's key: that of its first part.
    pub fn key(&self) -> &'static str {
        self.parts.first().map_or("", |(_, key)| key.name)
    }
}

/// How much a row matters: only `SHOWN`; `MARKED` where the hosts differ; in the `BRIEF` form too.
const SHOWN: (bool, bool) = (false, false);
const MARKED: (bool, bool) = (true, false);
const BRIEF: (bool, bool) = (true, true);

const fn row(group: Group, (compare, brief): (bool, bool), parts: &'static [(&'static str, FactKey)]) -> RowSpec {
    RowSpec { group, label: parts[0].1.label, parts, compare, brief }
}

/// Every row, in the order of reading.
#[rustfmt::skip]
pub const ROWS: &[RowSpec] = &[
    row(Group::Host, SHOWN, &[("", keys::HOST_NAME)]),
    row(Group::Host, BRIEF, &[("", keys::HOST_KERNEL)]),
    row(Group::Host, MARKED, &[("", keys::HOST_VIRTUALISATION)]),
    row(Group::Host, MARKED, &[("", keys::CPU_MODEL)]),
    row(Group::Host, MARKED, &[("", keys::CPU_COUNT)]),
    row(Group::Host, MARKED, &[("", keys::CPU_NUMA_NODES)]),
    row(Group::Host, SHOWN, &[("", keys::CPU_FREQUENCY), (" of ", keys::CPU_FREQUENCY_MAX)]),
    row(Group::Host, MARKED, &[("", keys::CPU_GOVERNOR)]),
    row(Group::Host, MARKED, &[("", keys::CGROUP_CPU_QUOTA)]),
    row(Group::Host, MARKED, &[("", keys::MEMORY_TOTAL)]),
    row(Group::Host, SHOWN, &[("", keys::MEMORY_AVAILABLE)]),
    row(Group::Host, SHOWN, &[("", keys::SWAP_USED), (" of ", keys::SWAP_TOTAL)]),
    row(Group::Nic, SHOWN, &[("", keys::NIC_NAME), (", ", keys::NIC_KIND)]),
    row(Group::Nic, SHOWN, &[("", keys::LAYERS)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_DRIVER), (" ", keys::NIC_DRIVER_VERSION)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_FIRMWARE)]),
    row(Group::Nic, SHOWN, &[("", keys::NIC_BUS)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_CARRIER)]),
    row(Group::Nic, BRIEF, &[("", keys::NIC_SPEED), (" of ", keys::NIC_SPEED_MAX)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_DUPLEX)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_AUTONEG)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_PAUSE_AUTONEG)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_PAUSE_RX)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_PAUSE_TX)]),
    row(Group::Nic, BRIEF, &[("", keys::NIC_MTU)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_RING_RX), (" of ", keys::NIC_RING_RX_MAX)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_RING_TX), (" of ", keys::NIC_RING_TX_MAX)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_CHANNELS_COMBINED), (" of ", keys::NIC_CHANNELS_COMBINED_MAX)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_COALESCE_RX_USECS), (", adaptive ", keys::NIC_COALESCE_ADAPTIVE_RX)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_FEATURE_TSO)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_FEATURE_GSO)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_FEATURE_GRO)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_FEATURE_LRO)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_FEATURE_TX_CHECKSUM)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_FEATURE_RX_CHECKSUM)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_FEATURE_SCATTER_GATHER)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_TXQUEUELEN)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_GSO_MAX), (" of ", keys::NIC_TSO_MAX)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_GRO_MAX)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_IRQ_COUNT)]),
    row(Group::Nic, SHOWN, &[("", keys::NIC_IRQ_CPUS)]),
    row(Group::Nic, SHOWN, &[("", keys::NIC_NUMA_NODE)]),
    row(Group::Nic, MARKED, &[("", keys::NIC_IOMMU)]),
    row(Group::Nic, MARKED, &[("", keys::RPS_CPUS)]),
    row(Group::Pcie, BRIEF, &[("", keys::PCIE_SPEED), (" ", keys::PCIE_WIDTH)]),
    row(Group::Pcie, MARKED, &[("", keys::PCIE_SPEED_MAX), (" ", keys::PCIE_WIDTH_MAX)]),
    row(Group::Pcie, MARKED, &[("", keys::PCIE_BANDWIDTH), (" of ", keys::PCIE_BANDWIDTH_MAX)]),
    row(Group::Pcie, SHOWN, &[("", keys::PCIE_NARROWEST)]),
    row(Group::Tcp, BRIEF, &[("", keys::TCP_RMEM_MIN), (" / ", keys::TCP_RMEM_DEFAULT), (" / ", keys::TCP_RMEM_MAX)]),
    row(Group::Tcp, BRIEF, &[("", keys::TCP_WMEM_MIN), (" / ", keys::TCP_WMEM_DEFAULT), (" / ", keys::TCP_WMEM_MAX)]),
    row(Group::Tcp, MARKED, &[("", keys::TCP_MEM_LOW), (" / ", keys::TCP_MEM_PRESSURE), (" / ", keys::TCP_MEM_HIGH)]),
    row(Group::Tcp, MARKED, &[("", keys::CORE_RMEM_DEFAULT)]),
    row(Group::Tcp, MARKED, &[("", keys::CORE_RMEM_MAX)]),
    row(Group::Tcp, MARKED, &[("", keys::CORE_WMEM_DEFAULT)]),
    row(Group::Tcp, MARKED, &[("", keys::CORE_WMEM_MAX)]),
    row(Group::Tcp, BRIEF, &[("", keys::TCP_CONGESTION_CONTROL)]),
    row(Group::Tcp, MARKED, &[("", keys::TCP_CONGESTION_CONTROL_AVAILABLE)]),
    row(Group::Tcp, MARKED, &[("", keys::TCP_WINDOW_SCALING)]),
    row(Group::Tcp, MARKED, &[("", keys::TCP_SACK)]),
    row(Group::Tcp, MARKED, &[("", keys::TCP_TIMESTAMPS)]),
    row(Group::Tcp, MARKED, &[("", keys::TCP_ECN)]),
    row(Group::Tcp, MARKED, &[("", keys::TCP_MODERATE_RCVBUF)]),
    row(Group::Tcp, MARKED, &[("", keys::TCP_SLOW_START_AFTER_IDLE)]),
    row(Group::Tcp, MARKED, &[("", keys::TCP_NO_METRICS_SAVE)]),
    row(Group::Tcp, MARKED, &[("", keys::TCP_MTU_PROBING)]),
    row(Group::Udp, MARKED, &[("", keys::UDP_MEM_LOW), (" / ", keys::UDP_MEM_PRESSURE), (" / ", keys::UDP_MEM_HIGH)]),
    row(Group::Udp, MARKED, &[("", keys::UDP_RMEM_MIN)]),
    row(Group::Udp, MARKED, &[("", keys::UDP_WMEM_MIN)]),
    row(Group::Queueing, MARKED, &[("", keys::CORE_DEFAULT_QDISC)]),
    row(Group::Queueing, BRIEF, &[("", keys::QDISC_ROOT_KIND)]),
    row(Group::Queueing, BRIEF, &[("", keys::QDISC_RATE)]),
    row(Group::Queueing, SHOWN, &[("", keys::QDISC_DROPS)]),
    row(Group::Queueing, MARKED, &[("", keys::CORE_NETDEV_MAX_BACKLOG)]),
    row(Group::Queueing, MARKED, &[("", keys::CORE_NETDEV_BUDGET), (" in ", keys::CORE_NETDEV_BUDGET_USECS)]),
    row(Group::Path, SHOWN, &[("", keys::ROUTE_DEVICE)]),
    row(Group::Path, SHOWN, &[("", keys::ROUTE_SOURCE)]),
    row(Group::Path, SHOWN, &[("", keys::ROUTE_GATEWAY)]),
    row(Group::Path, MARKED, &[("", keys::ROUTE_MTU)]),
    row(Group::Path, MARKED, &[("", keys::PATH_MTU)]),
    row(Group::Path, SHOWN, &[("", keys::NEIGHBOUR_STATE)]),
    row(Group::Path, SHOWN, &[("", keys::CONNTRACK_COUNT), (" of ", keys::CONNTRACK_MAX)]),
    row(Group::Path, SHOWN, &[("", keys::NETFILTER_RULES)]),
    row(Group::Path, SHOWN, &[("", keys::TAPS_COUNT)]),
    row(Group::Counters, SHOWN, &[("", keys::NIC_COUNTER_RX_PACKETS)]),
    row(Group::Counters, SHOWN, &[("", keys::NIC_COUNTER_TX_PACKETS)]),
    row(Group::Counters, SHOWN, &[("", keys::NIC_COUNTER_RX_BYTES)]),
    row(Group::Counters, SHOWN, &[("", keys::NIC_COUNTER_TX_BYTES)]),
    row(Group::Counters, SHOWN, &[("", keys::NIC_COUNTER_RX_ERRORS)]),
    row(Group::Counters, SHOWN, &[("", keys::NIC_COUNTER_TX_ERRORS)]),
    row(Group::Counters, SHOWN, &[("", keys::NIC_COUNTER_RX_DROPPED)]),
    row(Group::Counters, SHOWN, &[("", keys::NIC_COUNTER_TX_DROPPED)]),
    row(Group::Counters, SHOWN, &[("", keys::NIC_COUNTER_RX_MISSED_ERRORS)]),
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
    pub fn cell(&self, spec: &RowSpec) -> Cell {
        let Some(first) = self.get(spec.key()) else {
            return Cell { text: "–".to_owned(), value: None, why_missing: self.why(spec.key()) };
        };
        let known = spec.parts.iter().filter_map(|(before, key)| Some((before, self.get(key.name)?)));
        let text =
            known.fold(String::new(), |text, (before, fact)| text + before + &show::value(&fact.value, fact.unit));
        Cell { text: text.trim().to_owned(), value: Some(first.value.clone()), why_missing: None }
    }

    fn why(&self, key: &str) -> Option<String> {
        self.absent.iter().find(|absent| absent.covers(key)).map(|absent| absent.why.clone())
    }
}

/// Whether two known cells of a row say different things; a missing one differs from nothing.
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
        assert!(!keys.contains("") && ROWS.iter().all(|row| !row.label.is_empty()));
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
