//! The load: connections that get or send an object without end, and the probes beside them.

use super::connection::{Body, Connection, Server, empty};
use crate::lock;
use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::Method;
use hyper::body::Frame;
use narrows_model::Flow;
use narrows_model::load::responsiveness::{ForeignProbe, SelfProbe};
use narrows_sys::{clock, random};
use narrows_wire::responsiveness::{Configuration, Url};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::time::sleep;

/// Probes of a kind that wait for their answer at the same time.
const OUTSTANDING: usize = 128;
const PIECE: usize = 16 << 10;
static PIECES: [u8; PIECE] = [0; PIECE];

/// The load of one direction while it runs.
pub(super) struct Load {
    pub(super) server: Server,
    pub(super) urls: Configuration,
    pub(super) flow: Flow,
    pub(super) start: Instant,
    pub(super) bytes: AtomicU64,
    /// Those that carry load.
    pub(super) connections: Mutex<Vec<Connection>>,
    pub(super) foreign: Mutex<Vec<ForeignProbe>>,
    pub(super) own: Mutex<Vec<SelfProbe>>,
    pub(super) failed: AtomicU64,
    /// Why a connection ended, the first of all.
    pub(super) broken: Mutex<Option<String>>,
    /// Time between two pairs of probes, µs.
    pub(super) pause_us: AtomicU64,
    foreign_places: Arc<Semaphore>,
    own_places: Arc<Semaphore>,
}

/// A body of zeros that counts what leaves.
struct Endless(Arc<Load>);

impl hyper::body::Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.bytes.fetch_add(PIECE as u64, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&PIECES)))))
    }
}

impl Load {
    pub(super) fn new(server: Server, urls: Configuration, flow: Flow, pause: Duration) -> Arc<Self> {
        Arc::new(Self {
            server,
            urls,
            flow,
            start: clock::now(),
            bytes: AtomicU64::new(0),
            connections: Mutex::default(),
            foreign: Mutex::default(),
            own: Mutex::default(),
            failed: AtomicU64::new(0),
            broken: Mutex::default(),
            pause_us: AtomicU64::new(u64::try_from(pause.as_micros()).unwrap_or(u64::MAX)),
            foreign_places: Arc::new(Semaphore::new(OUTSTANDING)),
            own_places: Arc::new(Semaphore::new(OUTSTANDING)),
        })
    }

    /// One more connection, which transfers objects until the load is dropped.
    pub(super) async fn carry(self: Arc<Self>) {
        let why = match self.server.connect().await {
            Ok((connection, ..)) => {
                lock(&self.connections).push(connection.clone());
                self.transfer(&connection).await
            }
            Err(why) => why,
        };
        lock(&self.broken).get_or_insert(why);
    }

    /// Objects one after the other; returns why there are no more.
    async fn transfer(self: &Arc<Self>, connection: &Connection) -> String {
        loop {
            let before = self.bytes.load(Ordering::Relaxed);
            let (method, url, body): (_, &Url, Body) = match self.flow {
                Flow::Down => (Method::GET, &self.urls.large, empty()),
                Flow::Up => (Method::POST, &self.urls.upload, UnsyncBoxBody::new(Endless(self.clone()))),
            };
            let mut body = match connection.begin(method, url, body).await {
                Ok(response) => response.into_body(),
                Err(why) => return why,
            };
            while let Some(frame) = body.frame().await {
                match frame {
                    Ok(frame) if self.flow == Flow::Down => {
                        let bytes = frame.data_ref().map_or(0, Bytes::len);
                        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
                    }
                    Ok(_) => {}
                    Err(error) => return super::connection::words(error),
                }
            }
            // An object that was small is not asked for without end.
            if self.bytes.load(Ordering::Relaxed) - before < 1 << 20 {
                sleep(Duration::from_millis(100)).await;
            }
        }
    }

    fn at_us(&self) -> u64 {
        clock::micros_since(self.start)
    }

    /// Pairs of probes at their pace, until the load is dropped.
    pub(super) async fn probe(self: Arc<Self>) {
        loop {
            sleep(Duration::from_micros(self.pause_us.load(Ordering::Relaxed))).await;
            if let Ok(place) = self.foreign_places.clone().try_acquire_owned() {
                let load = self.clone();
                tokio::spawn(async move {
                    match foreign(&load.server, &load.urls.small).await {
                        Ok(probe) => lock(&load.foreign).push(ForeignProbe { at_us: load.at_us(), ..probe }),
                        Err(_) => drop(load.failed.fetch_add(1, Ordering::Relaxed)),
                    }
                    drop(place);
                });
            }
            let chance = random::bytes().map_or(0, usize::from_ne_bytes);
            let connection = {
                let all = lock(&self.connections);
                all.get(chance % all.len().max(1)).cloned()
            };
            if let Some(connection) = connection
                && let Ok(place) = self.own_places.clone().try_acquire_owned()
            {
                let load = self.clone();
                tokio::spawn(async move {
                    match connection.time(&load.urls.small).await {
                        Ok(http_us) => lock(&load.own).push(SelfProbe { at_us: load.at_us(), http_us }),
                        Err(_) => drop(load.failed.fetch_add(1, Ordering::Relaxed)),
                    }
                    drop(place);
                });
            }
        }
    }
}

/// A probe on a new connection.
pub(super) async fn foreign(server: &Server, small: &Url) -> Result<ForeignProbe, String> {
    let (connection, times, _) = server.connect().await?;
    let http_us = connection.time(small).await?;
    Ok(ForeignProbe { at_us: 0, tcp_us: times.tcp_us, tls_us: times.tls_us, http_us })
}
