//! Connections of a test: made, timed, and asked for objects.

use super::ResponsivenessFailure as Failure;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::header::{ACCEPT_ENCODING, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use narrows_sys::{clock, net, tcp};
use narrows_wire::responsiveness::Url;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, ProtocolVersion};

/// For each step of a connection, and for each probe.
pub(super) const STEP: Duration = Duration::from_secs(10);
/// Receive window of a stream and of a connection: above what a path of 1 Gbit/s and 100 ms has on its way.
const WINDOW: u32 = 16 << 20;
/// Unsent bytes in the kernel, and in TLS: more would be a queue of this host.
const UNSENT: u32 = 8 << 10;

/// The body of a request.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A server to connect to.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) address: SocketAddr,
    /// The host by which it is called.
    pub(super) host: String,
    pub(super) tls: Arc<ClientConfig>,
}

/// A connection that takes requests.
#[derive(Clone)]
pub(super) struct Connection(http2::SendRequest<Body>);

/// How long its parts took, µs; TLS: for each round trip.
#[derive(Debug, Clone, Copy)]
pub(super) struct Times {
    pub(super) tcp_us: u64,
    pub(super) tls_us: u64,
}

impl Server {
    /// A new connection, and its congestion control.
    pub(super) async fn connect(&self) -> Result<(Connection, Times, Option<String>), String> {
        let address = self.address;
        let connecting = tokio::task::spawn_blocking(move || {
            let start = clock::now();
            let stream = net::connect(address, STEP, |socket| tcp::set_unsent_limit(socket, UNSENT))?;
            Ok::<_, narrows_sys::Error>((stream, clock::micros_since(start)))
        });
        let (stream, tcp_us) = connecting.await.map_err(words)?.map_err(words)?;
        let congestion_control = tcp::congestion_control(&stream).ok();
        stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).map_err(words)?;
        let stream = tokio::net::TcpStream::from_std(stream).map_err(words)?;
        let name = ServerName::try_from(self.host.clone()).map_err(words)?;
        let start = clock::now();
        let greeting = timeout(STEP, TlsConnector::from(self.tls.clone()).connect(name, stream));
        let mut tls = greeting.await.map_err(|_| late("TLS handshake"))?.map_err(words)?;
        let tls_us = clock::micros_since(start);
        let session = &mut tls.get_mut().1;
        session.set_buffer_limit(Some(UNSENT as usize));
        if session.alpn_protocol() != Some(b"h2") {
            return Err("it does not offer HTTP/2".to_owned());
        }
        // TLS 1.3 takes one round trip, 1.2 two (RFC 8446 section 2, RFC 5246 section 7.3).
        let round_trips = if session.protocol_version() == Some(ProtocolVersion::TLSv1_2) { 2 } else { 1 };
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_send_buf_size(UNSENT as usize);
        let (requests, connection) = builder.handshake(TokioIo::new(tls)).await.map_err(words)?;
        // Its end shows in every request.
        tokio::spawn(connection);
        Ok((Connection(requests), Times { tcp_us, tls_us: tls_us / round_trips }, congestion_control))
    }
}

impl Connection {
    /// Sends a request and gives its answer as soon as it begins.
    pub(super) async fn begin(&self, method: Method, url: &Url, body: Body) -> Result<Response<Incoming>, String> {
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = format!("https://{}{}", url.authority(), url.path).parse().map_err(words)?;
        let headers = request.headers_mut();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(USER_AGENT, HeaderValue::from_static("narrows"));
        let mut requests = self.0.clone();
        requests.ready().await.map_err(words)?;
        let response = requests.send_request(request).await.map_err(words)?;
        if response.status().is_success() {
            return Ok(response);
        }
        Err(format!("it answers {} to {}", response.status(), url.path))
    }

    /// Gets a small object.
    pub(super) async fn get(&self, url: &Url, most: usize) -> Result<Bytes, String> {
        let getting = async {
            let response = self.begin(Method::GET, url, empty()).await?;
            Limited::new(response.into_body(), most)
                .collect()
                .await
                .map_err(words)
                .map(http_body_util::Collected::to_bytes)
        };
        timeout(STEP, getting).await.map_err(|_| late("answer"))?
    }

    /// Gets an object and gives the time that it took, µs.
    pub(super) async fn time(&self, url: &Url) -> Result<u64, String> {
        let start = clock::now();
        self.get(url, 4_096).await?;
        Ok(clock::micros_since(start))
    }
}

pub(super) fn empty() -> Body {
    UnsyncBoxBody::new(Empty::new())
}

fn late(what: &str) -> String {
    format!("no {what} within {} s", STEP.as_secs())
}

/// An error with its causes.
#[allow(clippy::needless_pass_by_value)] // for map_err
pub(super) fn words(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> String {
    crate::remote::words(error.into().as_ref())
}

/// The address of a host.
pub(super) async fn address_of(
    host: &str,
    port: u16,
    family: Option<narrows_model::Family>,
) -> Result<SocketAddr, Failure> {
    let found = crate::remote::resolve(host, port, family).await;
    let found = found.map_err(|error| Failure::Server(host.to_owned(), error.to_string()))?;
    found.first().copied().ok_or_else(|| Failure::Server(host.to_owned(), "it has no address".to_owned()))
}
