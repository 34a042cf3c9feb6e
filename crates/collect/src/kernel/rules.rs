//! The packet filter: the number of its rules, and the counters of those that drop: `NFT_MSG_GETRULE`. Source: kernel
//! `include/uapi/linux/netfilter/nf_tables.h`, `net/netfilter/nft_counter.c`, `nft_immediate.c`, `nft_chain_nat.c`.

use super::Sockets;
use crate::Missing;
use narrows_sys::netlink::{self, Attribute, Family, Message, find};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// `NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE`
const GET_RULES: u16 = 10 << 8 | 7;
/// `struct nfgenmsg`: every family, version 0.
const EVERY_FAMILY: [u8; 4] = [0; 4];

/// `NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETCHAIN`
const GET_CHAINS: u16 = 10 << 8 | 4;

const NFTA_CHAIN_TABLE: u16 = 1;
const NFTA_CHAIN_HOOK: u16 = 4;
const NFTA_CHAIN_TYPE: u16 = 7;
const NFTA_RULE_TABLE: u16 = 1;
const NFTA_RULE_EXPRESSIONS: u16 = 4;
const NFTA_EXPR_NAME: u16 = 1;
const NFTA_EXPR_DATA: u16 = 2;
const NFTA_COUNTER_BYTES: u16 = 1;
const NFTA_COUNTER_PACKETS: u16 = 2;
const NFTA_IMMEDIATE_DATA: u16 = 2;
const NFTA_DATA_VERDICT: u16 = 2;
const NFTA_VERDICT_CODE: u16 = 1;
const NF_DROP: u32 = 0;

/// The counters of rules that drop or reject. A rule counts only if it has a `counter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FilterDrops {
    pub rules: u64,
    /// Of these, rules without a counter.
    pub uncounted: u64,
    /// Packets dropped by rules with a counter; a batch that the kernel handles as one (GRO, GSO) counts once.
    pub packets: u64,
    /// Their bytes, IP header included.
    pub bytes: u64,
}

fn rules(sockets: &Sockets) -> Result<Vec<Message>, Missing> {
    let what = "the rules of nf_tables (NFT_MSG_GETRULE)";
    sockets.request(Family::Netfilter, what, GET_RULES, netlink::DUMP, &EVERY_FAMILY)
}

/// A table: its family and its name.
type Table = (u8, String);

/// The rules of all tables of this network namespace that each packet may meet. Chains of the type `nat` see the first packet of a connection
/// alone, which is what most rules of a cluster's host are for.
pub(super) fn count(sockets: &Sockets) -> Result<u64, Missing> {
    let what = "the chains of nf_tables (NFT_MSG_GETCHAIN)";
    let chains = sockets.request(Family::Netfilter, what, GET_CHAINS, netlink::DUMP, &EVERY_FAMILY)?;
    Ok(met(&chains, &rules(sockets)?))
}

/// The number of rules in tables with a hook for each packet: what a chain jumps to is in its own table.
fn met(chains: &[Message], rules: &[Message]) -> u64 {
    let hooked: BTreeSet<Table> =
        chains.iter().filter(|chain| sees_each_packet(chain)).filter_map(|it| table(it, NFTA_CHAIN_TABLE)).collect();
    rules.iter().filter(|rule| table(rule, NFTA_RULE_TABLE).is_some_and(|table| hooked.contains(&table))).count() as u64
}

fn table(message: &Message, attribute: u16) -> Option<Table> {
    let name = find(message.payload.get(EVERY_FAMILY.len()..)?, attribute)?.text()?;
    Some((*message.payload.first()?, name))
}

/// `NFPROTO_ARP`: its chains meet no packet of IP.
const ARP: u8 = 3;

fn sees_each_packet(chain: &Message) -> bool {
    let body = chain.payload.get(EVERY_FAMILY.len()..).unwrap_or_default();
    let kind = find(body, NFTA_CHAIN_TYPE).and_then(|kind| kind.text());
    find(body, NFTA_CHAIN_HOOK).is_some() && kind.as_deref() != Some("nat") && chain.payload.first() != Some(&ARP)
}

/// The counters of those that drop.
pub(crate) fn drops(sockets: &Sockets) -> Result<FilterDrops, Missing> {
    Ok(rules(sockets)?.iter().filter_map(dropped).fold(FilterDrops::default(), |mut sum, rule| {
        sum.rules += 1;
        match rule {
            Some(counter) => {
                sum.packets = sum.packets.saturating_add(counter.packets);
                sum.bytes = sum.bytes.saturating_add(counter.bytes);
            }
            None => sum.uncounted += 1,
        }
        sum
    }))
}

pub(super) struct Counter {
    packets: u64,
    bytes: u64,
}

/// The counter of a rule that drops, if it counts exactly the drops: no match may follow the counter.
pub(super) fn dropped(rule: &Message) -> Option<Option<Counter>> {
    let expressions = find(rule.payload.get(EVERY_FAMILY.len()..)?, NFTA_RULE_EXPRESSIONS)?;
    let mut counter = None;
    for expression in expressions.nested() {
        let name = expression.find(NFTA_EXPR_NAME).and_then(|name| name.text()).unwrap_or_default();
        let data = expression.find(NFTA_EXPR_DATA);
        match name.as_str() {
            "counter" => counter = data.as_ref().and_then(read),
            "immediate" if data.as_ref().and_then(verdict) == Some(NF_DROP) => return Some(counter),
            "reject" => return Some(counter),
            "immediate" | "log" => {}
            _ => counter = None,
        }
    }
    None
}

fn read(data: &Attribute<'_>) -> Option<Counter> {
    let number = |kind| data.find(kind)?.be64();
    Some(Counter { packets: number(NFTA_COUNTER_PACKETS)?, bytes: number(NFTA_COUNTER_BYTES)? })
}

fn verdict(data: &Attribute<'_>) -> Option<u32> {
    data.find(NFTA_IMMEDIATE_DATA)?.find(NFTA_DATA_VERDICT)?.find(NFTA_VERDICT_CODE)?.be32()
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_sys::netlink::Builder;
    use proptest::prelude::*;

    const LIST_ELEMENT: u16 = 1;

    /// A rule of these expressions: `counter`, `drop`, `accept` or a name without data.
    fn rule(expressions: &[&str]) -> Message {
        let mut rule = Builder::with_header(&EVERY_FAMILY);
        rule.text(1, "filter").text(2, "input").nest(NFTA_RULE_EXPRESSIONS, |list| {
            for name in expressions {
                list.nest(LIST_ELEMENT, |element| {
                    let verdict = match *name {
                        "drop" => Some(NF_DROP),
                        "accept" => Some(1),
                        _ => None,
                    };
                    element.text(NFTA_EXPR_NAME, if verdict.is_some() { "immediate" } else { name });
                    element.nest(NFTA_EXPR_DATA, |data| {
                        if let Some(code) = verdict {
                            data.be32(1, 0).nest(NFTA_IMMEDIATE_DATA, |value| {
                                value.nest(NFTA_DATA_VERDICT, |verdict| {
                                    verdict.be32(NFTA_VERDICT_CODE, code);
                                });
                            });
                        } else if *name == "counter" {
                            data.be64(NFTA_COUNTER_BYTES, 15_000).be64(NFTA_COUNTER_PACKETS, 10);
                        }
                    });
                });
            }
        });
        Message { kind: 10 << 8 | 6, payload: rule.finish().expect("short") }
    }

    fn packets(expressions: &[&str]) -> Option<Option<u64>> {
        dropped(&rule(expressions)).map(|counter| counter.map(|counter| counter.packets))
    }

    #[test]
    fn only_a_counter_right_before_the_verdict_counts_drops() {
        assert_eq!(packets(&["payload", "cmp", "counter", "drop"]), Some(Some(10)));
        assert_eq!(packets(&["counter", "log", "reject"]), Some(Some(10)));
        assert_eq!(packets(&["counter", "payload", "cmp", "drop"]), Some(None), "not all that was counted matched");
        assert_eq!(packets(&["payload", "cmp", "drop"]), Some(None));
        assert_eq!(packets(&["counter", "accept"]), None);
        assert_eq!(packets(&["counter"]), None);
    }

    #[test]
    fn rules_that_only_first_packets_meet_are_not_counted() {
        let message = |family: u8, fill: &dyn Fn(&mut Builder)| {
            let mut message = Builder::with_header(&[family, 0, 0, 0]);
            fill(&mut message);
            Message { kind: 0, payload: message.finish().expect("short") }
        };
        let base = |family, table: &str, kind: &str| {
            message(family, &|it| {
                it.text(NFTA_CHAIN_TABLE, table).nest(NFTA_CHAIN_HOOK, |hook| {
                    hook.be32(1, 0);
                });
                it.text(NFTA_CHAIN_TYPE, kind);
            })
        };
        let jumped_to = message(2, &|it| {
            it.text(NFTA_CHAIN_TABLE, "lost");
        });
        let rule = |family, table: &str| {
            message(family, &|it| {
                it.text(NFTA_RULE_TABLE, table);
            })
        };
        let chains = [
            base(2, "nat", "nat"),
            base(2, "filter", "filter"),
            base(1, "mixed", "nat"),
            base(1, "mixed", "filter"),
            jumped_to,
        ];
        let rules = [rule(2, "nat"), rule(2, "filter"), rule(1, "mixed"), rule(10, "filter"), rule(2, "lost")];
        assert_eq!(met(&chains, &rules), 2, "of the filter, and of a table with both");
        assert_eq!(met(&[], &rules), 0);
    }

    proptest! {
        #[test]
        fn no_bytes_panic(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let message = [Message { kind: 0, payload: payload.clone() }];
            met(&message, &message);
            dropped(&Message { kind: 0, payload });
        }
    }
}
