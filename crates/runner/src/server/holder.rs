//! Who a client has shown to be, and what that allows it.

use super::admission::Pass;
use super::limits::Standing;
use super::refusal::Refused;
use crate::tokens::{Allowed, Named};
use narrows_wire::api::{Permissions, Reason};
use std::sync::Arc;

/// What the audit log calls the holder of a pass; no token has such a name.
const PASS: &str = "(pass)";

/// Who a client has shown to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Holder {
    /// It started this server by ssh.
    Stdio,
    /// It has the server's own token.
    Server,
    /// It has a named token.
    Named(Arc<Named>),
    /// It has a pass: a member of a mesh whose conductor has a token.
    Pass(Arc<Pass>),
    /// It has none, and the server is open.
    Guest,
}

impl Holder {
    /// Its name in the audit log.
    pub(super) fn name(&self) -> &str {
        match self {
            Self::Stdio => "stdio",
            Self::Server => "default",
            Self::Named(token) => &token.name,
            Self::Pass(_) => PASS,
            Self::Guest => "guest",
        }
    }

    pub(super) fn standing(&self) -> Standing {
        if *self == Self::Guest { Standing::Open } else { Standing::Trusted }
    }

    /// Refuses what a named token does not allow. What the server allows others is another question.
    pub(super) fn check(&self, what: Allowed) -> Result<(), Refused> {
        match self {
            Self::Named(token) if !token.allow.contains(&what) => Err(Refused::new(
                Reason::NotAllowed,
                format!(
                    "token {} does not allow this; it needs one of `narrows serve token add NAME --allow {}`",
                    token.name,
                    what.word()
                ),
            )),
            Self::Pass(_) if what != Allowed::Measure => {
                Err(Refused::new(Reason::NotAllowed, "a pass of a mesh allows measurements only"))
            }
            _ => Ok(()),
        }
    }

    /// The most that its loads may carry, in bits per second, if there is a maximum.
    pub(super) fn max_bps(&self, open_most_bps: u64) -> Option<u64> {
        match self {
            Self::Guest => Some(open_most_bps),
            Self::Named(token) => token.rate_bps,
            Self::Pass(pass) => pass.rate_bps,
            Self::Stdio | Self::Server => None,
        }
    }

    pub(super) fn permissions(&self, allow_tune: bool) -> Permissions {
        let permissions = self.standing().permissions(allow_tune);
        let may = |what| self.check(what).is_ok();
        Permissions {
            measure: permissions.measure && may(Allowed::Measure),
            tune: permissions.tune && may(Allowed::Tune),
            ..permissions
        }
    }
}
