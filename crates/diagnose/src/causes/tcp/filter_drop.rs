//! # filter-drop
//!
//! A packet filter of the receiver drops segments.
//!
//! **Shows**: the counter of a dropping rule matches the TCP retransmissions, and the segments reached the interface.
//!
//! **Mistaken for**: loss on the path.
//!
//! **Fix**: change the rule.
//!
//! Source: kernel `net/netfilter/core.c`, `nf_hook_slow`; nft(8).

use crate::causes::shared::tcp_stage::dropped_at;
use crate::causes::shared::words::{command_fix, contradicts, counter};
use crate::evidence::tcp::TcpEvidence;
use crate::judge::{Assessment, Cause, Evidence as _};
use crate::role::Role;
use narrows_model::{Fix, keys};

/// See the file's head.
pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "filter-drop",
    about: "a packet filter of the host drops the segments",
    roles: &[Role::Receiver],
    needs: &[
        keys::FILTER_DROP_PACKETS,
        keys::DROP_REASON_NETFILTER_DROP,
        keys::NETSTAT_TCP_EXT_IP_REVERSE_PATH_FILTER,
    ],
    assess,
    look_alikes: &["rp-filter", "random-loss", "path-policer", "softnet-backlog"],
    fix,
    rank: 8,
    stages: &["receive-filter"],
    ..Cause::COMMON
};

fn assess(evidence: &TcpEvidence, _: Role) -> Assessment {
    if let Some(n) = super::rp_filter::spoofed(evidence) {
        return contradicts(format!("the reverse path filter, not a rule, dropped {n} packets"));
    }
    let rules = evidence.grew(Role::Receiver, keys::FILTER_DROP_PACKETS).filter(|n| *n > 0);
    let second = rules.map(|n| counter(format!("the counters of rules that drop grew by {n}")));
    dropped_at(evidence, "receive-filter", second)
}

fn fix(evidence: &TcpEvidence, role: Role) -> Fix {
    let advice = "find the dropping rule and let this traffic pass".to_owned();
    command_fix(evidence, role, advice, ["nft list ruleset | grep -n -e drop -e reject".to_owned()])
}
