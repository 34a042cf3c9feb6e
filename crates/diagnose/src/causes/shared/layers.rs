//! What causes say of virtual interfaces and those below them.

use crate::causes::shared::words::{ask, contradicts, counter, experiment, parameter};
use crate::evidence::tcp::TcpEvidence;
use crate::experiments::tcp::FITTING_SEGMENTS;
use crate::judge::{Assessment, Evidence};
use crate::layers::{TooLarge, layers, too_large};
use crate::role::Role;
use narrows_model::{FactKey, keys, words::units};

/// The interface whose queueing discipline the facts `qdisc.*` are about: not always that of the route.
pub(crate) fn qdisc_device(evidence: &impl Evidence, role: Role) -> &str {
    let device = evidence.text(role, keys::QDISC_DEVICE).or_else(|| evidence.text(role, keys::NIC_NAME));
    device.unwrap_or("DEVICE")
}

/// Hardware below a virtual interface with an offload that is off, and could be on: the interface, and the word of `ethtool -K`.
pub(crate) fn off_below<'a>(
    evidence: &'a impl Evidence,
    role: Role,
    words: &'a [&'static str],
) -> Vec<(String, &'static str)> {
    let Some(host) = evidence.host(role) else { return Vec::new() };
    let below = layers(host).into_iter().skip(1).filter(|layer| matches!(layer.kind, "physical" | "virtual"));
    below
        .flat_map(|layer| {
            let off = words.iter().filter(move |word| layer.off.iter().any(|off| off == *word));
            off.map(move |word| (layer.name.to_owned(), *word))
        })
        .collect()
}

/// By how much a counter of each interface below that of the route grew, from the top.
pub(crate) fn drops_below(evidence: &TcpEvidence, role: Role, family: FactKey) -> Vec<(String, u64)> {
    let (Some(host), Some(end)) = (evidence.host(role), evidence.end(role)) else { return Vec::new() };
    let below = layers(host).into_iter().enumerate().skip(1);
    below
        .filter_map(|(number, layer)| {
            Some((layer.name.to_owned(), *end.counts.get(&family.name.replace('*', &number.to_string()))?))
        })
        .collect()
}

/// An interface of the host whose packets do not fit one below it.
pub(crate) fn misfit(evidence: &impl Evidence, role: Role) -> Option<TooLarge> {
    too_large(evidence.host(role)?)
}

/// Segments that fit must carry so much more before fragments are what costs it: what one trial differs from the next by.
const GAIN: f64 = 1.15;

/// TCP makes segments that fit the path MTU, and never fragments (RFC 9293 section 3.7.1): fragments that a sender creates, one
/// segment in two at least, come of a tunnel below it. `None` where there are none.
pub(crate) fn fragmented(evidence: &TcpEvidence, role: Role) -> Option<Assessment> {
    let sent = evidence.base.loss_whole?.sent;
    let keys = [keys::SNMP_IP_FRAG_CREATES, keys::SNMP6_IP6_FRAG_CREATES];
    let created: u64 = keys.iter().filter_map(|key| evidence.grew(role, *key)).sum();
    // A fragmented segment becomes two fragments; the other host sends acknowledgements only.
    if role != Role::Sender || created < sent.max(100) {
        return None;
    }
    let Some(faster) = evidence.made(&FITTING_SEGMENTS) else {
        return Some(ask(
            &FITTING_SEGMENTS,
            "the sender fragments the packets of a tunnel; whether that costs goodput was not measured",
        ));
    };
    let (small, now) = (units::bps(faster.goodput_bps), units::bps(evidence.goodput_bps()));
    if faster.goodput_bps < GAIN * evidence.goodput_bps() {
        return Some(contradicts(format!(
            "segments that fit below the tunnel carried {small} instead of {now}: the fragments cost little"
        )));
    }
    let layers = misfit(evidence, role).map(|found| parameter(found.says));
    let witnesses = [
        counter(format!(
            "the sender created {created} fragments for {sent} segments (FragCreates): TCP itself makes none"
        )),
        experiment(format!("segments that need no fragments carried {small} instead of {now}")),
    ];
    Some(Assessment::Supports { share: 0.96, witnesses: witnesses.into_iter().chain(layers).collect() })
}
