//! What the requests of the control API have in common: the session that they name, their bodies and their answers.

use super::limits::BODY;
use super::limits::Standing;
use super::refusal::{Refused, json};
use super::rights::Rights;
use super::session::Session;
use super::shared::{Shared, Turns};
use crate::tokens::Allowed;
use axum::body::Body;
use axum::extract::{FromRequestParts, Path};
use axum::http::{Response, request::Parts};
use http_body_util::{BodyExt as _, Limited};
use narrows_wire::api::{MAX_REQUEST_BYTES, Reason, SessionUse};
use serde::de::DeserializeOwned;
use std::collections::HashMap;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

pub(super) type Answer = Result<Response<Body>, Refused>;

/// A request of a session.
pub(super) struct Asked {
    pub(super) rights: Rights,
    pub(super) shared: Arc<Shared>,
    pub(super) session: Arc<Session>,
    /// What the path names within the session: a change, a job.
    pub(super) item: String,
}

impl FromRequestParts<Arc<Shared>> for Asked {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Refused> {
        let rights = Rights::from_request_parts(parts, shared).await?;
        let Path(mut words) =
            Path::<HashMap<String, String>>::from_request_parts(parts, shared).await.map_err(Refused::bad)?;
        let session = words.remove("id").and_then(|id| shared.session(&id));
        let session = session.filter(|session| session.holder == rights.holder);
        let session = session.ok_or_else(|| Refused::not_found("session"))?;
        Ok(Self { rights, shared: shared.clone(), session, item: words.into_values().next().unwrap_or_default() })
    }
}

impl Asked {
    /// Refuses what would disturb others, unless it is the session's turn.
    pub(super) fn may_load(&self) -> Result<(), Refused> {
        if self.session.wanted != SessionUse::Load {
            return Err(Refused::new(Reason::NotAllowed, "this session is read-only; open one with use=load"));
        }
        self.is_admitted()
    }

    fn is_admitted(&self) -> Result<(), Refused> {
        if self.session.is_admitted() {
            return Ok(());
        }
        Err(Refused::new(Reason::Busy, "the session is still queued; wait for the event `admitted`"))
    }

    /// As [`Asked::may_load`], for raw frames.
    pub(super) fn may_send_frames(&self) -> Result<(), Refused> {
        self.may_load()?;
        self.rights.holder.check(Allowed::Frames)
    }

    /// Refuses what shows the host to clients without the token. `what`: `its interfaces`.
    pub(super) fn may_see(&self, what: &str) -> Result<(), Refused> {
        if self.rights.permissions.inventory {
            return self.is_admitted();
        }
        let why = format!("this server is open and shows {what} only to clients with its token");
        Err(Refused::new(Reason::NotAllowed, why))
    }

    /// A turn to read the host, held until that is over even where the request is given up: one at a time of a session, and of guests
    /// none while somebody else measures.
    pub(super) async fn turn(&self, of: &Turns) -> Result<[OwnedSemaphorePermit; 3], Refused> {
        let guest = self.rights.standing == Standing::Open;
        if guest && self.shared.others_run(&self.session) {
            return Err(Refused::new(Reason::Busy, "another client is measuring; ask again after it"));
        }
        let place = self.session.asked.clone().try_acquire_owned();
        let place =
            place.map_err(|_| Refused::new(Reason::Busy, "this session waits for other readings of the host"))?;
        let own = self.session.reads.clone().acquire_owned().await.map_err(Refused::failed)?;
        let all = if guest { &of.guests } else { &of.trusted };
        Ok([place, own, all.clone().acquire_owned().await.map_err(Refused::failed)?])
    }

    pub(super) fn may_tune(&self) -> Result<(), Refused> {
        self.rights.holder.check(Allowed::Tune)?;
        if self.rights.permissions.tune {
            return Ok(());
        }
        Err(Refused::new(
            Reason::NotAllowed,
            "this server does not allow changes; restart it with `narrows serve --allow-tune`",
        ))
    }
}

/// The answer to a request that has nothing to tell.
pub(super) fn done() -> Answer {
    Ok(json(&serde_json::json!({})))
}

/// Runs what blocks on a thread of its own. It goes on where the request is given up.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refused> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Refused::failed(format!("internal error: {error}")))
}

/// Reads the body of a request as JSON, within limits of size and time.
pub(super) async fn read<T: DeserializeOwned>(body: Body) -> Result<T, Refused> {
    let collected = timeout(BODY, Limited::new(body, MAX_REQUEST_BYTES).collect()).await;
    let bytes = match collected {
        Err(_) => return Err(Refused::bad(format!("no complete body within {} s", BODY.as_secs()))),
        Ok(Err(_)) => {
            return Err(Refused::bad(format!("the body is truncated or longer than {MAX_REQUEST_BYTES} bytes")));
        }
        Ok(Ok(collected)) => collected.to_bytes(),
    };
    let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
    serde_json::from_slice(bytes).map_err(|error| Refused::bad(format!("invalid body: {error}")))
}
