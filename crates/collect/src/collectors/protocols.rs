//! The counters of IP, ICMP, TCP and UDP: `/proc/net/netstat`, `/proc/net/snmp`, `/proc/net/snmp6`. Names are the kernel's.
//! Source: kernel `net/ipv4/proc.c`, `net/ipv6/proc.c`, `Documentation/networking/snmp_counter.rst`.

use crate::collector::{Class, Collector, Context, Sink, always};
use crate::{Missing, parse};
use narrows_model::keys;

pub(super) const COLLECTOR: Collector = Collector {
    id: "protocols",
    about: "counters of IP, ICMP, TCP and UDP of this network namespace",
    provides: &[
        keys::NETSTAT_TCP_EXT,
        keys::NETSTAT_IP_EXT,
        keys::SNMP_IP,
        keys::SNMP_ICMP,
        keys::SNMP_TCP,
        keys::SNMP_UDP,
        keys::SNMP6,
    ],
    class: Class::Both,
    can_run: always,
    collect,
};

/// The file, the prefix of its keys, and the groups that are kept.
const FILES: [(&str, &str, &[&str]); 2] =
    [("/proc/net/netstat", "netstat", &["TcpExt", "IpExt"]), ("/proc/net/snmp", "snmp", &["Ip", "Icmp", "Tcp", "Udp"])];

/// Members of these tables that are settings or levels, not cumulative counters.
const NO_COUNTS: [&str; 7] = ["RtoAlgorithm", "RtoMin", "RtoMax", "MaxConn", "CurrEstab", "Forwarding", "DefaultTTL"];

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    for (path, word, groups) in FILES {
        match context.host.read(path) {
            Ok(text) => {
                for (group, name, value) in parse::paired_lines(path, &text) {
                    if groups.contains(&group) && !NO_COUNTS.contains(&name) {
                        sink.put(format!("{word}.{group}.{name}"), value, path);
                    }
                }
            }
            Err(why) => groups.iter().for_each(|group| sink.absent(format!("{word}.{group}.*"), &why)),
        }
    }
    let path = "/proc/net/snmp6";
    match context.host.read(path) {
        Ok(text) => {
            for (name, value) in parse::key_values(path, &text) {
                sink.put(format!("snmp6.{name}"), value, path);
            }
        }
        Err(why) => sink.absent(keys::SNMP6, &why),
    }
    Ok(())
}
