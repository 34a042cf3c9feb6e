//! What the requests of the control API have in common: the session that they name, their bodies and their answers.

use super::limits::{BODY, MAX_OPEN_REQUEST_BYTES, Standing};
use super::refusal::{Refused, json};
use super::rights::Rights;
use super::session::Session;
use super::shared::Shared;
use super::turns::{Turn, Turns};
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

pub(crate) type Answer = Result<Response<Body>, Refused>;

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

    /// A turn to read the host, see [`Turns`].
    pub(super) async fn turn(&self, place: OwnedSemaphorePermit, of: &Turns) -> Result<Turn, Refused> {
        of.take(&self.session, place, || self.shared.others_run(&self.session)).await
    }

    /// Reads the body of a request as JSON, within limits of size and time.
    pub(super) async fn read<T: DeserializeOwned + Send + 'static>(&self, body: Body) -> Result<T, Refused> {
        let most = match self.rights.standing {
            Standing::Trusted => MAX_REQUEST_BYTES,
            Standing::Open => MAX_OPEN_REQUEST_BYTES,
        };
        read(body, most).await
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
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refused> {
    tokio::task::spawn_blocking(work).await.map_err(|error| Refused::failed(format!("internal error: {error}")))
}

/// Reads a body as JSON, within limits of size and time.
pub(crate) async fn read<T: DeserializeOwned + Send + 'static>(body: Body, most: usize) -> Result<T, Refused> {
    let collected = timeout(BODY, Limited::new(body, most).collect()).await;
    let bytes = match collected {
        Err(_) => return Err(Refused::bad(format!("no complete body within {} s", BODY.as_secs()))),
        Ok(Err(_)) => return Err(Refused::bad(format!("the body is truncated or longer than {most} bytes"))),
        Ok(Ok(collected)) => collected.to_bytes(),
    };
    let long = bytes.len() > MAX_OPEN_REQUEST_BYTES;
    let parse = move || serde_json::from_slice(if bytes.is_empty() { b"{}" } else { &bytes });
    // Other clients do not wait for a long one.
    let parsed = if long { blocking(parse).await? } else { parse() };
    parsed.map_err(|error| Refused::bad(format!("invalid body: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        let text = |count: usize| serde_json::to_vec(&"x".repeat(count - 2)).expect("JSON");
        let of = |count, most| read::<Value>(Body::from(text(count)), most);
        assert!(of(MAX_OPEN_REQUEST_BYTES, MAX_OPEN_REQUEST_BYTES).await.is_ok());
        let refused = of(MAX_OPEN_REQUEST_BYTES + 1, MAX_OPEN_REQUEST_BYTES).await.expect_err("too long");
        assert_eq!(refused.message, "the body is truncated or longer than 65536 bytes");
        assert!(of(MAX_REQUEST_BYTES, MAX_REQUEST_BYTES).await.is_ok(), "off the thread of all clients");
        assert_eq!(read::<Value>(Body::empty(), 1).await.expect("nothing"), serde_json::json!({}));
    }
}
