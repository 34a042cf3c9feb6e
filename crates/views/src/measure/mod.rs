//! Plain measurements: intervals, totals and costs of a trial of any kind of load, from what both ends recorded. What a kind of
//! load adds to them is in the file of its name.

mod arrived;
mod cpu;
pub(crate) mod distribution;
mod interval_ends;
pub mod live;
mod own_queue;
pub mod rr;
pub mod tcp;
pub mod udp;
mod udp_total;

pub use arrived::nothing_at;
use interval_ends::interval_ends;
use narrows_model::load::Member;
use narrows_model::run::measure::Remark;
use narrows_model::{EndRecord as _, Flow, Load, LoadSample, Place, Sample as _, TrialOf};

/// From one sample of an end to a later one of the same end.
pub type Span<'a, S> = (&'a S, &'a S);

/// One stream over an interval, as far as each end recorded it.
#[derive(Debug, Clone, Copy)]
pub struct Part<T> {
    sent: Option<T>,
    received: Option<T>,
    /// Whether it is the last one of the stream: then its sender may have ended before it does.
    is_last: bool,
}

impl<T: Copy> Part<T> {
    /// What the interval goes by: the receiver's samples, or the sender's where there are none.
    fn counted(&self) -> Option<T> {
        self.received.or(self.sent)
    }
}

/// What one end recorded of one stream.
pub trait StreamRecord {
    /// One instant of it.
    type Sample;

    /// What all kinds of load have in common of it.
    fn common(&self) -> Common<'_, Self::Sample>;
}

/// What all kinds of load have in common of a stream.
#[derive(Debug, Clone, Copy)]
pub struct Common<'a, S> {
    flow: Flow,
    id: u32,
    /// `address:port` of this end and of the other one.
    addresses: [&'a String; 2],
    /// In the order of time.
    samples: &'a [S],
}

/// A kind of load whose plain measurements have a view.
pub trait Viewed: Load<Sample: Clone + Default + Member<LoadSample>> {
    /// What one end records of a stream.
    type Stream: StreamRecord<Sample = Self::Sample>;
    /// The view of an interval.
    type Interval;

    /// The length of an interval and of the part that no summary counts, ms.
    fn times_ms(&self) -> [u64; 2];

    /// The directions of the data.
    fn flows(&self) -> &'static [Flow];

    /// The streams of one end.
    fn records(record: &Self::Record) -> &[Self::Stream];

    /// The records that intervals are made from.
    fn counted<'a>(pairs: &[Pair<'a, Self::Stream>]) -> Vec<Pair<'a, Self::Stream>>;

    /// The interval of one stream (`stream` given) or of several together. `None` of no part or of no time.
    fn interval(
        flow: Flow,
        stream: Option<u32>,
        omit_us: u64,
        parts: &[Part<Span<'_, Self::Sample>>],
    ) -> Option<Self::Interval>;

    /// Adds to a recorded interval of one stream what live ones and sums do not have.
    fn add_details(_: &mut Self::Interval, _: &Part<Span<'_, Self::Sample>>) {}

    /// The end whose samples make the intervals of a flow.
    fn counted_at(flow: Flow) -> Place {
        flow.receiver()
    }

    /// What had arrived by a sample of that end.
    fn arrived(sample: &Self::Sample) -> u64 {
        sample.bytes()
    }

    /// Whether an end has anything to add to a live interval.
    fn tells(_: Place) -> bool {
        true
    }
}

/// Both ends' records of one stream; at least one is there.
#[derive(Debug)]
pub struct Pair<'a, R> {
    id: u32,
    sender: Option<&'a R>,
    receiver: Option<&'a R>,
}

impl<R: StreamRecord> Pair<'_, R> {
    /// The addresses of the client and of the server.
    fn addresses(&self, flow: Flow) -> [String; 2] {
        let at = |place: Place| {
            let (mine, theirs) =
                if flow.sender() == place { (self.sender, self.receiver) } else { (self.receiver, self.sender) };
            let mine = mine.map(|it| it.common().addresses[0].clone());
            mine.or_else(|| theirs.map(|it| it.common().addresses[1].clone())).unwrap_or_default()
        };
        [at(Place::Client), at(Place::Server)]
    }
}

/// The sample of a stream and an end with which its intervals begin; `None`: the first one of the record.
type Began<'b, S> = dyn Fn(u32, Place) -> Option<&'b S> + 'b;

/// The streams of one interval, by id.
type StreamParts<'b, S> = Vec<(u32, Part<Span<'b, S>>)>;

/// Both ends' records of one flow.
struct FlowRecords<'a, L: Viewed> {
    flow: Flow,
    pairs: Vec<Pair<'a, L::Stream>>,
    interval_us: u64,
    omit_us: u64,
}

impl<'a, L: Viewed> FlowRecords<'a, L> {
    /// Each flow of a trial.
    fn all(trial: TrialOf<'a, L>) -> Vec<Self> {
        trial.plan.flows().iter().map(|flow| Self::of(trial, *flow)).collect()
    }

    fn of(trial: TrialOf<'a, L>, flow: Flow) -> Self {
        let (sender, receiver) = match flow {
            Flow::Up => (trial.client, trial.server),
            Flow::Down => (trial.server, trial.client),
        };
        let of = |end: &'a L::Record| L::records(end).iter().filter(move |it| it.common().flow == flow);
        let mut ids: Vec<u32> = of(sender).chain(of(receiver)).map(|it| it.common().id).collect();
        ids.sort_unstable();
        ids.dedup();
        let find = |end: &'a L::Record, id: u32| of(end).find(|it| it.common().id == id);
        let pairs = ids.into_iter().map(|id| Pair { id, sender: find(sender, id), receiver: find(receiver, id) });
        let [interval_us, omit_us] = trial.plan.times_ms().map(|ms| ms.saturating_mul(1000));
        Self { flow, pairs: pairs.collect(), interval_us, omit_us }
    }

    /// Each interval: its streams with their details, then all of them together.
    fn intervals(&self) -> Vec<Vec<L::Interval>> {
        self.views(&|_, _| None, L::add_details)
    }

    /// The same without details of what follows the samples that `began` gives of a stream and an end.
    fn intervals_since<'b>(&'b self, began: &Began<'b, L::Sample>) -> Vec<Vec<L::Interval>> {
        self.views(began, |_, _| {})
    }

    fn views<'b>(
        &'b self,
        began: &Began<'b, L::Sample>,
        add_details: fn(&mut L::Interval, &Part<Span<'_, L::Sample>>),
    ) -> Vec<Vec<L::Interval>> {
        let mut views = Vec::new();
        for parts in self.parts(began) {
            let (ids, parts): (Vec<u32>, Vec<_>) = parts.into_iter().unzip();
            let mut all = Vec::new();
            for (id, part) in ids.into_iter().zip(&parts) {
                if let Some(mut view) = L::interval(self.flow, Some(id), self.omit_us, &[*part]) {
                    add_details(&mut view, part);
                    all.push(view);
                }
            }
            all.extend(L::interval(self.flow, None, self.omit_us, &parts));
            views.push(all);
        }
        views
    }

    /// The streams of each interval.
    fn parts<'b>(&'b self, began: &Began<'b, L::Sample>) -> Vec<StreamParts<'b, L::Sample>> {
        let pairs = L::counted(&self.pairs);
        // The intervals of a receiver that reports only totals are those of the sender.
        let totals = |stream: &&L::Stream| self.are_totals(stream.common().samples);
        let by_sender = pairs.iter().filter_map(|it| it.receiver.as_ref()).all(totals)
            && !pairs.iter().filter_map(|it| it.sender.as_ref()).all(totals);
        let all: Vec<(u32, Vec<_>)> =
            pairs.iter().map(|pair| (pair.id, self.parts_of(pair, by_sender, began))).collect();
        let most = all.iter().map(|(_, parts)| parts.len()).max().unwrap_or(0);
        (0..most).map(|k| all.iter().filter_map(|(id, parts)| Some((*id, *parts.get(k)?))).collect()).collect()
    }

    /// One stream's intervals. They share their ends on either host, so that what they count sums to what the whole counts.
    fn parts_of<'b>(
        &'b self,
        pair: &Pair<'a, L::Stream>,
        by_sender: bool,
        began: &Began<'b, L::Sample>,
    ) -> Vec<Part<Span<'b, L::Sample>>> {
        let from = |stream: Option<&'a L::Stream>, place: Place| -> Option<Vec<&'b L::Sample>> {
            let (samples, began) = (stream?.common().samples, began(pair.id, place));
            let later = samples.iter().filter(|it| began.is_none_or(|began| it.at_us() > began.at_us()));
            Some(began.into_iter().chain(later).collect())
        };
        let (sent, received) = (from(pair.sender, self.flow.sender()), from(pair.receiver, self.flow.receiver()));
        let by_sender = sent.is_some() && (by_sender || received.is_none());
        let (counted, other) = if by_sender { (&sent, &received) } else { (&received, &sent) };
        let Some(counted) = counted else { return Vec::new() };
        let are_totals = |it: Option<&L::Stream>| it.is_some_and(|it| self.are_totals(it.common().samples));
        let [its, others] = if by_sender { [pair.sender, pair.receiver] } else { [pair.receiver, pair.sender] };
        let other_is_totals = are_totals(others) && !are_totals(its);
        let times: Vec<u64> = counted.iter().map(|it| it.at_us()).collect();
        let near = |at: usize| {
            let samples = other.as_ref()?;
            match at {
                0 if other_is_totals => {
                    samples.first().filter(|it| it.at_us().saturating_add(self.interval_us / 2) >= times[0])
                }
                0 => samples.first(),
                at if at + 1 == times.len() => samples.last(),
                at if times[at] >= self.omit_us && times[at - 1] < self.omit_us => {
                    samples.iter().find(|it| it.at_us() >= self.omit_us)
                }
                _ if other_is_totals => None,
                at => samples.iter().min_by_key(|it| it.at_us().abs_diff(times[at])),
            }
            .copied()
        };
        let part = |ends: &[usize]| {
            let span = (*counted.get(ends[0])?, *counted.get(ends[1])?);
            let is_last = ends[1] + 1 == times.len();
            let beside = near(ends[0]).zip(near(ends[1]));
            Some(if by_sender {
                Part { sent: Some(span), received: beside, is_last }
            } else {
                Part { sent: beside, received: Some(span), is_last }
            })
        };
        interval_ends(&times, self.interval_us, self.omit_us).windows(2).filter_map(part).collect()
    }

    /// Whether these samples are totals: there is none between the begin, the end of the omitted part and the end. Such an end, of
    /// iperf3, reports what it counted in all.
    fn are_totals(&self, samples: &[L::Sample]) -> bool {
        let between = samples.get(1..samples.len().saturating_sub(1)).unwrap_or_default();
        match between {
            [] => true,
            [one] => self.omit_us > 0 && one.at_us() >= self.omit_us,
            _ => false,
        }
    }

    /// When the counted part begins. A trial that was cut before its counted part is summed up whole.
    fn counted_from_us<'b>(&self, streams: impl IntoIterator<Item = &'b L::Stream>) -> u64 {
        let ended = |it: &L::Stream| it.common().samples.last().is_none_or(|last| last.at_us() <= self.omit_us);
        if streams.into_iter().all(ended) { 0 } else { self.omit_us }
    }
}

/// In the order of time: one interval of each flow in turn.
fn in_turn<I>(flows: Vec<Vec<Vec<I>>>) -> Vec<I> {
    let mut flows: Vec<_> = flows.into_iter().map(Vec::into_iter).collect();
    let mut all = Vec::new();
    loop {
        let next: Vec<Vec<I>> = flows.iter_mut().filter_map(Iterator::next).collect();
        if next.is_empty() {
            return all;
        }
        all.extend(next.into_iter().flatten());
    }
}

/// What both ends report of anything that went otherwise than planned.
fn remarks<L: Load>(trial: TrialOf<'_, L>) -> Vec<Remark> {
    let of = |end: &L::Record| -> Vec<Remark> {
        end.remarks().iter().map(|says| Remark { at: end.place(), says: says.clone() }).collect()
    };
    [of(trial.client), of(trial.server)].concat()
}
