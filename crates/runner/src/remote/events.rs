//! The events of a session as they come in, and the beats that go out. Both are kept by tasks, whatever the caller does.

use super::channel::{Body, Channel, is_packed, words};
use super::error::{RemoteError, plain};
use crate::liveness::{AGAIN, Liveness};
use crate::lock;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::Response;
use hyper::body::{Frame, Incoming};
use narrows_traffic::Stop;
use narrows_wire::api::{Event, HEARTBEAT_MS, MAX_ANSWER_BYTES, SERVER_SILENCE_MS};
use narrows_wire::pack::Unpacker;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

/// The request's body: a newline every quarter of a second until it is told to end.
struct Beats {
    tick: Interval,
    end: tokio::sync::oneshot::Receiver<()>,
}

/// Ends the beats when dropped, and so the session.
pub(super) type BeatHolder = tokio::sync::oneshot::Sender<()>;

pub(super) fn beats() -> (Body, BeatHolder) {
    let (holder, end) = tokio::sync::oneshot::channel();
    let mut tick = interval(Duration::from_millis(HEARTBEAT_MS));
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    (UnsyncBoxBody::new(Beats { tick, end }), holder)
}

impl hyper::body::Body for Beats {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if Pin::new(&mut self.end).poll(context).is_ready() {
            return Poll::Ready(None);
        }
        self.tick.poll_tick(context).map(|_| Some(Ok(Frame::data(Bytes::from_static(b"\n")))))
    }
}

/// What the reader of events shares with the session.
#[derive(Debug, Default)]
pub(super) struct Watch {
    /// The trial that must stop when the server says that its end failed, or is gone.
    running: Mutex<Option<Stop>>,
    /// Why no more events come.
    lost: OnceLock<RemoteError>,
    /// Those of the server's data, while a trial runs.
    pub(super) liveness: Liveness,
}

impl Watch {
    pub(super) fn set(&self, stop: Option<Stop>) {
        *lock(&self.running) = stop;
    }

    /// Why the other end is lost, if it is.
    pub(super) fn lost(&self) -> Option<RemoteError> {
        self.lost.get().cloned()
    }

    fn raise(&self) {
        if let Some(stop) = &*lock(&self.running) {
            stop.stop();
        }
    }
}

/// What comes in: events, and last of all the reason why no more will.
pub(super) type Incomings = mpsc::Receiver<Result<Event, RemoteError>>;

/// Events that wait for the session to read them: minutes of progress reports.
const MAX_WAITING: usize = 4_096;

/// Reads events until the stream ends or falls silent.
pub(super) fn read(channel: Channel, events: Response<Incoming>, watch: Arc<Watch>) -> Incomings {
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    tokio::spawn(async move {
        let error = pump(&channel, events, &watch, &sender).await;
        // First the word, then the flag: who sees the flag finds the word.
        let _ = watch.lost.set(error.clone());
        // The flag must not wait for room; who finds no word in a full channel finds it in the watch.
        let _ = sender.try_send(Err(error));
        watch.raise();
    });
    receiver
}

async fn pump(
    channel: &Channel,
    events: Response<Incoming>,
    watch: &Watch,
    sender: &mpsc::Sender<Result<Event, RemoteError>>,
) -> RemoteError {
    let silence = Duration::from_millis(SERVER_SILENCE_MS);
    let mut wait = silence;
    let mut pending: Vec<u8> = Vec::new();
    let mut unpacker = is_packed(&events).then(Unpacker::default);
    let mut body = events.into_body();
    loop {
        let data = match timeout(wait, body.frame()).await {
            Ok(Some(Ok(frame))) => {
                wait = silence;
                frame.into_data().unwrap_or_default()
            }
            Err(_) if watch.liveness.is_alive(silence).await => {
                wait = AGAIN;
                continue;
            }
            Ok(Some(Err(error))) => return channel.lost(words(&error)),
            Ok(None) => return channel.lost("it ended the session"),
            Err(_) => return channel.lost(format!("no event for {} s", silence.as_secs())),
        };
        let data = match unpacker.as_mut().map(|unpacker| unpacker.unpack(&data, MAX_ANSWER_BYTES)) {
            None => data,
            Some(Ok(unpacked)) => unpacked.into(),
            Some(Err(error)) => return channel.lost(format!("cannot decompress its events: {error}")),
        };
        pending.extend_from_slice(&data);
        if pending.len() > MAX_ANSWER_BYTES {
            return channel.lost(format!("it sent an event of more than {MAX_ANSWER_BYTES} bytes"));
        }
        if !data.contains(&b'\n') {
            continue;
        }
        let end = pending.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        for line in pending[..end].split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match Event::from_line(line) {
                Ok(None | Some(Event::Beat)) => {}
                Ok(Some(Event::Ended { why })) => return channel.lost(plain(&why)),
                Ok(Some(event)) => {
                    let failed = matches!(event, Event::Failed { .. });
                    let is_progress = matches!(event, Event::Progress { .. });
                    let full = matches!(sender.try_send(Ok(event)), Err(mpsc::error::TrySendError::Full(_)));
                    if full && !is_progress {
                        return channel.lost("it sends more events than can be read");
                    }
                    if failed {
                        watch.raise();
                    }
                }
                Err(error) => return channel.lost(format!("cannot parse its event: {error}")),
            }
        }
        pending.drain(..end);
    }
}
