//! # udp-receive-buffer
//!
//! The receive buffer of the socket is too small for bursts that arrive while its reader does not run.
//!
//! **Shows**: the socket counts drops (`SO_RXQ_OVFL`), UDP counts `RcvbufErrors`, the reason is `SOCKET_RCVBUFF`; ring
//! and backlog have no drops; the reader is partly idle.
//!
//! **Mistaken for**: network loss, as older tools report it. A reader without idle time (then no buffer is large
//! enough), memory of all UDP sockets (`MemErrors`).
//!
//! **Fix**: `net.core.rmem_max` and a larger `SO_RCVBUF`: large enough for the longest pause of the reader.
//!
//! Source: socket(7), kernel `net/ipv4/udp.c`, `__udp_enqueue_schedule_skb`; UvA, *Performance measuring*, 2010: 128 KiB lost
//! 44 %, 512 KiB nothing.

use crate::causes::shared::rule::*;
use crate::causes::shared::udp::{at_stage, full_core, rounded, says_the_same};
use crate::causes::shared::words::witness;
use narrows_model::load::udp::UdpPlan;

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "udp-receive-buffer",
    about: "the receive buffer of the socket is too small for the arriving bursts",
    roles: &[Role::Receiver],
    needs: &[
        keys::SNMP_UDP_RCVBUF_ERRORS,
        keys::SNMP_UDP_MEM_ERRORS,
        keys::SNMP6_UDP6_RCVBUF_ERRORS,
        keys::DROP_REASON_SOCKET_RCVBUFF,
        keys::CORE_RMEM_MAX,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["udp-memory", "softnet-backlog", "random-loss", "filter-drop"],
    fix,
    stages: &["receive-buffer"],
    ..Cause::COMMON
};

fn assess(evidence: &UdpEvidence, role: Role) -> Ruling {
    let memory = evidence.grew(role, keys::SNMP_UDP_MEM_ERRORS).unwrap_or(0);
    let own = evidence.base.dropped("receive-buffer").saturating_sub(memory);
    let (dropped, share, first) = at_stage(evidence, "receive-buffer", Some(own))?;
    if let Some(why) = full_core(evidence, role) {
        return Err(contradicts(format!("{why}: it reads more slowly than datagrams arrive, with any buffer")));
    }
    let key = if evidence.base.accounting.ipv6 { keys::SNMP6_UDP6_RCVBUF_ERRORS } else { keys::SNMP_UDP_RCVBUF_ERRORS };
    let full = evidence.base.buffer_full.filter(|share| *share >= 0.05);
    let witnesses = [
        Some(first),
        evidence
            .base
            .accounting
            .socket_drops
            .and_then(|_| says_the_same(evidence, dropped, evidence.grew(role, key), "RcvbufErrors of the host's UDP")),
        says_the_same(evidence, dropped, evidence.reason(role, "SOCKET_RCVBUFF"), "the reason SOCKET_RCVBUFF"),
        full.map(|share| counter(format!("{} of the samples found the receive buffer full", units::percent(share)))),
        evidence.base.rcvbuf_bytes.zip(evidence.base.rcvbuf_requested_bytes).filter(|(got, wanted)| got < wanted).map(
            |(got, wanted)| {
                let (got, wanted) = (units::bytes(got), units::bytes(wanted));
                witness("parameter", format!("a receive buffer of {wanted} was requested, {got} was obtained"))
            },
        ),
    ];
    supports(share, witnesses)
}

/// Kernel memory of a datagram in the buffer: its payload and headers in a block of a power of two, and `struct sk_buff`.
fn datagram_bytes(evidence: &UdpEvidence) -> f64 {
    ((evidence.base.size_bytes + 512).next_power_of_two() + 256) as f64
}

/// A reader that waits for a core or another thread is away for some slices of a few milliseconds.
const PAUSE_S: f64 = 0.02;

/// Kernel memory that the longest run of losses needs.
fn least_bytes(evidence: &UdpEvidence) -> f64 {
    let base = &evidence.base;
    let obtained = base.rcvbuf_bytes.unwrap_or(0) as f64;
    let burst = obtained + 1.25 * base.loss_burst_max as f64 * datagram_bytes(evidence);
    burst.max(2.0 * obtained).max(base.rcvbuf_requested_bytes.unwrap_or(0) as f64)
}

/// Kernel memory that a pause of the reader needs at the measured rate.
fn pause_bytes(evidence: &UdpEvidence) -> f64 {
    evidence.base.offered_pps() * PAUSE_S * datagram_bytes(evidence)
}

/// What to ask for: half of the kernel memory that is obtained. An application that asked for little is first to ask for as
/// much as its host allows, where that holds what was lost at a time: nothing of the host needs to change for it.
fn ask_bytes(evidence: &UdpEvidence, allowed: Option<f64>) -> u64 {
    let least = least_bytes(evidence);
    let ask = rounded(least.max(pause_bytes(evidence)) / 2.0, 1 << 30);
    match allowed {
        Some(max) if evidence.base.plan.receive_buffer_bytes.is_some() && max >= least / 2.0 => ask.min(max as u64),
        _ => ask,
    }
}

fn fix(evidence: &UdpEvidence, role: Role) -> Fix {
    let max = evidence.number(role, keys::CORE_RMEM_MAX);
    let ask = ask_bytes(evidence, max);
    let allowed = max.is_some_and(|max| max >= ask as f64);
    let plan = &evidence.base.plan;
    let fixed = plan.receive_buffer_bytes;
    let load = fixed.map(|_| UdpPlan { receive_buffer_bytes: u32::try_from(ask).ok(), ..plan.clone() }.into());
    let larger = format!("give the receiving socket a buffer of {} (SO_RCVBUF)", units::bytes(ask));
    if allowed {
        let why = fixed.map_or_else(String::new, |asked| format!("; it asked for {}", units::bytes(asked.into())));
        return Fix { advice: format!("{larger}: net.core.rmem_max allows it{why}"), load, ..Fix::default() };
    }
    let advice = format!("{larger}, and raise net.core.rmem_max, which limits it");
    Fix { load, ..sysctl_fix(evidence, role, advice, "net.core.rmem_max", ask.to_string()) }
}

#[cfg(test)]
mod tests {
    use crate::testing::udp::*;
    use super::*;

    /// Seed 004: 128 KiB lose 44 % where 512 KiB lose nothing.
    fn truth() -> UdpScene {
        UdpScene {
            offered: 100_000,
            died: Died { buffer: 44_000, ..Died::default() },
            rcvbuf: 262_144,
            rcvbuf_requested: 1_048_576,
            loss_burst_max: 180,
            ..UdpScene::default()
        }
    }

    fn of(scene: &UdpScene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene)
    }

    #[test]
    fn a_small_buffer_is_named_with_the_command_that_mends_it() {
        let finding = named(&truth(), "udp-receive-buffer", Place::Server);
        assert_eq!(finding.fix.commands[0].run, "sysctl -w net.core.rmem_max=524288");
        assert_eq!(finding.fix.commands[0].at, Place::Server);
        assert_eq!(finding.fix.settings.len(), 1);
        rejects(&finding, "udp-memory", "nothing was dropped");
        rejects(&finding, "softnet-backlog", "nothing was dropped");
        rejects(&finding, "random-loss", "nothing was dropped");
        let prediction = finding.prediction.expect("a prediction");
        assert!((prediction.bps / (100_000.0 * 1472.0) - 1.0).abs() < 1e-6, "all that was offered: {prediction:?}");
    }

    #[test]
    fn a_buffer_that_the_application_fixed_is_its_own_to_mend() {
        let mut scene = UdpScene { asked_rcvbuf: Some(131_072), rcvbuf_requested: 262_144, ..truth() };
        scene.receiver_facts = crate::testing::with(
            scene.receiver_facts,
            crate::testing::fact("core.rmem.max", 4_194_304_i64, Unit::Bytes),
        );
        let finding = named(&scene, "udp-receive-buffer", Place::Server);
        assert!(finding.fix.commands.is_empty(), "{:?}", finding.fix);
        let load = finding.fix.load.expect("another load");
        let asked = load.get::<UdpPlan>().expect("UDP").receive_buffer_bytes;
        assert!(asked >= Some(262_144), "{load:?}");
    }

    #[test]
    fn an_application_asks_for_what_its_host_allows_before_the_host_is_changed() {
        // At this rate a pause of the reader would need 80 MiB.
        let allows = |bytes: i64| crate::testing::fact("core.rmem.max", bytes, Unit::Bytes);
        let mut scene = UdpScene { asked_rcvbuf: Some(131_072), rcvbuf_requested: 262_144, offered: 5_000_000, ..truth() };
        let facts = scene.receiver_facts.clone();
        scene.receiver_facts = crate::testing::with(facts.clone(), allows(4_194_304));
        let fix = named(&scene, "udp-receive-buffer", Place::Server).fix;
        assert!(fix.commands.is_empty(), "{fix:?}");
        assert_eq!(fix.load.expect("another load").get::<UdpPlan>().expect("UDP").receive_buffer_bytes, Some(4_194_304));
        // What is allowed would not hold what was lost at a time.
        scene.receiver_facts = crate::testing::with(facts, allows(212_992));
        assert_eq!(named(&scene, "udp-receive-buffer", Place::Server).fix.commands.len(), 1);
    }

    #[test]
    fn a_reader_without_time_is_not_helped_by_a_buffer() {
        assert_contradicts(&of(&UdpScene { receiver_thread: 0.97, ..truth() }), "it reads more slowly than datagrams arrive, with any buffer");
        assert_supports(&of(&UdpScene { receiver_thread: 0.9, ..truth() }));
    }

    #[test]
    fn what_is_lost_elsewhere_is_not_the_buffers() {
        assert_contradicts(&of(&UdpScene::default()), "nothing was lost");
        let died = Died { path: 44_000, ..Died::default() };
        assert_contradicts(&of(&UdpScene { died, ..truth() }), "nothing was dropped");
        let died = Died { path: 44_000, buffer: 4_000, ..Died::default() };
        assert_contradicts(&of(&UdpScene { died, ..truth() }), "only 4000 of 48000");
        let died = Died { memory: 44_000, ..Died::default() };
        assert_contradicts(&of(&UdpScene { died, ..truth() }), "nothing was dropped");
    }

    #[test]
    fn one_witness_is_a_suspicion_and_none_is_nothing() {
        let scene = UdpScene { socket_tells: false, watched: false, rcvbuf_requested: 0, ..truth() };
        suspected(&scene, "udp-receive-buffer");
        let scene = UdpScene { hidden: &["snmp", "drop."], socket_tells: false, ..truth() };
        assert_cannot_tell(&of(&scene), "neither the sockets nor the host report drops");
    }
}
