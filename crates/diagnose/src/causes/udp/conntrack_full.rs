//! # conntrack-full
//!
//! The connection tracking of a host has no room for another entry, and drops the packets of connections that have none.
//!
//! **Shows**: `drop` of connection tracking grows by about as much as was lost, while its entries stand at `nf_conntrack_max`; at the
//! sender the send call fails with `EPERM`.
//!
//! **Mistaken for**: a rule that drops, loss on the path. Connections that have an entry go on as before.
//!
//! **Fix**: `net.netfilter.nf_conntrack_max`; shorter timeouts; no tracking of what needs none (`notrack`).
//!
//! Source: kernel `Documentation/networking/nf_conntrack-sysctl.rst`; `net/netfilter/nf_conntrack_core.c`, `__nf_conntrack_alloc`.

use crate::causes::shared::rule::*;
use crate::causes::shared::udp::at_stage;
use crate::judge::Evidence;

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "conntrack-full",
    about: "the conntrack table is full, so packets of new connections are dropped",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[keys::CONNTRACK_DROP, keys::CONNTRACK_COUNT, keys::CONNTRACK_MAX],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["filter-drop", "random-loss", "udp-receive-buffer", "softnet-backlog"],
    fix,
    rank: 3,
    stages: &["send-filter", "receive-filter"],
    ..Cause::COMMON
};

/// Entries come and go: the table was full where they stand at this part of the limit.
const FULL: f64 = 0.9;

/// That the table is full, as a witness.
pub(in crate::causes) fn full(evidence: &impl Evidence, role: Role) -> Option<Witness> {
    let (count, max) = evidence.number(role, keys::CONNTRACK_COUNT).zip(evidence.number(role, keys::CONNTRACK_MAX))?;
    (max > 0.0 && count >= FULL * max)
        .then(|| parameter(format!("{count:.0} connections are tracked, and nf_conntrack_max is {max:.0}")))
}

/// What to do about it.
pub(in crate::causes) fn room(evidence: &impl Evidence, role: Role) -> Fix {
    let now = evidence.number(role, keys::CONNTRACK_MAX).unwrap_or(0.0).clamp(0.0, 1e8);
    let words = "raise nf_conntrack_max, exempt traffic that needs no tracking (notrack), or shorten timeouts";
    let max = (now as u64).saturating_mul(4).max(65_536);
    sysctl_fix(evidence, role, words, "net.netfilter.nf_conntrack_max", max.to_string())
}

fn assess(evidence: &UdpEvidence, role: Role) -> Ruling {
    let drops = known(evidence.grew(role, keys::CONNTRACK_DROP), "the statistics of connection tracking could not be read")?;
    if drops == 0 {
        return Err(contradicts("connection tracking dropped nothing"));
    }
    let stage = if role == Role::Sender { "send-filter" } else { "receive-filter" };
    let dropped = evidence.base.dropped(stage).min(drops);
    let (_, share, first) = at_stage(evidence, stage, Some(dropped))?;
    let tracking = counter(format!("connection tracking dropped {drops} packets because the table was full"));
    supports(share, [Some(first), Some(tracking), full(evidence, role)])
}

fn fix(evidence: &UdpEvidence, role: Role) -> Fix {
    room(evidence, role)
}

#[cfg(test)]
mod tests {
    use crate::testing::{fact, with};
    use crate::testing::udp::*;
    use narrows_model::load::udp::record::Unsent;
    use super::*;

    fn table(count: i64, max: i64) -> Vec<narrows_model::Fact> {
        let facts = with(host_facts(), fact("conntrack.count", count, Unit::Number));
        with(facts, fact("conntrack.max", max, Unit::Number))
    }

    fn truth() -> UdpScene {
        UdpScene {
            died: Died { filter: 9_000, ..Died::default() },
            receiver_facts: table(4_096, 4_096),
            receiver_counts: vec![("conntrack.drop", 9_010), ("filter.drop.packets", 0), ("filter.drop.bytes", 0)],
            ..UdpScene::default()
        }
    }

    #[test]
    fn a_full_table_is_named_before_a_rule() {
        let finding = named(&truth(), "conntrack-full", Place::Server);
        rejects(&finding, "udp-receive-buffer", "nothing was dropped");
        assert_eq!(finding.fix.commands[0].run, "sysctl -w net.netfilter.nf_conntrack_max=65536");
        let refused = Unsent { not_permitted: 9_000, ..Unsent::default() };
        let sender = UdpScene {
            died: Died { refused, ..Died::default() },
            sender_facts: table(4_096, 4_096),
            sender_counts: vec![("conntrack.drop", 9_010)],
            ..UdpScene::default()
        };
        named(&sender, "conntrack-full", Place::Client);
    }

    #[test]
    fn a_rule_that_drops_and_a_full_table_that_drops_little_are_not_it() {
        let of = |scene: &UdpScene| assessment(&CAUSE, Role::Receiver, scene);
        let rule = UdpScene { receiver_counts: vec![("conntrack.drop", 0)], ..truth() };
        assert_contradicts(&of(&rule), "dropped nothing");
        named(&rule, "filter-drop", Place::Server);
        assert_contradicts(&of(&UdpScene { receiver_counts: vec![("conntrack.drop", 400)], ..truth() }), "only 400 of 9000");
        assert_contradicts(&of(&UdpScene { died: Died::default(), ..truth() }), "nothing was lost");
    }

    #[test]
    fn without_its_statistics_nothing_is_known() {
        assert_cannot_tell(&assessment(&CAUSE, Role::Receiver, &UdpScene { receiver_counts: Vec::new(), ..truth() }), "could not be read");
    }
}
