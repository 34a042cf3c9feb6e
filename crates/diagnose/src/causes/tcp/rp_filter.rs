//! # rp-filter
//!
//! The receiver drops segments whose source it would reach through another interface (reverse path filtering).
//!
//! **Shows**: `IPReversePathFilter` matches the TCP retransmissions, and the packet filter's rules do not: some
//! packets arrive on another interface than that of the return route.
//!
//! **Mistaken for**: a packet filter, loss on the path.
//!
//! **Fix**: a symmetric route, or `net.ipv4.conf.all.rp_filter=2`.
//!
//! Source: RFC 3704 2.2 and 2.4; kernel `Documentation/networking/ip-sysctl.rst`, `rp_filter`.

use crate::causes::shared::rule::*;
use crate::causes::shared::tcp_stage::dropped_at;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "rp-filter",
    about: "the receiver's reverse path filter drops the segments",
    roles: &[Role::Receiver],
    needs: &[
        keys::NETSTAT_TCP_EXT_IP_REVERSE_PATH_FILTER,
        keys::FILTER_DROP_PACKETS,
        keys::DROP_REASON_NETFILTER_DROP,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["filter-drop", "random-loss", "path-policer"],
    fix,
    rank: 9,
    stages: &["receive-filter"],
    ..Cause::COMMON
};

/// What the reverse path filter of the receiver dropped, where it is more than the rules of its packet filter did.
pub(super) fn spoofed(evidence: &TcpEvidence) -> Option<u64> {
    let grew = |key| evidence.grew(Role::Receiver, key);
    let ruled = grew(keys::FILTER_DROP_PACKETS).max(evidence.reason(Role::Receiver, "NETFILTER_DROP")).unwrap_or(0);
    grew(keys::NETSTAT_TCP_EXT_IP_REVERSE_PATH_FILTER).filter(|n| *n > ruled)
}

fn assess(evidence: &TcpEvidence, _: Role) -> Ruling {
    let spoofed = found(spoofed(evidence), "the reverse path filter dropped no more than the rules of the packet filter")?;
    dropped_at(evidence, "receive-filter", Some(counter(format!("IPReversePathFilter of the receiver grew by {spoofed}"))))
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let advice = "route back through the interface on which the packets arrive, or use loose filtering";
    sysctl_fix(evidence, role, advice, "net.ipv4.conf.all.rp_filter", "2")
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    fn filtered(n: i64) -> Scene {
        lossy(25_500, &[("netstat.TcpExt.IPReversePathFilter", n)])
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn segments_from_an_interface_that_is_not_the_way_back_are_named() {
        let finding = named(&filtered(170), &[], "rp-filter", Place::Server);
        assert_rejects(&finding, "filter-drop", "reverse path filter");
        assert_eq!(finding.fix.commands[0].run, "sysctl -w net.ipv4.conf.all.rp_filter=2");
    }

    #[test]
    fn the_filter_of_another_host_of_the_machine_hides_nothing() {
        let elsewhere = [
            ("netstat.TcpExt.IPReversePathFilter", 170),
            ("drop.lost_records", 0),
            ("drop.reason.NETFILTER_DROP", 900),
            ("snmp.Ip.InReceives", 25_500),
            ("snmp.Ip.InDelivers", 25_330),
            ("snmp.Ip.ForwDatagrams", 0),
            ("snmp.Ip.ReasmReqds", 0),
            ("snmp.Ip.ReasmOKs", 0),
        ];
        named(&lossy(25_500, &elsewhere), &[], "rp-filter", Place::Server);
    }

    #[test]
    fn a_rule_a_few_drops_and_none_are_other_cases() {
        let ruled = [("netstat.TcpExt.IPReversePathFilter", 3), ("filter.drop.packets", 167)];
        named(&lossy(25_500, &ruled), &[], "filter-drop", Place::Server);
        assert_contradicts(&of(&lossy(25_500, &ruled)), "no more than");
        assert_contradicts(&of(&lossy(25_347, &[("netstat.TcpExt.IPReversePathFilter", 17)])), "only 17 of 170");
        assert_contradicts(&of(&filtered(0)), "no more than");
        let silent = Scene { profile: None, ..filtered(170) };
        assert_cannot_tell(&of(&silent), "no stage");
    }

    #[test]
    fn a_path_at_capacity_is_not_accused() {
        let scene = full_path(lossy(600_000, &[("netstat.TcpExt.IPReversePathFilter", 170)]));
        assert_eq!(verdict(&scene, &[]).status, Status::Healthy);
    }
}
