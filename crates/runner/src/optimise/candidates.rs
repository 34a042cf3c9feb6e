//! What is tried: the fixes of a verdict, and safe settings that both hosts have.

use crate::conductor::At;
use narrows_model::host::buffers::{self, TcpBuffer};
use narrows_model::host::settings::{PARAMETERS, Parameter, Tried};
use narrows_model::{Direction, Finding, Place, Setting, Snapshot, Status, Verdict, keys};

/// Settings that are tried together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    /// The cause that they fix, or [`TUNABLE`].
    pub(super) origin: String,
    pub(super) settings: Vec<At>,
}

/// The origin of a setting that no diagnosis named.
pub(super) const TUNABLE: &str = "tunable";

/// The maximum of a TCP buffer that holds 1 Gbit/s over 130 ms, twice for the overhead.
const BUFFER_BYTES: u64 = 32 << 20;

/// The fixes of a verdict, the most likely cause first; and those that narrows cannot apply, in words.
pub(super) fn of_verdict(verdict: &Verdict) -> (Vec<Candidate>, Vec<String>) {
    let (can, cannot): (Vec<_>, Vec<_>) = verdict.causes.iter().partition(|it| !it.fix.settings.is_empty());
    let fixes = can.iter().map(|it| Candidate { origin: it.id.clone(), settings: it.fix.settings.clone() });
    // A healthy path has nothing to fix.
    let of_limit = |it: &&&Finding| !it.fix.advice.is_empty() && verdict.status != Status::Healthy;
    let words = cannot.iter().filter(of_limit).map(|it| format!("{}: {}", it.id, it.fix.advice));
    (fixes.collect(), words.collect())
}

/// Safe settings that differ from what the hosts have, those of most promise first. A host that may not be changed has none.
pub(super) fn tunables(hosts: [&Snapshot; 2], direction: Direction, may: impl Fn(Place) -> bool) -> Vec<Candidate> {
    let [client, server] = [(Place::Client, hosts[0]), (Place::Server, hosts[1])];
    let (sender, receiver) = if direction == Direction::Down { (server, client) } else { (client, server) };
    let mut found: Vec<Option<At>> = vec![
        at(receiver, buffer(receiver.1, &buffers::RECEIVE)),
        at(sender, buffer(sender.1, &buffers::SEND)),
        at(sender, bbr(sender.1)),
        at(sender, fq(sender.1)),
    ];
    for it in PARAMETERS {
        let Some((tried, value)) = it.tried else { continue };
        let ends: &[_] = match tried {
            Tried::Sender => &[sender],
            Tried::Receiver => &[receiver],
            Tried::Each => &[sender, receiver],
        };
        found.extend(ends.iter().map(|end| at(*end, number(end.1, it, value))));
    }
    for host in [sender, receiver] {
        for (key, feature) in [
            (keys::NIC_FEATURE_TSO.name, "tso"),
            (keys::NIC_FEATURE_GSO.name, "gso"),
            (keys::NIC_FEATURE_GRO.name, "gro"),
        ] {
            found.push(at(host, offload(host.1, key, feature)));
        }
    }
    let may = found.into_iter().flatten().filter(|(place, _)| may(*place));
    may.map(|it| Candidate { origin: TUNABLE.to_owned(), settings: vec![it] }).collect()
}

fn at(host: (Place, &Snapshot), setting: Option<Setting>) -> Option<At> {
    setting.map(|it| (host.0, it))
}

fn sysctl(name: &str, value: impl std::fmt::Display) -> Setting {
    Setting::Sysctl { key: name.to_owned(), value: format!("{value}") }
}

fn buffer(host: &Snapshot, of: &TcpBuffer) -> Option<Setting> {
    (of.max(host)? < BUFFER_BYTES as f64).then(|| of.setting(Some(host), BUFFER_BYTES))
}

fn bbr(host: &Snapshot) -> Option<Setting> {
    let available = host.get(keys::TCP_CONGESTION_CONTROL_AVAILABLE)?.value.to_string();
    let other = host.text(keys::TCP_CONGESTION_CONTROL)? != "bbr";
    (other && available.split_whitespace().any(|it| it == "bbr"))
        .then(|| sysctl("net.ipv4.tcp_congestion_control", "bbr"))
}

/// Where it is off and is wanted on, or the other way round.
fn number(host: &Snapshot, of: &Parameter, wanted: u8) -> Option<Setting> {
    let now = host.number(*of.holds.keys().first()?)?;
    ((now == 0.0) == (wanted != 0)).then(|| sysctl(of.sysctl, wanted))
}

fn offload(host: &Snapshot, key: &str, feature: &str) -> Option<Setting> {
    let device = host.text(keys::NIC_NAME)?.to_owned();
    (host.number(key)? == 0.0).then(|| Setting::Offload { device, feature: feature.to_owned(), on: true })
}

fn fq(host: &Snapshot) -> Option<Setting> {
    let simple = matches!(host.text(keys::QDISC_ROOT_KIND)?, "pfifo_fast" | "fq_codel" | "pfifo");
    let device = host.text(keys::NIC_NAME)?.to_owned();
    simple.then(|| Setting::RootQdisc { device, kind: "fq".to_owned() })
}
