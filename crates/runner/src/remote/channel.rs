//! The control connection of the client: HTTP/2 over TLS or over ssh's pipes, requests in and answers out.

use super::error::RemoteError;
use super::pin::Pin;
use crate::VERSION;
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use narrows_wire::Token;
use narrows_wire::api::{MAX_ANSWER_BYTES, Refusal};
use narrows_wire::pack::{ENCODING, Unpacker};
use narrows_wire::version::{PROTOCOL_HEADER, protocol_header};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// For a plain request.
pub(super) const REQUEST: Duration = Duration::from_secs(10);
/// For the TLS handshake and the preface of HTTP/2.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// A stream's window: a record of a long trial should not crawl along the path.
const WINDOW: u32 = 4 << 20;

/// The body of a request: bytes at hand, or beats that go on.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A connection that takes requests.
#[derive(Debug, Clone)]
pub(super) struct Channel {
    requests: http2::SendRequest<Body>,
    bearer: Option<String>,
    /// Address and port, for sentences.
    pub(super) address: String,
}

/// Greets a server over TLS.
pub(super) async fn over_tls(
    stream: TcpStream,
    address: String,
    token: Option<&Token>,
) -> Result<Channel, RemoteError> {
    let not_narrows = |why: String| RemoteError::NotNarrows(address.clone(), why);
    let pin = Pin::new(token.map(|token| token.fingerprint));
    let config = pin.config(&[b"h2"]).map_err(|error| RemoteError::Here(format!("cannot set up TLS: {error}")))?;
    let here = |error: std::io::Error| RemoteError::Connect(format!("cannot use the connection to {address}: {error}"));
    stream.set_nonblocking(true).map_err(here)?;
    let _ = stream.set_nodelay(true);
    // Beats must come through while the path is overloaded.
    let _ = narrows_sys::tcp::set_thin(&stream);
    let stream = tokio::net::TcpStream::from_std(stream).map_err(here)?;
    let name = ServerName::try_from("narrows").map_err(|error| RemoteError::Here(error.to_string()))?;
    let tls = match timeout(HANDSHAKE, TlsConnector::from(Arc::new(config)).connect(name, stream)).await {
        Ok(Ok(tls)) => tls,
        Ok(Err(error)) => {
            return Err(pin.mismatch().map_or_else(
                || not_narrows(format!("TLS failed: {error}")),
                |(expected, found)| RemoteError::Fingerprint {
                    address: address.clone(),
                    expected: expected.to_string(),
                    found: found.to_string(),
                },
            ));
        }
        Err(_) => return Err(not_narrows(format!("no answer within {} s", HANDSHAKE.as_secs()))),
    };
    if tls.get_ref().1.alpn_protocol() != Some(b"h2") {
        return Err(not_narrows("it offers TLS, but not HTTP/2".to_owned()));
    }
    let bearer = token.map(|token| format!("Bearer {}", token.secret.reveal()));
    match timeout(HANDSHAKE, over(tls, &address, bearer)).await {
        Ok(channel) => channel,
        Err(_) => Err(not_narrows("it does not speak HTTP/2".to_owned())),
    }
}

/// Greets a server over a stream that needs no TLS.
pub(super) async fn over(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    address: &str,
    bearer: Option<String>,
) -> Result<Channel, RemoteError> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .keep_alive_interval(Duration::from_millis(500))
        .keep_alive_timeout(Duration::from_secs(10))
        .keep_alive_while_idle(true);
    let (requests, connection) = builder
        .handshake(TokioIo::new(stream))
        .await
        .map_err(|error| RemoteError::NotNarrows(address.to_owned(), error.to_string()))?;
    // Its end shows in every request.
    tokio::spawn(connection);
    Ok(Channel { requests, bearer, address: address.to_owned() })
}

/// A request's body of bytes at hand.
fn whole(bytes: Vec<u8>) -> Body {
    UnsyncBoxBody::new(Full::new(Bytes::from(bytes)))
}

impl Channel {
    pub(super) fn lost(&self, why: impl Into<String>) -> RemoteError {
        RemoteError::Lost(self.address.clone(), why.into())
    }

    /// Sends a request and gives its answer as soon as it begins.
    pub(super) async fn begin(
        &self,
        method: Method,
        path: &str,
        body: Body,
        limit: Duration,
    ) -> Result<Response<Incoming>, RemoteError> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("https://narrows{path}"))
            .header(PROTOCOL_HEADER, protocol_header(VERSION))
            .header("accept-encoding", ENCODING);
        if let Some(bearer) = &self.bearer {
            request = request.header("authorization", bearer);
        }
        let request = request.body(body).map_err(|error| RemoteError::Here(format!("invalid request: {error}")))?;
        let mut requests = self.requests.clone();
        let exchange = async {
            requests.ready().await?;
            requests.send_request(request).await
        };
        let response = match timeout(limit, exchange).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(self.lost(words(&error))),
            Err(_) => return Err(self.lost(format!("no answer within {} s", limit.as_secs()))),
        };
        if response.status().is_success() {
            return Ok(response);
        }
        let status = response.status();
        let bytes = self.collect(response, 64 << 10, limit).await?;
        Err(serde_json::from_slice::<Refusal>(&bytes).map_or_else(
            |_| RemoteError::NotNarrows(self.address.clone(), format!("it answers with {status}")),
            |refusal| RemoteError::from_refusal(&refusal),
        ))
    }

    async fn collect(&self, response: Response<Incoming>, most: usize, limit: Duration) -> Result<Bytes, RemoteError> {
        let packed = is_packed(&response);
        match timeout(limit, Limited::new(response.into_body(), most).collect()).await {
            Ok(Ok(collected)) if packed => {
                let mut unpacker = Unpacker::default();
                let bytes = unpacker.unpack(&collected.to_bytes(), most);
                let whole = bytes.and_then(|bytes| unpacker.finish().map(|()| bytes));
                whole.map(Bytes::from).map_err(|error| self.lost(format!("cannot decompress its answer: {error}")))
            }
            Ok(Ok(collected)) => Ok(collected.to_bytes()),
            Ok(Err(error)) => Err(self.lost(error.to_string())),
            Err(_) => Err(self.lost(format!("no complete answer within {} s", limit.as_secs()))),
        }
    }

    /// Sends a request and gives its whole answer.
    pub(super) async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: &(impl Serialize + Sync),
        limit: Duration,
    ) -> Result<T, RemoteError> {
        let bytes = serde_json::to_vec(body).map_err(|error| RemoteError::Here(error.to_string()))?;
        let response = self.begin(method, path, whole(bytes), limit).await?;
        let answer = self.collect(response, MAX_ANSWER_BYTES, limit).await?;
        serde_json::from_slice(&answer).map_err(|error| {
            RemoteError::NotNarrows(self.address.clone(), format!("cannot parse its answer to {path}: {error}"))
        })
    }
}

/// Whether an answer is packed, as it may be since the request says so.
pub(super) fn is_packed(response: &Response<Incoming>) -> bool {
    response.headers().get("content-encoding").is_some_and(|encoding| encoding == ENCODING)
}

/// An error with its causes: the library's outermost words say little.
pub(crate) fn words(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        words = format!("{words}: {cause}");
        source = cause.source();
    }
    // HTTP/2 keeps of the stream's error nothing but its text; this one is meant for those who write programs.
    if words.contains("close_notify") { "it closed the connection".to_owned() } else { words }
}
