//! Who gets what is reported of a fleet (`[[alert]]` of its file), and in which form. Pure: no IO, no clock.

use crate::incident::{Incident, Message};
use narrows_model::words::date::utc;
use narrows_model::words::show::clean;
use narrows_model::words::units::micros;
use serde::Deserialize;
use serde_json::Value;
use std::net::Ipv6Addr;

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
    /// A mail server: `smtp://host:25`.
    pub smtp: Option<String>,
    /// Addresses of the mail.
    pub from: Option<String>,
    pub to: Vec<String>,
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
const SMTP: &[Scheme] = &[("smtp", false, 25)];
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
        let Self { webhook, form, alertmanager, smtp, from, to } = self;
        if webhook.is_none() && alertmanager.is_none() && smtp.is_none() {
            return Err("it has none of `webhook`, `alertmanager` and `smtp`, and needs one".to_owned());
        }
        if smtp.is_none() && (from.is_some() || !to.is_empty()) {
            return Err("`from` and `to` go with `smtp`".to_owned());
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
                    return Err("write a mail server as smtp://HOST:PORT".to_owned());
                }
                let from = from.clone().filter(|it| is_address(it));
                let from = from.ok_or("`smtp` needs an address in `from`: name@example.org")?;
                if !(1..=TO_MAX).contains(&to.len()) || !to.iter().all(|it| is_address(it)) {
                    return Err(format!("`smtp` needs 1 to {TO_MAX} addresses in `to`: [\"name@example.org\"]"));
                }
                Ok(Target::Mail { server, from, to: to.clone() })
            }
            _ => {
                Err("only one of `webhook`, `alertmanager` and `smtp` can be named: write an [[alert]] for each"
                    .to_owned())
            }
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
mod tests {
    use super::*;

    /// 2023-11-14T22:13:20Z.
    const SINCE_MS: u64 = 1_700_000_000_000;

    fn incident(element: &str) -> Incident {
        let says = "carries 40 % of what it should".to_owned();
        Incident {
            number: 7,
            element: element.to_owned(),
            says,
            since_ms: SINCE_MS,
            acknowledged: None,
            verdict: None,
            reported: true,
        }
    }

    fn both(element: &str) -> [Message; 2] {
        [Message::Began(incident(element)), Message::Over { incident: incident(element), after_ms: 90_000 }]
    }

    fn read(text: &str) -> Result<Target, String> {
        toml::from_str::<Alert>(text).map_err(|error| error.to_string()).and_then(|alert| alert.target())
    }

    #[test]
    fn each_kind_of_target_is_read() {
        let place = |tls, authority: &str, host: &str, port, path: &str| {
            let [authority, host, path] = [authority, host, path].map(str::to_owned);
            Place { tls, authority, host, port, path }
        };
        let hook = place(true, "hooks.example.org", "hooks.example.org", 443, "/a?key=b");
        assert_eq!(read("webhook = 'https://hooks.example.org/a?key=b'"), Ok(Target::Webhook(hook, Form::Json)));
        let hook = place(false, "[::1]:8080", "::1", 8080, "/");
        assert_eq!(read("webhook = 'http://[::1]:8080'\nform = 'chat'"), Ok(Target::Webhook(hook, Form::Chat)));
        let manager = place(false, "am:9093", "am", 9093, "/x/api/v2/alerts");
        for url in ["http://am:9093/x", "http://am:9093/x/", "http://am:9093/x/api/v2/alerts"] {
            assert_eq!(read(&format!("alertmanager = '{url}'")), Ok(Target::Alertmanager(manager.clone())));
        }
        let target = read("smtp = 'smtp://relay'\nfrom = 'n@example.org'\nto = ['a@example.org']").expect("a mail");
        let Target::Mail { server, from, to } = &target else { panic!("no mail: {target:?}") };
        assert_eq!(*server, place(false, "relay", "relay", 25, "/"));
        assert_eq!((from.as_str(), to.as_slice()), ("n@example.org", &["a@example.org".to_owned()][..]));
        assert_eq!(target.words(), "mail server relay");
    }

    #[test]
    fn what_makes_no_sense_is_named_without_secrets() {
        for (text, says) in [
            ("", "none of `webhook`"),
            ("form = 'chat'", "none of `webhook`"),
            ("to = ['a@b']", "none of `webhook`"),
            ("webhook = 'http://a'\nalertmanager = 'http://b'", "only one of `webhook`"),
            ("color = 1", "unknown field"),
            ("webhook = 'http://a'\nform = 'poem'", "unknown variant"),
            ("alertmanager = 'http://a'\nform = 'chat'", "`form` goes with `webhook`"),
            ("webhook = 'http://a'\nto = ['a@b']", "go with `smtp`"),
            ("webhook = 'ftp://secret'", "begins with https:// or http://"),
            ("webhook = 'secret'", "begins with https:// or http://"),
            ("webhook = 'http://a/secret\\r\\n'", "without blanks"),
            ("webhook = \"http://a/secret\\r\\nx: y\"", "without blanks"),
            ("webhook = 'http://me:secret@a/'", "no user"),
            ("webhook = 'http://a:0/secret'", "needs a host"),
            ("webhook = 'http:///secret'", "needs a host"),
            ("webhook = 'http://[secret]/'", "needs a host"),
            ("alertmanager = 'http://a/?secret'", "no query"),
            ("smtp = 'http://secret'", "begins with smtp://"),
            ("smtp = 'smtp://a/secret'", "smtp://HOST:PORT"),
            ("smtp = 'smtp://a'\nto = ['a@b']", "address in `from`"),
            ("smtp = 'smtp://a'\nfrom = 'a@b'", "addresses in `to`"),
            ("smtp = 'smtp://a'\nfrom = 'a@b'\nto = ['x <a@b>']", "addresses in `to`"),
            ("smtp = 'smtp://a'\nfrom = \"a@b\\nBcc: c@d\"\nto = ['a@b']", "address in `from`"),
        ] {
            let words = read(text).expect_err(text);
            assert!(words.contains(says), "{text}: {words}");
            assert!(!words.contains("secret"), "{text}: {words}");
        }
        for (url, path) in [("http://a:4318", "/v1/metrics"), ("https://a/x/y", "/x/y")] {
            let collector = Target::collector(url).expect("a collector");
            assert_eq!((collector.place().path.as_str(), collector.place().tls), (path, url.starts_with("https")));
        }
        assert!(Target::collector("grpc://secret").is_err_and(|it| it.contains("http://") && !it.contains("secret")));
        let long = Alert { webhook: Some(format!("http://a/{}", "x".repeat(3_000))), ..Alert::default() };
        assert!(long.mistake().is_some_and(|words| words.contains("up to 2000")));
    }

    #[test]
    fn fields_are_those_that_are_documented() {
        let [began, over] = both("host b1");
        let want = serde_json::json!({
            "schema": "narrows.fleet-alert/1", "fleet": "site", "state": "began", "number": 7, "element": "host b1",
            "says": "carries 40 % of what it should", "since": "2023-11-14T22:13:20Z", "after_ms": null, "acknowledged": null, "diagnosis": null,
        });
        assert_eq!(json(&began, "site"), want);
        let over = json(&over, "site");
        assert_eq!((over["state"].as_str(), over["after_ms"].as_u64()), (Some("over"), Some(90_000)));
    }

    #[test]
    fn an_alertmanager_knows_the_end_by_the_labels_of_the_beginning() {
        let alerts = alertmanager(&both("host b1"), "site");
        assert_eq!(alerts[0]["labels"], alerts[1]["labels"]);
        assert_eq!(alerts[0]["labels"]["element"], "host b1");
        assert_eq!(alerts[0]["startsAt"], "2023-11-14T22:13:20Z");
        assert!(alerts[0].get("endsAt").is_none());
        assert_eq!(alerts[1]["endsAt"], "2023-11-14T22:14:50Z");
    }

    #[test]
    fn a_mail_of_the_end_belongs_below_that_of_the_beginning() {
        let [began, over] = both("host b1").map(|message| mail(&message, "the site", "n@example.org"));
        assert_eq!(began.id, "<narrows.the-site.1700000000000.7.began@example.org>");
        assert_eq!((began.answers, over.answers), (None, Some(began.id.clone())));
        assert_ne!(began.id, over.id);
        assert_eq!(began.subject, "narrows the site: incident 7: host b1");
        assert_eq!(over.subject, "narrows the site: incident 7 is over after 90.0 s: host b1");
        assert!(began.text.starts_with("incident 7: host b1: carries 40 %"), "{}", began.text);
    }

    #[test]
    fn hostile_names_stay_names() {
        let hostile = format!("\"<!channel>\r\nBcc: all@example.org\r\n\r\n\u{1b}[31m\u{202e}&{}", "ä".repeat(10_000));
        for message in both(&hostile) {
            let mail = mail(&message, &hostile, "n@example.org");
            let chat = chat(&message, &hostile);
            let text = chat["text"].as_str().expect("a text");
            assert!(text.contains("&lt;!channel&gt; ") && !text.contains(['<', '>']), "{text}");
            let json = json(&message, &hostile);
            let alerts = alertmanager(std::slice::from_ref(&message), &hostile);
            let lines = [text, &mail.subject, &mail.id, json["element"].as_str().expect("a name")];
            let lines = lines.into_iter().chain(alerts[0]["labels"]["element"].as_str()).chain(mail.text.lines());
            for line in lines {
                assert!(!line.chars().any(|c| c.is_control() || c == '\u{202e}'), "{line}");
                assert!(line.chars().count() < 1_500, "{line}");
            }
            assert!(!mail.text.lines().any(|line| line.starts_with("Bcc")), "{}", mail.text);
            assert!(mail.id.is_ascii() && !mail.id.contains(' '), "{}", mail.id);
        }
    }
}
