//! This host and a server with a protocol of its own as the two ends of a path: little is known of the far host, and nothing can be changed
//! there.

use crate::ends::{Changes, Ends, EndsError, On, TrialFailed, Watch};
use crate::instruments::LiveInstruments;
use crate::{loopback, result_of};
use narrows_collect::Live;
use narrows_model::words::units;
use narrows_model::{
    Absent, Change, Flow, LoadPlan, LoadRecord, Place, Progress, Setting, Snapshot, Target, TcpPlan, Trial,
};
use narrows_sys::clock;
use narrows_traffic::{Connections, DataStream, Stop};
use narrows_wire::iperf3::far;
use std::net::IpAddr;
use std::sync::mpsc;
use std::time::Duration;

/// Whether a trial has seen enough, asked with the progress of an end.
pub type Enough<'a> = &'a mut dyn FnMut(Place, &Progress) -> bool;

/// This end of a trial.
#[derive(Debug, Clone)]
pub struct Here {
    pub instruments: LiveInstruments,
    /// Raised by Ctrl-C.
    pub stop: Stop,
}

/// A server that does not speak narrows' protocol.
pub trait Foreign {
    /// The name of what it speaks.
    const NAME: &'static str;

    fn target(&self) -> Target;

    fn peer(&self) -> Option<IpAddr>;

    /// Why it cannot have such a load; `None` where it can.
    fn refuses(&self, plan: &LoadPlan) -> Option<String>;

    /// The nearest plan that it can have, of one whose times nobody gave.
    fn fitted(&self, plan: &LoadPlan) -> LoadPlan {
        plan.clone()
    }

    /// See [`Ends::profile_takes`].
    fn profile_takes(&self) -> u64 {
        1
    }

    /// Runs a plan that is not refused.
    fn trial(&mut self, plan: &LoadPlan, here: &Here, enough: Enough<'_>) -> Result<Trial, TrialFailed>;
}

/// The ends of the path to such a server.
pub struct ForeignEnds<F> {
    far: F,
    here: Here,
}

impl<F: Foreign> ForeignEnds<F> {
    pub const fn new(far: F, here: Here) -> Self {
        Self { far, here }
    }

    fn impossible<T>() -> Result<T, EndsError> {
        let name = F::NAME;
        Err(EndsError::Failed(format!("a server of {name} lets nothing be changed; run `narrows serve` there")))
    }
}

impl<F: Foreign> Changes for ForeignEnds<F> {
    fn apply(&mut self, _: Place, _: &Setting) -> Result<Change, EndsError> {
        Self::impossible()
    }

    fn undo(&mut self, _: &Change) -> Result<(), EndsError> {
        Self::impossible()
    }

    fn keep(&mut self, _: &Change) -> Result<(), EndsError> {
        Self::impossible()
    }
}

impl<F: Foreign> Ends for ForeignEnds<F> {
    fn inventory(&mut self, place: Place) -> Result<Snapshot, EndsError> {
        if place == Place::Client {
            return Ok(narrows_collect::inventory(&Live::new(), self.far.peer()));
        }
        // What is missing is missing with its reason; the rules that need it cannot tell.
        let name = F::NAME;
        let why = format!("the far end is a server of {name}, which does not show its host; run `narrows serve` there");
        let absent = Absent { collector: name.to_owned(), what: "*".to_owned(), why };
        Ok(Snapshot { absent: vec![absent], ..Snapshot::default() })
    }

    fn refuses(&self, plan: &LoadPlan) -> Option<String> {
        self.far.refuses(plan)
    }

    fn fitted(&self, plan: &LoadPlan) -> LoadPlan {
        self.far.fitted(plan)
    }

    fn profile_takes(&self) -> u64 {
        self.far.profile_takes()
    }

    fn trial(&mut self, plan: &LoadPlan, on: On, watch: Watch<'_>) -> Result<Trial, TrialFailed> {
        self.trial_until(plan, on, &mut |place, progress| {
            watch(place, progress);
            false
        })
    }

    fn trial_until(&mut self, plan: &LoadPlan, on: On, enough: Enough<'_>) -> Result<Trial, TrialFailed> {
        match on {
            On::Underlay(_) => Err(failed(format!(
                "a server of {} is measured by one address only; run `narrows serve` there",
                F::NAME
            ))),
            On::Loopback => loopback::trial(self.here.instruments, plan, &self.here.stop).map_err(failed),
            On::Path => match self.far.refuses(plan) {
                Some(why) => Err(failed(why)),
                None => self.far.trial(plan, &self.here, enough),
            },
        }
    }

    fn stopped(&self) -> bool {
        self.here.stop.is_set()
    }
}

/// A trial of which nothing was measured.
pub(crate) fn failed(why: String) -> TrialFailed {
    TrialFailed { why: EndsError::Failed(why), partial: None }
}

/// What opening the streams of a trial failed of.
pub(crate) fn not_opened(why: String, stop: &Stop) -> TrialFailed {
    if stop.is_set() { TrialFailed { why: EndsError::Interrupted, partial: None } } else { failed(why) }
}

/// This end of a trial that is over.
pub(crate) struct Ran {
    pub(crate) client: LoadRecord,
    pub(crate) elapsed_us: u64,
    /// It ended well before its time, and nobody here wanted that.
    pub(crate) is_short: bool,
}

/// Moves the data of the streams. What goes up ends by itself; what comes down, when this end says so. `before`: the counters before they
/// were opened.
pub(crate) fn run(
    plan: &LoadPlan,
    streams: Vec<DataStream>,
    before: Snapshot,
    peer: Option<IpAddr>,
    here: &Here,
    enough: Enough<'_>,
) -> Result<Ran, TrialFailed> {
    let Here { instruments, stop } = here;
    let over = stop.below();
    let lasts_ms = plan.duration_ms();
    let comes_down = streams.iter().any(|stream| stream.flow == Flow::Down);
    let longest = Duration::from_millis(lasts_ms.unwrap_or(TcpPlan::LONGEST_MS));
    let ends_at = clock::now() + longest;
    let mut is_enough = false;
    let (outbox, inbox) = mpsc::channel();
    let record = std::thread::scope(|scope| {
        let engine = scope.spawn(|| {
            let connections = Connections::of(streams);
            let record = instruments.run(Place::Client, plan, connections, &over, &mut |progress| {
                let _ = outbox.send(progress);
            });
            record.map(|record| record.between(before, instruments.counters(peer)))
        });
        loop {
            match inbox.recv_timeout(Duration::from_millis(20)) {
                Ok(progress) => {
                    is_enough |= enough(Place::Client, &progress);
                    is_enough |= enough(Place::Server, &far::progress(&progress));
                }
                Err(_) if engine.is_finished() => break,
                Err(_) => {}
            }
            if is_enough || comes_down && clock::now() >= ends_at {
                over.stop();
            }
        }
        result_of(engine.join())
    });
    let client = record.map_err(failed)?;
    let elapsed_us = client.flow_time_us();
    let is_short = lasts_ms.is_some_and(|ms| elapsed_us < ms * 900) && !is_enough && !stop.is_set();
    Ok(Ran { client, elapsed_us, is_short })
}

impl Ran {
    /// The trial with the far end's record, or what was lost of it. `server`: its name; `broken`: how the connection broke, if it did;
    /// `has_ended`: whether the server ended it in order, as it may when it knows enough.
    pub(crate) fn end(
        self,
        plan: &LoadPlan,
        record: LoadRecord,
        server: &str,
        broken: Option<&str>,
        has_ended: bool,
    ) -> Result<Trial, TrialFailed> {
        let Self { mut client, elapsed_us, is_short } = self;
        let after = units::micros(elapsed_us);
        if let (true, true, LoadRecord::Tcp(record)) = (is_short, has_ended, &mut client) {
            record.remarks.push(format!("the server ended the test after {after}"));
        }
        let trial = Trial { plan: plan.clone(), client, server: record, elapsed_us };
        match broken.filter(|_| is_short || plan.duration_ms().is_none()) {
            Some(why) => {
                let why = format!("lost {server} after {after}: {why}");
                Err(TrialFailed { why: EndsError::Lost(why), partial: Some(Box::new(trial)) })
            }
            None => Ok(trial),
        }
    }
}
