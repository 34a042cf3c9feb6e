//! # bond-reordering
//!
//! The sender's bond spreads the packets of one connection over several links in turn, and they arrive out of order.
//!
//! **Shows**: what reordering shows, and the device of the sender is a bond in round-robin mode.
//!
//! **Mistaken for**: reordering in the network, random loss.
//!
//! **Fix**: a mode that keeps a connection on one link: `802.3ad` or `balance-xor` with a hash of addresses and ports.
//!
//! Source: kernel `Documentation/networking/bonding.rst`, *balance-rr*. Not seen on a real host.

use crate::causes::shared::rule::*;
use super::reordering::CAUSE as REORDERING;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "bond-reordering",
    about: "the sender's bond spreads one connection over several links, and its packets arrive out of order",
    roles: &[Role::Sender],
    needs: &[keys::NIC_KIND, keys::NIC_NAME, keys::NIC_BOND_MODE],
    assess,
    look_alikes: &["reordering", "random-loss", "congestion-control"],
    fix,
    rank: 8,
    per_connection: true,
    device: true,
    ..Cause::COMMON
};

fn assess(evidence: &TcpEvidence, role: Role) -> Assessment {
    let kind = evidence.text(role, keys::NIC_KIND);
    let Some(mode) = evidence.text(role, keys::NIC_BOND_MODE) else {
        return match kind {
            Some("bond") => cannot_tell("the mode of the sender's bond could not be read"),
            Some(_) => contradicts("the sender's device is not a bond"),
            None => cannot_tell("nothing is known of the sender's device"),
        };
    };
    if !mode.contains("round-robin") {
        return contradicts(format!("the sender's bond keeps a connection on one link: {mode}"));
    }
    match (REORDERING.assess)(evidence, Role::Path) {
        Assessment::Supports { share, mut witnesses } => {
            witnesses.push(parameter(format!("the sender's device is a bond: {mode}")));
            Assessment::Supports { share, witnesses }
        }
        other => other,
    }
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let device = evidence.text(role, keys::NIC_NAME).unwrap_or("DEVICE");
    let words = "use a mode that keeps a connection on one link (the switch must agree)".to_owned();
    let commands = [
        format!("ip link set {device} type bond mode 802.3ad xmit_hash_policy layer3+4"),
        format!("cat /proc/net/bonding/{device}"),
    ];
    command_fix(evidence, role, words, commands)
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use super::*;

    fn bond(mode: &str) -> Vec<Fact> {
        let facts = with(ordinary_host(), fact("nic.kind", "bond", Unit::Text));
        with(facts, fact("nic.bond.mode", mode, Unit::Text))
    }

    fn truth() -> Scene {
        let profile = Some(ProfiledPath { reordered: 0.04, ..ProfiledPath::default() });
        Scene { lost: 400, spurious: 380, profile, sender_facts: bond("load balancing (round-robin)"), ..slow() }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, &[])
    }

    #[test]
    fn a_bond_in_turns_that_reorders_is_named() {
        named(&truth(), &[], "bond-reordering", Place::Client);
    }

    #[test]
    fn another_mode_leaves_it_to_the_path_and_a_bond_alone_is_no_fault() {
        let hashed = Scene { sender_facts: bond("IEEE 802.3ad Dynamic link aggregation"), ..truth() };
        assert_contradicts(&of(&hashed), "keeps a connection on one link");
        named(&Scene { sender_facts: ordinary_host(), ..truth() }, &[], "reordering", Place::Path);
        assert_contradicts(&of(&Scene { profile: Some(ProfiledPath::default()), ..truth() }), "arrived out of order");
        assert_contradicts(&of(&Scene { lost: 0, spurious: 0, ..truth() }), "retransmitted only 0");
        assert_cannot_tell(&of(&Scene { sender_facts: without(bond("x"), "nic.bond.mode"), ..truth() }), "could not be read");
    }
}
