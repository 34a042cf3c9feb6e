//! Queueing disciplines and classes: `RTM_GETQDISC`, `RTM_GETTCLASS`.
//! Source: kernel `include/uapi/linux/pkt_sched.h`, `net/sched/sch_*.c`.

mod options;

use super::{Sockets, links};
use crate::Missing;
use narrows_sys::netlink::numbers::{RTM_GETQDISC, RTM_GETTCLASS, TCA_KIND, TCA_OPTIONS, TCA_STATS2};
use narrows_sys::netlink::{self, Attribute, Family, Message, attributes, find, u32_at};
use serde::{Deserialize, Serialize};

/// The qdisc tree of an interface.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Qdiscs {
    pub qdiscs: Vec<Qdisc>,
    /// The classes of classful disciplines.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub classes: Vec<Class>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Qdisc {
    /// `fq_codel`, `tbf`, `htb`, `mq`, `noqueue`, …
    pub kind: String,
    /// `8001:`
    pub handle: String,
    /// `root`, `ingress`, or its parent class: `1:10`.
    pub parent: String,
    /// Its rate limit in bits per second: of all traffic, or of one flow for `fq`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// Its limit in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_packets: Option<u32>,
    /// Its limit in packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_bytes: Option<u32>,
    /// The default class (`htb`): `1:10`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_class: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_packets: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drops: Option<u64>,
    /// Times that the rate limit delayed a packet; `fq` counts those of its flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlimits: Option<u64>,
    /// Packets that the NIC did not accept at first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeues: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog_bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backlog_packets: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Class {
    /// `htb`, …
    pub kind: String,
    /// `1:10`
    pub handle: String,
    /// `root` or another class.
    pub parent: String,
    /// The maximum rate, in bits per second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceil_bps: Option<u64>,
    /// What it and the classes below it sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent_bytes: Option<u64>,
}

const HEADER: usize = 20;
const STATS_BASIC: u16 = 1;
const STATS_QUEUE: u16 = 3;
const STATS_APP: u16 = 4;
const STATS_PKT64: u16 = 8;
const TC_H_ROOT: u32 = 0xffff_ffff;
const TC_H_INGRESS: u32 = 0xffff_fff1;

pub(crate) fn of(sockets: &Sockets, device: &str) -> Result<Qdiscs, Missing> {
    let index = links::by_name(sockets, device)?.index;
    let mut header = [0; HEADER];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    let what = format!("the queueing disciplines of {device} (RTM_GETQDISC)");
    let replies = sockets.request(Family::Route, &what, RTM_GETQDISC, netlink::DUMP, &header)?;
    let of_device = |message: &&Message| u32_at(&message.payload, 4) == Some(index);
    let qdiscs: Vec<Qdisc> = replies.iter().filter(of_device).filter_map(decode_qdisc).collect();
    let mut classes = Vec::new();
    if qdiscs.iter().any(|qdisc| qdisc.kind == "htb") {
        let what = format!("the classes of {device} (RTM_GETTCLASS)");
        let replies = sockets.request(Family::Route, &what, RTM_GETTCLASS, netlink::DUMP, &header)?;
        classes = replies.iter().filter(of_device).filter_map(decode_class).collect();
    }
    Ok(Qdiscs { qdiscs, classes })
}

fn handle(number: u32) -> String {
    let (major, minor) = (number >> 16, number & 0xffff);
    match number {
        TC_H_ROOT => "root".to_owned(),
        TC_H_INGRESS => "ingress".to_owned(),
        _ if minor == 0 => format!("{major:x}:"),
        _ => format!("{major:x}:{minor:x}"),
    }
}

pub(super) fn decode_qdisc(message: &Message) -> Option<Qdisc> {
    let payload = message.payload.as_slice();
    let number = u32_at(payload, 8)?;
    let body = payload.get(HEADER..)?;
    let mut qdisc = Qdisc {
        kind: find(body, TCA_KIND)?.text()?,
        handle: handle(number),
        parent: handle(u32_at(payload, 12)?),
        ..Qdisc::default()
    };
    for attribute in attributes(body) {
        match attribute.kind {
            TCA_OPTIONS => options::qdisc(&mut qdisc, number, &attribute),
            TCA_STATS2 => statistics(&mut qdisc, &attribute),
            _ => {}
        }
    }
    Some(qdisc)
}

fn statistics(qdisc: &mut Qdisc, attribute: &Attribute<'_>) {
    for part in attribute.nested() {
        let number = |offset| u32_at(part.payload, offset).map(u64::from);
        match part.kind {
            STATS_BASIC => {
                qdisc.sent_bytes = part.u64();
                qdisc.sent_packets = qdisc.sent_packets.or(number(8));
            }
            // Follows if 32 bits of the basic statistics are not enough.
            STATS_PKT64 => qdisc.sent_packets = part.u64(),
            STATS_QUEUE => {
                qdisc.backlog_packets = number(0);
                qdisc.backlog_bytes = number(4);
                qdisc.drops = number(8);
                qdisc.requeues = number(12);
                qdisc.overlimits = number(16).filter(|_| qdisc.kind != "fq").or(qdisc.overlimits);
            }
            // struct tc_fq_qd_stats { gc_flows, highprio_packets, tcp_retrans, throttled, … }, 64 bits each
            STATS_APP if qdisc.kind == "fq" => {
                qdisc.overlimits =
                    part.payload.get(24..32).and_then(|word| Some(u64::from_ne_bytes(word.try_into().ok()?)));
            }
            _ => {}
        }
    }
}

pub(super) fn decode_class(message: &Message) -> Option<Class> {
    let payload = message.payload.as_slice();
    let body = payload.get(HEADER..)?;
    let kind = find(body, TCA_KIND)?.text()?;
    let ceil_bps = find(body, TCA_OPTIONS).and_then(|options| options::class_ceil(&kind, &options));
    let basic = find(body, TCA_STATS2).and_then(|statistics| statistics.find(STATS_BASIC));
    let sent_bytes = basic.and_then(|basic| basic.u64());
    let [handle, parent] = [handle(u32_at(payload, 8)?), handle(u32_at(payload, 12)?)];
    Some(Class { kind, handle, parent, ceil_bps, sent_bytes })
}

impl Qdiscs {
    pub fn root(&self) -> Option<&Qdisc> {
        self.qdiscs.iter().find(|qdisc| qdisc.parent == "root")
    }

    /// All disciplines on the egress path.
    pub fn egress(&self) -> impl Iterator<Item = &Qdisc> {
        self.qdiscs.iter().filter(|qdisc| qdisc.parent != "ingress")
    }

    /// The leaves of the egress path: where packets wait.
    pub fn leaves(&self) -> impl Iterator<Item = &Qdisc> {
        self.egress().filter(|qdisc| {
            let is_parent = |other: &Qdisc| qdisc.handle.len() > 1 && other.parent.starts_with(&qdisc.handle);
            !self.qdiscs.iter().any(is_parent)
        })
    }

    /// The lowest configured rate, and the kind of discipline that has it.
    ///
    /// For `htb` the default class with its parents counts; without one every class does.
    pub fn lowest_rate(&self) -> Option<(u64, &str)> {
        let own = self.egress().filter_map(|qdisc| Some((qdisc.rate_bps?, qdisc.kind.as_str())));
        let classes = self.egress().filter(|qdisc| qdisc.kind == "htb").flat_map(|qdisc| {
            let chain = self.chain(qdisc.default_class.as_deref());
            let all = if chain.is_empty() { self.classes.iter().collect() } else { chain };
            all.into_iter().filter_map(|class| Some((class.ceil_bps?, class.kind.as_str())))
        });
        own.chain(classes).min_by_key(|(rate, _)| *rate)
    }

    /// A class and its parents.
    fn chain(&self, handle: Option<&str>) -> Vec<&Class> {
        let mut chain = Vec::new();
        let mut next = handle;
        // A class tree is at most 8 deep (TC_HTB_MAXDEPTH); the bound also ends a loop in a capture.
        while let Some(class) = next.and_then(|handle| self.classes.iter().find(|class| class.handle == handle))
            && chain.len() < 16
        {
            chain.push(class);
            next = Some(class.parent.as_str());
        }
        chain
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn qdisc(kind: &str, handle: &str, parent: &str) -> Qdisc {
        Qdisc { kind: kind.into(), handle: handle.into(), parent: parent.into(), ..Qdisc::default() }
    }

    fn class(handle: &str, parent: &str, ceil: u64) -> Class {
        Class {
            kind: "htb".into(),
            handle: handle.into(),
            parent: parent.into(),
            ceil_bps: Some(ceil),
            sent_bytes: None,
        }
    }

    #[test]
    fn the_default_class_and_its_parents_count_for_htb() {
        let mut tree = Qdiscs {
            qdiscs: vec![
                Qdisc { default_class: Some("1:20".into()), ..qdisc("htb", "1:", "root") },
                qdisc("fq_codel", "8001:", "1:20"),
                Qdisc { rate_bps: Some(1), ..qdisc("tbf", "ffff:", "ingress") },
            ],
            classes: vec![class("1:1", "root", 90), class("1:10", "1:1", 5), class("1:20", "1:1", 100)],
        };
        assert_eq!(tree.lowest_rate(), Some((90, "htb")));
        tree.qdiscs[0].default_class = None;
        assert_eq!(tree.lowest_rate(), Some((5, "htb")));
        assert_eq!(tree.leaves().map(|leaf| leaf.kind.as_str()).collect::<Vec<_>>(), ["fq_codel"]);
        assert_eq!(tree.root().map(|root| root.kind.as_str()), Some("htb"));
    }

    /// A reply with the statistics of a discipline or class: bytes sent, `overlimits` of its queue, and what it counts itself.
    fn reply(kind: &str, sent: u64, overlimits: u32, own: &[u64]) -> Message {
        let mut queue = vec![0; 20];
        queue[16..20].copy_from_slice(&overlimits.to_ne_bytes());
        let mut basic = sent.to_ne_bytes().to_vec();
        basic.extend([0; 8]);
        let mut body = narrows_sys::netlink::Builder::new();
        body.text(TCA_KIND, kind);
        body.nest(TCA_STATS2, |statistics| {
            let own: Vec<u8> = own.iter().flat_map(|word| word.to_ne_bytes()).collect();
            statistics.bytes(STATS_APP, &own).bytes(STATS_BASIC, &basic).bytes(STATS_QUEUE, &queue);
        });
        let mut payload = vec![0; HEADER];
        payload[8..12].copy_from_slice(&0x1_000a_u32.to_ne_bytes());
        payload.extend(body.finish().expect("short"));
        Message { kind: 36, payload }
    }

    #[test]
    fn what_a_class_sent_and_how_often_fq_held_a_flow_back_are_read() {
        let class = decode_class(&reply("htb", 5_000_000_000, 7, &[])).expect("a class");
        assert_eq!((class.handle.as_str(), class.sent_bytes), ("1:a", Some(5_000_000_000)));
        let overlimits = |kind: &str| decode_qdisc(&reply(kind, 1, 7, &[1, 2, 3, 900, 5])).and_then(|it| it.overlimits);
        assert_eq!((overlimits("fq"), overlimits("tbf")), (Some(900), Some(7)));
    }

    #[test]
    fn handles_read_as_tc_writes_them() {
        assert_eq!([handle(0x8001_0000), handle(0x1_000a), handle(TC_H_ROOT)], ["8001:", "1:a", "root"]);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let message = Message { kind: 36, payload };
            decode_qdisc(&message);
            decode_class(&message);
        }
    }
}
