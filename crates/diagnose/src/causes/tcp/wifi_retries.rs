//! # wifi-retries
//!
//! The sender's wireless link retransmits many of its frames: the channel is busy or disturbed.
//!
//! **Shows**: the retries of the station grow by a good part of its packets, and the goodput is far below what TCP gets of the bit rate,
//! while data waits.
//!
//! **Mistaken for**: a low bit rate, the capacity of the path.
//!
//! **Fix**: another channel or band; fewer stations on it; a cable.
//!
//! Source: IEEE 802.11, retries of unacknowledged frames: NL80211_STA_INFO_TX_RETRIES. Calibrated on no host.

use crate::causes::shared::rule::*;
use super::wifi_rate::{PART, bit_rate, waits, waits_at_the_device};

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "wifi-retries",
    about: "the sender's wireless link retransmits many of its packets",
    roles: &[Role::Sender],
    needs: &[
        keys::NIC_WIFI_TX_PACKETS,
        keys::NIC_WIFI_TX_RETRIES,
        keys::NIC_WIFI_TX_FAILED,
        keys::NIC_WIFI_TX_RATE,
        keys::NIC_WIFI_RX_RATE,
        keys::QDISC_ROOT_KIND,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["wifi-rate", "path-capacity", "random-loss", "path-shaper"],
    fix: |_, _| advice("use another channel or band, keep other stations and interference off it, or use a cable"),
    rank: 7,
    explains_link: true,
    device: true,
    ..Cause::COMMON
};

/// Retries of each packet that take a good part of the air.
const RETRIES: f64 = 0.5;

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let rate = found(bit_rate(evidence, role), "no wireless link of the sender is known")?;
    let grew = |key| evidence.grew(role, key);
    let (Some(packets), Some(retries)) = (grew(keys::NIC_WIFI_TX_PACKETS), grew(keys::NIC_WIFI_TX_RETRIES)) else {
        return Err(cannot_tell("the retries of the sender's wireless link could not be read"));
    };
    let part = retries as f64 / packets.max(1) as f64;
    if packets < 100 || part < RETRIES {
        return Err(contradicts(format!("the sender's wireless link sent {packets} packets with {retries} retries")));
    }
    if evidence.goodput_bps() >= PART[0] * rate {
        return Err(contradicts(format!("the goodput is what TCP gets of a wireless link of {}", units::bps(rate))));
    }
    waits(evidence)?;
    let there = waits_at_the_device(evidence, role)?;
    let failed = grew(keys::NIC_WIFI_TX_FAILED).map_or_else(String::new, |n| format!(", and {n} packets were given up"));
    let again = counter(format!("the wireless link sent {packets} packets with {retries} retries{failed}"));
    let below = parameter(format!(
        "the goodput is {} of its bit rate of {}",
        units::percent(evidence.goodput_bps() / rate),
        units::bps(rate)
    ));
    supports(0.9, [again, below, there])
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use super::*;

    /// 14 Mbit/s of a bit rate of 144, with a retry for each packet.
    fn truth(retries: i64) -> Scene {
        let path = ProfiledPath { rate_bps: 15.5e6, burst_bps: 15.5e6, ..ProfiledPath::default() };
        let scene = Scene { goodput_bps: 14e6, rtt_us: 60_000, cwnd: 70, in_flight: Some(20), unsent: 200_000, early_peak_bps: 15e6, profile: Some(path), ..Scene::default() };
        let facts = without(ordinary_host(), "nic.speed");
        Scene {
            sender_facts: with(facts, fact("nic.wifi.tx_rate", 144_000_000_i64, Unit::BitsPerSecond)),
            sender_counts: vec![("nic.wifi.tx_packets", 9_700), ("nic.wifi.tx_retries", retries), ("nic.wifi.tx_failed", 3)],
            ..virtual_hosts(scene)
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, &[])
    }

    #[test]
    fn a_link_that_sends_everything_twice_is_named() {
        named(&truth(11_000), &[], "wifi-retries", Place::Client);
    }

    #[test]
    fn ordinary_retries_and_a_full_link_are_not_it() {
        assert_contradicts(&of(&truth(900)), "900 retries");
        assert_contradicts(&of(&Scene { goodput_bps: 80e6, ..truth(11_000) }), "what TCP gets");
        assert_contradicts(&of(&Scene { profile: Some(ProfiledPath::default()), ..truth(11_000) }), "carries more");
        assert_contradicts(&of(&Scene { sender_facts: ordinary_host(), ..truth(11_000) }), "no wireless link");
        assert_cannot_tell(&of(&Scene { sender_counts: Vec::new(), ..truth(11_000) }), "could not be read");
    }
}
