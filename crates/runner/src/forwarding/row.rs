//! Everything that is measured of one row: each test set up by its procedure, each trial made by the tester.

use super::error::ForwardingError;
use super::tester::Load;
use super::{Bench, Event};
use narrows_model::forwarding::plan::Row;
use narrows_model::forwarding::{
    BackToBackTest, ForwardingPlan, ForwardingTrial, LatencyTest, LossTest, OutageOfSize, RecoveryTest, ResetTest,
    SearchOfSize, Test, ThroughputTest, WorstCaseTest,
};
use narrows_model::load::frames::FrameTrial;
use narrows_model::run::search::{Observation, SearchPlan, SearchRecord};
use narrows_search::procedures::back_to_back::BurstSeen;
use narrows_search::procedures::recovery::Recovered;
use narrows_search::procedures::{
    BackToBack, BackToBackPlan, Confirmation, Confirmed, LatencyPlan, Recovery, RecoveryPlan, ResetPlan, loss, outage,
    throughput,
};
use narrows_search::{Search, Step};
use narrows_sys::clock;
use narrows_traffic::Stop;
use std::time::Duration;

/// What a trial says of its load, which is that of each direction. Where both are loaded the one speaks of which more is missing:
/// a load passes when it passes both ways.
fn observation(trial: &ForwardingTrial, effective_ms: u64) -> Observation {
    let Some((direction, frames)) = worse(trial) else {
        let invalid = Some("nothing was sent".to_owned());
        return Observation { effective_ms, invalid, ..Observation::default() };
    };
    // Frames to all stations are a part of the load of which none is to come out: none is lost.
    let to_all = trial.broadcast(direction);
    Observation {
        intended: frames.sent.due() + to_all.due,
        offered: handed(frames) + to_all.handed,
        sent: frames.sent.sent() + to_all.sent,
        received: frames.got.distinct() + to_all.sent,
        effective_ms,
        invalid: trial.invalid.clone(),
    }
}

/// The direction of which more is missing.
fn worse(trial: &ForwardingTrial) -> Option<(usize, &FrameTrial)> {
    let missing = |(_, frames): &(usize, &FrameTrial)| frames.sent.due().saturating_sub(frames.got.distinct());
    // Of two that are alike the first.
    trial.directions.iter().enumerate().rev().max_by_key(missing)
}

fn handed(frames: &FrameTrial) -> u64 {
    frames.sent.streams.iter().map(|stream| stream.handed).sum()
}

const fn millis(time: Duration) -> u64 {
    #[allow(clippy::cast_possible_truncation)] // 500 million years
    {
        time.as_millis() as u64
    }
}

impl Bench<'_> {
    pub(super) fn row(&mut self, plan: &ForwardingPlan, row: Row) -> Result<(), ForwardingError> {
        let tester = self.tester.qualify(row)?;
        (self.watch)(Event::Tester(tester.pps));
        let tester_pps = Some(tester.pps).filter(|pps| *pps > 0.0);
        self.record.tester.push(tester);
        // What nobody counts: caches fill, neighbours are found, and it is seen whether anything passes at all.
        let first = self.trial(Test::Qualification, row, 0, Load::Burst { frames: 200, pps: 10_000.0 })?;
        if self.record.ended.is_some() {
            self.record.trials.push(first);
        }
        let mut throughput_pps = None;
        if let (Some(test), false) = (&plan.tests.throughput, self.over()) {
            throughput_pps = self.throughput(plan, test, row, tester_pps)?;
        }
        if let (Some(test), false) = (&plan.tests.latency, self.over()) {
            self.latency(plan, test, row, throughput_pps)?;
        }
        if let (Some(test), false) = (&plan.tests.loss, self.over()) {
            self.loss(plan, test, row, tester_pps)?;
        }
        if let (Some(test), false) = (&plan.tests.back_to_back, self.over()) {
            self.back_to_back(plan, test, row, throughput_pps)?;
        }
        if let (Some(test), false) = (&plan.tests.recovery, self.over()) {
            self.recovery(plan, test, row, throughput_pps)?;
        }
        if let (Some(test), false) = (&plan.tests.worst_case, self.over()) {
            self.worst_case(plan, test, row)?;
        }
        if let (Some(test), false) = (&plan.tests.reset, self.over()) {
            self.reset(plan, test, row, throughput_pps)?;
        }
        Ok(())
    }

    fn search(&mut self, plan: &SearchPlan, test: Test, row: Row) -> Result<SearchRecord, ForwardingError> {
        let mut search = Search::new(plan)?;
        let began = clock::now();
        while let Step::Trial { load_pps, duration } = search.next(began.elapsed()) {
            let since = clock::now();
            let trial = self.trial(test, row, 0, Load::Rate { pps: load_pps, duration_ms: millis(duration) })?;
            search.observe(observation(&trial, millis(since.elapsed())), began.elapsed())?;
            self.keep_if_telling(trial);
            if self.over() {
                search.stop();
            }
        }
        Ok(search.record())
    }

    fn throughput(
        &mut self,
        plan: &ForwardingPlan,
        test: &ThroughputTest,
        row: Row,
        tester_pps: Option<f64>,
    ) -> Result<Option<f64>, ForwardingError> {
        let search = match throughput::search_plan(plan, test, row, tester_pps) {
            Ok(search) => search,
            Err(why) => {
                (self.watch)(Event::Says(&why));
                return Ok(None);
            }
        };
        let mut not_confirmed_pps = None;
        loop {
            let record = self.search(&search, Test::Throughput, row)?;
            for result in &record.results {
                (self.watch)(Event::Found(&result.goal, result.lower_pps));
            }
            let found = record.results.first().and_then(throughput::found).map(|(pps, _)| pps);
            let (traffic, size) = (row.traffic, row.size);
            self.record.searches.push(SearchOfSize { traffic, size, record, not_confirmed_pps });
            let Some(pps) = found else { return Ok(None) };
            let first = self.record.trials.len();
            let confirmed = self.confirm(test, row, pps, tester_pps)?;
            let device_changed = confirmed.passed + confirmed.invalid < confirmed.repetitions && !confirmed.holds;
            if !device_changed || not_confirmed_pps.is_some() || self.over() {
                return Ok(found);
            }
            // What the device carried while it was searched and what it carries now are two: it is searched once more, and what comes
            // of that stands. The repetitions stay as trials of the search.
            (self.watch)(Event::Says("the repetitions do not confirm it: it is searched once more"));
            not_confirmed_pps = found;
            self.record.searches.pop();
            for trial in self.record.trials.iter_mut().skip(first) {
                trial.test = Test::Throughput;
            }
        }
    }

    /// The repetitions at what was found.
    fn confirm(
        &mut self,
        test: &ThroughputTest,
        row: Row,
        pps: f64,
        tester_pps: Option<f64>,
    ) -> Result<Confirmed, ForwardingError> {
        let mut confirmation = Confirmation::new(test, pps, tester_pps)?;
        let mut repetition = 0;
        while let Some((pps, duration_ms)) = confirmation.ask().filter(|_| !self.over()) {
            let mut trial = self.trial(Test::Confirmation, row, repetition, Load::Rate { pps, duration_ms })?;
            let why = confirmation.observe(observation(&trial, duration_ms))?;
            trial.invalid = trial.invalid.or(why);
            self.record.trials.push(trial);
            repetition += 1;
        }
        Ok(confirmation.result())
    }

    fn latency(
        &mut self,
        plan: &ForwardingPlan,
        test: &LatencyTest,
        row: Row,
        throughput_pps: Option<f64>,
    ) -> Result<(), ForwardingError> {
        let Ok(latency) = LatencyPlan::of(plan, test, row, throughput_pps) else { return Ok(()) };
        for repetition in 0..latency.repetitions {
            if self.over() {
                break;
            }
            let load = Load::Rate { pps: latency.load_pps, duration_ms: latency.duration_ms };
            let trial = self.trial(Test::Latency, row, repetition, load)?;
            self.record.trials.push(trial);
        }
        Ok(())
    }

    fn loss(
        &mut self,
        plan: &ForwardingPlan,
        test: &LossTest,
        row: Row,
        tester_pps: Option<f64>,
    ) -> Result<(), ForwardingError> {
        let Ok(search) = loss::search_plan(plan, test, row, tester_pps) else { return Ok(()) };
        let record = self.search(&search, Test::Loss, row)?;
        self.record.curves.push(SearchOfSize { traffic: row.traffic, size: row.size, record, not_confirmed_pps: None });
        Ok(())
    }

    fn back_to_back(
        &mut self,
        plan: &ForwardingPlan,
        test: &BackToBackTest,
        row: Row,
        throughput_pps: Option<f64>,
    ) -> Result<(), ForwardingError> {
        let Ok(bursts) = BackToBackPlan::of(plan, test, row, throughput_pps) else { return Ok(()) };
        let mut procedure = BackToBack::new(&bursts)?;
        while let Some(frames) = procedure.ask().filter(|_| !self.over()) {
            let repetition = procedure.repetition();
            let trial = self.trial(Test::BackToBack, row, repetition, Load::Burst { frames, pps: bursts.max_pps })?;
            let Some((direction, worse)) = worse(&trial) else { break };
            let (to_all, own) = (trial.broadcasts(), trial.broadcast(direction));
            let gaps: u64 = trial.directions.iter().map(|it| it.sent.due().saturating_sub(handed(it))).sum();
            let gaps = gaps + to_all.due.saturating_sub(to_all.handed);
            let stalled = (gaps > 0).then(|| format!("the burst has gaps of {gaps} frames: the generator stood still"));
            procedure.observe(&BurstSeen {
                sent: worse.sent.sent() + own.sent,
                received: worse.got.distinct() + own.sent,
                offered_pps: bursts.max_pps,
                invalid: trial.invalid.clone().or(stalled),
            })?;
            self.keep_if_telling(trial);
        }
        if let Some(why) = procedure.ended() {
            (self.watch)(Event::Says(why));
        }
        self.record.bursts.extend(procedure.bursts(row));
        Ok(())
    }

    fn recovery(
        &mut self,
        plan: &ForwardingPlan,
        test: &RecoveryTest,
        row: Row,
        throughput_pps: Option<f64>,
    ) -> Result<(), ForwardingError> {
        let Ok(order) = RecoveryPlan::of(plan, test, row, throughput_pps) else { return Ok(()) };
        let mut procedure = Recovery::new(order);
        while let Some(order) = procedure.ask().copied().filter(|_| !self.over()) {
            let (overload, after) = (order.overload_pps, order.after_pps);
            (self.watch)(Event::Says(&format!("overload of {overload:.0} frames/s, then at once {after:.0}")));
            clock::sleep(Duration::from_millis(plan.rest_ms));
            let repetition = u32::try_from(procedure.results().len()).unwrap_or(u32::MAX);
            let (trial, seen, since_ns) = self.tester.cut(row, repetition, &order)?;
            (self.watch)(Event::Trial(overload, &trial));
            let recovered = procedure.observe(&seen)?;
            let (outage_ns, between_ns) = match recovered {
                Some(Recovered::After { ns, between_ns }) => (Some(ns), between_ns),
                _ => (None, None),
            };
            let why = recovered.map_or_else(
                || Some(format!("the trial says nothing: {}", seen.invalid.unwrap_or_default())),
                |recovered| recovered.why(&order),
            );
            (self.watch)(Event::Says(&match (outage_ns, &why) {
                (Some(ns), _) => format!("recovered after {:.1} ms", ns as f64 / 1e6),
                (None, why) => why.clone().unwrap_or_default(),
            }));
            self.record.outages.push(OutageOfSize {
                test: Test::Recovery,
                traffic: row.traffic,
                size: row.size,
                outage_ns,
                between_ns,
                since_ns,
                remarks: why.into_iter().collect(),
            });
            self.record.trials.push(trial);
        }
        Ok(())
    }

    fn worst_case(&mut self, plan: &ForwardingPlan, test: &WorstCaseTest, row: Row) -> Result<(), ForwardingError> {
        let Some(pps) = plan.most_pps(row) else { return Ok(()) };
        for repetition in 0..test.repetitions {
            if self.over() {
                break;
            }
            let trial =
                self.trial(Test::WorstCase, row, repetition, Load::Rate { pps, duration_ms: test.duration_ms })?;
            self.record.trials.push(trial);
        }
        Ok(())
    }

    fn reset(
        &mut self,
        plan: &ForwardingPlan,
        test: &ResetTest,
        row: Row,
        throughput_pps: Option<f64>,
    ) -> Result<(), ForwardingError> {
        let Ok(order) = ResetPlan::of(plan, test, row, throughput_pps) else { return Ok(()) };
        let (command, within) = (test.command.clone(), Duration::from_millis(order.within_ms));
        let (pps, seconds) = (order.load_pps, within.as_secs_f64());
        let program = command.first().map_or("", String::as_str);
        (self.watch)(Event::Says(&format!("`{program}` resets the device: {pps:.0} frames/s for {seconds:.1} s")));
        // The command ends with the load, however it ends.
        let over = Stop::new();
        let trial = std::thread::scope(|scope| {
            let user = scope.spawn(|| reset_device(&command, within, &over));
            let load = Load::Rate { pps: order.load_pps, duration_ms: order.within_ms };
            let trial = self.trial(Test::Reset, row, 0, load);
            over.stop();
            match user.join() {
                Ok(reset) => trial.map(|trial| (trial, reset)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        });
        let (mut trial, reset) = trial?;
        let (outage_ns, between_ns, mut remarks) = match trial.directions.first().map(outage) {
            Some(Ok(outage)) => (Some(outage.ns), outage.stamps_ns, outage.remarks),
            Some(Err(why)) => (None, None, vec![why]),
            None => (None, None, vec!["nothing was sent".to_owned()]),
        };
        remarks.extend(reset.err());
        remarks.iter().for_each(|remark| (self.watch)(Event::Says(remark)));
        if let Some(ns) = outage_ns {
            (self.watch)(Event::Says(&format!("out of service for {:.1} ms", ns as f64 / 1e6)));
        }
        let (traffic, size) = (row.traffic, row.size);
        self.record.outages.push(OutageOfSize {
            test: Test::Reset,
            traffic,
            size,
            outage_ns,
            between_ns,
            since_ns: None,
            remarks,
        });
        trial.directions.iter_mut().for_each(|frames| super::cut::thin(&mut frames.got.intervals));
        self.record.trials.push(trial);
        Ok(())
    }
}

/// How long frames come before the device is reset: that they come at all must be seen.
const BEFORE_RESET: Duration = Duration::from_secs(1);

/// Runs the user's command a moment after the load began.
fn reset_device(command: &[String], within: Duration, over: &Stop) -> Result<(), String> {
    let since = clock::now();
    while since.elapsed() < BEFORE_RESET.min(within / 4) && !over.is_set() {
        clock::sleep(Duration::from_millis(5));
    }
    let program = command.first().map_or("", String::as_str);
    super::command::run(command, within, Some(over)).map_err(|why| format!("the reset command `{program}` {why}"))
}
