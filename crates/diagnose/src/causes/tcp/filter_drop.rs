//! # filter-drop
//!
//! A packet filter of a host drops segments: a rule, the policy of a chain, or a rate limit.
//!
//! **Shows**: the counter of a dropping rule, or the drop reason `NETFILTER_DROP` of the host's own network namespace, matches the segments
//! that TCP lost. At the receiver they reached the interface; at the sender IP was to send more packets than it sent.
//!
//! **Mistaken for**: loss or a policer on the path, whose packets never reach the receiver's IP.
//!
//! **Fix**: change the rule.
//!
//! Source: kernel `net/netfilter/core.c`, `nf_hook_slow`; `net/ipv4/tcp_output.c`, `tcp_write_xmit`; nft(8).

use crate::causes::shared::rule::*;
use crate::causes::shared::tcp_stage::dropped_at;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "filter-drop",
    about: "a packet filter of the host drops the segments",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[
        keys::FILTER_DROP_PACKETS,
        keys::FILTER_DROP_BYTES,
        keys::DROP_REASON_NETFILTER_DROP,
        keys::NETSTAT_TCP_EXT_IP_REVERSE_PATH_FILTER,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["rp-filter", "random-loss", "path-policer", "softnet-backlog"],
    fix,
    rank: 8,
    stages: &["send-filter", "receive-filter"],
    ..Cause::COMMON
};

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    if let Some(n) = super::rp_filter::spoofed(evidence) {
        return Err(contradicts(format!("the reverse path filter, not a rule, dropped {n} packets")));
    }
    let rules = evidence.grew(role, keys::FILTER_DROP_PACKETS).filter(|n| *n > 0);
    let second = rules.map(|n| counter(format!("the counters of rules that drop grew by {n}")));
    dropped_at(evidence, if role == Role::Sender { "send-filter" } else { "receive-filter" }, second)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let advice = "find the dropping rule and let this traffic pass".to_owned();
    command_fix(evidence, role, advice, ["nft list ruleset | grep -n -e drop -e reject".to_owned()])
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    /// A rule without a counter: the drop reason alone knows of it.
    const WATCHED: [(&str, i64); 3] = [("filter.drop.packets", 0), ("drop.lost_records", 0), ("drop.reason.NETFILTER_DROP", 170)];

    fn receiver(counts: &[(&'static str, i64)]) -> Scene {
        lossy(25_500, &[&WATCHED, counts].concat())
    }

    #[test]
    fn a_rule_without_a_counter_is_named_by_the_reason_of_its_drops() {
        let finding = named(&receiver(&[("drop.elsewhere", 0)]), &[], "filter-drop", Place::Server);
        assert_rejects(&finding, "random-loss", "dropped inside the sender or receiver, at: receive-filter");
    }

    #[test]
    fn a_router_or_container_of_the_same_machine_is_not_the_receiver() {
        let ip = [("snmp.Ip.InReceives", 25_330), ("snmp.Ip.InDelivers", 25_330), ("snmp.Ip.ForwDatagrams", 0)];
        let machine = receiver(&[&ip[..], &[("snmp.Ip.ReasmReqds", 0), ("snmp.Ip.ReasmOKs", 0)]].concat());
        assert_contradicts(&assessment(&CAUSE, Role::Receiver, &machine, &[]), "nothing was dropped");
    }

    #[test]
    fn what_the_senders_filter_kept_from_being_sent_is_its_own() {
        // 170 of 25,500 packets that IP was to send; TCP counted them as sent, and sent them again.
        let sent = [("snmp.Ip.OutRequests", 25_500), ("snmp.Ip.OutTransmits", 25_330), ("snmp.Ip.ForwDatagrams", 0)];
        let counts = [("nic.counter.tx_packets", 25_330), ("qdisc.drops", 0), ("drop.elsewhere", 0)];
        let scene = Scene { sender_counts: [&WATCHED[..], &sent, &counts].concat(), ..lossy(25_330, &[("filter.drop.packets", 0)]) };
        let finding = named(&scene, &[], "filter-drop", Place::Client);
        assert_rejects(&finding, "random-loss", "dropped inside the sender or receiver, at: send-filter");
        // Acknowledgements that its input drops were none of what it sends.
        let sent = [("snmp.Ip.OutRequests", 25_500), ("snmp.Ip.OutTransmits", 25_500), ("snmp.Ip.ForwDatagrams", 0)];
        let input = Scene { sender_counts: [&WATCHED[..], &sent, &counts].concat(), ..slow() };
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &Scene { lost: 170, ..input }, &[]), "nothing was dropped");
    }
}
