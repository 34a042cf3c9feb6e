//! The intervals of each direction add up to its summary, for each kind of measurement, as they are shown live and as they are
//! read from the record.
#![allow(clippy::unwrap_used)]

use narrows_model::{
    Direction, Flow, Load, LoadSample, Place, Progress, RrPlan, RrSample, StreamProgress, TcpPlan, TcpSample, TrialOf,
    UdpPlan, UdpRate, UdpReceived, UdpSample, UdpSent,
};
use narrows_views::measure::live::Live;
use narrows_views::measure::{Viewed, rr, tcp, udp};

/// Milliseconds at which an end has samples, and what it had counted of a stream.
type Counted = [(u64, u64); 4];

/// A sender of 850 a second that ends with the plan …
const SENT: Counted = [(0, 0), (1_000, 848), (2_001, 1_698), (3_000, 2_548)];
/// … a receiver that waits for nothing, and one behind a queue that drains.
const AT_ONCE: Counted = [(0, 0), (1_000, 848), (2_000, 1_697), (3_002, 2_548)];
const DRAINED: Counted = [(0, 0), (1_000, 690), (2_000, 1_517), (3_270, 2_548)];

/// Number, direction and samples of each stream of an end.
type Streams<S> = Vec<(u32, Flow, Vec<S>)>;

/// What each end counted: streams 0 and 1 go up, 2 and 3 down.
fn streams<S>(at: Place, sample: impl Fn(u64, u64) -> S) -> Streams<S> {
    let all = [(0, Flow::Up), (1, Flow::Up), (2, Flow::Down), (3, Flow::Down)];
    let counted = |flow: Flow| match (flow.sender() == at, flow) {
        (true, _) => SENT,
        (false, Flow::Up) => DRAINED,
        (false, Flow::Down) => AT_ONCE,
    };
    let of = |flow| counted(flow).iter().map(|(at_ms, count)| sample(at_ms * 1000, *count)).collect();
    all.into_iter().map(|(id, flow)| (id, flow, of(flow))).collect()
}

/// All intervals of a trial: those that are cut while it runs, and the rest.
fn live<L: Viewed>(trial: TrialOf<'_, L>, records: [(Place, &Streams<L::Sample>); 2]) -> Vec<L::Interval>
where
    L::Sample: Into<LoadSample>,
{
    let mut live = Live::new(trial.plan);
    let mut all = Vec::new();
    for nth in 0..4 {
        for (place, streams) in records {
            let told = |(id, flow, samples): &(u32, Flow, Vec<L::Sample>)| StreamProgress {
                id: *id,
                flow: *flow,
                sample: samples[nth].clone().into(),
            };
            let at_us = [0, 1_000_000, 2_001_000, 3_000_000][nth];
            all.extend(live.take(place, &Progress { at_us, streams: streams.iter().map(told).collect() }));
        }
    }
    all.extend(live.rest(trial));
    all
}

fn both<S>(sample: impl Fn(u64, u64) -> S) -> [Streams<S>; 2] {
    [Place::Client, Place::Server].map(|place| streams(place, &sample))
}

#[test]
fn of_udp() {
    let rate = UdpRate::Bps(10_000_000);
    let plan = UdpPlan {
        streams: 2,
        direction: Direction::Both,
        duration_ms: 3_000,
        rate_up: rate,
        rate_down: rate,
        ..UdpPlan::default()
    };
    let sides = both(|at_us, datagrams| UdpSample { at_us, datagrams, bytes: datagrams * 1472, ..Default::default() });
    let record = |place, at: usize| {
        let mut record = UdpPlan::partial_record(place, sides[at].clone(), String::new());
        for stream in &mut record.streams {
            let (datagrams, active_ns) = (2_548, 2_998_800_000);
            if stream.flow.sender() == place {
                let sent = UdpSent { datagrams, bytes: 2_548 * 1472, active_ns, burst_max: 1, ..Default::default() };
                stream.sent = Some(sent);
            } else {
                let received =
                    UdpReceived { datagrams, distinct: datagrams, bytes: 2_548 * 1472, ..Default::default() };
                stream.received = Some(UdpReceived { active_ns, ..received });
            }
        }
        record
    };
    let [client, server] = [record(Place::Client, 0), record(Place::Server, 1)];
    let trial = TrialOf { plan: &plan, client: &client, server: &server, elapsed_us: 3_000_000 };
    let recorded = Live::new(&plan).rest(trial);
    let summary = udp::summary(trial);
    for intervals in [recorded, live(trial, [(Place::Client, &sides[0]), (Place::Server, &sides[1])])] {
        for flow in &summary.flows {
            let sums = || intervals.iter().filter(|it| it.flow == flow.flow && it.stream.is_none());
            let (sent, received) = (flow.total.sent.as_ref().unwrap(), flow.total.received.as_ref().unwrap());
            assert_eq!(sums().map(|it| it.sent.unwrap().datagrams).sum::<u64>(), sent.datagrams);
            assert_eq!(sums().map(|it| it.received.unwrap().datagrams).sum::<u64>(), received.datagrams);
            // By what is shown: a rate, and how long it lasted.
            let shown: f64 = sums().map(|it| it.sent.unwrap().pps * (it.to_s - it.from_s)).sum();
            assert!((shown / 5_096.0 - 1.0).abs() < 0.002, "{:?}: {shown} {:?}", flow.flow, sums().collect::<Vec<_>>());
            let shown: f64 = sums().map(|it| it.received.unwrap().pps * (it.to_s - it.from_s)).sum();
            assert!((shown / 5_096.0 - 1.0).abs() < 0.002, "{:?}: {shown}", flow.flow);
        }
    }
}

#[test]
fn of_tcp() {
    let plan = TcpPlan { streams: 2, direction: Direction::Both, ..TcpPlan::default() };
    let sides = both(|at_us, bytes| TcpSample { at_us, bytes, ..Default::default() });
    let record = |place, at: usize| TcpPlan::partial_record(place, sides[at].clone(), String::new());
    let [client, server] = [record(Place::Client, 0), record(Place::Server, 1)];
    let trial = TrialOf { plan: &plan, client: &client, server: &server, elapsed_us: 3_000_000 };
    let recorded = Live::new(&plan).rest(trial);
    for intervals in [recorded, live(trial, [(Place::Client, &sides[0]), (Place::Server, &sides[1])])] {
        for flow in &tcp::summary(trial).flows {
            let sums = || intervals.iter().filter(|it| it.flow == flow.total.flow && it.stream.is_none());
            assert_eq!(sums().map(|it| it.bytes).sum::<u64>(), flow.total.bytes);
            let shown: f64 = sums().map(|it| it.goodput_bps * (it.to_s - it.from_s) / 8.0).sum();
            assert!((shown / 5_096.0 - 1.0).abs() < 0.002, "{:?}: {shown}", flow.total.flow);
        }
    }
}

#[test]
fn of_requests_and_responses() {
    let plan = RrPlan { streams: 2, duration_ms: 3_000, ..RrPlan::default() };
    let sides = [Place::Client, Place::Server].map(|_| {
        let samples =
            |_| SENT.map(|(at_ms, transactions)| RrSample { at_us: at_ms * 1000, transactions, ..Default::default() });
        (0..2).map(|id| (id, Flow::Up, samples(id).to_vec())).collect::<Vec<_>>()
    });
    let record = |place, at: usize| RrPlan::partial_record(place, sides[at].clone(), String::new());
    let [client, server] = [record(Place::Client, 0), record(Place::Server, 1)];
    let trial = TrialOf { plan: &plan, client: &client, server: &server, elapsed_us: 3_000_000 };
    let phase = rr::phase(trial);
    let total = phase.summary.total.unwrap();
    for intervals in [phase.intervals, live(trial, [(Place::Client, &sides[0]), (Place::Server, &sides[1])])] {
        let sums = || intervals.iter().filter(|it| it.stream.is_none());
        assert_eq!(sums().map(|it| it.transactions).sum::<u64>(), total.transactions);
        let shown: f64 = sums().map(|it| it.per_s * (it.to_s - it.from_s)).sum();
        assert!((shown / 5_096.0 - 1.0).abs() < 0.002, "{shown}");
    }
}
