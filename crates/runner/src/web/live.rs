//! A test that a reader started, which others watch, too: what it says, line by line.

use crate::lock;
use crate::server::refusal::Refused;
use axum::body::Body;
use axum::http::{Response, header};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use http_body_util::channel::Channel;
use narrows_model::words::show::clean;
use narrows_render::web::Test;
use narrows_sys::clock;
use narrows_traffic::Stop;
use narrows_wire::api::Reason;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{Semaphore, watch};

/// What a test says is kept up to here; the rest of it is in its run.
const LINES_MAX: usize = 500;
const LINE_CHARS: usize = 300;
/// Readers that watch at the same time.
const WATCHERS_MAX: usize = 16;
/// A proxy ends a connection on which nothing is said, and who has gone is found only so.
const SAYS_SOMETHING: Duration = Duration::from_secs(5);

/// The event that a test has ended.
const ENDS: &str = "event: end\ndata:\n\n";

/// The last test.
pub(crate) struct Live {
    test: Mutex<Option<(Test, Stop)>>,
    /// Changes with each line.
    news: watch::Sender<()>,
    watchers: Arc<Semaphore>,
}

/// How a test ended: in words, and the id of its run, where there is one.
pub(crate) type Ended = (String, Option<String>);

impl Default for Live {
    fn default() -> Self {
        Self { test: Mutex::default(), news: watch::Sender::new(()), watchers: Arc::new(Semaphore::new(WATCHERS_MAX)) }
    }
}

impl Live {
    /// Makes a test on a thread of its own. `says`: what it is; `by`: who started it.
    /// Errors: another one is under way.
    pub(crate) fn begin(
        self: &Arc<Self>,
        says: String,
        by: String,
        make: impl FnOnce(&Self, &Stop) -> Ended + Send + 'static,
    ) -> Result<(), Refused> {
        let stop = Stop::new();
        {
            let mut test = lock(&self.test);
            if test.as_ref().is_some_and(|(test, _)| test.ended.is_none()) {
                return Err(Refused::new(Reason::Busy, "a test is under way; it can be stopped"));
            }
            // It tells two tests apart.
            let before = test.as_ref().map_or(0, |(test, _)| test.began_unix_ms);
            let began_unix_ms = (clock::unix_us() / 1_000).max(before + 1);
            *test = Some((Test { says, by, began_unix_ms, ..Test::default() }, stop.clone()));
        }
        let live = self.clone();
        let named = std::thread::Builder::new().name("narrows-test".to_owned());
        let begun = named.spawn(move || {
            let ending = Ending(&live);
            let (ended, run) = make(&live, &stop);
            ending.0.end(&ended, run);
        });
        begun.map(drop).map_err(|error| {
            self.end(&error.to_string(), None);
            Refused::failed(error)
        })
    }

    pub(crate) fn say(&self, line: &str) {
        if let Some((test, _)) = lock(&self.test).as_mut().filter(|(test, _)| test.lines.len() < LINES_MAX) {
            test.lines.push(clean(&line.chars().take(LINE_CHARS).collect::<String>()));
        }
        self.news.send_replace(());
    }

    fn end(&self, ended: &str, run: Option<String>) {
        if let Some((test, _)) = lock(&self.test).as_mut() {
            (test.ended, test.run) = (Some(clean(ended)), run);
        }
        self.news.send_replace(());
    }

    /// Stops the test that began then; `false`: it has ended. What was measured is kept.
    pub(crate) fn stop(&self, began_unix_ms: u64) -> bool {
        let test = lock(&self.test);
        let of = test.as_ref().filter(|(it, _)| it.began_unix_ms == began_unix_ms && it.ended.is_none());
        of.map(|(_, stop)| stop.stop()).is_some()
    }

    pub(crate) fn last(&self) -> Option<Test> {
        lock(&self.test).as_ref().map(|(test, _)| test.clone())
    }

    /// What the test that began then says after so many lines, and that it ended (server-sent events; HTML Standard, section 9.2).
    /// They end when the session of the reader does.
    /// Errors: too many watch already.
    pub(super) fn events(
        self: &Arc<Self>,
        began_unix_ms: u64,
        after: usize,
        lives: impl Fn() -> bool + Send + 'static,
    ) -> Result<Response<Body>, Refused> {
        let place = self.watchers.clone().try_acquire_owned();
        let place = place.map_err(|_| Refused::new(Reason::Busy, "too many readers watch this test"))?;
        let (mut to, body) = Channel::<Bytes>::new(4);
        let (live, mut news) = (self.clone(), self.news.subscribe());
        tokio::spawn(async move {
            let _place = place;
            let mut said = after;
            while lives() {
                let (text, is_over) = live.after(began_unix_ms, &mut said);
                // Who has gone takes no more.
                if !text.is_empty() && to.send_data(text.into()).await.is_err() || is_over {
                    return;
                }
                match tokio::time::timeout(SAYS_SOMETHING, news.changed()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(_)) => return,
                    Err(_) if to.send_data(Bytes::from_static(b":\n\n")).await.is_err() => return,
                    Err(_) => {}
                }
            }
        });
        Ok(([(header::CONTENT_TYPE, "text/event-stream")], Body::new(body)).into_response())
    }

    /// The events after so many lines, and whether it has ended.
    fn after(&self, began_unix_ms: u64, said: &mut usize) -> (String, bool) {
        let test = lock(&self.test);
        let Some((test, _)) = test.as_ref().filter(|(test, _)| test.began_unix_ms == began_unix_ms) else {
            return (ENDS.to_owned(), true);
        };
        let mut text = String::new();
        for (nth, line) in test.lines.iter().enumerate().skip(*said) {
            text += &format!("id: {}\ndata: {line}\n\n", nth + 1);
        }
        *said = test.lines.len().max(*said);
        let is_over = test.ended.is_some();
        if is_over {
            text += ENDS;
        }
        (text, is_over)
    }
}

/// A test that panics has ended, too.
struct Ending<'a>(&'a Live);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.end("it failed: see what the server says", None);
        }
    }
}
