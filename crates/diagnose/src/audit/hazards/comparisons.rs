//! The hazards that are a comparison of facts: one entry each.

use super::super::rule::{Check, Rule, When};
use narrows_model::{Severity, keys};

/// In the order of their ids.
pub(super) const COMPARISONS: &[Rule] = &[
    Rule {
        id: "congestion-control-differs",
        severity: Severity::Info,
        key: keys::TCP_CONGESTION_CONTROL,
        needs: &[keys::TCP_CONGESTION_CONTROL],
        check: Check::Differs("the client sends with {0}, the server with {1}"),
        matters: "Each direction uses its sender's algorithm, so the two directions react differently to loss and delay.",
        harmless: "If it is intended, or if only one direction carries data.",
    },
    // Source: `sock_setsockopt` in net/core/sock.c; Documentation/networking/ip-sysctl.rst, tcp_rmem.
    Rule {
        id: "core-rmem-below-tcp",
        severity: Severity::Info,
        key: keys::CORE_RMEM_MAX,
        needs: &[keys::CORE_RMEM_MAX, keys::TCP_RMEM_MAX],
        check: Check::Facts {
            when: When::Below,
            says: "net.core.rmem_max is {0}, tcp_rmem goes up to {1}",
            command: "sysctl -w net.core.rmem_max={1#}",
        },
        matters: "A program that sets SO_RCVBUF gets at most this (doubled for bookkeeping) and loses the kernel's tuning: \
                  asking for a large buffer makes it slower than not asking. It is a setting of the whole machine: no container or \
                  network namespace can change it.",
        harmless: "For programs that leave their buffers to the kernel, as most do: net.core does not limit its tuning.",
    },
    // Source: `sock_setsockopt` in net/core/sock.c; Documentation/networking/ip-sysctl.rst, tcp_wmem.
    Rule {
        id: "core-wmem-below-tcp",
        severity: Severity::Info,
        key: keys::CORE_WMEM_MAX,
        needs: &[keys::CORE_WMEM_MAX, keys::TCP_WMEM_MAX],
        check: Check::Facts {
            when: When::Below,
            says: "net.core.wmem_max is {0}, tcp_wmem goes up to {1}",
            command: "sysctl -w net.core.wmem_max={1#}",
        },
        matters: "A program that sets SO_SNDBUF gets at most this (doubled for bookkeeping) and loses the kernel's tuning: \
                  asking for a large buffer makes it slower than not asking. It is a setting of the whole machine: no container or \
                  network namespace can change it.",
        harmless: "For programs that leave their buffers to the kernel, as most do: net.core does not limit its tuning.",
    },
    // Source: Documentation/admin-guide/cgroup-v2.rst, cpu.max.
    Rule {
        id: "cpu-quota",
        severity: Severity::Notice,
        key: keys::CGROUP_CPU_QUOTA,
        needs: &[keys::CGROUP_CPU_QUOTA, keys::CPU_COUNT],
        check: Check::Facts { when: When::PositiveBelow, says: "a control group allows {0} of {1} CPUs", command: "" },
        matters: "Once the quota of a period (mostly 100 ms) is used up, everything in the group is stopped until the next one: \
                  transfers go in bursts.",
        harmless: "Where the quota is not used up: cpu.stat counts the periods that were throttled.",
    },
    // Source: Documentation/admin-guide/pm/cpufreq.rst.
    Rule {
        id: "governor-not-performance",
        severity: Severity::Info,
        key: keys::CPU_GOVERNOR,
        needs: &[keys::CPU_GOVERNOR],
        check: Check::Facts {
            when: When::IsNot("performance"),
            says: "the frequency governor is {0}",
            command: "cpupower frequency-set -g performance",
        },
        matters: "Cores slow down between bursts: latency rises, and a core can be full at half its frequency.",
        harmless: "For bulk transfers on most machines: under load the governor raises the frequency within milliseconds; \
                   with intel_pstate the governor `powersave` means just that.",
    },
    // Source: IEEE 802.3 clause 28 (a fixed full-duplex peer is detected as half).
    Rule {
        id: "half-duplex",
        severity: Severity::Warning,
        key: keys::NIC_DUPLEX,
        needs: &[keys::NIC_DUPLEX, keys::NIC_NAME],
        check: Check::Facts {
            when: When::Is("half"),
            says: "the link runs at half duplex",
            command: "ethtool -s {1|DEVICE} autoneg on",
        },
        matters: "Either the other side is fixed to full duplex, and frames collide late under load, or the link shares its \
                  rate between both directions.",
        harmless: "On a hub, or on a radio that always reports half duplex.",
    },
    Rule {
        id: "link-below-maximum",
        severity: Severity::Warning,
        key: keys::NIC_SPEED,
        needs: &[keys::NIC_SPEED, keys::NIC_SPEED_MAX, keys::NIC_NAME],
        check: Check::Facts {
            when: When::PositiveBelow,
            says: "the link runs at {0}, the card can do {1}",
            command: "ethtool -s {2|DEVICE} autoneg on",
        },
        matters: "A damaged pair in a cable, an old switch port or a fixed setting holds the link to a fraction of its speed.",
        harmless: "Where the other side of the cable can do no more.",
    },
    // Source: Documentation/networking/ip-sysctl.rst, tcp_no_metrics_save.
    Rule {
        id: "metrics-saved",
        severity: Severity::Info,
        key: keys::TCP_NO_METRICS_SAVE,
        needs: &[keys::TCP_NO_METRICS_SAVE],
        check: Check::Facts {
            when: When::Zero,
            says: "TCP keeps metrics of earlier connections (the default)",
            command: "sysctl -w net.ipv4.tcp_no_metrics_save=1",
        },
        matters: "A connection begins with the slow-start threshold that an earlier one to the same host ended with: after a bad one the next starts slowly, and repeated measurements depend on each other.",
        harmless: "Usually, except for measurements; `ip tcp_metrics flush` deletes them once.",
    },
    Rule {
        id: "mtu-differs",
        severity: Severity::Notice,
        key: keys::NIC_MTU,
        needs: &[keys::NIC_MTU],
        check: Check::Differs("the MTU is {0#} B on the client and {1#} B on the server"),
        matters: "On one segment the larger packets are lost silently. Across routers TCP agrees on the smaller one, but \
                  datagrams are cut in pieces or need ICMP, which a filter may drop.",
        harmless: "Across routers, for TCP, where ICMP passes.",
    },
    Rule {
        id: "qdisc-shapes",
        severity: Severity::Notice,
        key: keys::QDISC_RATE,
        needs: &[keys::QDISC_RATE, keys::QDISC_ROOT_KIND, keys::QDISC_DEVICE],
        check: Check::Facts {
            when: When::PositiveOf,
            says: "{1|a queueing discipline} on {2|DEVICE} limits sending to {0}",
            command: "tc -s qdisc show dev {2|DEVICE}",
        },
        matters: "Nothing leaves the host faster than this, whatever the link could carry.",
        harmless: "If it is intended, for instance a little below the rate of a slower link behind the host.",
    },
    // Source: Documentation/networking/ip-sysctl.rst, tcp_moderate_rcvbuf.
    Rule {
        id: "receive-autotuning-off",
        severity: Severity::Warning,
        key: keys::TCP_MODERATE_RCVBUF,
        needs: &[keys::TCP_MODERATE_RCVBUF],
        check: Check::Facts {
            when: When::Zero,
            says: "receive buffers are not tuned by the kernel",
            command: "sysctl -w net.ipv4.tcp_moderate_rcvbuf=1",
        },
        matters: "Receive buffers stay at the default of tcp_rmem, whatever its maximum says: the window is too small on any long path.",
        harmless: "For programs that set SO_RCVBUF themselves, and on paths of a millisecond or less.",
    },
    // Source: `struct rtnl_link_stats64`, include/uapi/linux/if_link.h.
    Rule {
        id: "receive-drops",
        severity: Severity::Info,
        key: keys::NIC_COUNTER_RX_DROPPED,
        needs: &[keys::NIC_COUNTER_RX_DROPPED, keys::NIC_COUNTER_RX_PACKETS],
        check: Check::Facts {
            when: When::Positive,
            says: "{0}[ of {1}] received packets were dropped since boot",
            command: "",
        },
        matters: "The host dropped received packets at some time since boot; whether it still does, a diagnosis counts under load.",
        harmless: "The counter includes packets of unused protocols and VLANs since boot: on its own it proves no fault.",
    },
    // Source: `struct rtnl_link_stats64`, include/uapi/linux/if_link.h.
    Rule {
        id: "receive-errors",
        severity: Severity::Info,
        key: keys::NIC_COUNTER_RX_ERRORS,
        needs: &[keys::NIC_COUNTER_RX_ERRORS, keys::NIC_COUNTER_RX_PACKETS],
        check: Check::Facts {
            when: When::Positive,
            says: "{0}[ of {1}] received packets were damaged since boot",
            command: "",
        },
        matters: "Frames arrived damaged at some time since boot: a cable, an optic or a duplex mismatch.",
        harmless: "When the number does not grow any more: a cable that was pulled leaves errors too.",
    },
    // Source: `struct rtnl_link_stats64`, include/uapi/linux/if_link.h.
    Rule {
        id: "receive-missed",
        severity: Severity::Info,
        key: keys::NIC_COUNTER_RX_MISSED_ERRORS,
        needs: &[keys::NIC_COUNTER_RX_MISSED_ERRORS, keys::NIC_COUNTER_RX_PACKETS],
        check: Check::Facts {
            when: When::Positive,
            says: "{0}[ of {1}] received packets were missed since boot",
            command: "",
        },
        matters: "The card had no room for received packets at some time since boot: a short ring, or a CPU that was busy elsewhere.",
        harmless: "When the number does not grow under load.",
    },
    // Source: ETHTOOL_MSG_RINGS_GET.
    Rule {
        id: "rx-ring-small",
        severity: Severity::Notice,
        key: keys::NIC_RING_RX,
        needs: &[keys::NIC_RING_RX, keys::NIC_RING_RX_MAX, keys::NIC_NAME],
        check: Check::Facts {
            when: When::Below,
            says: "the rx ring has {0} of {1} entries",
            command: "ethtool -G {2|DEVICE} rx {1}",
        },
        matters: "A burst that arrives while the CPU is busy elsewhere overruns a short ring and is lost before the kernel sees it (rx_missed, rx_fifo).",
        harmless: "Where the card counts no missed packets; a longer ring also means more delay when it is full.",
    },
    // Source: RFC 2018.
    Rule {
        id: "sack-off",
        severity: Severity::Warning,
        key: keys::TCP_SACK,
        needs: &[keys::TCP_SACK],
        check: Check::Facts {
            when: When::Zero,
            says: "TCP selective acknowledgements are off",
            command: "sysctl -w net.ipv4.tcp_sack=1",
        },
        matters: "After a loss the sender cannot tell what arrived: it retransmits one segment per round trip or waits for a timeout.",
        harmless: "On a path without any loss.",
    },
    Rule {
        id: "swap-in-use",
        severity: Severity::Info,
        key: keys::SWAP_USED,
        needs: &[keys::SWAP_USED, keys::SWAP_TOTAL],
        check: Check::Facts { when: When::Positive, says: "{0} of {1} of swap is in use", command: "" },
        matters: "An application whose pages come back from disk during a transfer stalls, and with it the connection.",
        harmless: "Where the pages belong to idle programs: the kernel swaps out unused pages. Only swapping during \
                   the test counts.",
    },
    // Source: RFC 7323 sections 4 and 5.
    Rule {
        id: "timestamps-off",
        severity: Severity::Notice,
        key: keys::TCP_TIMESTAMPS,
        needs: &[keys::TCP_TIMESTAMPS],
        check: Check::Facts {
            when: When::Zero,
            says: "TCP timestamps are off",
            command: "sysctl -w net.ipv4.tcp_timestamps=1",
        },
        matters: "Round-trip times are measured more coarsely, and above some Gbit/s an old segment can be mistaken for a new one when sequence numbers wrap (PAWS).",
        harmless: "Below some Gbit/s; it even saves 12 bytes in each segment.",
    },
    // Source: ETHTOOL_MSG_RINGS_GET.
    Rule {
        id: "tx-ring-small",
        severity: Severity::Info,
        key: keys::NIC_RING_TX,
        needs: &[keys::NIC_RING_TX, keys::NIC_RING_TX_MAX, keys::NIC_NAME],
        check: Check::Facts {
            when: When::Below,
            says: "the tx ring has {0} of {1} entries",
            command: "ethtool -G {2|DEVICE} tx {1}",
        },
        matters: "Senders wait for the card more often.",
        harmless: "Nearly always: byte queue limits keep the ring short on purpose.",
    },
    // Source: RFC 7323 section 2.
    Rule {
        id: "window-scaling-off",
        severity: Severity::Warning,
        key: keys::TCP_WINDOW_SCALING,
        needs: &[keys::TCP_WINDOW_SCALING],
        check: Check::Facts {
            when: When::Zero,
            says: "TCP window scaling is off",
            command: "sysctl -w net.ipv4.tcp_window_scaling=1",
        },
        matters: "No TCP window of this host's connections can exceed 64 KiB: 15 Mbit/s at 35 ms, 5.2 Mbit/s at 100 ms.",
        harmless: "On paths of less than half a millisecond, where 64 KiB are enough for 1 Gbit/s.",
    },
];

#[cfg(test)]
mod tests {
    use super::super::all;
    use crate::audit::rule::Rule;
    use crate::audit::rule::tests::{found, host};
    use narrows_model::Unit::{BitsPerSecond, Bytes, Count, Flag, Fraction, Number, Text};
    use narrows_model::{Severity, Unit, Value};

    fn rule(id: &str) -> &'static Rule {
        all().find(|rule| rule.id == id).expect("an entry")
    }

    /// The sentence and the command of a rule on a host that knows these facts only.
    fn says(id: &str, facts: &[(&str, Value, Unit)]) -> Option<(String, Option<String>)> {
        found(rule(id), facts).map(|(says, command, _)| (says, command))
    }

    fn pair(says: &str, command: &str) -> Option<(String, Option<String>)> {
        Some((says.to_owned(), (!command.is_empty()).then(|| command.to_owned())))
    }

    #[test]
    fn a_flag_is_found_off_and_not_on_or_unknown() {
        for (id, key, sysctl) in [
            ("window-scaling-off", "tcp.window_scaling", "net.ipv4.tcp_window_scaling"),
            ("timestamps-off", "tcp.timestamps", "net.ipv4.tcp_timestamps"),
            ("sack-off", "tcp.sack", "net.ipv4.tcp_sack"),
            ("receive-autotuning-off", "tcp.moderate_rcvbuf", "net.ipv4.tcp_moderate_rcvbuf"),
            ("metrics-saved", "tcp.no_metrics_save", "net.ipv4.tcp_no_metrics_save"),
        ] {
            for off in [Value::Integer(0), Value::Flag(false)] {
                let (_, command) = says(id, &[(key, off, Flag)]).expect("found");
                assert_eq!(command, Some(format!("sysctl -w {sysctl}=1")));
            }
            assert_eq!(says(id, &[(key, Value::Integer(1), Flag)]), None, "{id}");
            assert_eq!(says(id, &[(key, Value::Flag(true), Flag)]), None, "{id}");
            assert_eq!(says(id, &[]), None, "{id}");
        }
    }

    #[test]
    fn a_counter_since_boot_is_information() {
        for (id, key, verb) in [
            ("receive-drops", "nic.counter.rx_dropped", "dropped"),
            ("receive-errors", "nic.counter.rx_errors", "damaged"),
            ("receive-missed", "nic.counter.rx_missed_errors", "missed"),
        ] {
            let all = ("nic.counter.rx_packets", Value::Integer(265_555_257), Count);
            let facts = |n: i64| [(key, Value::Integer(n), Count), all.clone()];
            let (says, command, severity) = found(rule(id), &facts(178_067)).expect("found");
            assert_eq!(says, format!("178067 of 265555257 received packets were {verb} since boot"));
            assert_eq!((command, severity), (None, Severity::Info));
            assert!(found(rule(id), &facts(0)).is_none());
            let (says, ..) = found(rule(id), &facts(7)[..1]).expect("found");
            assert_eq!(says, format!("7 received packets were {verb} since boot"));
        }
    }

    #[test]
    fn a_ring_below_its_maximum() {
        for word in ["rx", "tx"] {
            let (id, key) = (format!("{word}-ring-small"), format!("nic.ring.{word}"));
            let max = format!("{key}.max");
            let ring = |now: i64, max_entries: i64| {
                let facts = [
                    ("nic.name", "eth1".into(), Text),
                    (key.as_str(), Value::Integer(now), Number),
                    (max.as_str(), Value::Integer(max_entries), Number),
                ];
                says(&id, &facts)
            };
            let found =
                pair(&format!("the {word} ring has 256 of 4096 entries"), &format!("ethtool -G eth1 {word} 4096"));
            assert_eq!(ring(256, 4096), found);
            assert_eq!(ring(512, 512), None);
        }
    }

    #[test]
    fn net_core_below_tcp_is_the_case_of_two_hosts_in_2007() {
        for word in ["rmem", "wmem"] {
            let (core_key, tcp_key) = (format!("core.{word}.max"), format!("tcp.{word}.max"));
            let host = |core: i64, tcp: i64| {
                let facts =
                    [(core_key.as_str(), Value::Integer(core), Bytes), (tcp_key.as_str(), Value::Integer(tcp), Bytes)];
                says(&format!("core-{word}-below-tcp"), &facts)
            };
            let sentence = format!("net.core.{word}_max is 128 KiB, tcp_{word} goes up to 19.1 MiB");
            assert_eq!(host(131_071, 20_000_000), pair(&sentence, &format!("sysctl -w net.core.{word}_max=20000000")));
            assert_eq!(host(20_000_000, 20_000_000), None);
        }
    }

    #[test]
    fn a_quota_below_what_the_host_has() {
        let host = |quota: f64| {
            let facts = [("cgroup.cpu_quota", Value::Float(quota), Fraction), ("cpu.count", Value::Integer(4), Number)];
            says("cpu-quota", &facts)
        };
        assert_eq!(host(1.5), pair("a control group allows 1.50 of 4 CPUs", ""));
        assert_eq!(host(4.0), None);
    }

    #[test]
    fn words_that_are_and_words_that_are_not() {
        let governor = |word: &str| says("governor-not-performance", &[("cpu.governor", word.into(), Text)]);
        assert!(governor("powersave").is_some());
        assert_eq!(governor("performance"), None);
        assert_eq!(says("governor-not-performance", &[]), None);
        let duplex = |word: &str| says("half-duplex", &[("nic.duplex", word.into(), Text)]);
        assert_eq!(duplex("half"), pair("the link runs at half duplex", "ethtool -s DEVICE autoneg on"));
        assert_eq!((duplex("full"), duplex("unknown")), (None, None));
    }

    #[test]
    fn a_gigabit_card_at_100() {
        let host = |now: i64| {
            let facts = [
                ("nic.speed", Value::Integer(now), BitsPerSecond),
                ("nic.speed.max", Value::Integer(1_000_000_000), BitsPerSecond),
            ];
            says("link-below-maximum", &facts).map(|found| found.0)
        };
        assert_eq!(host(100_000_000).as_deref(), Some("the link runs at 100 Mbit/s, the card can do 1 Gbit/s"));
        assert_eq!((host(1_000_000_000), host(0)), (None, None));
    }

    #[test]
    fn a_token_bucket() {
        let facts = [
            ("qdisc.device", "eth0".into(), Text),
            ("qdisc.root.kind", "tbf".into(), Text),
            ("qdisc.rate", Value::Integer(100_000_000), BitsPerSecond),
        ];
        let found = pair("tbf on eth0 limits sending to 100 Mbit/s", "tc -s qdisc show dev eth0");
        assert_eq!(says("qdisc-shapes", &facts), found);
        assert_eq!(says("qdisc-shapes", &facts[..2]), None);
        let unnamed = says("qdisc-shapes", &facts[2..]).map(|found| found.0);
        assert_eq!(unnamed.as_deref(), Some("a queueing discipline on DEVICE limits sending to 100 Mbit/s"));
    }

    #[test]
    fn any_swap_in_use() {
        let host = |used: i64| {
            let facts = [("swap.used", Value::Integer(used), Bytes), ("swap.total", Value::Integer(2 << 30), Bytes)];
            says("swap-in-use", &facts)
        };
        assert_eq!(host(1 << 20), pair("1 MiB of 2 GiB of swap is in use", ""));
        assert_eq!(host(0), None);
    }

    #[test]
    fn hosts_that_differ() {
        let mtu = |mtu: i64| host(&[("nic.mtu", Value::Integer(mtu), Bytes)]);
        let differs = rule("mtu-differs");
        let found = differs.apply(Some(&mtu(1500)), Some(&mtu(9000)));
        assert_eq!(found[0].says, "the MTU is 1500 B on the client and 9000 B on the server");
        assert!(differs.apply(Some(&mtu(1500)), Some(&mtu(1500))).is_empty());
        assert!(differs.apply(Some(&mtu(1500)), Some(&host(&[]))).is_empty());
        let with = |name: &str| host(&[("tcp.congestion_control", name.into(), Text)]);
        let differs = rule("congestion-control-differs");
        let found = differs.apply(Some(&with("cubic")), Some(&with("bbr")));
        assert_eq!(found[0].says, "the client sends with cubic, the server with bbr");
        assert!(differs.apply(Some(&with("cubic")), Some(&with("cubic"))).is_empty());
    }
}
