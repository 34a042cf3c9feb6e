//! How much memory large answers take that are on their way, and for how long: a reader that takes none gets no more of them.

use crate::lock;
use crate::server::refusal::Refused;
use axum::body::{Body, HttpBody as _, to_bytes};
use axum::http::{HeaderValue, Response, header};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use http_body_util::channel::Channel;
use narrows_wire::api::Reason;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// All of them, and those to one source, KiB. One that is larger takes the whole.
const ALL_KIB: usize = 64 << 10;
const OF_SOURCE_KIB: u32 = 16 << 10;
/// Smaller ones are bounded by the number of requests.
const LARGE_BYTES: u64 = 64 << 10;
/// What goes out at once, and how long that and the whole may take.
const PART_BYTES: usize = 256 << 10;
const PART_TIME: Duration = Duration::from_secs(30);
const TIME: Duration = Duration::from_secs(300);

/// Answers on their way.
pub(super) struct Budget {
    all: Arc<Semaphore>,
    of: Mutex<HashMap<Option<IpAddr>, Arc<Semaphore>>>,
}

impl Default for Budget {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(ALL_KIB)), of: Mutex::default() }
    }
}

impl Budget {
    /// The answer as it may be sent.
    pub(super) async fn held(&self, source: Option<IpAddr>, answer: Response<Body>) -> Response<Body> {
        // What has no size is said bit by bit.
        let Some(size) = answer.body().size_hint().exact().filter(|size| *size >= LARGE_BYTES) else { return answer };
        let Some(part) = self.part(source, size) else {
            return Refused::new(Reason::Busy, "answers that were asked for before are still to be taken")
                .into_response();
        };
        let (mut parts, body) = answer.into_parts();
        // It is a single text: nothing is copied.
        let mut text = match to_bytes(body, usize::MAX).await {
            Ok(text) => text,
            Err(error) => return Refused::failed(error).into_response(),
        };
        parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(size));
        let (mut to, body) = Channel::<Bytes>::new(1);
        tokio::spawn(async move {
            let _part = part;
            let all = async {
                while !text.is_empty() {
                    let next = text.split_to(text.len().min(PART_BYTES));
                    match timeout(PART_TIME, to.send_data(next)).await {
                        Ok(Ok(())) => {}
                        _ => return,
                    }
                }
            };
            let _ = timeout(TIME, all).await;
        });
        Response::from_parts(parts, Body::new(body))
    }

    fn part(&self, source: Option<IpAddr>, bytes: u64) -> Option<[OwnedSemaphorePermit; 2]> {
        let kib = |most: u32| u32::try_from(bytes >> 10).unwrap_or(most).min(most);
        let mut of = lock(&self.of);
        of.retain(|_, it| it.available_permits() < OF_SOURCE_KIB as usize);
        let new = || Arc::new(Semaphore::new(OF_SOURCE_KIB as usize));
        let own = of.entry(source).or_insert_with(new).clone().try_acquire_many_owned(kib(OF_SOURCE_KIB)).ok()?;
        Some([own, self.all.clone().try_acquire_many_owned(kib(ALL_KIB as u32)).ok()?])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_takes_no_answer_gets_no_more_and_keeps_none_from_others() {
        let budget = Budget::default();
        let source = |nth: u8| Some(IpAddr::from([192, 0, 2, nth]));
        let large = || Response::new(Body::from(vec![b'x'; 4 << 20]));
        let mut waiting = Vec::new();
        for nth in 0..4 {
            for _ in 0..4 {
                waiting.push(budget.held(source(nth), large()).await);
            }
            assert_eq!(budget.held(source(nth), large()).await.status(), 429, "its part is full");
            let small = budget.held(source(nth), Response::new(Body::from("x"))).await;
            assert_eq!(small.status(), 200);
        }
        assert!(waiting.iter().all(|it| it.status() == 200));
        assert_eq!(budget.held(source(9), large()).await.status(), 429, "all is full");
        // What was taken, and what nobody waits for any more, is given back.
        let taken = waiting.pop().expect("some");
        assert_eq!(taken.headers()["content-length"], "4194304");
        drop(waiting.pop());
        assert_eq!(to_bytes(taken.into_body(), usize::MAX).await.expect("a text").len(), 4 << 20);
        tokio::task::yield_now().await;
        for _ in 0..2 {
            waiting.push(budget.held(source(9), large()).await);
            assert_eq!(waiting.last().expect("it").status(), 200);
        }
        // So is what nobody takes for long; it ends without its end.
        tokio::time::sleep(PART_TIME * 2).await;
        assert!(
            to_bytes(waiting.pop().expect("some").into_body(), usize::MAX).await.is_ok_and(|it| it.len() < 4 << 20)
        );
        let huge = Response::new(Body::from(vec![b'x'; 40 << 20]));
        assert_eq!(budget.held(source(1), huge).await.status(), 200, "one that is larger than its part");
    }
}
