//! The secrets of a fleet, all derived from the controller's key: nothing else has to be kept, and each host has its own.

use crate::trust::Identity;
use narrows_wire::Token;
use narrows_wire::token::Secret;
use ring::{digest, hmac};
use std::collections::HashMap;
use std::path::Path;

/// The controller's key and what follows from it.
pub(super) struct Keys {
    pub(super) identity: Identity,
    key: hmac::Key,
}

impl Keys {
    /// Reads the key of a state directory, or makes it.
    pub(super) fn of(state: &Path) -> Result<Self, String> {
        let identity = Identity::load_or_make(&place(state), None).map_err(|error| error.to_string())?;
        let key = hmac::Key::new(hmac::HMAC_SHA256, identity.key.secret_der());
        Ok(Self { identity, key })
    }

    /// A secret for something (HMAC-SHA256, the first 192 bits).
    pub(super) fn secret(&self, of: &str) -> Secret {
        let tag = hmac::sign(&self.key, of.as_bytes());
        let mut bytes = [0; 24];
        bytes.copy_from_slice(&tag.as_ref()[..24]);
        Secret::new(bytes)
    }

    /// What a host's agent shows.
    fn of_host(&self, fleet: &str, host: &str) -> Secret {
        self.secret(&format!("host\0{fleet}\0{host}"))
    }
}

/// The hosts of a fleet by their secrets, which are not kept: a look-up tells nothing of them by its time.
#[derive(Default)]
pub(super) struct Hosts(HashMap<[u8; 32], usize>);

impl Hosts {
    pub(super) fn of(keys: &Keys, fleet: &narrows_fleet::plan::Fleet) -> Self {
        let entry = |(nth, host): (usize, &String)| (digest_of(&keys.of_host(&fleet.name, host)), nth);
        Self(fleet.hosts.keys().enumerate().map(entry).collect())
    }

    pub(super) fn find(&self, shown: &Secret) -> Option<usize> {
        self.0.get(&digest_of(shown)).copied()
    }
}

fn digest_of(secret: &Secret) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, secret.bytes()).as_ref());
    bytes
}

fn place(state: &Path) -> std::path::PathBuf {
    state.join("controller")
}

/// The token of a host's agent, on the controller's host.
/// Errors: no host of the file has the name; the file, or the controller's key, cannot be used.
pub fn token_of(file: &Path, host: &str, state: &Path) -> Result<String, String> {
    let fleet = super::read(file)?;
    if !fleet.hosts.contains_key(host) {
        return Err(format!("cannot make a token: {} has no host {host}", file.display()));
    }
    let keys = Keys::of(state)?;
    Ok(Token { fingerprint: keys.identity.token.fingerprint, secret: keys.of_host(&fleet.name, host) }.reveal())
}
