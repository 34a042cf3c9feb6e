//! # wifi-rate
//!
//! The wireless link of an end runs at a low bit rate, since its signal is weak.
//!
//! **Shows**: the goodput is the part of the bit rate that TCP gets of a wireless link, data waits in front of it, and the signal is weak. The
//! air is nearly full, or segments wait for the sender's own device.
//!
//! **Mistaken for**: the capacity of the path (so it is, but a nearer access point gives more), a shaper, random loss, a slower link behind the
//! wireless one. A link with a good signal that is full is no fault.
//!
//! **Fix**: nearer to the access point, another channel or band, a cable.
//!
//! Source: IEEE 802.11, *rate adaptation* is the driver's: NL80211_STA_INFO_TX_BITRATE; the part that TCP gets: two thirds at best, with
//! frame aggregation, less without. Calibrated on no host.

use crate::causes::shared::bound::end_bound;
use crate::causes::shared::rule::*;
use crate::judge::ceilings::sits_at;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "wifi-rate",
    about: "the wireless link of an end runs at a low bit rate",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[keys::NIC_WIFI_TX_RATE, keys::NIC_WIFI_RX_RATE, keys::NIC_WIFI_SIGNAL, keys::QDISC_ROOT_KIND],
    ceiling,
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["wifi-retries", "path-capacity", "path-shaper", "random-loss", "tcp-receive-window"],
    fix: |_, _| advice("bring the host nearer to its access point or to another one, use another channel or band, or a cable"),
    rank: 6,
    explains_link: true,
    device: true,
    ..Cause::COMMON
};

/// What TCP gets of a wireless link's bit rate.
pub(super) const PART: [f64; 2] = [0.3, 0.85];

/// A signal that is weaker makes drivers lower their rate.
const WEAK_DBM: f64 = -70.0;

/// The bit rate of an end's wireless link in the direction of the data; `None` where it has none.
pub(super) fn bit_rate(evidence: &TcpEvidence, role: Role) -> Option<f64> {
    let key = if role == Role::Sender { keys::NIC_WIFI_TX_RATE } else { keys::NIC_WIFI_RX_RATE };
    evidence.number(role, key).filter(|bps| *bps > 0.0)
}

fn ceiling(evidence: &TcpEvidence, role: Role) -> Option<Ceiling> {
    let rate = bit_rate(evidence, role)?;
    let how = format!("what TCP gets of a wireless link of {}", units::bps(rate));
    let likely = 0.6 * rate;
    ceiling_at(CAUSE.id, evidence, role, likely, PART.map(|part| part / 0.6), Method::Computed, how)
}

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let who = who(evidence, role);
    let rate = found(bit_rate(evidence, role), format!("no wireless link of {who} is known"))?;
    if ceiling(evidence, role).is_none_or(|ceiling| !sits_at(&ceiling, evidence.goodput_bps())) {
        return Err(contradicts(format!("the goodput is not what TCP gets of a wireless link of {}", units::bps(rate))));
    }
    let Some(signal) = evidence.number(role, keys::NIC_WIFI_SIGNAL) else {
        return Err(cannot_tell(format!("the signal of the wireless link of {who} could not be read")));
    };
    if signal > WEAK_DBM {
        return Err(contradicts(format!("the signal of the wireless link of {who} is good: {signal:.0} dBm")));
    }
    waits(evidence)?;
    let part = evidence.goodput_bps() / rate;
    let waits = if part >= FULL_AIR {
        counter(format!("TCP gets {} of that bit rate: the air is nearly full, and data waits", units::percent(part)))
    } else {
        waits_at_the_device(evidence, role)?
    };
    let weak = parameter(format!("the wireless link of {who} runs at {} with a signal of {signal:.0} dBm", units::bps(rate)));
    supports(0.9, [weak, waits])
}

/// TCP that gets so much of a bit rate takes most of the air ([`PART`]): what is slower behind it can be no more than a little slower.
const FULL_AIR: f64 = 0.5;

/// Segments wait for a device so much of the time where it is the slowest part of the way.
const WAIT_THERE: f64 = 0.3;

/// That data waits for the wireless device itself, and not for what is slower behind it.
/// Errors: the assessment where it does not, or where that cannot be seen: what waits for a receiver's access point waits as well anywhere
/// before it.
pub(super) fn waits_at_the_device(evidence: &TcpEvidence, role: Role) -> Result<Witness, Assessment> {
    if role == Role::Receiver {
        return Err(cannot_tell("whether data waits for the access point of the receiver or for a slower link before it cannot be seen"));
    }
    let base = &evidence.base;
    if base.is_bbr() || base.max_pacing_bps.is_some() || evidence.text(role, keys::QDISC_ROOT_KIND) == Some("fq") {
        return Err(cannot_tell("the connection is paced, so that segments wait for their time, whatever the device does"));
    }
    let part = known(base.held_below_share, "what waits for the sender's device could not be read")?;
    if part < WAIT_THERE {
        let part = units::percent(part);
        return Err(contradicts(format!("segments waited for the sender's device only {part} of the time: what is slow lies behind it")));
    }
    Ok(counter(format!("segments waited for the sender's own device {} of the time, with room in all windows", units::percent(part))))
}

/// That something waits in front of a wireless link, so that it can be what limits.
/// Errors: the assessment where it does not, or that is not known.
pub(super) fn waits(evidence: &TcpEvidence) -> Result<(), Assessment> {
    refuted(end_bound(evidence))?;
    if evidence.path_has_room() {
        return Err(contradicts("the path carries more than the goodput"));
    }
    if !known(evidence.queue_seen(), "the RTT could not be read")? {
        return Err(contradicts("no queue was seen: nothing waits for the link"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use crate::testing::profile::ProfiledPath;
    use super::*;

    fn wireless(mbps: i64, dbm: i64) -> Vec<Fact> {
        let facts = with(ordinary_host(), fact("nic.kind", "physical", Unit::Text));
        let facts = with(without(facts, "nic.speed"), fact("nic.wifi.rx_rate", mbps * 1_000_000, Unit::BitsPerSecond));
        with(facts, fact("nic.wifi.signal", dbm, Unit::Number))
    }

    /// 26 Mbit/s of air, of which 14 are TCP's.
    fn truth() -> Scene {
        let path = ProfiledPath { rate_bps: 15.5e6, burst_bps: 15.5e6, ..ProfiledPath::default() };
        let scene = Scene { goodput_bps: 14e6, rtt_us: 60_000, cwnd: 70, early_peak_bps: 15e6, profile: Some(path), ..Scene::default() };
        Scene { receiver_facts: wireless(26, -78), ..virtual_hosts(scene) }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Receiver, scene, &[])
    }

    #[test]
    fn a_weak_signal_whose_rate_is_the_limit_is_named() {
        named(&truth(), &[], "wifi-rate", Place::Server);
    }

    #[test]
    fn a_good_signal_a_faster_rate_and_a_cable_are_not_it() {
        assert_contradicts(&of(&Scene { receiver_facts: wireless(26, -52), ..truth() }), "is good: -52 dBm");
        assert_contradicts(&of(&Scene { receiver_facts: wireless(866, -78), ..truth() }), "866 Mbit/s");
        assert_contradicts(&of(&Scene { receiver_facts: ordinary_host(), ..truth() }), "no wireless link");
        assert_contradicts(&of(&Scene { profile: Some(ProfiledPath::default()), ..truth() }), "carries more");
        assert_contradicts(&of(&Scene { rwnd: 0.9, rcvbuf_filled: 0.9, ..truth() }), "unread data");
        assert_contradicts(&of(&Scene { rtt_us: 35_000, ..truth() }), "no queue");
        assert_cannot_tell(&of(&Scene { receiver_facts: without(wireless(26, -78), "nic.wifi.signal"), ..truth() }), "could not be read");
        // 14 of 40 Mbit/s: an uplink of 15.5 Mbit/s behind it looks the same.
        assert_cannot_tell(&of(&Scene { receiver_facts: wireless(40, -78), ..truth() }), "access point");
    }
}
