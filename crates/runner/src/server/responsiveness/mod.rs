//! `narrows serve --responsiveness`: a test server of responsiveness under working conditions (draft-ietf-ippm-responsiveness-09),
//! HTTP/2 over TLS on a port of its own, without a token. It has threads of its own: its load must not delay the control connections.

mod bucket;
mod limits;
mod service;

use super::listen::acceptor_of;
use super::shared::source_of;
use crate::lock;
use crate::trust::Identity;
use bucket::Bucket;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use limits::{
    GREETING, IDLE_TICKS, MAX_CONNECTION, MAX_CONNECTIONS, MAX_HEADER, MAX_OF_SOURCE, MAX_STREAMS, PING, PING_ANSWER,
    THREADS, TICK, UNSENT, WINDOW,
};
use narrows_sys::tcp;
use service::{Activity, Rates};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;

/// Connections by their source.
#[derive(Debug, Clone, Default)]
struct Places(Arc<Mutex<HashMap<IpAddr, usize>>>);

/// The place of one connection, free again on drop.
struct Place(Places, IpAddr);

impl Places {
    /// A place, unless all are taken.
    fn take(&self, source: IpAddr) -> Option<Place> {
        let mut table = lock(&self.0);
        let of_source = table.get(&source).copied().unwrap_or(0);
        if of_source >= MAX_OF_SOURCE || table.values().sum::<usize>() >= MAX_CONNECTIONS {
            return None;
        }
        table.insert(source, of_source + 1);
        Some(Place(self.clone(), source))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut table = lock(&self.0.0);
        if let Some(count) = table.get_mut(&self.1) {
            *count -= 1;
            if *count == 0 {
                table.remove(&self.1);
            }
        }
    }
}

/// The threads of the server; dropping it ends all connections.
#[derive(Debug)]
pub(super) struct Running(Option<tokio::runtime::Runtime>);

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Its TLS side: HTTP/2 only.
pub(super) fn acceptor(identity: &Identity) -> Result<TlsAcceptor, tokio_rustls::rustls::Error> {
    acceptor_of(identity, &[b"h2"])
}

/// Serves on this listener at this rate each way, bits per second.
pub(super) fn start(listener: std::net::TcpListener, acceptor: TlsAcceptor, bps: u64) -> std::io::Result<Running> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .thread_name("narrows-nq")
        .enable_all()
        .build()?;
    runtime.spawn(accept(listener, acceptor, bps));
    Ok(Running(Some(runtime)))
}

async fn accept(listener: std::net::TcpListener, acceptor: TlsAcceptor, bps: u64) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let rates = Arc::new(Rates { up: Bucket::new(bps), down: Bucket::new(bps) });
    let places = Places::default();
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        // Without a place it is closed at once.
        if let Some(place) = places.take(source_of(address.ip())) {
            let (acceptor, rates) = (acceptor.clone(), rates.clone());
            tokio::spawn(async move {
                let _ = timeout(MAX_CONNECTION, attend(stream, acceptor, rates)).await;
                drop(place);
            });
        }
    }
}

async fn attend(stream: TcpStream, acceptor: TlsAcceptor, rates: Arc<Rates>) {
    let _ = stream.set_nodelay(true);
    // What waits here delays probes on the same connection, and is no queue of the path.
    let _ = tcp::set_unsent_limit(&stream, UNSENT);
    let Ok(Ok(mut tls)) = timeout(GREETING, acceptor.accept(stream)).await else { return };
    tls.get_mut().1.set_buffer_limit(Some(UNSENT as usize));
    let activity = Arc::new(Activity::default());
    let of_service = activity.clone();
    let service = service_fn(move |request| service::serve(request, rates.clone(), of_service.clone()));
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(PING)
        .keep_alive_timeout(PING_ANSWER)
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEADER)
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_send_buf_size(UNSENT as usize);
    let connection = builder.serve_connection(TokioIo::new(tls), service);
    tokio::pin!(connection);
    let mut tick = interval(TICK);
    let (mut idle, mut begun) = (0, 0);
    loop {
        tokio::select! {
            // Its errors are the client's.
            _ = &mut connection => return,
            _ = tick.tick() => {
                let (is_active, now) = activity.since(begun);
                begun = now;
                idle = if is_active { 0 } else { idle + 1 };
                match idle.cmp(&IDLE_TICKS) {
                    std::cmp::Ordering::Less => {}
                    std::cmp::Ordering::Equal => connection.as_mut().graceful_shutdown(),
                    std::cmp::Ordering::Greater => return,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_are_limited_by_source_and_in_all() {
        let places = Places::default();
        let of = |host: u8| places.take([192, 0, 2, host].into());
        let first: Vec<_> = (0..MAX_OF_SOURCE).map_while(|_| of(1)).collect();
        assert!(first.len() == MAX_OF_SOURCE && of(1).is_none());
        let others: Vec<_> = (1..=4).flat_map(|nth| (0..MAX_OF_SOURCE).map(move |_| nth + 1)).map_while(of).collect();
        assert_eq!(others.len(), MAX_CONNECTIONS - MAX_OF_SOURCE);
        drop(first);
        assert!(of(1).is_some());
        drop(others);
        assert!(lock(&places.0).is_empty());
    }
}
