//! The lines of the audit log: JSON objects, one event each. `docs/security.md` describes them.

use super::limit::Class;
use crate::server::holder::Holder;
use narrows_model::words::{date, show};
use narrows_model::{Change, Setting};
use narrows_wire::api::{Reason, SessionUse};
use serde::Serialize;
use std::net::IpAddr;

/// The version of the lines.
const SCHEMA: &str = "narrows.audit/1";
/// The longest text from outside.
const MAX_TEXT: usize = 200;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Event {
    Start {
        version: &'static str,
        port: u16,
    },
    /// The server has ended.
    Stop,
    /// A client has opened a session.
    Session {
        r#use: SessionUse,
    },
    /// Something of a fleet was changed, or was to be: `acknowledge 3 by ada`; or a test of this host was started or stopped on its page.
    Asked {
        what: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// A reader has come to the page with a token.
    Entered,
    /// Other hosts may measure here until this session ends.
    Pass,
    SessionEnd {
        why: String,
    },
    /// A load has run, or could not.
    Measured {
        kind: &'static str,
        duration_ms: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        bytes: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        rate_bps: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// Raw frames are sent or counted from now on.
    Frames {
        action: &'static str,
        device: String,
        duration_ms: u64,
    },
    /// A setting of the host was changed, or its change was undone or kept.
    Changed {
        action: Action,
        key: String,
        old: String,
        new: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// A request was refused.
    Refused {
        request: String,
        reason: Reason,
        message: String,
    },
    /// Lines were left out since the last line, because there were too many.
    Suppressed {
        lines: u64,
    },
}

/// What was done with a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Action {
    /// From `old` to `new`.
    Set,
    /// From `new` back to `old`.
    Undo,
    /// `new` outlives the session.
    Keep,
}

impl Event {
    /// From a change of the host.
    pub(in super::super) fn changed(action: Action, change: &Change, failure: Option<String>) -> Self {
        let (key, new) = match &change.set {
            Setting::Sysctl { key, value } => (key.clone(), value.clone()),
            Setting::Offload { device, feature, on } => {
                (format!("{device} {feature}"), if *on { "on" } else { "off" }.to_owned())
            }
            Setting::Mtu { device, mtu } => (format!("{device} mtu"), mtu.to_string()),
            Setting::RootQdisc { device, kind } => (format!("{device} root qdisc"), kind.clone()),
            other => ("other".to_owned(), other.to_string()),
        };
        Self::Changed { action, key: text(&key), old: text(&change.before), new: text(&new), failure }
    }

    /// Whether it changes the host or the server, which nothing else may hide.
    const fn is_change(&self) -> bool {
        matches!(self, Self::Start { .. } | Self::Stop | Self::Changed { .. } | Self::Asked { .. })
    }
}

/// Text from outside, without control characters and not without end.
pub(crate) fn text(text: &str) -> String {
    let mut words = show::clean(&text.chars().take(MAX_TEXT + 1).collect::<String>());
    if words.chars().count() > MAX_TEXT {
        words = words.chars().take(MAX_TEXT - 1).chain(['…']).collect();
    }
    words
}

/// Who did it: the server itself where all is missing.
#[derive(Debug, Clone, Default)]
pub(crate) struct By<'a> {
    pub(crate) who: Option<&'a str>,
    pub(crate) from: Option<IpAddr>,
    pub(crate) session: Option<u64>,
}

impl By<'_> {
    /// Of whose part of the log a line is. It needs no token to be a stranger or a guest, of whom there may be any number.
    pub(super) fn class(&self, event: &Event) -> Class {
        match self.who {
            _ if event.is_change() => Class::Changed,
            Some(who) if who == super::STRANGER || who == Holder::Guest.name() => Class::Stranger,
            _ => Class::Holder,
        }
    }
}

#[derive(Serialize)]
struct Line<'a> {
    schema: &'static str,
    time: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    who: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<IpAddr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<u64>,
    #[serde(flatten)]
    event: &'a Event,
}

/// One line without its end.
pub(super) fn line(now_unix_s: u64, by: &By<'_>, event: &Event) -> String {
    let line = Line {
        schema: SCHEMA,
        time: date::utc(now_unix_s),
        who: by.who,
        from: by.from.map(|address| address.to_canonical()),
        session: by.session,
        event,
    };
    // Nothing in a line can fail to be written as JSON.
    serde_json::to_string(&line).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::Place;

    #[test]
    fn each_kind_of_line() {
        let change = Change {
            id: "1".to_owned(),
            at: Place::Server,
            set: Setting::Sysctl { key: "net.ipv4.tcp_rmem".to_owned(), value: "4096 131072 262144".to_owned() },
            before: "4096 131072 6291456".to_owned(),
            made_unix_us: 0,
            in_force: true,
        };
        let offload = Setting::Offload { device: "eth0".into(), feature: "tso".into(), on: false };
        let events = [
            Event::Start { version: "0.1.0", port: 5220 },
            Event::Session { r#use: SessionUse::Load },
            Event::Pass,
            Event::Measured {
                kind: "Tcp",
                duration_ms: 10_000,
                bytes: Some(1 << 30),
                rate_bps: Some(858_993_459),
                failure: None,
            },
            Event::Measured {
                kind: "Rr",
                duration_ms: 3,
                bytes: None,
                rate_bps: None,
                failure: Some("stopped".to_owned()),
            },
            Event::Frames { action: "send", device: "eth1".to_owned(), duration_ms: 1_000 },
            Event::changed(Action::Set, &change, None),
            Event::changed(
                Action::Undo,
                &Change { set: offload, before: "on".into(), ..change },
                Some("gone".to_owned()),
            ),
            Event::Refused {
                request: "POST /v1/sessions/{id}/changes".to_owned(),
                reason: Reason::NotAllowed,
                message: text("no \u{1b}[2J\n\"changes\""),
            },
            Event::SessionEnd { why: "the client ended it".to_owned() },
            Event::Suppressed { lines: 7 },
            Event::Stop,
        ];
        let lines: Vec<_> = events
            .iter()
            .map(|event| {
                let own = matches!(event, Event::Start { .. } | Event::Stop | Event::Suppressed { .. });
                let by = By { who: Some("ci"), from: Some([192, 0, 2, 1].into()), session: Some(3) };
                line(1_190_232_884, &if own { By::default() } else { by }, event)
            })
            .collect();
        insta::assert_snapshot!(lines.join("\n"));
    }

    #[test]
    fn text_from_outside_is_short_and_plain() {
        assert_eq!(text("a\nb\u{7}\u{202e}c"), "a b??c");
        assert_eq!(text(&"x".repeat(300)).chars().count(), MAX_TEXT);
        let longest = Event::Refused {
            request: text(&"ü".repeat(999)),
            reason: Reason::BadRequest,
            message: text(&"\"".repeat(999)),
        };
        assert!(line(u64::MAX, &By::default(), &longest).len() < 1_200);
    }
}
