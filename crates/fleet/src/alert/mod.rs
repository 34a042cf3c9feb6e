//! Who gets what is reported of a fleet (`[[alert]]` of its file), and in which form. Pure: no IO, no clock.

use crate::incident::{Incident, Message};
use narrows_model::words::date::utc;
use narrows_model::words::show::clean;
use narrows_model::words::units::micros;
use serde::Deserialize;
use serde_json::Value;
use std::net::Ipv6Addr;
use std::path::PathBuf;

/// Of one fleet, at most.
pub const ALERTS_MAX: usize = 16;
/// Of what a webhook gets.
pub const SCHEMA: &str = "narrows.fleet-alert/1";

/// Addresses that a mail goes to.
const TO_MAX: usize = 20;
const URL_BYTES_MAX: usize = 2_000;
const NAME_CHARS_MAX: usize = 200;
const SAYS_CHARS_MAX: usize = 1_000;

/// An `[[alert]]`: where messages go.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Alert {
    /// A URL that gets a POST for each message.
    pub webhook: Option<String>,
    /// Of what the webhook gets.
    pub form: Form,
    /// The URL of an Alertmanager of Prometheus.
    pub alertmanager: Option<String>,
    /// A mail server: `smtp://host:25`, `smtps://host:465`.
    pub smtp: Option<String>,
    /// Addresses of the mail.
    pub from: Option<String>,
    pub to: Vec<String>,
    /// Who logs in there, and the file with the password.
    pub user: Option<String>,
    pub password_file: Option<String>,
    /// Refused: were it an unknown key, the error would show its line.
    pub password: Option<String>,
}

/// How a mail server is logged into.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Login {
    pub user: String,
    pub password_file: PathBuf,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Form {
    /// All fields, for programs: [`json`].
    #[default]
    Json,
    /// A sentence, for chats: [`chat`].
    Chat,
    /// The same for Teams: [`teams`].
    Teams,
}

/// What an alert goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    Webhook(Place, Form),
    Alertmanager(Place),
    /// What takes figures, not alerts.
    Collector(Place),
    Mail {
        server: Place,
        from: String,
        to: Vec<String>,
        login: Option<Login>,
    },
}

/// Where a URL leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub tls: bool,
    /// Host and port as the URL has them.
    pub authority: String,
    pub host: String,
    pub port: u16,
    /// With its query.
    pub path: String,
}

/// A scheme, whether it is TLS, and its usual port.
type Scheme = (&'static str, bool, u16);

const HTTP: &[Scheme] = &[("https", true, 443), ("http", false, 80)];
const SMTP: &[Scheme] = &[("smtp", false, 25), ("smtps", true, 465)];
/// Where an Alertmanager takes alerts.
const ALERTS_PATH: &str = "/api/v2/alerts";

impl Alert {
    /// What makes no sense, if something does not.
    pub fn mistake(&self) -> Option<String> {
        self.target().err()
    }

    /// What it goes to.
    /// Errors: what makes no sense. URLs are not repeated, since they may hold secrets.
    pub fn target(&self) -> Result<Target, String> {
        let Self { webhook, form, alertmanager, smtp, from, to, user, password_file, password } = self;
        if webhook.is_none() && alertmanager.is_none() && smtp.is_none() {
            return Err("it has none of `webhook`, `alertmanager` and `smtp`, and needs one".to_owned());
        }
        if password.is_some() {
            return Err("write the password to a file, and its path to `password-file`".to_owned());
        }
        if smtp.is_none() && (!to.is_empty() || [from, user, password_file].iter().any(|it| it.is_some())) {
            return Err("`from`, `to`, `user` and `password-file` go with `smtp`".to_owned());
        }
        if webhook.is_none() && *form != Form::Json {
            return Err("`form` goes with `webhook`".to_owned());
        }
        match (webhook, alertmanager, smtp) {
            (Some(url), None, None) => Ok(Target::Webhook(Place::of(url, HTTP)?, *form)),
            (None, Some(url), None) => {
                let mut place = Place::of(url, HTTP)?;
                let base = place.path.trim_end_matches('/');
                if base.contains('?') {
                    return Err("the URL of an Alertmanager has no query".to_owned());
                }
                place.path = format!("{}{ALERTS_PATH}", base.trim_end_matches(ALERTS_PATH));
                Ok(Target::Alertmanager(place))
            }
            (None, None, Some(url)) => {
                let server = Place::of(url, SMTP)?;
                if server.path != "/" {
                    return Err("write a mail server as smtp://HOST:PORT or smtps://HOST:PORT".to_owned());
                }
                let from = from.clone().filter(|it| is_address(it));
                let from = from.ok_or("`smtp` needs an address in `from`: name@example.org")?;
                if !(1..=TO_MAX).contains(&to.len()) || !to.iter().all(|it| is_address(it)) {
                    return Err(format!("`smtp` needs 1 to {TO_MAX} addresses in `to`: [\"name@example.org\"]"));
                }
                Ok(Target::Mail { server, from, to: to.clone(), login: self.login()? })
            }
            _ => {
                Err("only one of `webhook`, `alertmanager` and `smtp` can be named: write an [[alert]] for each"
                    .to_owned())
            }
        }
    }

    fn login(&self) -> Result<Option<Login>, String> {
        let is_user = |it: &str| !it.is_empty() && it.len() <= NAME_CHARS_MAX && !it.chars().any(char::is_control);
        match (&self.user, &self.password_file) {
            (None, None) => Ok(None),
            (Some(user), _) if !is_user(user) => Err(format!("`user` has 1 to {NAME_CHARS_MAX} characters")),
            (Some(user), Some(file)) if file.starts_with('/') => {
                Ok(Some(Login { user: user.clone(), password_file: file.into() }))
            }
            (Some(_), _) => Err("`user` needs the absolute path of a file in `password-file`".to_owned()),
            (None, Some(_)) => Err("`password-file` needs a `user`".to_owned()),
        }
    }
}

/// Where a collector of OpenTelemetry takes metrics (OTLP specification, OTLP/HTTP request).
const METRICS_PATH: &str = "/v1/metrics";

impl Target {
    /// A collector of OpenTelemetry, by the URL of its base or of where it takes metrics.
    /// Errors: what makes no sense.
    pub fn collector(url: &str) -> Result<Self, String> {
        let mut place = Place::of(url, HTTP)?;
        if place.path.trim_end_matches('/').is_empty() {
            METRICS_PATH.clone_into(&mut place.path);
        }
        Ok(Self::Collector(place))
    }

    pub const fn place(&self) -> &Place {
        match self {
            Self::Webhook(place, _)
            | Self::Alertmanager(place)
            | Self::Collector(place)
            | Self::Mail { server: place, .. } => place,
        }
    }

    /// What it is called, without the secrets of a URL.
    pub fn words(&self) -> String {
        let kind = match self {
            Self::Webhook(..) => "webhook",
            Self::Alertmanager(_) => "Alertmanager",
            Self::Collector(_) => "collector",
            Self::Mail { .. } => "mail server",
        };
        format!("{kind} {}", self.place().authority)
    }
}

impl Place {
    fn of(url: &str, schemes: &[Scheme]) -> Result<Self, String> {
        let is = |byte: u8| byte.is_ascii_graphic() && !b"\"#<>\\^`{|}".contains(&byte);
        if url.len() > URL_BYTES_MAX || !url.bytes().all(is) {
            return Err(format!("a URL has up to {URL_BYTES_MAX} characters of ASCII, without blanks, quotes and #"));
        }
        let (scheme, rest) = url.split_once("://").unwrap_or_default();
        let Some((_, tls, usual)) = schemes.iter().find(|(known, ..)| *known == scheme) else {
            let known: Vec<String> = schemes.iter().map(|(known, ..)| format!("{known}://")).collect();
            return Err(format!("its URL begins with {}", known.join(" or ")));
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let (host, port) = host_port(authority, *usual).ok_or("its URL needs a host, or HOST:PORT, and no user")?;
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { tls: *tls, authority: authority.to_owned(), host, port, path })
    }
}

/// Of `host`, `host:port`, `[IPv6]` or `[IPv6]:port`.
fn host_port(authority: &str, usual: u16) -> Option<(String, u16)> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(host, _)| host.parse::<Ipv6Addr>().is_ok())?,
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    let port = match port {
        "" => usual,
        port => port.strip_prefix(':')?.parse::<u16>().ok().filter(|port| *port > 0)?,
    };
    let is = |c: char| c.is_ascii_alphanumeric() || ".-_:".contains(c);
    (!host.is_empty() && host.len() <= 253 && host.chars().all(is)).then(|| (host.to_owned(), port))
}

/// Whether it is an address of mail that needs no quotes.
fn is_address(word: &str) -> bool {
    let is = |c: char| c.is_ascii_graphic() && !"<>()[]\\,;:\"@".contains(c);
    let part = |part: &str| !part.is_empty() && part.chars().all(is);
    word.len() <= 254 && word.split_once('@').is_some_and(|(name, host)| part(name) && part(host))
}

/// The incident of a message, and how long it lasted if it is over.
const fn parts(message: &Message) -> (&Incident, Option<u64>) {
    match message {
        Message::Began(incident) => (incident, None),
        Message::Over { incident, after_ms } => (incident, Some(*after_ms)),
    }
}

/// A text without what a terminal or a page would interpret, cut where it is too long.
fn words(text: &str, chars_max: usize) -> String {
    let text = clean(text);
    match text.char_indices().nth(chars_max) {
        Some(_) => text.chars().take(chars_max - 1).chain(['…']).collect(),
        None => text,
    }
}

fn name(text: &str) -> String {
    words(text, NAME_CHARS_MAX)
}

/// What began, or is over, of which element.
fn subject(message: &Message) -> String {
    let (Incident { number, element, .. }, after_ms) = parts(message);
    let element = name(element);
    match after_ms {
        None => format!("incident {number}: {element}"),
        Some(ms) => format!("incident {number} is over after {}: {element}", micros(ms.saturating_mul(1_000))),
    }
}

/// A message in a sentence.
pub fn sentence(message: &Message) -> String {
    match message {
        Message::Began(it) => format!("{}: {}", subject(message), words(&it.words(), SAYS_CHARS_MAX)),
        Message::Over { .. } => subject(message),
    }
}

/// What a webhook gets. Its fields stay as they are; others may be added.
pub fn json(message: &Message, fleet: &str) -> Value {
    let (incident, after_ms) = parts(message);
    serde_json::json!({
        "schema": SCHEMA,
        "fleet": name(fleet),
        "state": if after_ms.is_none() { "began" } else { "over" },
        "number": incident.number,
        "element": name(&incident.element),
        "says": words(&incident.says, SAYS_CHARS_MAX),
        "since": utc(incident.since_ms / 1_000),
        "after_ms": after_ms,
        "acknowledged": incident.acknowledged.as_deref().map(name),
        "diagnosis": incident.verdict.as_ref().map(|it| words(it, SAYS_CHARS_MAX)),
    })
}

/// What a webhook of a workflow of Teams takes: an adaptive card (learn.microsoft.com, *Create an Incoming Webhook*).
pub fn teams(message: &Message, fleet: &str) -> Value {
    let text = format!("narrows {}: {}", name(fleet), sentence(message));
    serde_json::json!({ "type": "message", "attachments": [{
        "contentType": "application/vnd.microsoft.card.adaptive",
        "content": { "type": "AdaptiveCard", "version": "1.4", "body": [{ "type": "RichTextBlock", "inlines": [{ "type": "TextRun", "text": text }] }] },
    }] })
}

/// What the incoming webhooks of Slack, Mattermost and Rocket.Chat take.
pub fn chat(message: &Message, fleet: &str) -> Value {
    let text = format!("narrows {}: {}", name(fleet), sentence(message));
    // They would take these for links and mentions.
    let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let text = text.replace('@', "@\u{200b}").replace("](", "] (");
    serde_json::json!({ "text": text })
}

/// What an Alertmanager gets at `/api/v2/alerts`. It takes an alert without an end for over after some minutes, unless it comes again.
pub fn alertmanager(messages: &[Message], fleet: &str) -> Value {
    let alert = |message: &Message| {
        let (incident, after_ms) = parts(message);
        let mut alert = serde_json::json!({
            // They identify an alert: those of its beginning and of its end are the same.
            "labels": {
                "alertname": "NarrowsIncident",
                "fleet": name(fleet),
                "element": name(&incident.element),
                "severity": "warning",
            },
            "annotations": {
                "summary": sentence(message),
                "description": words(&incident.words(), SAYS_CHARS_MAX),
            },
            "startsAt": utc(incident.since_ms / 1_000),
        });
        if let Some(after_ms) = after_ms {
            alert["endsAt"] = Value::String(utc(incident.since_ms.saturating_add(after_ms) / 1_000));
        }
        alert
    };
    Value::Array(messages.iter().map(alert).collect())
}

/// A message as a mail, without its addresses and its date.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    pub subject: String,
    pub text: String,
    /// Of this mail alone, in angle brackets.
    pub id: String,
    /// The mail that it belongs below.
    pub answers: Option<String>,
}

/// What a mail from an address says.
pub fn mail(message: &Message, fleet: &str, from: &str) -> Mail {
    let (incident, after_ms) = parts(message);
    let of: String = fleet.chars().take(40).map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    let domain = from.rsplit('@').next().unwrap_or_default();
    // Numbers begin anew with the controller.
    let id = |state: &str| format!("<narrows.{of}.{}.{}.{state}@{domain}>", incident.since_ms, incident.number);
    let mut text = format!("{}\n\n", sentence(message));
    text += &format!("Fleet: {}\nElement: {}\n", name(fleet), name(&incident.element));
    text += &format!("Incident: {}, since {}\n", incident.number, utc(incident.since_ms / 1_000));
    if let Some(who) = &incident.acknowledged {
        text += &format!("In the hands of: {}\n", name(who));
    }
    Mail {
        subject: format!("narrows {}: {}", name(fleet), subject(message)),
        text,
        id: after_ms.map_or_else(|| id("began"), |ms| id(&format!("over.{ms}"))),
        answers: after_ms.map(|_| id("began")),
    }
}

#[cfg(test)]
mod tests;
