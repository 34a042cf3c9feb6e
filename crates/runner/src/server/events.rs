//! The stream of a session's events, as the body of its answer, and the session's end. When the body is dropped, the client is gone.

use axum::body::Bytes;
use hyper::body::{Body, Frame};
use narrows_wire::api::Event;
use narrows_wire::pack::Packer;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::sync::{mpsc, watch};

/// Events that wait for a slow reader. What only reports the current state is left out when the channel is full.
const MAX_WAITING: usize = 256;

/// Where a session's events go in.
#[derive(Debug, Clone)]
pub(super) struct Events(mpsc::Sender<Option<Bytes>>);

/// Where they come out.
pub(super) struct EventBody {
    lines: mpsc::Receiver<Option<Bytes>>,
    end: End,
    packer: Option<Packer>,
}

/// The end of a session, with its reason.
#[derive(Debug, Clone)]
pub(super) struct End(watch::Sender<Option<&'static str>>);

impl Default for End {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl End {
    /// Ends the session; the first reason stays. Its task does the rest.
    pub(super) fn raise(&self, why: &'static str) {
        self.0.send_if_modified(|end| {
            let first = end.is_none();
            end.get_or_insert(why);
            first
        });
    }

    pub(super) fn is_raised(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits for it; returns the reason.
    pub(super) async fn wait(&self) -> &'static str {
        // The sender is here, so this cannot fail.
        self.0.subscribe().wait_for(Option::is_some).await.ok().and_then(|why| *why).unwrap_or("the session is gone")
    }
}

pub(super) fn channel() -> (Events, mpsc::Receiver<Option<Bytes>>) {
    let (sender, receiver) = mpsc::channel(MAX_WAITING);
    (Events(sender), receiver)
}

fn line(event: &Event) -> Option<Bytes> {
    event.to_line().ok().map(Bytes::from)
}

impl Events {
    /// Sends what is soon sent again: a heartbeat, progress. Lost where the reader is slow.
    /// Whether there was room for it.
    pub(super) fn mention(&self, event: &Event) -> bool {
        line(event).is_some_and(|line| self.0.try_send(Some(line)).is_ok())
    }

    /// Ends the stream. The session itself holds an end of the channel, so it would not close otherwise.
    pub(super) async fn finish(&self) {
        let _ = self.0.send(None).await;
    }

    /// Sends what must arrive, and waits for room. Nothing happens where the reader is gone.
    pub(super) async fn tell(&self, event: &Event) {
        if let Some(line) = line(event) {
            let _ = self.0.send(Some(line)).await;
        }
    }
}

impl EventBody {
    pub(super) fn new(lines: mpsc::Receiver<Option<Bytes>>, end: End, packed: bool) -> Self {
        Self { lines, end, packer: packed.then(Packer::default) }
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let line = self.lines.poll_recv(context).map(Option::flatten);
        line.map(|line| {
            let bytes = match (line, self.packer.as_mut()) {
                (Some(line), Some(packer)) => packer.pack(&line).into(),
                (Some(line), None) => line,
                // The end of what was packed comes once.
                (None, _) => self.packer.take()?.finish(&[]).into(),
            };
            Some(Ok(Frame::data(bytes)))
        })
    }
}

impl Drop for EventBody {
    fn drop(&mut self) {
        self.end.raise("the client is gone");
    }
}
