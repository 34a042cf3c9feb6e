//! Which packets the kernel drops during a trial, and why: `skb:kfree_skb`, sampled on every CPU and counted in place.
//!
//! The reasons are those of the whole kernel: two hosts that are network namespaces of one machine see the drops of both.
//! Drops in a NIC's ring never appear, since the kernel never saw the packet. Only IPv4 and IPv6 packets are counted.
//!
//! Source: kernel `include/net/dropreason-core.h`, `include/trace/events/skb.h` (reasons since Linux 5.17).

mod format;
mod tally;

use crate::{Missing, parse};
use format::Format;
use narrows_model::{Absent, Fact, FactKey, Snapshot, Unit, Value, keys};
use narrows_sys::event::{Event, wait_readable};
use narrows_sys::perf::TracepointRing;
use narrows_sys::tracefs::Tracefs;
use narrows_sys::{clock, cpu, files};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tally::Tally;

/// The collector's id, as in [`Absent`].
pub const ID: &str = "drop-reasons";

/// Every fact that a watch provides.
pub const PROVIDES: &[FactKey] = &[keys::DROP_REASON, keys::DROP_LOCATION, keys::DROP_WATCHED, keys::DROP_LOST_RECORDS];

/// Parses any text as the format of the tracepoint, and reads the data of a sample by it, for `fuzz/`.
#[doc(hidden)]
pub fn read_any(format: &str, sample: &[u8]) -> Option<String> {
    let format = Format::parse(format).ok()?;
    let _ = format.layout.location.and_then(|location| location.of(sample));
    Some(format.name(u32::try_from(format.layout.reason.of(sample)?).ok()?))
}

const SOURCE: &str = "tracepoint skb:kfree_skb";
const FORMAT: &str = "events/skb/kfree_skb/format";
/// `ETH_P_IP`, `ETH_P_IPV6`
const ONLY_IP: &str = "protocol == 2048 || protocol == 34525";
/// Sixteen thousand drops per CPU between two reads.
const RING_BYTES_MAX: usize = 1 << 20;
/// All rings together, on hosts with many CPUs.
const RINGS_BYTES_MAX: usize = 64 << 20;
const RING_BYTES_MIN: usize = 64 << 10;
const CPUS_MAX: usize = 1024;
/// How often the rings are read: rarely enough to cost nothing, often enough for 300,000 drops per second and CPU.
const LOOK: Duration = Duration::from_millis(50);

/// An instrument that runs during a trial: [`DropWatch::start`] before it, [`DropWatch::finish`] after it.
///
/// Its memory is bounded by its rings, its time by the drops that they hold: the excess is counted as lost.
#[derive(Debug)]
pub struct DropWatch {
    stop: Arc<Event>,
    thread: Option<JoinHandle<Tally>>,
    format: Format,
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
    /// Starts counting.
    ///
    /// # Errors
    /// Why it cannot run here.
    pub fn start() -> Result<Self, Missing> {
        let text = Tracefs::open().and_then(|tracefs| tracefs.read(FORMAT)).map_err(|error| cannot(&error))?;
        let format = Format::parse(&text).map_err(Missing::because)?;
        let path = "/sys/devices/system/cpu/online";
        let online = files::read_text(Path::new(path)).map_err(|error| Missing::file(path, &error))?;
        let cpus = parse::cpu_list(path, &online)?;
        if cpus.is_empty() || cpus.len() > CPUS_MAX {
            return Err(Missing::because(format!("{path} names {} CPUs; 1 to {CPUS_MAX} can be watched", cpus.len())));
        }
        let bytes = (RINGS_BYTES_MAX / cpus.len()).clamp(RING_BYTES_MIN, RING_BYTES_MAX);
        // A power of two that is not above the share.
        let bytes = 1 << bytes.ilog2();
        let open = |cpu: &u32| -> narrows_sys::Result<TracepointRing> {
            let ring = TracepointRing::open(format.id, *cpu, bytes)?;
            ring.filter(ONLY_IP)?;
            Ok(ring)
        };
        let rings: Vec<TracepointRing> =
            cpus.iter().map(open).collect::<narrows_sys::Result<_>>().map_err(|error| cannot(&error))?;
        let stop = Arc::new(Event::new().map_err(|error| Missing::because(&error))?);
        for ring in &rings {
            ring.enable(true).map_err(|error| cannot(&error))?;
        }
        let (told, layout) = (Arc::clone(&stop), format.layout);
        let thread = std::thread::Builder::new()
            .name("drop-watch".to_owned())
            .spawn(move || {
                cpu::name_this_thread("drop-watch");
                count(rings, layout, &told)
            })
            .map_err(|error| Missing::because(format!("cannot start a thread that counts drops: {error}")))?;
        Ok(Self { stop, thread: Some(thread), format })
    }

    /// Ends the watch: a count per reason, the number of drops, and the number of lost records.
    ///
    /// A reason without a fact was not seen; that means *none* only if `drop.lost_records` is 0.
    pub fn finish(mut self) -> Vec<Fact> {
        self.end().map_or_else(Vec::new, |tally| self.facts(&tally))
    }

    fn end(&mut self) -> Option<Tally> {
        self.stop.signal();
        self.thread.take()?.join().ok()
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
        facts.extend(tally.reasons().map(|(reason, n)| fact(format!("drop.reason.{}", self.format.name(reason)), n)));
        facts.extend(tally.functions().into_iter().map(|(name, n)| fact(format!("drop.location.{name}"), n)));
        facts
    }
}

impl Drop for DropWatch {
    fn drop(&mut self) {
        self.end();
    }
}

fn count(mut rings: Vec<TracepointRing>, layout: format::Layout, stop: &Event) -> Tally {
    let mut tally = Tally::default();
    let mut last = false;
    loop {
        let mut missed = 0_u64;
        for ring in &mut rings {
            if last {
                // A failure here only lets a few late drops in.
                let _ = ring.enable(false);
            }
            missed = missed.saturating_add(ring.drain(|data| tally.take(layout, data)));
        }
        tally.missed = tally.missed.saturating_add(missed);
        if last {
            break;
        }
        let started = clock::now();
        last = wait_readable([stop.as_fd(), stop.as_fd()], Some(LOOK)).is_ok_and(|ready| ready[0]);
        // A wait that fails at once must not become a busy loop.
        if !last && clock::micros_since(started) < 1_000 {
            clock::sleep(LOOK);
        }
    }
    tally.close(rings.iter().map(TracepointRing::hits));
    tally
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

/// Records in the snapshots around a trial why no watch could run.
pub fn put_absent(why: &Missing, before: &mut Snapshot, after: &mut Snapshot) {
    for snapshot in [before, after] {
        snapshot.absent.extend(PROVIDES.iter().map(|key| Absent {
            collector: ID.to_owned(),
            what: key.name.to_owned(),
            why: why.to_string(),
        }));
    }
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
        let (mut before, mut after) = (Snapshot::default(), Snapshot::default());
        put_absent(&Missing::because("no"), &mut before, &mut after);
        assert_eq!(after.why_absent("drop.reason.NETFILTER_DROP"), Some("no"));
    }
}
