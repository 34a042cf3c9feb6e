//! # filter-drop
//!
//! A packet filter of a host drops the datagrams.
//!
//! **Shows**: the counter of a dropping rule grows; the drop reason is `NETFILTER_DROP` (or `XDP`, `TC_INGRESS`); at
//! the sender the send
//! call fails with `EPERM`.
//!
//! **Mistaken for**: loss on the path; but the interface counters show that the datagrams arrived.
//!
//! **Fix**: change the rule.
//!
//! Source: kernel `net/netfilter/core.c`, `nf_hook_slow`; nft(8).

use crate::causes::shared::rule::*;
use crate::causes::shared::udp::{at_stage, says_the_same};

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "filter-drop",
    about: "a packet filter of the host drops the datagrams",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[
        keys::FILTER_DROP_PACKETS,
        keys::DROP_REASON_NETFILTER_DROP,
        keys::NETSTAT_IP_EXT_IN_NO_ECT_PKTS,
        keys::SNMP_IP_OUT_DISCARDS,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["random-loss", "udp-receive-buffer", "softnet-backlog"],
    fix,
    stages: &["send-filter", "receive-filter"],
    ..Cause::COMMON
};

fn assess(evidence: &UdpEvidence, role: Role) -> Ruling {
    let stage = if role == Role::Sender { "send-filter" } else { "receive-filter" };
    let (dropped, share, first) = at_stage(evidence, stage, None)?;
    let by_rules =
        says_the_same(evidence, dropped, evidence.grew(role, keys::FILTER_DROP_PACKETS), "the counters of rules that drop");
    let watched =
        says_the_same(evidence, dropped, evidence.reason(role, "NETFILTER_DROP"), "the reason NETFILTER_DROP");
    let third = if role == Role::Sender {
        says_the_same(evidence, dropped, evidence.grew(role, keys::SNMP_IP_OUT_DISCARDS), "OutDiscards of the sender's IP")
    } else {
        // They reached IP of the host, and no socket of it.
        let accounting = &evidence.base.accounting;
        let behind = accounting.arrivals().map(|all| all.saturating_sub(accounting.delivered).saturating_sub(accounting.duplicated));
        behind
            .filter(|behind| *behind >= dropped)
            .map(|behind| counter(format!("{behind} datagrams reached the receiver's IP layer but not its \
                application")))
    };
    supports(share, [Some(first), by_rules, watched, third])
}

fn fix(evidence: &UdpEvidence, role: Role) -> Fix {
    let advice = "find the dropping rule and let this traffic pass".to_owned();
    command_fix(evidence, role, advice, ["nft list ruleset | grep -n -e drop -e reject".to_owned()])
}

#[cfg(test)]
mod tests {
    use crate::testing::udp::*;
    use narrows_model::load::udp::record::Unsent;
    use super::*;

    fn truth() -> UdpScene {
        UdpScene { died: Died { filter: 6_700, ..Died::default() }, ..UdpScene::default() }
    }

    #[test]
    fn a_rule_of_the_receiver_is_named() {
        let finding = named(&truth(), "filter-drop", Place::Server);
        rejects(&finding, "random-loss", "nothing was dropped");
        assert!(finding.fix.commands[0].run.starts_with("nft list ruleset"));
        // A rule without a counter: the reason alone knows of it, and IP's own counters say the same.
        let uncounted =
            UdpScene { receiver_counts: vec![("filter.drop.packets", 0), ("filter.drop.bytes", 0)], ..truth() };
        named(&uncounted, "filter-drop", Place::Server);
    }

    #[test]
    fn the_filter_of_a_router_or_container_on_the_same_machine_is_not_the_receivers() {
        // Its rules may have counters or not, and the client may be on another machine.
        for (one_kernel, counts) in
            [(true, vec![("filter.drop.packets", 0)]), (false, vec![("filter.drop.packets", 0)]), (true, Vec::new())]
        {
            let scene = UdpScene {
                died: Died { path: 6_700, ..Died::default() },
                one_kernel,
                receiver_counts: [counts, vec![("drop.reason.NETFILTER_DROP", 6_700)]].concat(),
                ..UdpScene::default()
            };
            assert_contradicts(&assessment(&CAUSE, Role::Receiver, &scene), "");
        }
        // The policy of a chain has no counter. Its drops are missing between IP and the sockets of the receiver.
        let scene = UdpScene { one_kernel: true, receiver_counts: vec![("filter.drop.packets", 0)], ..truth() };
        named(&scene, "filter-drop", Place::Server);
    }

    #[test]
    fn a_rule_of_the_sender_is_named_by_what_the_send_call_said() {
        let refused = Unsent { not_permitted: 5_000, ..Unsent::default() };
        let scene = UdpScene {
            died: Died { refused, ..Died::default() },
            sender_counts: vec![("drop.reason.NETFILTER_DROP", 5_000), ("drop.elsewhere", 0)],
            ..UdpScene::default()
        };
        named(&scene, "filter-drop", Place::Client);
        // In a lab the receiver's watch sees them, too: they are the sender's all the same.
        let scene =
            UdpScene { one_kernel: true, receiver_counts: vec![("drop.reason.NETFILTER_DROP", 5_000)], ..scene };
        named(&scene, "filter-drop", Place::Client);
        suspected(
            &UdpScene { watched: false, sender_counts: vec![("snmp.Ip.OutDiscards", 0)], ..scene },
            "filter-drop",
        );
    }

    #[test]
    fn drops_elsewhere_and_missing_counters() {
        let of = |scene: &UdpScene| assessment(&CAUSE, Role::Receiver, scene);
        assert_contradicts(
            &of(&UdpScene { died: Died { path: 6_700, ..Died::default() }, ..truth() }),
            "nothing was dropped",
        );
        // Without privilege neither rules nor reasons can be read; what IP misses is read by anybody.
        named(&UdpScene { hidden: &["filter.", "drop."], ..truth() }, "filter-drop", Place::Server);
        let few = Died { filter: 300, ..Died::default() };
        let few = UdpScene { died: few, hidden: &["filter.", "drop."], ..truth() };
        assert_cannot_tell(&of(&few), "300 drops, of which up to 200 may be of other traffic");
        assert_cannot_tell(&of(&UdpScene { hidden: &["filter.", "drop.", "snmp.Ip."], ..truth() }), "could be read");
    }
}
