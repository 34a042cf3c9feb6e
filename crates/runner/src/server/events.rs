//! The stream of a session's events, as the body of its answer. When the body goes, the client is gone.

use super::session::Session;
use axum::body::Bytes;
use hyper::body::{Body, Frame};
use narrows_wire::api::Event;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::sync::mpsc;

/// Events that wait for a slow reader. What only tells the state of things is left out when it is full.
const MOST_WAITING: usize = 256;

/// Where a session's events go in.
#[derive(Debug, Clone)]
pub(super) struct Events(mpsc::Sender<Option<Bytes>>);

/// Where they come out.
pub(super) struct EventBody {
    lines: mpsc::Receiver<Option<Bytes>>,
    session: Arc<Session>,
}

pub(super) fn channel() -> (Events, mpsc::Receiver<Option<Bytes>>) {
    let (sender, receiver) = mpsc::channel(MOST_WAITING);
    (Events(sender), receiver)
}

fn line(event: &Event) -> Option<Bytes> {
    event.to_line().ok().map(Bytes::from)
}

impl Events {
    /// Tells what will soon be told again: a beat, progress. Lost where the reader is slow.
    pub(super) fn mention(&self, event: &Event) {
        if let Some(line) = line(event) {
            let _ = self.0.try_send(Some(line));
        }
    }

    /// Ends the stream. The session itself holds an end of the channel, so it would not close otherwise.
    pub(super) async fn finish(&self) {
        let _ = self.0.send(None).await;
    }

    /// Tells what must be known, and waits for room. Nothing happens where the reader is gone.
    pub(super) async fn tell(&self, event: &Event) {
        if let Some(line) = line(event) {
            let _ = self.0.send(Some(line)).await;
        }
    }
}

impl EventBody {
    pub(super) const fn new(lines: mpsc::Receiver<Option<Bytes>>, session: Arc<Session>) -> Self {
        Self { lines, session }
    }
}

impl Body for EventBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.lines.poll_recv(context).map(|line| line.flatten().map(|bytes| Ok(Frame::data(bytes))))
    }
}

impl Drop for EventBody {
    fn drop(&mut self) {
        self.session.end("the client is gone");
    }
}
