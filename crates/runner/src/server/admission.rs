//! Who may come for one run: whoever shows its secret, and once it is sealed those addresses alone from which somebody had.

use super::holder::Holder;
use crate::lock;
use crate::trust::same_secret;
use narrows_wire::token::Secret;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

/// The addresses that one run admits.
#[derive(Debug, Default)]
pub struct Admission(Mutex<Came>);

#[derive(Debug, Default)]
struct Came {
    from: BTreeSet<IpAddr>,
    sealed: bool,
}

impl Admission {
    /// Whether a client that showed the token may go on.
    pub(super) fn enter(&self, address: Option<IpAddr>) -> bool {
        let Some(address) = address else { return false };
        let mut came = lock(&self.0);
        if !came.sealed {
            came.from.insert(address.to_canonical());
        }
        came.from.contains(&address.to_canonical())
    }

    /// Whether somebody with the token came from this address.
    pub(super) fn knows(&self, address: IpAddr) -> bool {
        lock(&self.0).from.contains(&address.to_canonical())
    }

    /// These addresses, and no others.
    pub fn only(&self, addresses: &[IpAddr]) {
        let from = addresses.iter().map(IpAddr::to_canonical).collect();
        *lock(&self.0) = Came { from, sealed: true };
    }

    /// From now on nobody comes from a new address.
    pub fn seal(&self) {
        lock(&self.0).sealed = true;
    }
}

/// Lets other hosts measure with this server, as long as the session that asked for it, or as a fleet's controller says.
#[derive(Debug)]
pub(super) struct Pass {
    /// The number of that session; it has one pass. From [`OF_LOADS`] on: of a load of a fleet.
    session: u64,
    secret: Secret,
    /// The most that a load of its holder may carry, bit/s: that of the session.
    pub(super) rate_bps: Option<u64>,
    pub(super) admission: Admission,
}

impl PartialEq for Pass {
    fn eq(&self, other: &Self) -> bool {
        self.session == other.session
    }
}

impl Eq for Pass {}

/// No session has such a number.
const OF_LOADS: u64 = 1 << 63;

/// The passes of a server: one for each session that has asked for one, and those of loads of a fleet.
#[derive(Debug, Default)]
pub struct Passes(Mutex<Vec<Arc<Pass>>>);

impl Passes {
    /// These passes of loads, and no others of them.
    pub(crate) fn of_loads(&self, secrets: &[Secret]) {
        let mut all = lock(&self.0);
        let is_wanted = |pass: &Arc<Pass>| secrets.iter().any(|secret| same_secret(secret, &pass.secret));
        all.retain(|pass| pass.session < OF_LOADS || is_wanted(pass));
        for secret in secrets {
            if !all.iter().any(|pass| same_secret(secret, &pass.secret)) {
                let session = all.iter().map(|pass| pass.session).fold(OF_LOADS, u64::max) + 1;
                let (rate_bps, admission) = (None, Admission::default());
                all.push(Arc::new(Pass { session, secret: secret.clone(), rate_bps, admission }));
            }
        }
    }

    /// A pass instead of the one that the session had. `open_most_bps`: of a guest's loads.
    pub(super) fn issue(&self, session: u64, secret: Secret, holder: &Holder, open_most_bps: u64) {
        let rate_bps = holder.max_bps(open_most_bps);
        let pass = Arc::new(Pass { session, secret, rate_bps, admission: Admission::default() });
        self.end(session);
        lock(&self.0).push(pass);
    }

    pub(super) fn of(&self, session: u64) -> Option<Arc<Pass>> {
        lock(&self.0).iter().find(|pass| pass.session == session).cloned()
    }

    pub(super) fn knows(&self, pass: &Arc<Pass>) -> bool {
        lock(&self.0).iter().any(|other| Arc::ptr_eq(other, pass))
    }

    /// All are compared always, so that the time does not tell which it is.
    pub(super) fn find(&self, shown: &Secret) -> Option<Arc<Pass>> {
        lock(&self.0)
            .iter()
            .fold(None, |found, pass| if same_secret(shown, &pass.secret) { Some(pass) } else { found })
            .cloned()
    }

    pub(super) fn end(&self, session: u64) {
        lock(&self.0).retain(|pass| pass.session != session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_known_until_its_session_ends() {
        let passes = Passes::default();
        let secret = |byte| Secret::new([byte; 24]);
        passes.issue(7, secret(1), &Holder::Server, 1);
        passes.issue(7, secret(2), &Holder::Server, 1);
        passes.issue(8, secret(3), &Holder::Guest, 9);
        assert!(passes.find(&secret(1)).is_none(), "a session has one pass");
        let of = |byte| passes.find(&secret(byte)).map(|pass| (pass.session, pass.rate_bps));
        assert_eq!((of(2), of(3)), (Some((7, None)), Some((8, Some(9)))));
        passes.end(7);
        assert_eq!((of(2).is_none(), of(3).is_some()), (true, true));
    }

    #[test]
    fn passes_of_loads_come_and_go_beside_those_of_sessions() {
        let passes = Passes::default();
        let secret = |byte| Secret::new([byte; 24]);
        passes.issue(7, secret(1), &Holder::Server, 1);
        passes.of_loads(&[secret(2), secret(3)]);
        let kept = passes.find(&secret(3)).expect("a pass");
        passes.of_loads(&[secret(3), secret(4)]);
        assert!(passes.find(&secret(2)).is_none() && passes.knows(&kept), "who measures goes on");
        assert_ne!(passes.find(&secret(4)), Some(kept), "each is one of its own");
        passes.of_loads(&[]);
        assert!(passes.find(&secret(1)).is_some() && passes.find(&secret(4)).is_none());
    }

    #[test]
    fn once_it_is_sealed_no_new_address_comes() {
        let admission = Admission::default();
        let [a, b] = ["192.0.2.1", "192.0.2.2"].map(|it| it.parse::<IpAddr>().ok());
        assert!(admission.enter(a) && !admission.enter(None));
        admission.seal();
        assert!(admission.enter(a) && !admission.enter(b));
        assert!(admission.enter("::ffff:192.0.2.1".parse().ok()), "the same address of a socket of both families");
        assert_eq!([a, b].map(|it| it.is_some_and(|it| admission.knows(it))), [true, false]);
    }
}
