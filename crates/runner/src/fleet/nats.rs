//! Messages over NATS: each agent publishes its own subject and reads its own inbox, nothing else.
//!
//! The bus carries and decides nothing: what it loses is sent again, and each message is sealed with the host's secret, so that the bus can
//! forge neither results nor orders. The key of an agent's user (nkey) follows from the same secret: a token is all that an agent has.

use super::command::Event;
use super::keys::{Hosts, Keys, user};
use super::transport::{AROUND, HOLDS, Transport};
use async_nats::{Client, ConnectOptions, Message, Request, Subscriber};
use bytes::Bytes;
use narrows_fleet::protocol::{Poll, Reply};
use narrows_wire::token::Secret;
use ring::hmac;
use std::path::Path;
use std::sync::mpsc::Sender;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::sync::oneshot;

/// The subjects of agents; behind it stands the public key of the agent's user.
const SUBJECT: &str = "narrows.poll";
/// Controllers share the messages of agents.
const QUEUE: &str = "controllers";
/// For the connection, and for one that is made again.
const CONNECTS: Duration = Duration::from_secs(10);
const TAG_BYTES: usize = 32;

/// The direction of a message: none can be sent back.
#[derive(Clone, Copy)]
enum Direction<'a> {
    Poll,
    /// The answer to the message with this tag.
    Reply(&'a [u8]),
}

/// A message with its seal (HMAC-SHA256) before it.
fn seal(secret: &Secret, direction: Direction<'_>, body: &[u8]) -> Bytes {
    let mut sealed = tag(secret, direction, body).as_ref().to_vec();
    sealed.extend_from_slice(body);
    sealed.into()
}

fn tag(secret: &Secret, direction: Direction<'_>, body: &[u8]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, secret.bytes()));
    match direction {
        Direction::Poll => context.update(b"poll\0"),
        Direction::Reply(of) => {
            context.update(b"reply\0");
            context.update(of);
        }
    }
    context.update(body);
    context.sign()
}

/// The message and its tag, if the seal is valid.
fn unseal<'a>(secret: &Secret, direction: Direction<'_>, sealed: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
    let (shown, body) = sealed.split_at_checked(TAG_BYTES)?;
    subtle::ConstantTimeEq::ct_eq(shown, tag(secret, direction, body).as_ref())
        .unwrap_u8()
        .eq(&1)
        .then_some((body, shown))
}

async fn connect(address: &str, secret: &Secret) -> Result<Client, String> {
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
}

impl Nats {
    /// `address`: `nats://host:port`.
    /// Errors: there is no such address.
    pub(super) fn new(address: &str, secret: &Secret) -> Result<Self, String> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let client = runtime.block_on(connect(address, secret))?;
        let subject = format!("{SUBJECT}.{}", user(secret)?.public_key());
        Ok(Self { runtime, client, subject, secret: secret.clone() })
    }
}

impl Transport for Nats {
    fn exchange(&mut self, poll: &Poll) -> Result<Reply, String> {
        let body = serde_json::to_vec(poll).map_err(|error| error.to_string())?;
        let sealed = seal(&self.secret, Direction::Poll, &body);
        let of = sealed.slice(..TAG_BYTES);
        let request = Request::new().payload(sealed).timeout(Some(HOLDS + AROUND));
        let asked = self.client.send_request(self.subject.clone(), request);
        let answer = self.runtime.block_on(asked).map_err(|error| error.to_string())?;
        let (body, _) = unseal(&self.secret, Direction::Reply(&of), &answer.payload)
            .ok_or("the answer is not sealed by the controller")?;
        serde_json::from_slice(body).map_err(|error| format!("cannot parse its answer: {error}"))
    }
}

/// Subscribes to the messages of agents.
/// Errors: there is no such address.
pub(super) async fn subscribe(address: &str, own: &Secret) -> Result<(Client, Subscriber), String> {
    let client = connect(address, own).await?;
    let messages = client.queue_subscribe(format!("{SUBJECT}.*"), QUEUE.to_owned()).await;
    messages.map(|messages| (client, messages)).map_err(|error| error.to_string())
}

/// Receives the messages of agents for ever.
pub(super) async fn listen(
    (client, mut messages): (Client, Subscriber),
    hosts: Arc<RwLock<Hosts>>,
    ask: Sender<Event>,
) {
    while let Some(message) = futures_util::StreamExt::next(&mut messages).await {
        let Some((host, secret, poll, tag)) = heard(&hosts, &message) else { continue };
        let Some(inbox) = message.reply else { continue };
        let (answer, answered) = oneshot::channel();
        if ask.send(Event::Poll { host, from: None, poll, answer }).is_err() {
            break;
        }
        let client = client.clone();
        tokio::spawn(async move {
            if let Ok(Ok(reply)) = tokio::time::timeout(HOLDS + AROUND, answered).await
                && let Ok(body) = serde_json::to_vec(&reply)
            {
                // What is lost is asked for again.
                let _ = client.publish(inbox, seal(&secret, Direction::Reply(&tag), &body)).await;
            }
        });
    }
}

/// The sender of a message, and its content.
fn heard(hosts: &RwLock<Hosts>, message: &Message) -> Option<(String, Secret, Poll, Vec<u8>)> {
    let user = message.subject.as_str().rsplit('.').next()?;
    let (host, secret) = hosts.read().unwrap_or_else(PoisonError::into_inner).of_user(user)?;
    let (body, tag) = unseal(&secret, Direction::Poll, &message.payload)?;
    Some((host, secret, serde_json::from_slice(body).ok()?, tag.to_vec()))
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
    fn a_word_that_was_changed_turned_round_or_sealed_by_another_is_none() {
        let [own, other] = [1, 2].map(|byte| Secret::new([byte; 24]));
        let poll = seal(&own, Direction::Poll, b"message");
        let (body, tag) = unseal(&own, Direction::Poll, &poll).expect("whole");
        assert_eq!(body, b"message");
        assert!(
            unseal(&other, Direction::Poll, &poll).is_none() && unseal(&own, Direction::Reply(b""), &poll).is_none()
        );
        let reply = seal(&own, Direction::Reply(tag), b"answer");
        assert!(
            unseal(&own, Direction::Reply(tag), &reply).is_some()
                && unseal(&own, Direction::Reply(&poll[1..33]), &reply).is_none()
        );
        let mut changed = poll.to_vec();
        *changed.last_mut().expect("a byte") ^= 1;
        assert!(
            unseal(&own, Direction::Poll, &changed).is_none() && unseal(&own, Direction::Poll, &poll[..20]).is_none()
        );
    }

    #[test]
    fn a_user_follows_from_the_secret() {
        let key = |byte| user(&Secret::new([byte; 24])).expect("a key").public_key();
        assert!(key(1) == key(1) && key(1) != key(2) && key(1).starts_with('U'));
    }
}
