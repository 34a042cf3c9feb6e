//! Who may come to a server of one run: whoever shows its token, and once it is sealed those addresses alone from which somebody had.

use crate::lock;
use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Mutex;

/// The addresses that a server of one run admits.
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

    /// From now on nobody comes from a new address.
    pub fn seal(&self) {
        lock(&self.0).sealed = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
