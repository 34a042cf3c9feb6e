//! The one port: accepts connections, finds out by their first bytes what they are, and hands them on.

use super::api;
use super::limits::{GREETING, SHOW_RIGHT, UNACKNOWLEDGED};
use super::rights::Caller;
use super::shared::{Shared, source_of};
use super::trial::{self, part};
use super::unauthenticated::{Pending, Unauthenticated};
use crate::VERSION;
use crate::trust::Identity;
use axum::Router;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::service::TowerToHyperService;
use narrows_sys::tcp;
use narrows_wire::first::{self, Kind, classify};
use narrows_wire::hello::{self, Answer, DataHello, HelloError};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring::default_provider;

/// The TLS side of the server.
pub(crate) fn acceptor(identity: &Identity) -> Result<TlsAcceptor, tokio_rustls::rustls::Error> {
    acceptor_of(identity, &[b"h2", b"http/1.1"])
}

/// The TLS side of a port that speaks these protocols.
pub(super) fn acceptor_of(
    identity: &Identity,
    protocols: &[&[u8]],
) -> Result<TlsAcceptor, tokio_rustls::rustls::Error> {
    Ok(TlsAcceptor::from(Arc::new(tls_of(identity, protocols)?)))
}

/// The same for what is no stream.
pub(super) fn tls_of(identity: &Identity, protocols: &[&[u8]]) -> Result<ServerConfig, tokio_rustls::rustls::Error> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![identity.certificate.clone()], identity.key.clone_key())?;
    config.alpn_protocols = protocols.iter().map(|protocol| protocol.to_vec()).collect();
    Ok(config)
}

/// Accepts for ever. Each connection is a task of its own, and none can hold up another.
pub(super) async fn accept(shared: Arc<Shared>, listener: TcpListener, acceptor: Option<TlsAcceptor>) {
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            // Usually no descriptor is free; unauthenticated connections time out within seconds.
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let pending = shared.unauthenticated.enter(source_of(address.ip()));
        let task = tokio::spawn(greet(shared.clone(), stream, address, acceptor.clone(), pending.clone()));
        pending.is_served_by(task.abort_handle());
    }
}

async fn greet(
    shared: Arc<Shared>,
    stream: TcpStream,
    address: SocketAddr,
    acceptor: Option<TlsAcceptor>,
    pending: Pending,
) {
    let _ = stream.set_nodelay(true);
    // One limit for all of the greeting, however slowly its bytes come.
    let greeted = timeout(GREETING, async {
        match (first_bytes(&stream).await, acceptor) {
            (Kind::Tls, Some(acceptor)) => {
                // Beats must come through while the path is overloaded.
                let _ = tcp::set_thin(&stream);
                // A client without heartbeats, as curl over HTTP/1.1, is watched through its connection alone.
                let _ = tcp::set_user_timeout(&stream, UNACKNOWLEDGED);
                acceptor.accept(stream).await.ok()
            }
            (Kind::Data, _) => {
                data(&shared, stream, &pending).await;
                None
            }
            (Kind::PlainHttp, _) => {
                part(stream, first::plain_http_answer(shared.port).as_bytes()).await;
                None
            }
            _ => None,
        }
    });
    if let Ok(Some(tls)) = greeted.await {
        let caller = Caller { address: Some(address.ip().to_canonical()), pending: Some(pending) };
        control(api::router(shared), tls, caller).await;
    }
}

/// Looks at the first bytes, which stay where they are.
async fn first_bytes(stream: &TcpStream) -> Kind {
    let mut bytes = [0; first::MAX_BYTES];
    loop {
        match stream.peek(&mut bytes).await {
            Ok(0) | Err(_) => return Kind::Unknown,
            Ok(count) => match classify(bytes.get(..count).unwrap_or_default()) {
                // What is there is there: the next look must not come at once.
                Kind::NeedMore => sleep(Duration::from_millis(10)).await,
                kind => return kind,
            },
        }
    }
}

async fn data(shared: &Shared, mut stream: TcpStream, pending: &Pending) {
    let mut bytes = [0; hello::LENGTH];
    let (head, rest) = bytes.split_at_mut(hello::VERSION_LENGTH);
    if stream.read_exact(head).await.is_err() {
        return;
    }
    // Another protocol may have another length: it is told by its head alone.
    if let Err(HelloError::Protocol(protocol)) = DataHello::decode(head) {
        return part(stream, &Answer::mismatch(protocol, VERSION).encode()).await;
    }
    if stream.read_exact(rest).await.is_err() {
        return;
    }
    match DataHello::decode(&bytes) {
        Ok(hello) => trial::attend(shared, &hello, stream, pending).await,
        Err(error) => part(stream, &Answer::No(error.to_string()).encode()).await,
    }
}

/// Serves the control connection over standard input and output, as `ssh HOST narrows serve --stdio` has it: HTTP/2 without TLS,
/// since ssh has authenticated both ends. The server ends with its input.
pub(super) async fn standard_streams(shared: Arc<Shared>) {
    let streams = tokio::io::join(tokio::io::stdin(), tokio::io::stdout());
    control(api::router(shared.clone()), streams, Caller::of_ssh()).await;
    shared.stop();
}

/// Accepts connections with TLS alone, for these requests, for ever.
pub(crate) async fn accept_api(listener: TcpListener, acceptor: Option<TlsAcceptor>, router: Router) {
    let unauthenticated = Unauthenticated::default();
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            sleep(Duration::from_millis(50)).await;
            continue;
        };
        let pending = unauthenticated.enter(source_of(address.ip()));
        let (acceptor, router, greeted) = (acceptor.clone(), router.clone(), pending.clone());
        let task = tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let _ = tcp::set_user_timeout(&stream, UNACKNOWLEDGED);
            let caller = Caller { address: Some(address.ip().to_canonical()), pending: Some(greeted) };
            let Some(acceptor) = acceptor else { return control(router, stream, caller).await };
            let Ok(Ok(tls)) = timeout(GREETING, acceptor.accept(stream)).await else { return };
            control(router, tls, caller).await;
        });
        pending.is_served_by(task.abort_handle());
    }
}

/// Serves requests on a connection until it ends, or until it has not shown in time that it belongs here.
async fn control(router: Router, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, caller: Caller) {
    let router = TowerToHyperService::new(router);
    let pending = caller.pending.clone();
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        request.extensions_mut().insert(caller.clone());
        hyper::service::Service::call(&router, request)
    });
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(GREETING);
    // The session's own beats tell its end earlier; this is for connections without one.
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_millis(500))
        .keep_alive_timeout(Duration::from_secs(10))
        .max_concurrent_streams(64)
        .max_header_list_size(16 << 10);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let deadline = sleep(SHOW_RIGHT);
    tokio::pin!(deadline);
    let mut checked = false;
    loop {
        tokio::select! {
            // Errors are those of the client, and it knows them.
            _ = &mut connection => return,
            () = &mut deadline, if !checked => {
                if pending.as_ref().is_some_and(|pending| !pending.may_stay()) {
                    return;
                }
                checked = true;
            }
        }
    }
}
