//! The kernel parameters below `net.` that narrows knows: the facts that each holds, the values that it may be set to, and what
//! `optimise` tries. A new one is one line here.
//!
//! Source: Documentation/networking/ip-sysctl.rst, Documentation/admin-guide/sysctl/net.rst.

use super::fact::FactKey;
use super::keys;

#[derive(Debug)]
pub struct Parameter {
    pub group: Group,
    /// `net.ipv4.tcp_rmem`; `DEVICE` in it stands for the name of one device.
    pub sysctl: &'static str,
    pub holds: Holds,
    /// What it may be set to; `None` where narrows only reads it.
    pub values: Option<Values>,
    /// The value that suits most paths, and where.
    pub tried: Option<(Tried, u8)>,
}

/// Which collector reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Tcp,
    Core,
    Udp,
    Conntrack,
    Fragments,
    /// None: settable for a bench, by this host's own user only. Forwarding is per device, never `all` or `default`: that would
    /// also change other parameters, which no single value restores.
    Bench,
}

/// How its text becomes facts.
#[derive(Debug, Clone, Copy)]
pub enum Holds {
    Number(FactKey),
    /// 0 is off, any other value on.
    Flag(FactKey),
    Word(FactKey),
    List(FactKey),
    /// Whole numbers, each with its own key.
    Numbers(&'static [FactKey]),
    Unread,
}

/// What a value must look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Values {
    /// A whole number within limits.
    Number(i64, i64),
    /// Minimum, default and maximum bytes of a buffer.
    Triple,
    /// A congestion control. The kernel loads a module for any name that is set, so names are a list.
    Congestion,
    /// A queueing discipline, for the same reason one of those that are set as root.
    Qdisc,
}

/// The end of a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tried {
    Sender,
    Receiver,
    Each,
}

/// The largest number that most parameters take.
pub const MAX: i64 = i32::MAX as i64;

impl Holds {
    pub const fn keys(&self) -> &[FactKey] {
        match self {
            Self::Number(key) | Self::Flag(key) | Self::Word(key) | Self::List(key) => std::slice::from_ref(key),
            Self::Numbers(keys) => keys,
            Self::Unread => &[],
        }
    }
}

const fn read(group: Group, sysctl: &'static str, holds: Holds) -> Parameter {
    Parameter { group, sysctl, holds, values: None, tried: None }
}

const fn bench(sysctl: &'static str, least: i64, most: i64) -> Parameter {
    read(Group::Bench, sysctl, Holds::Unread).set(Values::Number(least, most))
}

impl Parameter {
    const fn set(self, values: Values) -> Self {
        Self { values: Some(values), ..self }
    }

    const fn number(self, least: i64, most: i64) -> Self {
        self.set(Values::Number(least, most))
    }

    const fn tried(self, at: Tried, value: u8) -> Self {
        Self { tried: Some((at, value)), ..self }
    }

    /// Whether a key is the one of the table, for any device.
    pub fn is(&self, key: &str) -> bool {
        let Some((before, after)) = self.sysctl.split_once("DEVICE") else { return self.sysctl == key };
        let device = key.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        device.is_some_and(|it| !["", "all", "default"].contains(&it) && it.len() < 16 && !it.contains('.'))
    }

    /// The one of a key.
    pub fn of(key: &str) -> Option<&'static Self> {
        PARAMETERS.iter().find(|it| it.is(key))
    }
}

/// How many facts a group has, for [`facts`].
pub const fn count(group: Group) -> usize {
    let (mut at, mut count) = (0, 0);
    while at < PARAMETERS.len() {
        if PARAMETERS[at].group as u8 == group as u8 {
            count += PARAMETERS[at].holds.keys().len();
        }
        at += 1;
    }
    count
}

/// The facts of a group, in the order of the table.
pub const fn facts<const N: usize>(group: Group) -> [FactKey; N] {
    let (mut all, mut at, mut next) = ([keys::TCP_SACK; N], 0, 0);
    while at < PARAMETERS.len() {
        let keys = PARAMETERS[at].holds.keys();
        let mut nth = 0;
        while PARAMETERS[at].group as u8 == group as u8 && nth < keys.len() {
            all[next] = keys[nth];
            (next, nth) = (next + 1, nth + 1);
        }
        at += 1;
    }
    all
}

use Group::{Core, Tcp, Udp};
use Holds::{Flag, List, Number, Numbers, Word};

const RMEM: &[FactKey] = &[keys::TCP_RMEM_MIN, keys::TCP_RMEM_DEFAULT, keys::TCP_RMEM_MAX];
const WMEM: &[FactKey] = &[keys::TCP_WMEM_MIN, keys::TCP_WMEM_DEFAULT, keys::TCP_WMEM_MAX];
const TCP_MEM: &[FactKey] = &[keys::TCP_MEM_LOW, keys::TCP_MEM_PRESSURE, keys::TCP_MEM_HIGH];
const UDP_MEM: &[FactKey] = &[keys::UDP_MEM_LOW, keys::UDP_MEM_PRESSURE, keys::UDP_MEM_HIGH];

/// All of them. What `optimise` tries is tried in this order.
#[rustfmt::skip]
pub const PARAMETERS: &[Parameter] = &[
    read(Tcp, "net.ipv4.tcp_rmem", Numbers(RMEM)).set(Values::Triple),
    read(Tcp, "net.ipv4.tcp_wmem", Numbers(WMEM)).set(Values::Triple),
    read(Tcp, "net.ipv4.tcp_mem", Numbers(TCP_MEM)),
    read(Tcp, "net.ipv4.tcp_window_scaling", Flag(keys::TCP_WINDOW_SCALING)).number(0, 1).tried(Tried::Each, 1),
    read(Tcp, "net.ipv4.tcp_sack", Flag(keys::TCP_SACK)).number(0, 1).tried(Tried::Each, 1),
    read(Tcp, "net.ipv4.tcp_timestamps", Flag(keys::TCP_TIMESTAMPS)).number(0, 2).tried(Tried::Each, 1),
    read(Tcp, "net.ipv4.tcp_ecn", Number(keys::TCP_ECN)).number(0, 5),
    read(Tcp, "net.ipv4.tcp_congestion_control", Word(keys::TCP_CONGESTION_CONTROL)).set(Values::Congestion),
    read(Tcp, "net.ipv4.tcp_available_congestion_control", List(keys::TCP_CONGESTION_CONTROL_AVAILABLE)),
    read(Tcp, "net.ipv4.tcp_no_metrics_save", Flag(keys::TCP_NO_METRICS_SAVE)).number(0, 1),
    read(Tcp, "net.ipv4.tcp_mtu_probing", Number(keys::TCP_MTU_PROBING)).number(0, 2).tried(Tried::Each, 1),
    read(Tcp, "net.ipv4.tcp_moderate_rcvbuf", Flag(keys::TCP_MODERATE_RCVBUF)).number(0, 1).tried(Tried::Receiver, 1),
    read(Tcp, "net.ipv4.tcp_slow_start_after_idle", Flag(keys::TCP_SLOW_START_AFTER_IDLE)).number(0, 1).tried(Tried::Sender, 0),
    read(Tcp, "net.ipv4.tcp_adv_win_scale", Number(keys::TCP_ADV_WIN_SCALE)),
    read(Tcp, "net.ipv4.tcp_notsent_lowat", Number(keys::TCP_NOTSENT_LOWAT)).number(1, 4_294_967_295),
    read(Tcp, "net.ipv4.tcp_autocorking", Flag(keys::TCP_AUTOCORKING)),
    read(Tcp, "net.ipv4.tcp_limit_output_bytes", Number(keys::TCP_LIMIT_OUTPUT_BYTES)).number(1, MAX),
    // Some are global and not visible in other network namespaces: there they are absent.
    read(Core, "net.core.rmem_default", Number(keys::CORE_RMEM_DEFAULT)).number(4096, MAX),
    read(Core, "net.core.rmem_max", Number(keys::CORE_RMEM_MAX)).number(4096, MAX),
    read(Core, "net.core.wmem_default", Number(keys::CORE_WMEM_DEFAULT)).number(4608, MAX),
    read(Core, "net.core.wmem_max", Number(keys::CORE_WMEM_MAX)).number(4608, MAX),
    read(Core, "net.core.netdev_max_backlog", Number(keys::CORE_NETDEV_MAX_BACKLOG)).number(1, MAX),
    read(Core, "net.core.netdev_budget", Number(keys::CORE_NETDEV_BUDGET)).number(1, 1_000_000),
    read(Core, "net.core.netdev_budget_usecs", Number(keys::CORE_NETDEV_BUDGET_USECS)).number(1, 10_000_000),
    read(Core, "net.core.default_qdisc", Word(keys::CORE_DEFAULT_QDISC)).set(Values::Qdisc),
    read(Udp, "net.ipv4.udp_mem", Numbers(UDP_MEM)),
    read(Udp, "net.ipv4.udp_rmem_min", Number(keys::UDP_RMEM_MIN)),
    read(Udp, "net.ipv4.udp_wmem_min", Number(keys::UDP_WMEM_MIN)),
    read(Group::Conntrack, "net.netfilter.nf_conntrack_count", Number(keys::CONNTRACK_COUNT)),
    read(Group::Conntrack, "net.netfilter.nf_conntrack_max", Number(keys::CONNTRACK_MAX)),
    read(Group::Fragments, "net.ipv4.ipfrag_high_thresh", Number(keys::IP_FRAG_HIGH)),
    read(Group::Fragments, "net.ipv6.ip6frag_high_thresh", Number(keys::IP6_FRAG_HIGH)),
    bench("net.ipv4.conf.DEVICE.forwarding", 0, 1),
    bench("net.ipv4.conf.DEVICE.rp_filter", 0, 2),
    bench("net.ipv4.conf.DEVICE.send_redirects", 0, 1),
    bench("net.ipv4.conf.all.rp_filter", 0, 2),
    bench("net.ipv4.conf.all.send_redirects", 0, 1),
    bench("net.ipv4.neigh.default.gc_thresh1", 0, MAX),
    bench("net.ipv4.neigh.default.gc_thresh2", 0, MAX),
    bench("net.ipv4.neigh.default.gc_thresh3", 0, MAX),
    bench("net.ipv6.conf.DEVICE.accept_ra", 0, 2),
    bench("net.ipv6.conf.DEVICE.dad_transmits", 0, 1000),
    bench("net.ipv6.conf.DEVICE.force_forwarding", 0, 1),
    bench("net.ipv6.conf.DEVICE.router_solicitations", -1, 1000),
    bench("net.ipv6.neigh.default.gc_thresh1", 0, MAX),
    bench("net.ipv6.neigh.default.gc_thresh2", 0, MAX),
    bench("net.ipv6.neigh.default.gc_thresh3", 0, MAX),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_is_there_once_below_net_and_read_or_set() {
        let names: BTreeSet<_> = PARAMETERS.iter().map(|it| it.sysctl).collect();
        assert_eq!(names.len(), PARAMETERS.len());
        for it in PARAMETERS {
            assert!(it.sysctl.starts_with("net."), "{it:?}");
            assert!(it.values.is_some() || !it.holds.keys().is_empty(), "{it:?}");
            assert!(it.tried.is_none() || it.values.is_some(), "{it:?}");
        }
        const UDP_FACTS: [FactKey; count(Udp)] = facts(Udp);
        assert_eq!((UDP_FACTS.len(), UDP_FACTS[0], UDP_FACTS[4]), (5, keys::UDP_MEM_LOW, keys::UDP_WMEM_MIN));
    }

    #[test]
    fn a_device_stands_for_one_of_its_own() {
        let is_one = |device: &str| Parameter::of(&format!("net.ipv4.conf.{device}.rp_filter")).is_some();
        assert!(is_one("eth0") && is_one("eth0/100") && is_one("all"));
        assert!(!is_one("default") && !is_one("a.b") && !is_one(""));
    }
}
