//! Which packets the kernel drops during a trial, and why: the tracepoint `skb:kfree_skb`.
//!
//! A BPF program counts those of this network namespace. Without BPF they are sampled on every CPU and counted in place; then the
//! reasons are those of the whole kernel, with the routers and containers on the same machine, and `drop.elsewhere` is missing.
//! Drops in a NIC's ring never appear, since the kernel never saw the packet. Only IPv4 and IPv6 packets are counted.
//!
//! Source: kernel `include/net/dropreason-core.h`, `include/trace/events/skb.h` (reasons since Linux 5.17).

mod format;
mod rings;
mod tally;

use crate::Missing;
use format::Format;
use narrows_model::{Fact, FactKey, Snapshot, Unit, Value, keys};
use narrows_sys::drops::DropCounts;
use narrows_sys::tracefs::Tracefs;
use rings::Rings;
use tally::Tally;

/// The collector's id, as in [`narrows_model::Absent`].
pub const ID: &str = "drop-reasons";

/// Every fact that a watch provides.
pub const PROVIDES: &[FactKey] =
    &[keys::DROP_REASON, keys::DROP_LOCATION, keys::DROP_WATCHED, keys::DROP_LOST_RECORDS, keys::DROP_ELSEWHERE];

/// Parses any text as the format of the tracepoint, and reads the data of a sample by it, for `fuzz/`.
#[doc(hidden)]
pub fn read_any(format: &str, sample: &[u8]) -> Option<String> {
    let format = Format::parse(format).ok()?;
    let _ = format.layout.location.and_then(|location| location.of(sample));
    Some(format.name(u32::try_from(format.layout.reason.of(sample)?).ok()?))
}

const SOURCE: &str = "tracepoint skb:kfree_skb";
const FORMAT: &str = "events/skb/kfree_skb/format";

/// An instrument that runs during a trial: [`DropWatch::start`] before it, [`DropWatch::finish`] after it.
#[derive(Debug)]
pub struct DropWatch {
    source: Source,
    format: Format,
}

#[derive(Debug)]
enum Source {
    /// Those of this network namespace.
    Namespace(DropCounts),
    /// Those of the whole kernel.
    Machine(Rings),
}

/// Why it cannot run, and what would help.
fn cannot(error: &narrows_sys::Error) -> Missing {
    let why = match error.errno() {
        Some(1 | 13) => "it needs root (CAP_PERFMON) on the host itself, outside of a user namespace".to_owned(),
        Some(2 | 19) => "this kernel was built without tracepoints".to_owned(),
        _ => error.to_string(),
    };
    Missing::Kernel { what: format!("the reasons of drops ({SOURCE})"), why }
}

impl DropWatch {
    /// Starts counting, in the network namespace of the calling thread where the kernel can tell.
    /// Errors: why it cannot run here.
    pub fn start() -> Result<Self, Missing> {
        let text = Tracefs::open().and_then(|tracefs| tracefs.read(FORMAT)).map_err(|error| cannot(&error))?;
        let format = Format::parse(&text).map_err(Missing::because)?;
        let source = match DropCounts::start() {
            Ok(counts) => Source::Namespace(counts),
            Err(_) => Source::Machine(Rings::start(&format)?),
        };
        Ok(Self { source, format })
    }

    /// Ends the watch: a count per reason, the number of drops, and the number of lost records.
    ///
    /// A reason without a fact was not seen; that means *none* only if `drop.lost_records` is 0.
    pub fn finish(mut self) -> Vec<Fact> {
        let tally = match &mut self.source {
            Source::Namespace(counts) => counts.read().ok().map(Tally::of),
            Source::Machine(rings) => rings.end(),
        };
        tally.map_or_else(Vec::new, |tally| self.facts(&tally))
    }

    fn facts(&self, tally: &Tally) -> Vec<Fact> {
        let fact = |key: String, count: u64| Fact {
            key,
            value: Value::from(count),
            unit: Unit::Count,
            source: SOURCE.to_owned(),
        };
        let mut facts =
            vec![fact(keys::DROP_WATCHED.into(), tally.watched), fact(keys::DROP_LOST_RECORDS.into(), tally.lost)];
        facts.extend(tally.elsewhere.map(|n| fact(keys::DROP_ELSEWHERE.into(), n)));
        facts.extend(tally.reasons().map(|(reason, n)| fact(format!("drop.reason.{}", self.format.name(reason)), n)));
        facts.extend(tally.functions().into_iter().map(|(name, n)| fact(format!("drop.location.{name}"), n)));
        facts
    }
}

/// Adds the facts of a watch to the snapshots around a trial: the counts to `after`, zeroes to `before`, so that
/// [`Snapshot::counts_since`] yields them.
pub fn put(facts: Vec<Fact>, before: &mut Snapshot, after: &mut Snapshot) {
    for fact in facts {
        before.facts.push(Fact { value: Value::Integer(0), ..fact.clone() });
        after.facts.push(fact);
    }
    before.seal();
    after.seal();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_facts_of_a_watch_are_the_growth() {
        let fact = |key: &str, n: i64| Fact {
            key: key.to_owned(),
            value: Value::Integer(n),
            unit: Unit::Count,
            source: SOURCE.to_owned(),
        };
        let (mut before, mut after) = (Snapshot::default(), Snapshot::default());
        put(vec![fact("drop.reason.NETFILTER_DROP", 7), fact("drop.lost_records", 0)], &mut before, &mut after);
        let grown = after.counts_since(&before);
        assert_eq!(grown.get("drop.reason.NETFILTER_DROP"), Some(&7));
        assert_eq!(grown.get("drop.lost_records"), Some(&0));
    }
}
