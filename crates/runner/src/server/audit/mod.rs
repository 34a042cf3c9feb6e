//! The audit log of a server: who did what, when and from where, as JSON lines in a file or in systemd's journal.
//!
//! Lines go through a bounded channel to a thread of their own, so that a slow or full disk never stops the server. The log grows by at
//! most 10 kB per second; lines beyond that are counted in a later line.

mod limit;
mod line;

pub(super) use line::Action;
pub(crate) use line::{By, Event, text};

use crate::lock;
use limit::Limit;
use narrows_sys::journald::{self, Journald};
use narrows_sys::{clock, files};
use narrows_wire::api::Reason;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// The name of a client that has shown no right to be here.
pub(super) const STRANGER: &str = "stranger";

/// Lines that wait for a slow disk.
const MAX_WAITING: usize = 1_024;
/// How often suppressed lines are looked for.
const LOOK: Duration = Duration::from_secs(1);
/// For the last lines, when the server ends.
const LAST: Duration = Duration::from_secs(2);

/// Where the audit log goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditTo {
    /// Appended to this file, which is created for its owner alone. It may be renamed and removed while the server runs, unless that is
    /// separated from its privileges: then it goes on with the file that it has (`copytruncate`).
    File(PathBuf),
    Journald,
}

impl From<PathBuf> for AuditTo {
    /// `journald` is the journal, everything else a file (`./journald`, too).
    fn from(word: PathBuf) -> Self {
        if word == Path::new("journald") { Self::Journald } else { Self::File(word) }
    }
}

impl AuditTo {
    /// Opens it, with the rights that the server has at its start.
    pub(crate) fn sink(&self) -> narrows_sys::Result<Sink> {
        Ok(match self {
            Self::File(path) => {
                let mut file = files::Appender::open(path, 0o600)?;
                Box::new(move |line| file.append(format!("{line}\n").as_bytes()))
            }
            Self::Journald => {
                let journal = Journald::open(Path::new(journald::SOCKET))?;
                Box::new(move |line| journal.send(line))
            }
        })
    }
}

/// Where lines are written.
pub(crate) type Sink = Box<dyn FnMut(&str) -> narrows_sys::Result<()> + Send>;

pub(crate) struct Audit(Option<Open>);

struct Open {
    limit: Arc<Mutex<Limit>>,
    lines: Option<SyncSender<String>>,
    writer: Option<JoinHandle<()>>,
}

impl Audit {
    /// Writes to a sink, by a thread of its own; without one nothing is written.
    pub(crate) fn of(sink: Option<Sink>) -> Self {
        sink.map_or(Self(None), |sink| Self::to(sink, Box::new(crate::say)))
    }

    /// With a sink; `say` gets a sentence when it fails.
    fn to(sink: Sink, say: Box<dyn FnMut(&str) + Send>) -> Self {
        let (lines, waiting) = sync_channel(MAX_WAITING);
        let limit = Arc::new(Mutex::new(Limit::default()));
        let of_writer = limit.clone();
        let writer = std::thread::Builder::new()
            .name("narrows-audit".to_owned())
            .spawn(move || write(&waiting, &of_writer, sink, say))
            .ok();
        Self(Some(Open { limit, lines: Some(lines), writer }))
    }

    /// Writes one event, or counts it as suppressed. Never waits.
    pub(crate) fn note(&self, by: &By<'_>, event: &Event) {
        let Some(open) = &self.0 else { return };
        let second = clock::unix_us() / 1_000_000;
        let line = line::line(second, by, event);
        let mut limit = lock(&open.limit);
        if limit.admits(second, line.len() + 1, by.class(event))
            && open.lines.as_ref().is_none_or(|lines| lines.try_send(line).is_err())
        {
            limit.suppress();
        }
    }

    /// Notes whose token let a reader of the page in, or why none did.
    pub(crate) fn note_entry(&self, from: Option<IpAddr>, entry: Result<&str, (Reason, &str)>) {
        let (who, event) = match entry {
            Ok(who) => (who, Event::Entered),
            Err((reason, why)) => {
                let request = "POST /web/login".to_owned();
                (STRANGER, Event::Refused { request, reason, message: why.to_owned() })
            }
        };
        self.note(&By { who: Some(who), from, session: None }, &event);
    }

    /// Whether there is one.
    pub(super) const fn is_open(&self) -> bool {
        self.0.is_some()
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.lines = None;
        // A disk that hangs does not keep the server from its end.
        let end = clock::now() + LAST;
        while self.writer.as_ref().is_some_and(|writer| !writer.is_finished()) && clock::now() < end {
            clock::sleep(Duration::from_millis(2));
        }
        if let Some(writer) = self.writer.take().filter(JoinHandle::is_finished) {
            let _ = writer.join();
        }
    }
}

/// The thread of the log. A failure is reported once, until a line was written again.
fn write(lines: &Receiver<String>, limit: &Mutex<Limit>, mut sink: Sink, mut say: Box<dyn FnMut(&str) + Send>) {
    let mut failed = false;
    let mut put = |line: &str| match sink(line) {
        Ok(()) => failed = false,
        Err(error) => {
            lock(limit).suppress();
            if !std::mem::replace(&mut failed, true) {
                say(&format!("cannot write the audit log: {error}; lines are lost until it can be written again"));
            }
        }
    };
    loop {
        let next = lines.recv_timeout(LOOK);
        let second = clock::unix_us() / 1_000_000;
        let suppressed = lock(limit).take_suppressed(second);
        if let Some(lines) = suppressed {
            put(&line::line(second, &By::default(), &Event::Suppressed { lines }));
        }
        match next {
            Ok(line) => put(&line),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn stop() -> Event {
        Event::Stop
    }

    #[test]
    fn lines_reach_a_file_that_may_be_rotated() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.log");
        let audit = Audit::of(Some(AuditTo::File(path.clone()).sink().expect("opened")));
        let until_line = |word: &str| {
            while !narrows_sys::files::read_text(&path).unwrap_or_default().contains(word) {
                clock::sleep(Duration::from_millis(1));
            }
        };
        audit.note(&By::default(), &stop());
        until_line("\"event\":\"stop\"");
        std::fs::rename(&path, directory.path().join("audit.log.1")).expect("rotated");
        audit.note(&By { who: Some("ci"), ..By::default() }, &stop());
        until_line("\"who\":\"ci\"");
        let error = AuditTo::File(directory.path().join("none/log")).sink().map(|_| ()).expect_err("nowhere");
        assert!(error.to_string().starts_with("cannot append to "), "{error}");
        assert_eq!(AuditTo::from(PathBuf::from("journald")), AuditTo::Journald);
        assert_eq!(AuditTo::from(PathBuf::from("./journald")), AuditTo::File("./journald".into()));
    }

    #[test]
    fn a_failing_disk_is_reported_once_and_stops_nothing() {
        let (told, sentences) = channel();
        let (wrote, written) = channel();
        let mut attempts = 0;
        let sink: Sink = Box::new(move |line| {
            attempts += 1;
            if (2..=4).contains(&attempts) {
                return Err(narrows_sys::Error::new("append to", "/log", std::io::Error::from_raw_os_error(28)));
            }
            wrote.send(line.to_owned()).expect("the test listens");
            Ok(())
        });
        let audit =
            Audit::to(sink, Box::new(move |sentence| told.send(sentence.to_owned()).expect("the test listens")));
        for _ in 0..6 {
            audit.note(&By::default(), &stop());
        }
        drop(audit);
        let said: Vec<_> = sentences.iter().collect();
        assert_eq!(
            said,
            [
                "cannot write the audit log: cannot append to /log: No space left on device (os error 28); lines are lost until it \
              can be written again"
            ]
        );
        assert!(written.iter().filter(|line| line.contains("\"event\":\"stop\"")).count() >= 2);
    }

    #[test]
    fn a_disk_that_hangs_makes_nobody_wait() {
        let (hold, held) = channel::<()>();
        let sink: Sink = Box::new(move |_| {
            let _ = held.recv();
            Ok(())
        });
        let audit = Audit::to(sink, Box::new(|_| {}));
        for _ in 0..10 * MAX_WAITING {
            audit.note(&By::default(), &stop());
        }
        let open = audit.0.as_ref().expect("open");
        assert!(lock(&open.limit).take_suppressed(u64::MAX).is_some_and(|lines| lines > 0));
        drop(hold);
    }

    /// What is written of the last line after many of another client.
    fn written_after_a_flood(flood: (&str, &Event), last: (&str, &Event)) -> usize {
        let (wrote, written) = channel();
        let sink: Sink = Box::new(move |line| {
            wrote.send(line.to_owned()).expect("the test listens");
            Ok(())
        });
        let audit = Audit::to(sink, Box::new(|_| {}));
        for _ in 0..500 {
            audit.note(&By { who: Some(flood.0), ..By::default() }, flood.1);
        }
        audit.note(&By { who: Some(last.0), session: Some(77), ..By::default() }, last.1);
        drop(audit);
        written.iter().filter(|line| line.contains("\"session\":77")).count()
    }

    #[test]
    fn no_client_hides_what_one_with_more_rights_does() {
        let refused = || Event::Refused {
            request: "POST /v1/sessions".to_owned(),
            reason: narrows_wire::api::Reason::NotAllowed,
            message: "no".to_owned(),
        };
        let failed = || Event::Measured {
            kind: "Tcp",
            duration_ms: 1,
            bytes: None,
            rate_bps: None,
            failure: Some("stopped".to_owned()),
        };
        let session = || Event::Session { r#use: narrows_wire::api::SessionUse::Look };
        let changed = || Event::Changed {
            action: Action::Set,
            key: "net.ipv4.tcp_sack".to_owned(),
            old: "1".to_owned(),
            new: "0".to_owned(),
            failure: None,
        };
        for stranger in [STRANGER, "guest"] {
            assert_eq!(written_after_a_flood((stranger, &refused()), ("ci", &refused())), 1);
            assert_eq!(written_after_a_flood((stranger, &failed()), ("ci", &failed())), 1);
        }
        for flood in [refused(), failed(), session()] {
            assert_eq!(written_after_a_flood(("ci", &flood), ("admin", &changed())), 1);
        }
    }
}
