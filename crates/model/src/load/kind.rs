//! What every kind of load has to say of itself: its plan, the record of one end, and its samples.

use crate::host::fact::Snapshot;
use crate::load::host::HostSample;
use crate::load::tcp::TcpPlan;
use crate::words::place::{Flow, Place};
use crate::words::show::nominal;
use crate::words::units::micros;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Display;

/// A connection or socket that a load needs, by what carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Carrier {
    /// A data connection.
    Tcp,
    /// A pair of connected sockets.
    Udp,
}

/// A stream that a load needs before it can begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamSpec {
    /// From 0, unique within the trial.
    pub id: u32,
    /// Which way its data goes; requests go up.
    pub flow: Flow,
    /// What carries it.
    pub carrier: Carrier,
}

impl StreamSpec {
    /// `each` streams for each flow, numbered from `first` on.
    pub fn list(first: u32, each: u32, flows: &[Flow], carrier: Carrier) -> Vec<Self> {
        (0..)
            .zip(flows)
            .flat_map(|(nth, flow)| (0..each).map(move |id| (first + nth * each + id, *flow)))
            .map(|(id, flow)| Self { id, flow, carrier })
            .collect()
    }
}

/// The load that a server admits from a client without a token, or with a token that has a rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cap {
    /// Whether the client has no token: then options that cost the server more are refused, too.
    pub guest: bool,
    /// Streams per flow.
    pub max_streams: u32,
    /// Rate of each flow, in bits per second.
    pub max_bps: u64,
    /// Congestion controls that an unprivileged user of the host may choose (`net.ipv4.tcp_allowed_congestion_control`).
    pub congestion_controls: Vec<String>,
}

impl Cap {
    /// Checks a number of streams per flow.
    /// Errors: the maximum and the number, in a sentence.
    pub fn check_streams(&self, streams: u32) -> Result<(), String> {
        if streams > self.max_streams {
            return Err(format!(
                "{streams} streams are not allowed: without a token this server accepts at most {}",
                self.max_streams
            ));
        }
        Ok(())
    }

    /// Refuses an option that costs the server more than its share. `what`: `a DSCP`.
    /// Errors: the option, in a sentence.
    pub fn refuse(&self, given: bool, what: &str) -> Result<(), String> {
        if given && self.guest {
            Err(format!("{what} is not allowed: this server requires its token for it"))
        } else {
            Ok(())
        }
    }
}

/// One stream of a load at one instant, seen from one end.
pub trait Sample {
    /// Since the trial began on this end.
    fn at_us(&self) -> u64;

    /// Application bytes so far; 0 where the load does not count bytes.
    fn bytes(&self) -> u64 {
        0
    }

    /// CPU time of the thread that moves the data so far; `None` where it is not known.
    fn thread_cpu_us(&self) -> Option<u64>;
}

/// What one end saw of a load, as far as all kinds of load have it in common.
pub trait EndRecord {
    /// Which end.
    fn place(&self) -> Place;
    /// The host's CPUs over the trial.
    fn host(&self) -> &[HostSample];
    /// Sentences on anything that went otherwise than planned.
    fn remarks(&self) -> &[String];
    /// The samples of each stream, in the order of time.
    fn samples(&self) -> Vec<Vec<&dyn Sample>>;
}

/// What one end recorded of a stream.
pub trait Keyed {
    /// Its number and its direction, the same in the reports of the running trial.
    fn key(&self) -> (u32, Flow);
}

/// What one end saw of a load of streams.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct StreamsRecord<S> {
    /// Which end.
    pub place: Place,
    /// Its streams, by id.
    pub streams: Vec<S>,
    /// The host's CPUs, at the same instants as the streams' samples or near them.
    pub host: Vec<HostSample>,
    /// Counters of the host right before the load.
    pub before: Snapshot,
    /// Counters of the host right after it.
    pub after: Snapshot,
    /// Words on anything that went otherwise than planned (a buffer not obtained, a method not possible).
    pub remarks: Vec<String>,
}

impl<S> StreamsRecord<S> {
    /// The record of an end of which only samples of its streams are known.
    pub(super) fn partial(place: Place, streams: Vec<S>, remark: String) -> Self {
        let (before, after) = (Snapshot::default(), Snapshot::default());
        Self { place, streams, host: Vec::new(), before, after, remarks: vec![remark] }
    }
}

/// What the plan of any kind of load answers. A plan is the same for both ends.
pub trait Plan {
    /// What is wrong with the plan, if anything: the check that both ends make before they act on it.
    /// Errors: one sentence that names the field, its value and what is allowed.
    fn check(&self) -> Result<(), String>;

    /// How long it is planned to last; `None` where bytes end it.
    fn duration_ms(&self) -> Option<u64>;

    /// The streams that must be connected before it begins, by id.
    fn streams(&self) -> Vec<StreamSpec>;

    /// The socket options of the TCP connection of a stream, as a plan; `None` where it has no such connection.
    fn tcp_options(&self, id: u32) -> Option<TcpPlan>;

    /// Whether each transaction makes a connection of its own while the load runs.
    fn connects_per_transaction(&self) -> bool {
        false
    }

    /// Whether a plain measurement reads both hosts' inventories before the load, for the packet ledger; else it reads them after it.
    fn needs_inventory(&self) -> bool {
        false
    }

    /// The first part of it that no summary counts.
    fn omitted_ms(&self) -> u64 {
        0
    }

    /// The length of its intervals and of the part that no summary counts, ms; `None` where it has none.
    fn times_mut(&mut self) -> Option<[&mut u64; 2]> {
        None
    }

    /// The highest rate that each of its flows may have, bits a second; `None` where the plan bounds none.
    fn rate_limit_bps(&self) -> Option<u64> {
        None
    }

    /// The load in a few words: `TCP up for 10.0 s`.
    fn describe(&self) -> String;
}

/// Whether a rate is no higher than the one that was asked for; `None` is no limit.
pub(super) fn is_below<T: PartialOrd>(asked: Option<T>, now: Option<T>) -> bool {
    asked.is_none_or(|asked| now.is_some_and(|now| now <= asked))
}

/// A kind of load, by its plan.
pub trait Load: Plan + Clone + 'static {
    /// What one end records.
    type Record: EndRecord + 'static;
    /// One stream at one instant.
    type Sample: Sample + 'static;

    /// The plans that a plain measurement runs one after the other.
    fn phases(&self) -> Vec<Self> {
        vec![self.clone()]
    }

    /// The plan of a trial that proves a fix: no longer than it must be.
    fn for_proof(&self) -> Self {
        self.clone()
    }

    /// The plan within the limits of a client without a token.
    /// Errors: what the server does not admit, in a sentence.
    fn capped(self, cap: &Cap) -> Result<Self, String>;

    /// Whether it is the plan that was asked for, but for rates that [`Self::capped`] lowers.
    fn is_within(&self, asked: &Self) -> bool;

    /// The record of an end of which only samples are known, those of each stream in the order of time.
    fn partial_record(place: Place, streams: Vec<(u32, Flow, Vec<Self::Sample>)>, remark: String) -> Self::Record;
}

/// A [`Trial`](crate::load::trial::Trial) of one kind of load.
#[derive(Debug)]
pub struct TrialOf<'a, L: Load> {
    /// What was asked for.
    pub plan: &'a L,
    /// What the client saw.
    pub client: &'a L::Record,
    /// What the server saw.
    pub server: &'a L::Record,
    /// How long the data flowed, by the client's clock.
    pub elapsed_us: u64,
}

impl<L: Load> Clone for TrialOf<'_, L> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<L: Load> Copy for TrialOf<'_, L> {}

impl<'a, L: Load> TrialOf<'a, L> {
    /// The record of one end. A path records nothing.
    pub const fn end(&self, place: Place) -> Option<&'a L::Record> {
        match place {
            Place::Client => Some(self.client),
            Place::Server => Some(self.server),
            Place::Path => None,
        }
    }
}

/// A member of an enum over all kinds of load.
pub trait Member<E>: Sized {
    /// The member, where the value is of its kind.
    fn of(any: &E) -> Option<&Self>;

    /// The same, to be changed.
    fn of_mut(any: &mut E) -> Option<&mut Self>;
}

/// Checks a number in a plan. A NaN is in no range.
/// Errors: one sentence that names the field, its value and what is allowed.
pub(crate) fn within<T: PartialOrd + Display + Copy>(name: &str, value: T, min: T, max: T) -> Result<(), String> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    let Some(name) = name.strip_suffix(" in ms") else {
        return Err(format!("{name} is {value}, but must be from {min} to {max}"));
    };
    let [value, min, max] = [value, min, max].map(|ms| {
        let ms = ms.to_string();
        ms.parse().map_or(ms, setting)
    });
    Err(format!("{name} is {value}, but must be from {min} to {max}"))
}

/// A time of a plan, in milliseconds, as a user writes it: `50 ms`, `1.5 s`, `24 h`.
pub(crate) fn setting(ms: u64) -> String {
    const HOUR_MS: u64 = 3_600_000;
    if ms >= HOUR_MS && ms.is_multiple_of(HOUR_MS) {
        return format!("{} h", ms / HOUR_MS);
    }
    if ms == 0 { "0 s".to_owned() } else { nominal(&micros(ms.saturating_mul(1_000))) }
}

/// Checks what a trial omits.
pub(crate) fn check_omitted(omit_ms: u64, duration_ms: u64) -> Result<(), String> {
    if omit_ms < duration_ms {
        return Ok(());
    }
    let [omit, duration] = [omit_ms, duration_ms].map(setting);
    Err(format!("omit is {omit}, but the trial lasts only {duration}"))
}

/// Checks what a plan may leave open.
pub(crate) fn within_if<T: PartialOrd + Display + Copy>(
    name: &str,
    value: Option<T>,
    min: T,
    max: T,
) -> Result<(), String> {
    value.map_or(Ok(()), |value| within(name, value, min, max))
}
