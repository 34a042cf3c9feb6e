//! # udp-memory
//!
//! The UDP sockets of the host use all memory that `udp_mem` allows.
//!
//! **Shows**: `MemErrors` of UDP grow; the reason is `PROTO_MEM`.
//!
//! **Mistaken for**: one small receive buffer (`RcvbufErrors`, on one socket only).
//!
//! **Fix**: `net.ipv4.udp_mem`, in pages; or the sockets that use it.
//!
//! Source: kernel `Documentation/networking/ip-sysctl.rst`, `net/core/sock.c`, `__sk_mem_raise_allocated`.

use crate::causes::shared::rule::*;
use crate::causes::shared::udp::{at_stage, says_the_same};

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "udp-memory",
    about: "the UDP sockets of the host use all memory that udp_mem allows",
    roles: &[Role::Receiver],
    needs: &[
        keys::SNMP_UDP_MEM_ERRORS,
        keys::SNMP6_UDP6_MEM_ERRORS,
        keys::DROP_REASON_PROTO_MEM,
        keys::UDP_MEM_LOW,
        keys::UDP_MEM_PRESSURE,
        keys::UDP_MEM_HIGH,
        keys::UDP_MEM_USED,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["udp-receive-buffer"],
    fix,
    stages: &["receive-buffer"],
    ..Cause::COMMON
};

fn assess(evidence: &UdpEvidence, role: Role) -> Ruling {
    let key = if evidence.base.accounting.ipv6 { keys::SNMP6_UDP6_MEM_ERRORS } else { keys::SNMP_UDP_MEM_ERRORS };
    let errors = known(evidence.grew(role, key), "the receiver's MemErrors could not be read")?;
    let dropped = errors.min(evidence.base.dropped("receive-buffer"));
    let (dropped, share, _) = at_stage(evidence, "receive-buffer", Some(dropped))?;
    let first = counter(format!("MemErrors of the receiver's UDP grew by {errors}: {dropped} of the lost datagrams"));
    let pages = |which| evidence.number(role, which);
    let full = pages(keys::UDP_MEM_USED).zip(pages(keys::UDP_MEM_PRESSURE)).filter(|(used, limit)| used >= limit);
    let witnesses = [
        Some(first),
        says_the_same(evidence, dropped, evidence.reason(role, "PROTO_MEM"), "the reason PROTO_MEM"),
        full.map(|(used, limit)| {
            counter(format!("UDP sockets held {used:.0} pages; pressure begins at {limit:.0}"))
        }),
    ];
    supports(share, witnesses)
}

fn fix(evidence: &UdpEvidence, role: Role) -> Fix {
    let words = [keys::UDP_MEM_LOW, keys::UDP_MEM_PRESSURE, keys::UDP_MEM_HIGH].map(|key| evidence.number(role, key));
    let [Some(low), Some(pressure), Some(high)] = words else {
        return advice("raise net.ipv4.udp_mem on the host: it is not available in this network namespace");
    };
    let value = format!("{:.0} {:.0} {:.0}", low.max(1.0) * 4.0, pressure.max(1.0) * 4.0, high.max(1.0) * 4.0);
    let advice = "raise udp_mem fourfold, or find the sockets that hold the memory".to_owned();
    sysctl_fix(evidence, role, advice, "net.ipv4.udp_mem", value)
}

#[cfg(test)]
mod tests {
    use crate::testing::udp::*;
    use super::*;

    fn truth() -> UdpScene {
        UdpScene { died: Died { memory: 9_000, ..Died::default() }, ..UdpScene::default() }
    }

    #[test]
    fn errors_of_memory_are_named() {
        let finding = named(&truth(), "udp-memory", Place::Server);
        assert_eq!(finding.fix.commands[0].run, "sysctl -w net.ipv4.udp_mem='400000 520000 800000'");
        rejects(&finding, "udp-receive-buffer", "nothing was dropped");
    }

    #[test]
    fn a_full_socket_is_another_cause_and_without_the_counter_nothing_is_known() {
        let of = |scene: &UdpScene| assessment(&CAUSE, Role::Receiver, scene);
        assert_contradicts(
            &of(&UdpScene { died: Died { buffer: 9_000, ..Died::default() }, ..truth() }),
            "nothing was dropped",
        );
        assert_cannot_tell(&of(&UdpScene { hidden: &["snmp.Udp.MemErrors"], ..truth() }), "MemErrors");
        suspected(&UdpScene { watched: false, ..truth() }, "udp-memory");
    }
}
