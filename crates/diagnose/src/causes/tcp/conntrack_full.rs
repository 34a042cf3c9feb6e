//! # conntrack-full
//!
//! The connection tracking of a host has no room for another entry, and drops the segments of connections that have none.
//!
//! **Shows**: `drop` of connection tracking grows about as much as TCP retransmits, while its entries stand at `nf_conntrack_max`.
//!
//! **Mistaken for**: a rule that drops, loss on the path. Connections that have an entry go on as before: mostly those that begin fail, so on
//! a busy host the drops are of others.
//!
//! **Fix**: `net.netfilter.nf_conntrack_max`; shorter timeouts; no tracking of what needs none (`notrack`).
//!
//! Source: kernel `Documentation/networking/nf_conntrack-sysctl.rst`; `net/netfilter/nf_conntrack_core.c`, `__nf_conntrack_alloc`.

use crate::causes::shared::rule::*;
use crate::causes::shared::tcp_stage::counted;
use crate::causes::udp::conntrack_full::{full, room};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "conntrack-full",
    about: "the conntrack table is full, so packets of new connections are dropped",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[keys::CONNTRACK_DROP],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["filter-drop", "random-loss", "path-policer"],
    fix,
    rank: 9,
    ..Cause::COMMON
};

/// Each segment that is dropped here TCP sends again, so drops that are many times as many are of other connections.
const OTHERS: u64 = 2;

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let dropped = evidence.grew(role, keys::CONNTRACK_DROP);
    let supported = counted(evidence, dropped, "drop of connection tracking", full(evidence, role))?;
    let lost = evidence.base.loss_whole.map_or(0, |loss| loss.lost());
    let others = dropped.filter(|dropped| *dropped > lost.saturating_mul(OTHERS));
    refuted(others.map(|dropped| {
        format!("connection tracking dropped {dropped} packets, and this connection lost {lost}: they are mostly of others")
    }))?;
    Ok(supported)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    room(evidence, role)
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    fn truth(drops: i64) -> Scene {
        let facts = with(ordinary_host(), fact("conntrack.count", 262_144_i64, Unit::Number));
        let receiver_facts = with(facts, fact("conntrack.max", 262_144_i64, Unit::Number));
        Scene { receiver_facts, ..lossy(25_500, &[("conntrack.drop", drops)]) }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn segments_that_a_full_table_dropped_are_named() {
        named(&truth(171), &[], "conntrack-full", Place::Server);
    }

    #[test]
    fn a_full_table_that_drops_nothing_of_this_connection_is_not_why() {
        assert_contradicts(&of(&truth(0)), "did not grow");
        assert_contradicts(&of(&truth(30)), "170 segments were lost");
        assert_contradicts(&of(&Scene { lost: 0, ..truth(171) }), "only 0 segments");
        assert_contradicts(&of(&full_path(Scene { lost: 3_000, ..truth(3_000) })), "the RTT rose as behind a full queue");
        // A busy host turns other connections away, and the path loses some of this one's segments.
        assert_contradicts(&of(&truth(12_000)), "mostly of others");
        assert_cannot_tell(&of(&lossy(25_500, &[])), "could not be read");
    }
}
