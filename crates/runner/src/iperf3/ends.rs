//! This host and a server of iperf3 as the two ends of a path: nothing is known of the far host, and nothing can be changed there.

use super::connect::{Iperf3Error, Peer};
use super::test::{self, Tested};
use crate::ends::{Changes, Ends, EndsError, On, TrialFailed, Watch};
use crate::instruments::LiveInstruments;
use crate::loopback;
use narrows_collect::Live;
use narrows_model::{Absent, Change, LoadPlan, Place, Setting, Snapshot, Trial};
use narrows_traffic::Stop;
use narrows_wire::iperf3::Params;

pub struct Iperf3Ends {
    peer: Peer,
    instruments: LiveInstruments,
    stop: Stop,
}

impl Iperf3Ends {
    /// The ends of the path to this server.
    pub const fn new(peer: Peer, instruments: LiveInstruments, stop: Stop) -> Self {
        Self { peer, instruments, stop }
    }
}

/// What is known of the far host.
fn unknown() -> Snapshot {
    let why = "the far end is a server of iperf3, which does not show its host; run `narrows serve` there";
    let absent = Absent { collector: "iperf3".to_owned(), what: "*".to_owned(), why: why.to_owned() };
    Snapshot { absent: vec![absent], ..Snapshot::default() }
}

fn impossible<T>(what: &str) -> Result<T, EndsError> {
    Err(EndsError::Failed(format!("a server of iperf3 {what}; run `narrows serve` there")))
}

impl From<Iperf3Error> for EndsError {
    fn from(error: Iperf3Error) -> Self {
        match error {
            Iperf3Error::Lost(..) => Self::Lost(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl Changes for Iperf3Ends {
    fn apply(&mut self, _: Place, _: &Setting) -> Result<Change, EndsError> {
        impossible("lets nothing be changed")
    }

    fn undo(&mut self, _: &Change) -> Result<(), EndsError> {
        impossible("lets nothing be changed")
    }

    fn keep(&mut self, _: &Change) -> Result<(), EndsError> {
        impossible("lets nothing be changed")
    }
}

impl Ends for Iperf3Ends {
    fn inventory(&mut self, place: Place) -> Result<Snapshot, EndsError> {
        match place {
            Place::Client => {
                let peer = self.peer.address().ip().to_canonical();
                Ok(narrows_collect::inventory(&Live::new(), Some(peer)))
            }
            // What is missing is missing with its reason; the rules that need it cannot tell.
            _ => Ok(unknown()),
        }
    }

    fn refuses(&self, plan: &LoadPlan) -> Option<String> {
        Params::of(plan).err()
    }

    fn fitted(&self, plan: &LoadPlan) -> LoadPlan {
        Params::fitted(plan)
    }

    fn trial(&mut self, plan: &LoadPlan, on: On, watch: Watch<'_>) -> Result<Trial, TrialFailed> {
        let failed = |why| TrialFailed { why: EndsError::Failed(why), partial: None };
        if matches!(on, On::Underlay(_)) {
            let why = "a server of iperf3 is measured by one address only; run `narrows serve` there";
            return Err(failed(why.to_owned()));
        }
        if on == On::Loopback {
            return loopback::trial(self.instruments, plan, &self.stop).map_err(failed);
        }
        match test::run(&self.peer, plan, self.instruments, &self.stop, watch) {
            Tested { trial: Some(trial), failure: None } => Ok(trial),
            Tested { trial, failure } => {
                let why = failure.map_or(EndsError::Interrupted, EndsError::from);
                Err(TrialFailed { why, partial: trial.map(Box::new) })
            }
        }
    }

    fn stopped(&self) -> bool {
        self.stop.is_set()
    }
}
