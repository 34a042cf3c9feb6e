//! Messages over NATS: each agent publishes its own subject and reads its own inbox, nothing else.
//!
//! The bus carries and decides nothing: what it loses is sent again, and each message is sealed with the host's secret, so that the bus can
//! neither read nor forge what is in it, nor send an old poll for long: each names a token that the controller gave less than
//! [`FRESH_MS`] before. The key of an agent's user (nkey) follows from the same secret: a token is all that an agent has.

use super::command::{Event, now_ms};
use super::keys::{Hosts, Keys, user};
use super::transport::{AROUND, HOLDS, Transport};
use async_nats::{Client, ConnectOptions, Message, Request};
use bytes::Bytes;
use narrows_fleet::protocol::{Poll, Reply};
use narrows_wire::token::Secret;
use ring::{aead, hmac};
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::{oneshot, watch};

/// The subjects of agents; behind it stands the public key of the agent's user.
const SUBJECT: &str = "narrows.poll";
/// Controllers share the messages of agents.
const QUEUE: &str = "controllers";
/// For the connection, and for one that is made again.
const CONNECTS: Duration = Duration::from_secs(10);
/// Of a nonce (RFC 8439, section 2.8).
const NONCE_BYTES: usize = aead::NONCE_LEN;
/// A token of freshness.
const FRESH_BYTES: usize = 16;
/// A new one is given so often; the two before are taken, too.
const FRESH_MS: u64 = 30_000;

/// The direction of a message: none can be sent back.
#[derive(Clone, Copy)]
enum Direction<'a> {
    Poll,
    /// The reply to the message with this nonce.
    Reply(&'a [u8]),
}

impl Direction<'_> {
    fn additional(self) -> aead::Aad<Vec<u8>> {
        aead::Aad::from(match self {
            Self::Poll => b"poll".to_vec(),
            Self::Reply(of) => [b"reply", of].concat(),
        })
    }
}

/// The key of a host's messages (ChaCha20-Poly1305, RFC 8439).
fn key(secret: &Secret) -> Option<aead::LessSafeKey> {
    let bytes = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret.bytes()), b"bus");
    aead::UnboundKey::new(&aead::CHACHA20_POLY1305, bytes.as_ref()).ok().map(aead::LessSafeKey::new)
}

/// A message, sealed, with its nonce before it; `None`: there is no random number.
fn seal(secret: &Secret, direction: Direction<'_>, body: &[u8]) -> Option<Bytes> {
    let nonce: [u8; NONCE_BYTES] = narrows_sys::random::bytes().ok()?;
    let mut sealed = body.to_vec();
    let unique = aead::Nonce::assume_unique_for_key(nonce);
    key(secret)?.seal_in_place_append_tag(unique, direction.additional(), &mut sealed).ok()?;
    Some([nonce.as_slice(), &sealed].concat().into())
}

/// The message and its nonce, if its seal is whole.
fn unseal(secret: &Secret, direction: Direction<'_>, sealed: &[u8]) -> Option<(Vec<u8>, [u8; NONCE_BYTES])> {
    let (nonce, body) = sealed.split_first_chunk::<NONCE_BYTES>()?;
    let mut body = body.to_vec();
    let unique = aead::Nonce::assume_unique_for_key(*nonce);
    let length = key(secret)?.open_in_place(unique, direction.additional(), &mut body).ok()?.len();
    body.truncate(length);
    Some((body, *nonce))
}

/// The token that a host's poll has to name, so long after the epoch; the same at each controller with this key.
fn fresh(own: &Secret, host: &str, window: u64) -> [u8; FRESH_BYTES] {
    let of = format!("fresh\0{window}\0{host}");
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, own.bytes()), of.as_bytes());
    let mut token = [0; FRESH_BYTES];
    token.copy_from_slice(&tag.as_ref()[..FRESH_BYTES]);
    token
}

pub(super) async fn connect(address: &str, secret: &Secret) -> Result<Client, String> {
    let user = user(secret)?;
    let seed = user.seed().map_err(|error| error.to_string())?;
    let options = ConnectOptions::with_nkey(seed)
        .name("narrows")
        .connection_timeout(CONNECTS)
        .custom_inbox_prefix(inbox(&user.public_key()))
        .retry_on_initial_connect();
    options.connect(address).await.map_err(|error| format!("cannot connect to {address}: {error}"))
}

fn inbox(user: &str) -> String {
    format!("_INBOX.{user}")
}

/// An agent's end.
pub(super) struct Nats {
    runtime: Runtime,
    client: Client,
    subject: String,
    secret: Secret,
    /// What the controller gave last.
    fresh: [u8; FRESH_BYTES],
}

impl Nats {
    /// `address`: `nats://host:port`.
    /// Errors: there is no such address.
    pub(super) fn new(address: &str, secret: &Secret) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let client = runtime.block_on(connect(address, secret))?;
        let subject = format!("{SUBJECT}.{}", user(secret)?.public_key());
        Ok(Self { runtime, client, subject, secret: secret.clone(), fresh: [0; FRESH_BYTES] })
    }
}

impl Transport for Nats {
    fn exchange(&mut self, poll: &Poll) -> Result<Reply, String> {
        let body = serde_json::to_vec(poll).map_err(|error| error.to_string())?;
        // The first poll for long names an old token, and gets a new one.
        for _ in 0..2 {
            let named = [self.fresh.as_slice(), &body].concat();
            let sealed = seal(&self.secret, Direction::Poll, &named).ok_or("there is no random number")?;
            let nonce = sealed.slice(..NONCE_BYTES);
            let request = Request::new().payload(sealed).timeout(Some(HOLDS + AROUND));
            let asked = self.client.send_request(self.subject.clone(), request);
            let answer = self.runtime.block_on(asked).map_err(|error| error.to_string())?;
            let (reply, _) = unseal(&self.secret, Direction::Reply(&nonce), &answer.payload)
                .ok_or("the reply is not sealed by the controller")?;
            let (fresh, reply) = reply.split_first_chunk::<FRESH_BYTES>().ok_or("the reply is too short")?;
            self.fresh = *fresh;
            if !reply.is_empty() {
                return serde_json::from_slice(reply).map_err(|error| format!("cannot parse its reply: {error}"));
            }
        }
        Err("the controller gives no answer: its store fails, another one leads, or its clock jumps".to_owned())
    }
}

/// Receives the messages of agents for ever, while this controller leads: another one takes them else. `own`: its secret.
pub(super) async fn listen(
    client: Client,
    own: Secret,
    (hosts, mut leads): (Arc<RwLock<Hosts>>, watch::Receiver<bool>),
    ask: Sender<Event>,
) {
    while leads.wait_for(|leads| *leads).await.is_ok() {
        let Ok(mut messages) = client.queue_subscribe(format!("{SUBJECT}.*"), QUEUE.to_owned()).await else { break };
        loop {
            let message = tokio::select! {
                message = futures_util::StreamExt::next(&mut messages) => message,
                _ = leads.wait_for(|leads| !*leads) => None,
            };
            let Some(message) = message else { break };
            let Some((heard, inbox)) = heard(&hosts, &own, &message).zip(message.reply) else { continue };
            let Heard { host, secret, nonce, poll } = heard;
            let answered = match poll {
                None => None,
                Some(poll) => {
                    let (answer, answered) = oneshot::channel();
                    if ask.send(Event::Poll { host: host.clone(), from: None, poll, answer }).is_err() {
                        return;
                    }
                    Some(answered)
                }
            };
            let (client, own) = (client.clone(), own.clone());
            tokio::spawn(async move {
                let body = match answered {
                    // It asks again with the token that it gets.
                    None => Vec::new(),
                    Some(answered) => match tokio::time::timeout(HOLDS + AROUND, answered).await {
                        Ok(Ok(reply)) => serde_json::to_vec(&reply).unwrap_or_default(),
                        // The file was read again.
                        Ok(Err(_)) => Vec::new(),
                        Err(_) => return,
                    },
                };
                let named = [fresh(&own, &host, now_ms() / FRESH_MS).as_slice(), &body].concat();
                if let Some(sealed) = seal(&secret, Direction::Reply(&nonce), &named) {
                    // What is lost is asked for again.
                    let _ = client.publish(inbox, sealed).await;
                }
            });
        }
        let _ = messages.unsubscribe().await;
    }
}

/// A message of an agent.
struct Heard {
    host: String,
    secret: Secret,
    nonce: [u8; NONCE_BYTES],
    /// `None`: it names no token of now.
    poll: Option<Poll>,
}

fn heard(hosts: &RwLock<Hosts>, own: &Secret, message: &Message) -> Option<Heard> {
    let user = message.subject.as_str().rsplit('.').next()?;
    let (host, secret) = hosts.read().unwrap_or_else(PoisonError::into_inner).of_user(user)?;
    let (body, nonce) = unseal(&secret, Direction::Poll, &message.payload)?;
    if !hosts.read().unwrap_or_else(PoisonError::into_inner).may_poll(&host, now_ms() / 1_000) {
        return None;
    }
    let (named, body) = body.split_first_chunk::<FRESH_BYTES>()?;
    let window = now_ms() / FRESH_MS;
    let is_fresh = (0..3).any(|ago| fresh(own, &host, window.saturating_sub(ago)) == *named);
    let poll = if is_fresh { Some(serde_json::from_slice(body).ok()?) } else { None };
    Some(Heard { host, secret, nonce, poll })
}

/// What the configuration of a nats-server needs for a fleet: its users and what each may do.
/// Errors: the file, or the controller's key, cannot be used.
pub fn users_of(file: &Path, state: &Path) -> Result<String, String> {
    let fleet = super::read(file)?;
    let keys = Keys::existing(state)?;
    let line = |secret: &Secret, publish: &dyn Fn(&str) -> String, subscribe: &dyn Fn(&str) -> String, who: &str| {
        let user = user(secret)?.public_key();
        let (publish, subscribe) = (publish(&user), subscribe(&user));
        Ok::<_, String>(format!(
            "      {{ nkey: {user}, permissions: {{ publish: \"{publish}\", subscribe: \"{subscribe}\" }} }} # {who}\n"
        ))
    };
    let mut lines = line(&keys.of_bus(), &|_| "_INBOX.>".to_owned(), &|_| format!("{SUBJECT}.*"), "the controller")?;
    for host in fleet.hosts.keys() {
        let secret = keys.of_host(&fleet.name, host);
        lines += &line(&secret, &|user| format!("{SUBJECT}.{user}"), &|user| format!("{}.>", inbox(user)), host)?;
    }
    Ok(format!("accounts {{\n  NARROWS {{\n    users: [\n{lines}    ]\n  }}\n}}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_was_changed_turned_round_or_sealed_by_another_is_none() {
        let [own, other] = [1, 2].map(|byte| Secret::new([byte; 24]));
        let poll = seal(&own, Direction::Poll, b"message").expect("sealed");
        assert!(!poll.windows(7).any(|it| it == b"message"), "nobody reads it on the way");
        let (body, nonce) = unseal(&own, Direction::Poll, &poll).expect("whole");
        assert_eq!(body, b"message");
        assert!(unseal(&other, Direction::Poll, &poll).is_none());
        assert!(unseal(&own, Direction::Reply(b""), &poll).is_none());
        let reply = seal(&own, Direction::Reply(&nonce), b"answer").expect("sealed");
        assert!(unseal(&own, Direction::Reply(&nonce), &reply).is_some());
        assert!(unseal(&own, Direction::Reply(&poll[1..13]), &reply).is_none());
        let mut changed = poll.to_vec();
        *changed.last_mut().expect("a byte") ^= 1;
        assert!(
            unseal(&own, Direction::Poll, &changed).is_none() && unseal(&own, Direction::Poll, &poll[..20]).is_none()
        );
        assert_ne!(fresh(&own, "a", 1), fresh(&own, "a", 2));
        assert_ne!(fresh(&own, "a", 1), fresh(&own, "b", 1));
    }

    #[test]
    fn a_user_follows_from_the_secret() {
        let key = |byte| user(&Secret::new([byte; 24])).expect("a key").public_key();
        assert!(key(1) == key(1) && key(1) != key(2) && key(1).starts_with('U'));
    }
}
