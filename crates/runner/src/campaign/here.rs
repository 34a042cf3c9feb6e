//! This host alone as the ends of a path, for a campaign whose load is another program: there is no session with a server.

use crate::ends::{Changes, Ends, EndsError, On, TrialFailed, Watch};
use crate::tune::Tuner;
use narrows_collect::Live;
use narrows_model::{Change, LoadPlan, Place, Setting, Snapshot, Trial};
use narrows_traffic::Stop;

/// This host, which can be changed.
#[derive(Debug)]
pub struct Here {
    pub tuner: Tuner,
    /// Raised by the user.
    pub stop: Stop,
}

fn no_server() -> EndsError {
    EndsError::Failed("there is no session with a server".to_owned())
}

impl Changes for Here {
    fn apply(&mut self, place: Place, setting: &Setting) -> Result<Change, EndsError> {
        match place {
            Place::Client => Ok(self.tuner.apply(setting, place)?),
            _ => Err(no_server()),
        }
    }

    fn undo(&mut self, change: &Change) -> Result<(), EndsError> {
        self.tuner.undo(&change.id)?;
        Ok(())
    }

    fn keep(&mut self, change: &Change) -> Result<(), EndsError> {
        self.tuner.keep(&change.id)?;
        Ok(())
    }
}

impl Ends for Here {
    fn inventory(&mut self, place: Place) -> Result<Snapshot, EndsError> {
        match place {
            Place::Client => Ok(narrows_collect::inventory(&Live::new(), None)),
            _ => Err(no_server()),
        }
    }

    fn trial(&mut self, _: &LoadPlan, _: On, _: Watch<'_>) -> Result<Trial, TrialFailed> {
        Err(TrialFailed { why: no_server(), partial: None })
    }

    fn stopped(&self) -> bool {
        self.stop.is_set()
    }
}
