//! `narrows serve --responsiveness`: a test server of responsiveness under working conditions (draft-ietf-ippm-responsiveness-09),
//! HTTP/2 over TLS on a port of its own, without a token. It has threads of its own: its load must not delay the control connections.

mod limits;
mod service;

use super::bucket::{Rates, Threads};
use super::listen::acceptor_of;
use super::places::Places;
use super::shared::source_of;
use super::unauthenticated::Unauthenticated;
use crate::trust::Identity;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use limits::{GREETING, IDLE_TICKS, MAX_CONNECTION, MAX_HEADER, MAX_STREAMS, PING, PING_ANSWER, TICK, UNSENT, WINDOWS};
use narrows_sys::tcp;
use service::Activity;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{interval, sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Its TLS side: HTTP/2 only.
pub(super) fn acceptor(identity: &Identity) -> Result<TlsAcceptor, tokio_rustls::rustls::Error> {
    acceptor_of(identity, &[b"h2"])
}

/// Serves on this listener at this rate each way, bits per second.
pub(super) fn start(listener: std::net::TcpListener, acceptor: TlsAcceptor, bps: u64) -> std::io::Result<Threads> {
    let threads = Threads::start("narrows-nq")?;
    threads.spawn(accept(listener, acceptor, bps));
    Ok(threads)
}

async fn accept(listener: std::net::TcpListener, acceptor: TlsAcceptor, bps: u64) {
    let Ok(listener) = TcpListener::from_std(listener) else { return };
    let rates = Arc::new(Rates::new(bps));
    let (places, unauthenticated) = (Places::new(WINDOWS), Unauthenticated::default());
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let source = source_of(address.ip());
        let pending = unauthenticated.enter(source);
        let (acceptor, rates, places, greeted) = (acceptor.clone(), rates.clone(), places.clone(), pending.clone());
        let task = tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            // What waits here delays probes on the same connection, and is no queue of the path.
            let _ = tcp::set_unsent_limit(&stream, UNSENT);
            let Ok(Ok(tls)) = timeout(GREETING, acceptor.accept(stream)).await else { return };
            // Without a place it is closed at once.
            let Some(place) = places.take(source) else { return };
            greeted.admit();
            let id = place.id;
            let task = tokio::spawn(async move {
                let _ = timeout(MAX_CONNECTION, attend(tls, rates, place.window)).await;
                drop(place);
            });
            places.is_served_by(id, task.abort_handle());
        });
        pending.is_served_by(task.abort_handle());
    }
}

async fn attend(mut tls: TlsStream<TcpStream>, rates: Arc<Rates>, window: u32) {
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
        .initial_stream_window_size(window)
        .initial_connection_window_size(window)
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
