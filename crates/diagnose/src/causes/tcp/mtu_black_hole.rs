//! # mtu-black-hole
//!
//! A link of the path has a smaller MTU than the hosts assume, and its ICMP error does not arrive: full-size packets
//! are lost, small ones pass.
//!
//! **Shows**: connections are established, but no full segment is acknowledged; full-size probes are not answered,
//! small ones are.
//!
//! **Mistaken for**: a broken path, a packet filter, total loss.
//!
//! At the sender, where a tunnel or bridge of its own has packets that do not fit the device below; else on the path.
//!
//! **Fix**: a smaller MTU of that tunnel or bridge; else allow ICMP "too big", or set the right MTU; until then `tcp_mtu_probing` on the
//! sender, or MSS clamping. With the value 2 a connection begins with segments of `tcp_base_mss` (1024 bytes) and probes for larger
//! ones; with 1 it does so only after it stalled for several retransmission timeouts, more than six seconds.
//!
//! Source: RFC 2923 section 2.1; RFC 4821; `tcp_mtu_probing`, `tcp_base_mss` and `tcp_retries1` in
//! `Documentation/networking/ip-sysctl.rst`.

use crate::causes::shared::layers::misfit;
use crate::causes::shared::rule::*;
use crate::experiments::tcp::SMALL_SEGMENTS;
use crate::layers::TooLarge;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "mtu-black-hole",
    about: "full-size packets are lost on the path without an ICMP error",
    roles: &[Role::Sender, Role::Path],
    needs: &[keys::LAYER_NAME, keys::LAYER_KIND, keys::LAYER_MTU, keys::LAYER_OVERHEAD],
    assess,
    look_alikes: &["random-loss", "filter-drop", "mtu-mismatch"],
    fix,
    rank: 9,
    ..Cause::COMMON
};

/// Options of the headers make packets of the same MTU differ by so many bytes.
const SLACK: f64 = 16.0;
/// So many segments may arrive before the MTU of the path falls.
const FEW: f64 = 4.0;

/// The device of the sender that full segments do not fit, below the one that takes them.
fn too_large_below(evidence: &TcpEvidence) -> Option<TooLarge> {
    let segment_bytes = evidence.base.mss_bytes? + f64::from(evidence.segment_header_bytes());
    misfit(evidence, Role::Sender).filter(|found| segment_bytes > f64::from(found.fits))
}

fn assess(evidence: &TcpEvidence, role: Role) -> Assessment {
    match (too_large_below(evidence), role) {
        (None, Role::Sender) => return contradicts("full segments fit each device of the sender that is known"),
        (Some(found), Role::Path) => return contradicts(format!("it begins in the sender: {}", found.says)),
        _ => {}
    }
    let base = &evidence.base;
    let (Some(loss), Some(mss)) = (base.loss_whole, base.mss_bytes) else {
        return cannot_tell("the sender's retransmissions could not be read");
    };
    let bits = narrows_stats::mean(&base.interval_bps).unwrap_or(0.0) * base.whole_s;
    if bits / 8.0 > FEW * mss * base.streams as f64 {
        return contradicts("full-size segments arrived");
    }
    if loss.retransmitted < 3 {
        return contradicts(format!("only {} segments were retransmitted", loss.retransmitted));
    }
    let stuck = counter(format!(
        "the connection was established, but none of {} segments of up to {mss:.0} bytes was acknowledged; {} were \
        retransmissions",
        loss.sent, loss.retransmitted
    ));
    let probes = evidence.probes.filter(|probes| probes.small >= 8);
    let small = evidence.made(&SMALL_SEGMENTS);
    match (probes, small) {
        (Some(probes), _) => {
            let segment_bytes = mss + f64::from(evidence.segment_header_bytes());
            let fits = f64::from(probes.packet_bytes) + SLACK >= segment_bytes;
            if fits && probes.full > 0 {
                return contradicts(format!("{} probes of full size were answered", probes.full));
            }
            let says = if fits {
                format!("{} small probes of the idle path were answered, but no full-size probe", probes.small)
            } else {
                format!(
                    "UDP packets of up to {} bytes arrive; TCP packets have {segment_bytes:.0}",
                    probes.packet_bytes
                )
            };
            Assessment::Supports { share: 1.0, witnesses: vec![stuck, experiment(says)] }
        }
        (None, Some(small)) if small.goodput_bps > 100.0 * evidence.goodput_bps().max(1.0) => {
            let says = format!("small segments delivered {}", units::bps(small.goodput_bps));
            Assessment::Supports { share: 1.0, witnesses: vec![stuck, experiment(says)] }
        }
        (None, Some(_)) => contradicts("small segments did not arrive either"),
        (None, None) => ask(&SMALL_SEGMENTS, "no full segment arrived; small ones were not measured"),
    }
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    if let Some(found) = too_large_below(evidence).filter(|_| role == Role::Sender) {
        let advice = format!("give {} an MTU of {}, on both ends of a tunnel: {}", found.device, found.fits, found.says);
        return setting_fix(evidence, role, advice, Setting::Mtu { device: found.device, mtu: found.fits });
    }
    let advice = "allow the ICMP messages of the hop with the smaller MTU (type 3 code 4, or packet-too-big), or set \
        its MTU on the hosts; until then use TCP MTU probing from the first segment (2; with 1 each connection first stalls for several \
        seconds)";
    // Under 1 a trial of a few seconds is over before probing begins (net/ipv4/tcp_timer.c, `tcp_write_timeout`).
    sysctl_fix(evidence, Role::Sender, advice, "net.ipv4.tcp_mtu_probing", "2")
}

#[cfg(test)]
mod tests {
    use crate::evidence::profile::Probes;
    use crate::layers::tests::stack;
    use crate::testing::*;
    use super::*;

    fn truth() -> Scene {
        Scene { goodput_bps: 0.0, lost: 6, segments: 16, ..Scene::default() }
    }

    fn small(goodput_bps: f64) -> Scene {
        Scene { goodput_bps, ..Scene::default() }
    }

    #[test]
    fn small_segments_that_arrive_where_full_ones_do_not_name_it() {
        let finding = named(&truth(), &[(SMALL_SEGMENTS.id, &small(200e6))], "mtu-black-hole", Place::Path);
        // 1 begins to probe after more than six seconds: a trial with the fix lasts four.
        assert_eq!(finding.fix.commands[0].run, "sysctl -w net.ipv4.tcp_mtu_probing=2");
        assert_asks(&assessment(&CAUSE, Role::Path, &truth(), &[]), &SMALL_SEGMENTS);
        let neither = assessment(&CAUSE, Role::Path, &truth(), &[(SMALL_SEGMENTS.id, &small(0.0))]);
        assert_contradicts(&neither, "did not arrive either");
        assert_contradicts(&assessment(&CAUSE, Role::Path, &Scene::default(), &[]), "segments arrived");
    }

    #[test]
    fn a_bridge_of_the_sender_with_a_smaller_port_is_named_with_the_mtu_that_fits() {
        let layers = stack(&[("br0", "bridge", 1500, 0), ("v1", "veth", 1400, 0)]);
        let scene = Scene { sender_facts: ordinary_host().into_iter().chain(layers).collect(), ..truth() };
        let finding = named(&scene, &[(SMALL_SEGMENTS.id, &small(200e6))], "mtu-black-hole", Place::Client);
        assert_eq!(finding.fix.commands[0].run, "ip link set dev br0 mtu 1400");
        assert_contradicts(&assessment(&CAUSE, Role::Path, &scene, &[]), "begins in the sender: br0 (bridge)");
        assert_contradicts(&assessment(&CAUSE, Role::Sender, &truth(), &[]), "full segments fit each device");
    }

    #[test]
    fn probes_of_both_sizes_tell_it_without_another_load() {
        let with = |probes| {
            let mut evidence = TcpEvidence::of(&truth().run(&[]), 0).expect("a baseline");
            evidence.probes = Some(probes);
            assess(&evidence, Role::Path)
        };
        assert_supports(&with(Probes { small: 30, full: 0, packet_bytes: 1_500 }));
        // The datagrams were made to fit the path.
        assert_supports(&with(Probes { small: 30, full: 29, packet_bytes: 1_300 }));
        assert_contradicts(&with(Probes { small: 30, full: 29, packet_bytes: 1_500 }), "29 probes of full size");
    }
}
