//! Each request shows its protocol and its right to be here, before anything else of it is looked at.

use super::admission::Admission;
use super::holder::Holder;
use super::limits::Standing;
use super::refusal::Refused;
use super::shared::Shared;
use super::unauthenticated::Pending;
use crate::VERSION;
use crate::tokens::MOMENT;
use crate::trust::same_secret;
use axum::extract::FromRequestParts;
use axum::http::{header, request::Parts};
use narrows_wire::api::{Permissions, Reason};
use narrows_wire::token::Secret;
use narrows_wire::version::{PROTOCOL_HEADER, check_header};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

/// For the file of the named tokens, which may have one more.
const NEW: Duration = Duration::from_secs(2);

/// A field of the addresses and ports that sshd sets: `client-address client-port server-address server-port`.
fn ssh_field(index: usize) -> Option<IpAddr> {
    let text = std::env::var("SSH_CONNECTION").ok()?;
    // A scope (`%eth0`) means nothing to the other end.
    text.split(' ').nth(index)?.split('%').next()?.parse::<IpAddr>().ok().map(|address| address.to_canonical())
}

/// The address by which a client over ssh reached this host.
pub(super) fn own_address_of_ssh() -> Option<IpAddr> {
    ssh_field(2)
}

/// The connection that a request came in on.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    /// The other end's address; `None` where only ssh knows it.
    pub(crate) address: Option<IpAddr>,
    /// Its place among the unproven; `None` over ssh, which has proved it.
    pub(crate) pending: Option<Pending>,
}

impl Caller {
    /// The client that started this server by ssh, which has authenticated it.
    pub(super) fn of_ssh() -> Self {
        Self { address: ssh_field(0), pending: None }
    }
}

/// A request that may go on.
#[derive(Debug)]
pub(super) struct Rights {
    pub(super) address: Option<IpAddr>,
    /// The protocol that the client shows, which this server speaks; its own where the client shows none.
    pub(super) protocol: u16,
    pub(super) holder: Holder,
    pub(super) standing: Standing,
    pub(super) permissions: Permissions,
    /// The connection's place among the unproven.
    pub(super) pending: Option<Pending>,
}

impl FromRequestParts<Arc<Shared>> for Rights {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, shared: &Arc<Shared>) -> Result<Self, Refused> {
        let text = |name: &str| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let protocol = check_header(text(PROTOCOL_HEADER), VERSION)
            .map_err(|error| Refused::new(Reason::VersionMismatch, error.to_string()))?;
        let caller = parts.extensions.get::<Caller>().ok_or_else(Refused::no_token)?;
        let authorization = text(header::AUTHORIZATION.as_str());
        if let (Some(_), Some(shown)) = (&caller.pending, authorization.and_then(Secret::from_bearer)) {
            let known = shared.tokens.find(&shown).is_some();
            let is_own = shared.secret.as_ref().is_some_and(|secret| same_secret(&shown, secret));
            if !is_own && shared.passes.find(&shown).is_none() {
                shared.tokens.renew(if known { MOMENT } else { NEW }).await;
            }
        }
        let holder = holder(shared, caller, authorization)?;
        let standing = holder.standing();
        match (&caller.pending, standing) {
            (Some(pending), Standing::Trusted) => pending.admit(),
            (Some(pending), Standing::Open) => pending.has_asked(),
            (None, _) => {}
        }
        let permissions = holder.permissions(shared.config.allow_tune);
        let (address, pending) = (caller.address, caller.pending.clone());
        Ok(Self { address, protocol, holder, standing, permissions, pending })
    }
}

/// Who the client of a request is, as far as the named tokens were read.
pub(super) fn holder(shared: &Shared, caller: &Caller, authorization: Option<&str>) -> Result<Holder, Refused> {
    if caller.pending.is_none() {
        return Ok(Holder::Stdio);
    }
    match (authorization, &shared.secret) {
        (Some(header), Some(secret)) => {
            let shown = Secret::from_bearer(header).ok_or_else(Refused::wrong_token)?;
            // All are compared always, so that the time does not tell which it is.
            let (named, pass) = (shared.tokens.find(&shown), shared.passes.find(&shown));
            if same_secret(&shown, secret) {
                return admitted(shared.config.of_one_run.as_deref(), caller).map(|()| Holder::Server);
            }
            if let Some(pass) = pass {
                return admitted(Some(&pass.admission), caller).map(|()| Holder::Pass(pass));
            }
            let token = named.ok_or_else(Refused::wrong_token)?;
            match shared.tokens.ended(&token) {
                None => Ok(Holder::Named(token)),
                Some(why) => Err(Refused::new(Reason::WrongToken, format!("token {}: {why}", token.name))),
            }
        }
        _ if shared.config.open => Ok(Holder::Guest),
        _ => Err(Refused::no_token()),
    }
}

fn admitted(admission: Option<&Admission>, caller: &Caller) -> Result<(), Refused> {
    if admission.is_none_or(|admission| admission.enter(caller.address)) {
        return Ok(());
    }
    let why = "this server admits only the addresses that were there when its run began";
    Err(Refused::new(Reason::WrongToken, why))
}
