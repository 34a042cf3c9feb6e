//! The secrets of a fleet, all derived from the controller's key: nothing else has to be kept, and each host has its own.

use crate::lock;
use crate::trust::Identity;
use narrows_fleet::plan::{Fleet, Join};
use narrows_sys::{clock, files};
use narrows_wire::Token;
use narrows_wire::token::Secret;
use ring::{digest, hmac};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// A controller that was started makes its key within that.
const MAKES: Duration = Duration::from_secs(3);

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

    /// Reads the key of a controller that was started before.
    pub(super) fn existing(state: &Path) -> Result<Self, String> {
        let key = place(state).join("server.pem");
        let began = clock::now();
        loop {
            if files::exists(&key) {
                return Self::of(state);
            }
            // A service that was started just now makes it in a moment.
            if !files::exists(state) || began.elapsed() > MAKES {
                break;
            }
            clock::sleep(MAKES / 20);
        }
        Err(format!(
            "there is no controller's key at {}; start `narrows fleet controller` once, as its user",
            key.display()
        ))
    }

    /// A secret for something (HMAC-SHA256, the first 192 bits).
    pub(super) fn secret(&self, of: &str) -> Secret {
        let tag = hmac::sign(&self.key, of.as_bytes());
        let mut bytes = [0; 24];
        bytes.copy_from_slice(&tag.as_ref()[..24]);
        Secret::new(bytes)
    }

    /// A secret with the fingerprint of the controller, as an agent has it.
    fn token(&self, secret: Secret) -> String {
        Token { fingerprint: self.identity.token.fingerprint, secret }.reveal()
    }

    /// The controller's own on a bus.
    #[cfg(feature = "nats")]
    pub(super) fn of_bus(&self) -> Secret {
        self.secret("bus")
    }

    /// What a scraper shows.
    pub(super) fn of_scraper(&self) -> Secret {
        self.secret("scraper")
    }

    /// What a reader of the page shows.
    pub(super) fn of_reader(&self) -> Secret {
        self.secret("reader")
    }

    /// What agents show that join a group.
    pub(super) fn of_group(&self, fleet: &str, group: &str) -> Secret {
        self.secret(&format!("join\0{fleet}\0{group}"))
    }

    /// What a host's agent shows.
    pub(super) fn of_host(&self, fleet: &str, host: &str) -> Secret {
        self.secret(&format!("host\0{fleet}\0{host}"))
    }
}

/// The hosts of a fleet by their secrets, which are not kept: a look-up tells nothing of them by its time.
#[derive(Default)]
pub(super) struct Hosts {
    of: HashMap<[u8; 32], String>,
    /// The groups that agents join, by their secrets, and how many may.
    groups: HashMap<[u8; 32], (String, usize)>,
    /// By their users of a bus, whose words are sealed.
    #[cfg(feature = "nats")]
    users: HashMap<String, (String, Secret)>,
    /// Polls of each host in a second.
    polls: Mutex<HashMap<String, (u64, u32)>>,
}

/// An agent polls each second at most, and again when something changes.
const POLLS_MAX: u32 = 30;

impl Hosts {
    pub(super) fn of(keys: &Keys, fleet: &Fleet) -> Self {
        let entry = |host: &String| (digest_of(&keys.of_host(&fleet.name, host)), host.clone());
        let group = |it: &Join| (digest_of(&keys.of_group(&fleet.name, &it.group)), (it.group.clone(), it.most));
        Self {
            of: fleet.hosts.keys().map(entry).collect(),
            groups: fleet.joins.iter().map(group).collect(),
            #[cfg(feature = "nats")]
            users: fleet.hosts.keys().filter_map(|it| user_of(keys, &fleet.name, it)).collect(),
            polls: Mutex::default(),
        }
    }

    pub(super) fn find(&self, shown: &Secret) -> Option<String> {
        self.of.get(&digest_of(shown)).cloned()
    }

    /// The group that an agent with this secret joins.
    pub(super) fn group(&self, shown: &Secret) -> Option<String> {
        self.groups.get(&digest_of(shown)).map(|(group, _)| group.clone())
    }

    /// Whether an agent that joins a group may poll in this second. They are counted together, since their names are their own.
    pub(super) fn may_join(&self, group: &str, second: u64) -> bool {
        let most = self.groups.values().find(|(it, _)| it == group).map_or(1, |(_, most)| *most);
        self.may(&format!("join\0{group}"), POLLS_MAX.saturating_mul(u32::try_from(most).unwrap_or(u32::MAX)), second)
    }

    /// Whether a host may poll in this second: one that floods the controller keeps no other from it.
    pub(super) fn may_poll(&self, host: &str, second: u64) -> bool {
        self.may(host, POLLS_MAX, second)
    }

    fn may(&self, who: &str, most: u32, second: u64) -> bool {
        let mut polls = lock(&self.polls);
        let (of, count) = polls.entry(who.to_owned()).or_default();
        *count = if *of == second { count.saturating_add(1) } else { 1 };
        *of = second;
        *count <= most
    }

    #[cfg(feature = "nats")]
    pub(super) fn of_user(&self, user: &str) -> Option<(String, Secret)> {
        self.users.get(user).cloned()
    }
}

#[cfg(feature = "nats")]
/// The user that a secret is on the bus.
pub(super) fn user(secret: &Secret) -> Result<nkeys::KeyPair, String> {
    let mut seed = [0; 32];
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.bytes());
    seed.copy_from_slice(hmac::sign(&key, b"nkey").as_ref());
    nkeys::KeyPair::new_from_raw(nkeys::KeyPairType::User, seed).map_err(|error| error.to_string())
}

#[cfg(feature = "nats")]
fn user_of(keys: &Keys, fleet: &str, host: &str) -> Option<(String, (String, Secret))> {
    let secret = keys.of_host(fleet, host);
    Some((user(&secret).ok()?.public_key(), (host.to_owned(), secret)))
}

fn digest_of(secret: &Secret) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest::digest(&digest::SHA256, secret.bytes()).as_ref());
    bytes
}

pub(super) fn place(state: &Path) -> std::path::PathBuf {
    state.join("controller")
}

/// Whom a token is for.
#[derive(Debug, Clone, Copy)]
pub enum Holder<'a> {
    /// The agent of a host.
    Agent(&'a str),
    /// All agents that join a group.
    Group(&'a str),
    /// Who reads figures, and nothing else.
    Scraper,
    /// Who reads the page, and changes nothing.
    Reader,
}

/// A token, on the controller's host; of a scraper and of a reader the secret, as they show it to the controller.
/// Errors: no host of the file has the name; the file, or the controller's key, cannot be used.
pub fn token_of(file: &Path, holder: Holder<'_>, state: &Path) -> Result<String, String> {
    let fleet = super::read(file)?;
    if let Holder::Agent(host) = holder
        && !fleet.hosts.contains_key(host)
    {
        return Err(format!("cannot make a token: {} has no host {host}", file.display()));
    }
    if let Holder::Group(group) = holder
        && !fleet.joins.iter().any(|it| it.group == group)
    {
        return Err(format!("cannot make a token: in {} no hosts join a group {group}", file.display()));
    }
    let keys = Keys::existing(state).map_err(|why| format!("cannot make a token: {why}"))?;
    Ok(match holder {
        Holder::Scraper => keys.of_scraper().reveal(),
        Holder::Reader => keys.of_reader().reveal(),
        Holder::Agent(host) => keys.token(keys.of_host(&fleet.name, host)),
        Holder::Group(group) => keys.token(keys.of_group(&fleet.name, group)),
    })
}
