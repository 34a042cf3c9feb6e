//! The sweep over ends that are played: the order of its points, what is measured again after an interruption, and what a
//! point that cannot be measured leaves.

#![allow(clippy::panic)] // a test that fails loudly

use narrows_model::run::sweep::Lossless;
use narrows_model::*;
use narrows_runner::ends::{self, Changes, Ends, EndsError, On, TrialFailed};
use narrows_runner::sweep::{self, Watch};
use std::path::Path;

/// Datagrams a second that the sender sends at most, and that arrive at most.
const SENT: f64 = 100_000.0;
const CARRIED: f64 = 60_000.0;
/// Larger ones do not fit.
const MAX_BYTES: u32 = 1472;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    /// The user interrupts in the trial of this number.
    StopInTrial(usize),
    /// The server is lost in the trial of this number.
    LostInTrial(usize),
    /// From the trial of this number on the server refuses everything.
    DeafFromTrial(usize),
}

struct Played {
    trouble: Trouble,
    carried: f64,
    tcp: Trial,
    made: usize,
    udp: Vec<UdpPlan>,
    order: Vec<(SweepProtocol, Direction, u32)>,
}

impl Played {
    fn new(trouble: Trouble) -> Self {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/runs/long-path-after.run.json");
        let tcp = narrows_store::load(&path).expect("a stored run").trials.remove(0).trial;
        Self { trouble, carried: CARRIED, tcp, made: 0, udp: vec![], order: vec![] }
    }

    fn deaf(&self) -> bool {
        matches!(self.trouble, Trouble::DeafFromTrial(from) if self.made > from)
    }

    /// Counts a trial; what happens to it.
    fn next(&mut self) -> Result<(), EndsError> {
        let number = self.made;
        self.made += 1;
        if self.trouble == Trouble::LostInTrial(number) {
            return Err(EndsError::Lost("lost the server at 192.0.2.2:5220: it says no more".into()));
        }
        if self.deaf() { Err(EndsError::Failed("the server says: there is no such session".into())) } else { Ok(()) }
    }
}

fn failed(why: EndsError) -> TrialFailed {
    TrialFailed { why, partial: None }
}

/// What both ends of a trial see of a path that carries so much.
fn udp_trial(plan: &UdpPlan, bytes: u32, carried: f64) -> Trial {
    let seconds = plan.duration_ms as f64 / 1000.0;
    let end = |place: Place| {
        let stream = |flow: Flow| {
            let pps = match plan.rate(flow) {
                UdpRate::Max => SENT,
                UdpRate::Pps(pps) => pps,
                UdpRate::Bps(bps) => bps as f64 / 8.0 / f64::from(bytes),
            };
            let (sent, got) = ((pps * seconds).round() as u64, (pps.min(carried) * seconds).round() as u64);
            let active_ns = plan.duration_ms * 1_000_000;
            let sent_part =
                UdpSent { datagrams: sent, bytes: sent * u64::from(bytes), active_ns, ..UdpSent::default() };
            let received = UdpReceived {
                datagrams: got,
                distinct: got,
                bytes: got * u64::from(bytes),
                lost: sent - got,
                active_ns,
                ..UdpReceived::default()
            };
            UdpStreamRecord {
                id: 0,
                flow,
                local: String::new(),
                remote: String::new(),
                datagram_bytes: bytes,
                path_mtu_bytes: None,
                sndbuf_bytes: None,
                rcvbuf_bytes: None,
                rcvbuf_requested_bytes: None,
                method: String::new(),
                sent: (flow.sender() == place).then_some(sent_part),
                received: (flow.receiver() == place).then_some(received),
                samples: vec![],
            }
        };
        UdpEndRecord {
            place,
            streams: plan.flows().iter().map(|flow| stream(*flow)).collect(),
            host: vec![],
            before: Snapshot::default(),
            after: Snapshot::default(),
            remarks: vec![],
        }
    };
    let elapsed_us = plan.duration_ms * 1000;
    Trial::new(plan.clone(), end(Place::Client), end(Place::Server), elapsed_us)
}

impl Played {
    fn tcp_trial(&mut self, plan: &TcpPlan) -> Result<Trial, TrialFailed> {
        self.order.push((SweepProtocol::Tcp, plan.direction, plan.message_bytes));
        self.next().map_err(failed)?;
        assert!(plan.no_delay, "each message is sent by itself");
        let measured = self.tcp.plan.get::<TcpPlan>().expect("TCP").clone();
        let plan = TcpPlan { message_bytes: plan.message_bytes, ..measured };
        Ok(Trial { plan: plan.into(), ..self.tcp.clone() })
    }

    fn udp_trial(&mut self, plan: &UdpPlan) -> Result<Trial, TrialFailed> {
        let DatagramSizes::Sequence(sizes) = &plan.sizes else { panic!("a sweep names its sizes") };
        self.udp.push(plan.clone());
        if plan.rate_up == UdpRate::Max || plan.rate_down == UdpRate::Max {
            self.order.push((SweepProtocol::Udp, plan.direction, sizes[0]));
        }
        self.next().map_err(failed)?;
        if sizes[0] > MAX_BYTES {
            let why = format!("datagrams of {} bytes do not fit: the path MTU is 1500 bytes", sizes[0]);
            return Err(failed(EndsError::Failed(why)));
        }
        Ok(udp_trial(plan, sizes[0], self.carried))
    }
}

impl Changes for Played {
    fn apply(&mut self, _: Place, _: &Setting) -> Result<Change, EndsError> {
        Err(EndsError::Failed("a sweep changes nothing".into()))
    }

    fn undo(&mut self, _: &Change) -> Result<(), EndsError> {
        Err(EndsError::Failed("a sweep changes nothing".into()))
    }

    fn keep(&mut self, _: &Change) -> Result<(), EndsError> {
        Err(EndsError::Failed("a sweep changes nothing".into()))
    }
}

impl Ends for Played {
    fn inventory(&mut self, _: Place) -> Result<Snapshot, EndsError> {
        if self.deaf() { Err(EndsError::Failed("there is no such session".into())) } else { Ok(Snapshot::default()) }
    }

    fn trial(&mut self, plan: &LoadPlan, on: On, _: ends::Watch<'_>) -> Result<Trial, TrialFailed> {
        match (plan, on) {
            (LoadPlan::Tcp(plan), On::Path) => self.tcp_trial(plan),
            (LoadPlan::Udp(plan), On::Path) => self.udp_trial(plan),
            _ => Err(failed(EndsError::Failed("no such trial here".into()))),
        }
    }

    fn stopped(&self) -> bool {
        matches!(self.trouble, Trouble::StopInTrial(number) if self.made > number)
    }
}

/// Remembers what it was told.
#[derive(Default)]
struct Heard {
    begun: Vec<SweepCell>,
    saved: Vec<Run>,
}

impl Watch for Heard {
    fn begins(&mut self, _: &SweepRecord, cell: SweepCell) {
        self.begun.push(cell);
    }

    fn measured(&mut self, run: &Run) {
        self.saved.push(run.clone());
    }
}

fn small() -> SweepPlan {
    SweepPlan { sizes: vec![64, 1400], trial_ms: 1_000, search_lossless: false, ..SweepPlan::default() }
}

fn fresh(ends: &mut Played, plan: &SweepPlan) -> Run {
    let target = Target { asked: "b".into(), address: "192.0.2.2:5220".into(), family: Family::Ipv4 };
    sweep::begin(ends, plan, target, ("sweep".into(), "narrows".into()))
}

fn run(trouble: Trouble, plan: &SweepPlan) -> (Run, Played, Heard) {
    let (mut ends, mut heard) = (Played::new(trouble), Heard::default());
    let mut run = fresh(&mut ends, plan);
    sweep::go_on(&mut ends, &mut run, &mut heard);
    (run, ends, heard)
}

fn record(run: &Run) -> &SweepRecord {
    run.sweep.as_ref().expect("a sweep")
}

#[test]
fn every_point_is_measured_in_the_plans_order_and_kept_at_once() {
    use Direction::{Down, Up};
    use SweepProtocol::{Tcp, Udp};
    let plan = small();
    let (run, ends, heard) = run(Trouble::None, &plan);
    assert_eq!((&run.ending, &record(&run).ending), (&Ending::Complete, &Ending::Complete));
    let wanted = [Udp, Tcp].map(|protocol| [Up, Down].map(|way| [(protocol, way, 64), (protocol, way, 1400)]));
    assert_eq!(ends.order, wanted.as_flattened().as_flattened());
    assert_eq!(heard.begun, plan.cells().collect::<Vec<_>>());
    let kept: Vec<_> = heard.saved.iter().map(|run| (record(run).points.len(), run.ending.clone())).collect();
    assert_eq!(kept, (1..=8).map(|n| (n, Ending::Interrupted)).collect::<Vec<_>>(), "a killed sweep can go on");
    let SweepOutcome::Measured(figures) = &record(&run).points[0].outcome else { panic!("{run:?}") };
    let figures = &figures[0];
    let near = |value: Option<f64>, wanted: f64| (value.expect("seen") / wanted - 1.0).abs() < 1e-4;
    assert!(near(figures.sending_pps, SENT) && near(figures.receiving_pps, CARRIED), "{figures:?}");
    assert!(near(figures.receiving_bps, CARRIED * 512.0), "{figures:?}");
    assert_eq!((figures.lost, figures.unsent, &figures.lossless), (Some(40_000), Some(0), &None));
    let SweepOutcome::Measured(tcp) = &record(&run).points[4].outcome else { panic!("{run:?}") };
    assert!(tcp[0].receiving_bps.is_some_and(|bps| bps > 0.0) && tcp[0].lost.is_none(), "{tcp:?}");
    let messages = tcp[0].sending_bps.zip(tcp[0].sending_pps).map(|(bps, pps)| bps / pps);
    assert!(near(messages, 512.0), "{tcp:?}");
}

#[test]
fn a_size_that_does_not_fit_is_a_result_and_the_sweep_goes_on() {
    let plan = SweepPlan { sizes: vec![8948, 64], protocols: vec![SweepProtocol::Udp], ..small() };
    let (run, ends, _) = run(Trouble::None, &plan);
    assert_eq!((&run.ending, ends.made), (&Ending::Complete, 4));
    let outcomes: Vec<_> = record(&run).points.iter().map(|point| &point.outcome).collect();
    let why = SweepOutcome::CannotRun("datagrams of 8948 bytes do not fit: the path MTU is 1500 bytes".into());
    assert_eq!((outcomes[0], outcomes[2]), (&why, &why));
    assert!(matches!(outcomes[1], SweepOutcome::Measured(_)) && matches!(outcomes[3], SweepOutcome::Measured(_)));
    assert!(record(&run).remaining().is_empty(), "it is not tried again");
}

#[test]
fn an_interrupted_sweep_keeps_its_points_and_goes_on_with_the_rest_alone() {
    let plan = small();
    let (mut run, ends, heard) = run(Trouble::StopInTrial(3), &plan);
    assert_eq!((&run.ending, ends.made), (&Ending::Interrupted, 4));
    assert_eq!((record(&run).points.len(), heard.saved.len()), (3, 3), "the trial that was cut short is no point");
    let before = record(&run).points.clone();
    let elapsed_us = run.elapsed_us;

    let (mut ends, mut heard) = (Played::new(Trouble::None), Heard::default());
    sweep::go_on(&mut ends, &mut run, &mut heard);
    assert_eq!(run.ending, Ending::Complete);
    assert_eq!(ends.made, 5);
    assert_eq!(heard.begun, plan.cells().skip(3).collect::<Vec<_>>());
    let record = record(&run);
    assert_eq!((&record.points[..3], record.points.len()), (&before[..], 8));
    assert!(record.points[3].at_us >= elapsed_us, "its clock stalled in between");
    assert!(record.points.is_sorted_by_key(|point| point.at_us));
}

#[test]
fn a_lost_server_ends_the_sweep_with_what_there_is() {
    let (run, _, _) = run(Trouble::LostInTrial(2), &small());
    let Ending::Failed(why) = &run.ending else { panic!("{:?}", run.ending) };
    assert!(why.contains("lost the server"), "{why}");
    assert_eq!((record(&run).points.len(), record(&run).remaining().len()), (2, 6));
}

#[test]
fn a_server_that_refuses_everything_is_no_property_of_the_points() {
    let (run, ends, _) = run(Trouble::DeafFromTrial(2), &small());
    assert_eq!(run.ending, Ending::Failed("the server says: there is no such session".into()));
    assert_eq!((record(&run).points.len(), ends.made), (2, 3), "the rest is not tried in vain");
}

fn lossless(run: &Run, point: usize, flow: usize) -> Lossless {
    let SweepOutcome::Measured(figures) = &record(run).points[point].outcome else { panic!("{run:?}") };
    figures[flow].lossless.clone().expect("it was searched")
}

#[test]
fn the_highest_lossless_rate_is_within_two_per_cent() {
    let plan = SweepPlan { sizes: vec![100], protocols: vec![SweepProtocol::Udp], search_lossless: true, ..small() };
    let (run, ends, _) = run(Trouble::None, &plan);
    for point in 0..2 {
        let found = lossless(&run, point, 0);
        let (lower, upper) = (found.lower_pps.expect("one passes"), found.upper_pps.expect("one fails"));
        assert!(lower <= CARRIED + 1.0 && CARRIED < upper && (upper - lower) / upper <= 0.02, "{found:?}");
        assert_eq!((found.lower_bps, found.remark), (Some(lower * 800.0), None));
    }
    assert!(ends.made <= 2 * 20, "{} trials of a second", ends.made);
}

#[test]
fn a_trial_without_loss_needs_no_search_if_it_was_long_enough() {
    let plan = SweepPlan { sizes: vec![100], protocols: vec![SweepProtocol::Udp], search_lossless: true, ..small() };
    for (trial_ms, searched) in [(2_000, false), (1_000, true)] {
        let mut ends = Played { carried: f64::INFINITY, ..Played::new(Trouble::None) };
        let mut run = fresh(&mut ends, &SweepPlan { trial_ms, ..plan.clone() });
        sweep::go_on(&mut ends, &mut run, &mut Heard::default());
        assert_eq!(ends.made > 2, searched, "{trial_ms} ms: {} trials", ends.made);
        let found = lossless(&run, 0, 0);
        assert!((found.lower_pps.expect("all pass") / SENT - 1.0).abs() < 1e-4, "{found:?}");
        assert_eq!(found.upper_pps, None);
        assert!(found.remark.is_some_and(|remark| remark.starts_with("no loss")));
    }
}

#[test]
fn while_one_way_is_searched_the_other_carries_what_it_did() {
    let plan = SweepPlan {
        sizes: vec![100],
        protocols: vec![SweepProtocol::Udp],
        directions: vec![Direction::Both],
        search_lossless: true,
        ..small()
    };
    let (run, ends, _) = run(Trouble::None, &plan);
    assert_eq!((run.ending.clone(), record(&run).points.len()), (Ending::Complete, 1));
    assert!(lossless(&run, 0, 0).lower_pps.is_some() && lossless(&run, 0, 1).lower_pps.is_some());
    let carried = |rate| matches!(rate, UdpRate::Bps(bps) if (bps as f64 / (CARRIED * 800.0) - 1.0).abs() < 1e-3);
    assert!(ends.udp[1..].iter().all(|plan| plan.direction == Direction::Both));
    assert!(carried(ends.udp[1].rate_down) && carried(ends.udp[ends.made - 1].rate_up), "{:?}", ends.udp);
}

#[test]
fn an_interrupted_search_is_made_again() {
    let plan = SweepPlan { sizes: vec![100], protocols: vec![SweepProtocol::Udp], search_lossless: true, ..small() };
    let (run, _, _) = run(Trouble::StopInTrial(4), &plan);
    assert_eq!((run.ending.clone(), record(&run).points.len()), (Ending::Interrupted, 0));
}

#[test]
fn the_time_to_expect_counts_each_search_at_its_limit() {
    let plan = SweepPlan { sizes: vec![64, 128], directions: vec![Direction::Both], ..SweepPlan::default() };
    let mut ends = Played::new(Trouble::None);
    let expected = |plan: &SweepPlan, ends: &mut Played| sweep::expected_ms(record(&fresh(ends, plan)));
    // Two sizes of two protocols, each half a second around ten; of UDP each of two flows at most 25 s more.
    assert_eq!(expected(&plan, &mut ends), [4 * 10_500, 4 * 10_500 + 2 * 2 * 25_000]);
    let plan = SweepPlan { search_lossless: false, ..plan };
    assert_eq!(expected(&plan, &mut ends), [42_000, 42_000]);
    let (run, _, _) = run(Trouble::StopInTrial(3), &plan);
    assert_eq!(sweep::expected_ms(record(&run)), [10_500, 10_500], "what is done takes no more time");
}
