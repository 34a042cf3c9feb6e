//! This host and a server's session as the two ends of a path.

pub use crate::instruments::LiveInstruments;

use crate::ends::{Changes, Ends, EndsError, On, TrialFailed, Watch};
use crate::loopback;
use crate::remote::{Remote, RemoteError, Session, TrialError};
use crate::trace;
use crate::tune::{TuneError, Tuner};
use narrows_collect::Live;
use narrows_diagnose::path::Wanted;
use narrows_model::{Change, Flow, LoadPlan, Place, Progress, Setting, Snapshot, TraceRecord, Trial};
use narrows_sys::clock;
use narrows_traffic::Stop;
use std::time::Duration;

/// The inventory of this host, for the route to a server.
pub(crate) fn here(remote: &Remote) -> Snapshot {
    narrows_collect::inventory(&Live::new(), Some(remote.data_address().ip().to_canonical()))
}

/// This host and a server's session.
pub struct LiveEnds {
    remote: Remote,
    session: Session,
    instruments: LiveInstruments,
    tuner: Option<Tuner>,
    stop: Stop,
}

impl LiveEnds {
    /// The two ends of a path. Without a `tuner` this host is not changed.
    pub const fn new(
        remote: Remote,
        session: Session,
        instruments: LiveInstruments,
        tuner: Option<Tuner>,
        stop: Stop,
    ) -> Self {
        Self { remote, session, instruments, tuner, stop }
    }

    fn own_tuner(&self) -> Result<&Tuner, EndsError> {
        self.tuner.as_ref().ok_or_else(|| EndsError::Failed("changes on this host are not allowed".to_owned()))
    }
}

impl From<RemoteError> for EndsError {
    fn from(error: RemoteError) -> Self {
        match error {
            RemoteError::Lost { .. } => Self::Lost(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<TuneError> for EndsError {
    fn from(error: TuneError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl Changes for LiveEnds {
    fn apply(&mut self, place: Place, setting: &Setting) -> Result<Change, EndsError> {
        match place {
            Place::Client => Ok(self.own_tuner()?.apply(setting, place)?),
            Place::Server => Ok(self.session.apply(setting)?),
            Place::Path => Err(EndsError::Failed("the path has no settings".to_owned())),
        }
    }

    fn undo(&mut self, change: &Change) -> Result<(), EndsError> {
        match change.at {
            Place::Client => drop(self.own_tuner()?.undo(&change.id)?),
            _ => drop(self.session.undo(&change.id)?),
        }
        Ok(())
    }

    fn keep(&mut self, change: &Change) -> Result<(), EndsError> {
        match change.at {
            Place::Client => drop(self.own_tuner()?.keep(&change.id)?),
            _ => drop(self.session.keep(&change.id)?),
        }
        Ok(())
    }
}

impl Ends for LiveEnds {
    fn inventory(&mut self, place: Place) -> Result<Snapshot, EndsError> {
        match place {
            _ if self.instruments == LiveInstruments::Cpu => Ok(Snapshot::default()),
            Place::Client => Ok(here(&self.remote)),
            Place::Server => Ok(self.session.inventory()?),
            Place::Path => Err(EndsError::Failed("a path has no inventory".to_owned())),
        }
    }

    fn idle_rtt_us(&mut self) -> Vec<u64> {
        // Without it the smallest RTT that TCP sees under load must do.
        self.remote.idle_rtt_us(5).unwrap_or_default()
    }

    fn trial(&mut self, plan: &LoadPlan, on: On, watch: Watch<'_>) -> Result<Trial, TrialFailed> {
        self.trial_until(plan, on, &mut |place, progress| {
            watch(place, progress);
            false
        })
    }

    fn trial_until(
        &mut self,
        plan: &LoadPlan,
        on: On,
        enough: &mut dyn FnMut(Place, &Progress) -> bool,
    ) -> Result<Trial, TrialFailed> {
        let stop = self.stop.below();
        let mut watch = |place: Place, progress: &Progress| {
            if enough(place, progress) {
                stop.stop();
            }
        };
        let address = if let On::Underlay(address) = on { Some(address) } else { None };
        match on {
            On::Path | On::Underlay(_) => self
                .session
                .trial_at(address, plan, &stop, &mut watch)
                .map_err(|TrialError { partial, why }| TrialFailed { why: why.into(), partial }),
            On::Loopback => loopback::trial(self.instruments, plan, &self.stop)
                .map_err(|why| TrialFailed { why: EndsError::Failed(why), partial: None }),
        }
    }

    fn trace(&mut self, wanted: &Wanted, limit: Duration) -> Option<TraceRecord> {
        let server = self.remote.data_address().ip().to_canonical();
        let plan = match wanted {
            Wanted::Flows(_, ports) => trace::of_flows(server, ports.clone()),
            Wanted::Mtu | Wanted::Loss => trace::beside_load(server, *wanted == Wanted::Mtu),
        };
        // Who sends knows the way of its packets.
        if let Wanted::Flows(Flow::Down, _) = wanted {
            return self.session.trace(&plan).ok();
        }
        let (stop, began) = (self.stop.below(), clock::now());
        let mut poll = || {
            if began.elapsed() >= limit {
                stop.stop();
            }
        };
        trace::trace(plan, &stop, &mut poll, &mut |_| true).ok()
    }

    fn renew(&mut self) -> Result<(), EndsError> {
        let stop = self.stop.clone();
        self.session = self.remote.open_session(&mut |_, _| !stop.is_set())?;
        Ok(())
    }

    fn stopped(&self) -> bool {
        self.stop.is_set()
    }
}
