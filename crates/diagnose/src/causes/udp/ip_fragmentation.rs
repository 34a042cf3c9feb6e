//! # ip-fragmentation
//!
//! The datagrams exceed the path MTU and are fragmented: the loss of one fragment loses the datagram, and reassembly
//! has its own limits.
//!
//! **Shows**: `FragCreates` at the sender; fewer datagrams are reassembled (`ReasmOKs`) than sent; loss only above the
//! path MTU.
//!
//! **Mistaken for**: loss on the path; but unfragmented datagrams have less loss, or none.
//!
//! **Fix**: datagrams of the path MTU less 28 bytes (48 with IPv6); `net.ipv4.ipfrag_high_thresh` if no fragment was
//! lost.
//!
//! Source: RFC 8900; kernel `net/ipv4/ip_fragment.c`.

use crate::causes::shared::rule::*;
use crate::causes::shared::udp::at_stage;
use crate::experiments::udp::UNFRAGMENTED;
use narrows_model::load::udp::{DatagramSizes, UdpPlan};

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "ip-fragmentation",
    about: "datagrams above the path MTU are fragmented, and each lost fragment loses a datagram",
    roles: &[Role::Receiver],
    needs: &[
        keys::SNMP_IP_FRAG_CREATES,
        keys::SNMP_IP_FRAG_OKS,
        keys::SNMP_IP_REASM_REQDS,
        keys::SNMP_IP_REASM_OKS,
        keys::SNMP_IP_REASM_FAILS,
        keys::SNMP6_IP6_REASM_FAILS,
        keys::IP_FRAG_HIGH,
        keys::IP6_FRAG_HIGH,
        keys::PATH_MTU,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["random-loss", "udp-receive-buffer"],
    fix,
    stages: &["reassembly"],
    confirmed_by: Some(&UNFRAGMENTED),
    ..Cause::COMMON
};

fn lost_fragments(evidence: &UdpEvidence) -> Option<u64> {
    let accounting = &evidence.base.accounting;
    Some(accounting.fragments(true, "FragCreates")?.saturating_sub(accounting.fragments(false, "ReasmReqds")?))
}

fn assess(evidence: &UdpEvidence, _: Role) -> Ruling {
    let accounting = &evidence.base.accounting;
    let created = known(accounting.fragments(true, "FragCreates"), "the sender's counters of fragments could not be read")?;
    let parts = accounting.fragments_each();
    if parts == 1 {
        return Err(contradicts(format!("datagrams were not sent in fragments (FragCreates grew by {created})")));
    }
    let (_, share, first) = at_stage(evidence, "reassembly", None)?;
    let failed = accounting.fragments(false, "ReasmFails").filter(|n| *n > 0);
    let whole = evidence.experiments.get(UNFRAGMENTED.id).filter(|view| view.loss() <= evidence.base.loss() / 2.0);
    let witnesses = [
        Some(first),
        Some(counter(format!("each datagram left in {parts} fragments: FragCreates of the sender grew by {created}"))),
        failed.map(|n| counter(format!("ReasmFails of the receiver grew by {n}"))),
        whole.map(|view| Witness {
            kind: "experiment".to_owned(),
            says: format!("unfragmented datagrams: {} of {} lost", view.missing(), view.ledger.offered),
        }),
    ];
    supports(share, witnesses)
}

fn fix(evidence: &UdpEvidence, role: Role) -> Fix {
    let ipv6 = evidence.base.accounting.ipv6;
    if lost_fragments(evidence) == Some(0) {
        let (key, name) = if ipv6 {
            (keys::IP6_FRAG_HIGH, "net.ipv6.ip6frag_high_thresh")
        } else {
            (keys::IP_FRAG_HIGH, "net.ipv4.ipfrag_high_thresh")
        };
        if let Some(now) = evidence.number(role, key) {
            let advice =
                "no fragment was lost, but reassembly failed: raise its memory fourfold, or send unfragmented datagrams"
                    .to_owned();
            return sysctl_fix(evidence, role, advice, name, format!("{:.0}", now * 4.0));
        }
    }
    let mtu = evidence.number(Role::Sender, keys::PATH_MTU).unwrap_or(1500.0);
    let whole = mtu - if ipv6 { 48.0 } else { 28.0 };
    let plan = &evidence.base.plan;
    Fix {
        advice: format!("send datagrams of at most {whole:.0} bytes, which need no fragmentation"),
        load: Some(UdpPlan { sizes: DatagramSizes::Largest, allow_fragments: false, ..plan.clone() }.into()),
        ..Fix::default()
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::udp::*;
    use super::*;

    /// 600 of 10,000 datagrams of six fragments each.
    fn truth() -> UdpScene {
        UdpScene {
            offered: 10_000,
            size: 8_000,
            died: Died { path: 600, ..Died::default() },
            sender_counts: vec![("snmp.Ip.FragOKs", 10_000), ("snmp.Ip.FragCreates", 60_000)],
            receiver_counts: vec![("snmp.Ip.ReasmReqds", 59_390), ("snmp.Ip.ReasmOKs", 9_400)],
            ..UdpScene::default()
        }
    }

    #[test]
    fn datagrams_lost_for_a_fragment_are_named() {
        let finding = named(&truth(), "ip-fragmentation", Place::Server);
        assert!(finding.fix.advice.contains("at most 1472 bytes"), "{}", finding.fix.advice);
        assert!(finding.fix.load.is_some());
        rejects(&finding, "udp-receive-buffer", "nothing was dropped");
    }

    #[test]
    fn where_no_fragment_was_lost_reassembly_had_too_little_memory() {
        let mut receiver_facts = truth().receiver_facts;
        receiver_facts.push(crate::testing::fact("ip.frag.high", 4_194_304_i64, Unit::Bytes));
        let receiver_counts =
            vec![("snmp.Ip.ReasmReqds", 60_000), ("snmp.Ip.ReasmOKs", 9_400), ("snmp.Ip.ReasmFails", 600)];
        let finding =
            named(&UdpScene { receiver_facts, receiver_counts, ..truth() }, "ip-fragmentation", Place::Server);
        assert_eq!(finding.fix.commands[0].run, "sysctl -w net.ipv4.ipfrag_high_thresh=16777216");
    }

    #[test]
    fn whole_datagrams_and_missing_counters() {
        let of = |scene: &UdpScene| assessment(&CAUSE, Role::Receiver, scene);
        let whole = UdpScene { died: truth().died, ..UdpScene::default() };
        assert_contradicts(&of(&whole), "not sent in fragments");
        assert_cannot_tell(&of(&UdpScene { hidden: &["snmp.Ip.Frag"], ..truth() }), "could not be read");
    }
}
