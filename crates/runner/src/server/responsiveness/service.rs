//! The four resources of a responsiveness test: the configuration, a large and a small object, and where to send data.

use super::limits::LARGE;
use crate::server::bucket::Rates;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE};
use hyper::{Method, Request, Response, StatusCode};
use narrows_sys::clock;
use narrows_wire::responsiveness::{LARGE_PATH, SMALL_PATH, UPLOAD_PATH, WELL_KNOWN, configuration};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::time::{Sleep, sleep_until};

/// Bytes of the large object in one piece: a frame of HTTP/2.
const PIECE: usize = 16 << 10;
static PIECES: [u8; PIECE] = [0; PIECE];

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// The requests of a connection.
#[derive(Debug, Default)]
pub(super) struct Activity {
    open: AtomicUsize,
    begun: AtomicU64,
}

/// A request that is not yet done.
struct Open(Arc<Activity>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Activity {
    fn begin(self: &Arc<Self>) -> Open {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.begun.fetch_add(1, Ordering::Relaxed);
        Open(self.clone())
    }

    /// Whether a request is open, or began since so many had; and how many have.
    pub(super) fn since(&self, before: u64) -> (bool, u64) {
        let begun = self.begun.load(Ordering::Relaxed);
        (self.open.load(Ordering::Relaxed) > 0 || begun != before, begun)
    }
}

/// A body of zeros at the rate of all.
struct Large {
    _open: Open,
    left: u64,
    rates: Arc<Rates>,
    wait: Pin<Box<Sleep>>,
}

impl Body for Large {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.wait.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        let bytes = usize::try_from(self.left).unwrap_or(PIECE).min(PIECE);
        if bytes == 0 {
            return Poll::Ready(None);
        }
        self.left -= bytes as u64;
        let until = self.rates.down.take(bytes, clock::now());
        self.wait.as_mut().reset(until.into());
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&PIECES[..bytes])))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

fn answer(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(UnsyncBoxBody::new(Full::new(text.into())));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static(kind));
    answer
}

const BYTES: &str = "application/octet-stream";
const TEXT: &str = "text/plain";

pub(super) async fn serve(
    request: Request<Incoming>,
    rates: Arc<Rates>,
    activity: Arc<Activity>,
) -> Result<Answer, Infallible> {
    let open = activity.begin();
    let mut done = match (request.method(), request.uri().path()) {
        (&Method::GET, WELL_KNOWN) => {
            let host = request.uri().authority().map_or("", |authority| authority.as_str());
            match configuration(host) {
                Some(text) => answer(StatusCode::OK, "application/json", text),
                None => answer(StatusCode::BAD_REQUEST, TEXT, "invalid host\n"),
            }
        }
        (&Method::GET, SMALL_PATH) => answer(StatusCode::OK, BYTES, Bytes::from_static(b"0")),
        (&Method::GET, LARGE_PATH) => {
            let wait = Box::pin(sleep_until(clock::now().into()));
            let mut large = answer(StatusCode::OK, BYTES, Bytes::new());
            *large.body_mut() = UnsyncBoxBody::new(Large { _open: open, left: LARGE, rates, wait });
            large
        }
        (&Method::POST, UPLOAD_PATH) => return Ok(discard(request.into_body(), &rates).await),
        _ => answer(StatusCode::NOT_FOUND, TEXT, "not found\n"),
    };
    done.headers_mut().insert(CACHE_CONTROL, hyper::header::HeaderValue::from_static("no-store"));
    Ok(done)
}

/// Reads what is sent, at the rate of all, up to the size of the large object.
async fn discard(mut body: Incoming, rates: &Rates) -> Answer {
    let mut left = LARGE;
    while let Some(Ok(frame)) = body.frame().await {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        left = left.saturating_sub(bytes as u64);
        if left == 0 {
            return answer(StatusCode::PAYLOAD_TOO_LARGE, TEXT, "no more\n");
        }
        // Data that is not read is not acknowledged by HTTP/2: its sender waits.
        sleep_until(rates.up.take(bytes, clock::now()).into()).await;
    }
    answer(StatusCode::OK, TEXT, Bytes::new())
}
