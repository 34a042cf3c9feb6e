//! Readings of the host at one time: how many of a session, of guests and of all.

use super::limits::Standing;
use super::refusal::Refused;
use super::session::Session;
use narrows_wire::api::Reason;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Guests have a place of their own, so that no token holder waits for them.
pub(super) struct Turns {
    trusted: Arc<Semaphore>,
    guests: Arc<Semaphore>,
}

impl Default for Turns {
    fn default() -> Self {
        Self { trusted: Arc::new(Semaphore::new(2)), guests: Arc::new(Semaphore::new(1)) }
    }
}

/// What a request holds until its reading is over, even where the request is given up.
pub(super) type Turn = [OwnedSemaphorePermit; 3];

impl Turns {
    /// Waits for a turn to read the host: one at a time per session. A guest is refused while another client measures, checked again
    /// after the wait.
    pub(super) async fn take(
        &self,
        session: &Session,
        place: OwnedSemaphorePermit,
        others_run: impl Fn() -> bool,
    ) -> Result<Turn, Refused> {
        let guest = session.standing == Standing::Open;
        let may_read = || {
            let busy = || Refused::new(Reason::Busy, "another client is measuring; ask again after it");
            if guest && others_run() { Err(busy()) } else { Ok(()) }
        };
        may_read()?;
        let own = session.reads.clone().acquire_owned().await.map_err(Refused::failed)?;
        let all = if guest { &self.guests } else { &self.trusted };
        let all = all.clone().acquire_owned().await.map_err(Refused::failed)?;
        may_read()?;
        Ok([place, own, all])
    }
}

#[cfg(test)]
mod tests {
    use super::super::events;
    use super::super::gate::Turn as OfGate;
    use super::super::holder::Holder;
    use super::*;
    use narrows_wire::api::SessionUse;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;
    use tokio::time::timeout;

    fn session(holder: Holder) -> Session {
        let (events, _) = events::channel();
        Session::new(0, String::new(), None, holder, SessionUse::Look, OfGate::Admitted, events)
    }

    #[test]
    fn a_session_has_four_places_and_takes_no_fifth() {
        let session = session(Holder::Server);
        let places: Vec<_> = (0..6).map(|_| session.place()).collect();
        assert_eq!(places.iter().filter(|place| place.is_ok()).count(), 4);
        assert_eq!(places[5].as_ref().expect_err("full").reason, Reason::Busy);
        drop(places);
        assert!(session.place().is_ok());
    }

    #[tokio::test]
    async fn a_guest_that_waited_reads_nothing_once_somebody_measures_and_a_token_holder_waits_for_no_guest() {
        let [first, second, holder] = [Holder::Guest, Holder::Guest, Holder::Server].map(session);
        let turns = Turns::default();
        let measures = AtomicBool::new(false);
        let take = |of| {
            let Ok(place) = Session::place(of) else { panic!("a place") };
            turns.take(of, place, || measures.load(Ordering::Relaxed))
        };
        let held = take(&first).await.expect("the place of guests");
        let mut waits = Box::pin(take(&second));
        assert!(timeout(Duration::from_millis(10), &mut waits).await.is_err(), "it waits");
        measures.store(true, Ordering::Relaxed);
        assert!(take(&holder).await.is_ok(), "beside a guest that reads");
        drop(held);
        assert_eq!(waits.await.expect_err("somebody measures now").reason, Reason::Busy);
    }
}
