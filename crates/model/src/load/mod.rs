//! Loads: what the two ends are asked to do, and what each of them saw. A kind of load is a file of this folder and one line of
//! the table below.

pub mod frame_traffic;
pub mod frame_words;
pub mod frames;
pub mod frames_report;
pub mod host;
pub mod kind;
pub mod line_rate;
pub mod placement;
pub mod profile;
pub mod responsiveness;
pub mod rr;
pub mod stamp;
pub mod tcp;
pub mod tcp_info;
pub mod trial;
pub mod udp;

pub use kind::{Cap, Carrier, EndRecord, Keyed, Load, Member, Plan, Sample, StreamSpec};

use crate::host::fact::Snapshot;
use crate::words::place::{Flow, Place};
use host::HostSample;
use profile::{ProfileEndRecord, ProfilePlan, ProfileSample};
use rr::{RrEndRecord, RrPlan, RrSample};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use tcp::{TcpEndRecord, TcpPlan, TcpSample};
use udp::UdpPlan;
use udp::record::{UdpEndRecord, UdpSample};

/// An enum over all kinds of load, with the way to and from its members.
macro_rules! one_of {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $kind:ident($member:ty))* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "lowercase")]
        #[allow(clippy::large_enum_variant)] // one per trial or interval, and boxed where it travels
        pub enum $name {
            $($(#[$about])* $kind($member),)*
        }

        impl $name {
            /// The names of all kinds.
            pub const KINDS: &'static [&'static str] = &[$(stringify!($kind)),*];

            /// The kind's name, the same for a plan, its records and its samples.
            pub const fn kind(&self) -> &'static str {
                match self { $(Self::$kind(_) => stringify!($kind),)* }
            }

            /// The value, where it is of that kind.
            pub fn get<M: Member<Self>>(&self) -> Option<&M> {
                M::of(self)
            }

            /// The same, to be changed.
            pub fn get_mut<M: Member<Self>>(&mut self) -> Option<&mut M> {
                M::of_mut(self)
            }
        }

        $(
            impl From<$member> for $name {
                fn from(member: $member) -> Self {
                    Self::$kind(member)
                }
            }

            impl Member<$name> for $member {
                fn of(any: &$name) -> Option<&Self> {
                    if let $name::$kind(member) = any { Some(member) } else { None }
                }

                fn of_mut(any: &mut $name) -> Option<&mut Self> {
                    if let $name::$kind(member) = any { Some(member) } else { None }
                }
            }
        )*
    };
}

macro_rules! loads {
    ($($(#[$about:meta])* $kind:ident($plan:ty, $record:ty, $sample:ty);)*) => {
        one_of! {
            /// What a trial does.
            LoadPlan { $($(#[$about])* $kind($plan))* }
        }
        one_of! {
            /// What one end saw of a load.
            LoadRecord { $($(#[$about])* $kind($record))* }
        }
        one_of! {
            /// One stream of a load at one instant, seen from one end.
            LoadSample { $($(#[$about])* $kind($sample))* }
        }

        impl std::ops::Deref for LoadPlan {
            type Target = dyn Plan;

            /// What every plan answers.
            fn deref(&self) -> &Self::Target {
                match self { $(Self::$kind(plan) => plan,)* }
            }
        }

        impl LoadPlan {
            /// The plans that a plain measurement runs one after the other; at least one.
            pub fn phases(&self) -> Vec<Self> {
                match self { $(Self::$kind(plan) => plan.phases().into_iter().map(Into::into).collect(),)* }
            }

            /// The plan of a trial that proves a fix: no longer than it must be.
            pub fn for_proof(&self) -> Self {
                match self { $(Self::$kind(plan) => plan.for_proof().into(),)* }
            }

            /// The plan within the limits of a client without a token.
            /// Errors: what the server does not admit, in a sentence.
            pub fn capped(self, cap: &Cap) -> Result<Self, String> {
                match self { $(Self::$kind(plan) => plan.capped(cap).map(Into::into),)* }
            }

            /// Whether it is the plan that was asked for, but for rates that [`Self::capped`] lowers.
            pub fn is_within(&self, asked: &Self) -> bool {
                match (self, asked) {
                    $((Self::$kind(plan), Self::$kind(asked)) => plan.is_within(asked),)*
                    _ => false,
                }
            }

            /// The length of its intervals and of the part that no summary counts, ms; `None` where it has none.
            pub fn times_mut(&mut self) -> Option<[&mut u64; 2]> {
                match self { $(Self::$kind(plan) => plan.times_mut(),)* }
            }

            /// The record of an end of which only its reports are known, in the order of time; samples of another kind are left
            /// out, as are those of a stream that had ended.
            pub fn partial_record(&self, place: Place, reports: &[Progress], remark: String) -> LoadRecord {
                match self {
                    $(Self::$kind(_) => {
                        let mut streams: BTreeMap<(u32, Flow), Vec<$sample>> = BTreeMap::new();
                        for stream in reports.iter().flat_map(|report| &report.streams) {
                            let Some(sample) = <$sample>::of(&stream.sample) else { continue };
                            let samples = streams.entry((stream.id, stream.flow)).or_default();
                            if samples.last().is_none_or(|last| last.at_us() < sample.at_us()) {
                                samples.push(sample.clone());
                            }
                        }
                        let streams = streams.into_iter().map(|((id, flow), samples)| (id, flow, samples)).collect();
                        <$plan as Load>::partial_record(place, streams, remark).into()
                    })*
                }
            }
        }

        impl LoadRecord {
            /// What all kinds of record have in common.
            pub fn end(&self) -> &dyn EndRecord {
                match self { $(Self::$kind(record) => record,)* }
            }

            /// Leaves only what is from one time to another, microseconds since the trial began, by the samples next to them. Streams of which `reports` (in the order
            /// of time) has samples get those instead of their own.
            pub fn cut(&mut self, reports: &[Progress], from_us: u64, to_us: u64) {
                match self {
                    $(Self::$kind(record) => {
                        for stream in &mut record.streams {
                            let told = reports.iter().flat_map(|report| &report.streams);
                            let told = told.filter(|it| (it.id, it.flow) == stream.key());
                            let mut told: Vec<$sample> =
                                told.filter_map(|it| <$sample>::of(&it.sample)).cloned().collect();
                            told.dedup_by_key(|sample| sample.at_us());
                            if !told.is_empty() {
                                stream.samples = told;
                            }
                            stream.samples = within(&stream.samples, |it| it.at_us(), from_us, to_us).to_vec();
                        }
                        record.host = within(&record.host, |it| it.at_us, from_us, to_us).to_vec();
                    })*
                }
            }

            /// Sets the host's counters right before and right after the load.
            pub fn between(mut self, before: Snapshot, after: Snapshot) -> Self {
                match &mut self { $(Self::$kind(record) => (record.before, record.after) = (before, after),)* }
                self
            }
        }

        impl std::ops::Deref for LoadSample {
            type Target = dyn Sample;

            /// What every sample answers.
            fn deref(&self) -> &Self::Target {
                match self { $(Self::$kind(sample) => sample,)* }
            }
        }

        $(
            impl EndRecord for $record {
                fn place(&self) -> Place {
                    self.place
                }

                fn host(&self) -> &[HostSample] {
                    &self.host
                }

                fn remarks(&self) -> &[String] {
                    &self.remarks
                }

                fn samples(&self) -> Vec<Vec<&dyn Sample>> {
                    let streams = self.streams.iter();
                    streams.map(|stream| stream.samples.iter().map(|sample| sample as &dyn Sample).collect()).collect()
                }
            }
        )*
    };
}

loads! {
    /// TCP streams.
    Tcp(TcpPlan, TcpEndRecord, TcpSample);
    /// UDP streams.
    Udp(UdpPlan, UdpEndRecord, UdpSample);
    /// Requests and responses.
    Rr(RrPlan, RrEndRecord, RrSample);
    /// A profile of the path.
    Profile(ProfilePlan, ProfileEndRecord, ProfileSample);
}

impl LoadRecord {
    /// From the first to the last sample of any stream.
    pub fn flow_time_us(&self) -> u64 {
        let times = || self.end().samples().into_iter().flatten().map(Sample::at_us);
        times().min().zip(times().max()).map_or(0, |(first, last)| last - first)
    }
}

/// One stream of a running trial, seen from one end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamProgress {
    /// From 0, the same on both ends.
    pub id: u32,
    /// Which way its data goes.
    pub flow: Flow,
    /// Its latest sample.
    pub sample: LoadSample,
}

/// How far a trial is, seen from one end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Since the trial began on that end.
    pub at_us: u64,
    /// Its streams, by id; one that has ended shows its last sample.
    pub streams: Vec<StreamProgress>,
}

/// The samples from one time to another. A sample is taken a moment after it is due: one that lies outside by less than a quarter of the time
/// to its neighbour ends the span.
fn within<T>(samples: &[T], at_us: impl Fn(&T) -> u64, from_us: u64, to_us: u64) -> &[T] {
    let near = |outside: usize, inside: usize, bound_us: u64| {
        let (out, inner) = (at_us(&samples[outside]), at_us(&samples[inside]));
        4 * out.abs_diff(bound_us) < out.abs_diff(inner)
    };
    let mut first = samples.partition_point(|sample| at_us(sample) < from_us);
    let mut end = samples.partition_point(|sample| at_us(sample) <= to_us).max(first);
    if first > 0 && first < samples.len() && near(first - 1, first, from_us) {
        first -= 1;
    }
    if end > 0 && end < samples.len() && near(end, end - 1, to_us) {
        end += 1;
    }
    &samples[first..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::udp::UdpRate;
    use crate::words::place::Direction;
    use rr::Transaction;

    #[test]
    fn streams_have_ids_of_their_own() {
        let plan = LoadPlan::Tcp(TcpPlan { streams: 2, direction: Direction::Both, ..TcpPlan::default() });
        let ids: Vec<_> = plan.streams().iter().map(|stream| (stream.id, stream.flow)).collect();
        assert_eq!(ids, [(0, Flow::Up), (1, Flow::Up), (2, Flow::Down), (3, Flow::Down)]);
    }

    #[test]
    fn a_load_beside_requests_comes_last_and_has_its_own_options() {
        let load =
            TcpPlan { direction: Direction::Down, congestion_control: Some("reno".into()), ..TcpPlan::default() };
        let rr = RrPlan { transaction: Transaction::Udp, request_bytes: 64, response_bytes: 64, ..RrPlan::default() };
        let plan = LoadPlan::Rr(RrPlan { load: Some(load.clone()), ..rr });
        let streams = plan.streams();
        assert_eq!(streams[0], StreamSpec { id: 0, flow: Flow::Up, carrier: Carrier::Udp });
        assert_eq!(streams[1], StreamSpec { id: 1, flow: Flow::Down, carrier: Carrier::Tcp });
        assert_eq!(plan.tcp_options(1), Some(load));
        assert!(plan.tcp_options(0).is_some_and(|tcp| tcp.no_delay));
        let crr = LoadPlan::Rr(RrPlan { transaction: Transaction::TcpConnect, ..RrPlan::default() });
        assert_eq!(crr.streams(), []);
    }

    #[test]
    fn samples_of_another_kind_are_no_record() {
        let stream = |id, sample| StreamProgress { id, flow: Flow::Up, sample };
        let report = |at_us, bytes| {
            let tcp = stream(0, TcpSample { at_us, bytes, ..TcpSample::default() }.into());
            Progress { at_us, streams: vec![tcp, stream(1, UdpSample::default().into())] }
        };
        // The last report shows the stream that has ended once more.
        let reports = [report(100, 7), report(200, 9), report(200, 9)];
        let record = LoadPlan::Tcp(TcpPlan::default()).partial_record(Place::Server, &reports, "lost".to_owned());
        let end: &TcpEndRecord = record.get().expect("a record of TCP");
        let bytes: Vec<u64> = end.streams[0].samples.iter().map(|sample| sample.bytes).collect();
        assert_eq!((end.streams.len(), bytes), (1, vec![7, 9]));
        assert_eq!((record.end().remarks(), record.get::<UdpEndRecord>()), (&["lost".to_owned()][..], None));
    }

    #[test]
    fn a_span_ends_with_the_samples_next_to_its_ends() {
        let of = |times: &[u64], from, to| within(times, |at| *at, from, to).to_vec();
        let each_second = [0, 1_000_400, 1_999_800, 3_000_300, 4_000_100];
        assert_eq!(of(&each_second, 1_000_000, 3_000_000), [1_000_400, 1_999_800, 3_000_300]);
        assert_eq!(of(&each_second, 2_000_000, 4_000_000), [1_999_800, 3_000_300, 4_000_100]);
        assert_eq!(of(&each_second, 1_500_000, 3_500_000), [1_999_800, 3_000_300]);
        assert!(of(&each_second, 5_000_000, 9_000_000).is_empty());
        assert_eq!(of(&each_second, 0, u64::MAX), each_second);
    }

    #[test]
    fn a_server_may_slow_a_plan_and_change_nothing_else() {
        let tcp = TcpPlan { streams: 2, ..TcpPlan::default() };
        let udp = UdpPlan::default();
        let rr = RrPlan { load: Some(tcp.clone()), ..RrPlan::default() };
        let profile = ProfilePlan::default();
        let fine: [(LoadPlan, LoadPlan); 6] = [
            (tcp.clone().into(), tcp.clone().into()),
            (tcp.clone().into(), TcpPlan { pacing_bps: Some(1), ..tcp.clone() }.into()),
            (
                UdpPlan { rate_up: UdpRate::Max, ..udp.clone() }.into(),
                UdpPlan { rate_up: UdpRate::Bps(1), ..udp.clone() }.into(),
            ),
            (rr.clone().into(), RrPlan { max_answers_per_s: Some(1.0), ..rr.clone() }.into()),
            (
                rr.clone().into(),
                RrPlan { load: Some(TcpPlan { pacing_bps: Some(1), ..tcp.clone() }), ..rr.clone() }.into(),
            ),
            (profile.clone().into(), ProfilePlan { max_bps: profile.max_bps - 1, ..profile.clone() }.into()),
        ];
        for (asked, ready) in &fine {
            assert!(ready.is_within(asked), "{ready:?}");
        }
        let wrong: [(LoadPlan, LoadPlan); 6] = [
            (tcp.clone().into(), udp.clone().into()),
            (tcp.clone().into(), TcpPlan { streams: 3, ..tcp.clone() }.into()),
            (
                TcpPlan { pacing_bps: Some(1), ..tcp.clone() }.into(),
                TcpPlan { pacing_bps: Some(2), ..tcp.clone() }.into(),
            ),
            (
                UdpPlan { rate_up: UdpRate::Bps(1), ..udp.clone() }.into(),
                UdpPlan { rate_up: UdpRate::Max, ..udp.clone() }.into(),
            ),
            (rr.clone().into(), RrPlan { load: None, ..rr.clone() }.into()),
            (profile.clone().into(), ProfilePlan { max_bps: profile.max_bps + 1, ..profile }.into()),
        ];
        for (asked, ready) in &wrong {
            assert!(!ready.is_within(asked), "{ready:?}");
        }
    }
}
