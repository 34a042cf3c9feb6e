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
use narrows_wire::api::{Hello, MAX_ANSWER_BYTES, Refusal};
use narrows_wire::pack::{ENCODING, Unpacker};
use narrows_wire::version::{PROTOCOL_HEADER, protocol_header};
use narrows_wire::{Mismatch, PROTOCOL, SPOKEN, Token};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::convert::Infallible;
use std::net::TcpStream;
use std::ops::RangeInclusive;
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
/// The request for the server's hello.
const HELLO: &str = "/v1/hello";
/// A stream's window: a record of a long trial should not crawl along the path.
const WINDOW: u32 = 4 << 20;

/// The body of a request: bytes at hand, or beats that go on.
pub(super) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A connection that takes requests.
#[derive(Debug, Clone)]
pub(super) struct Channel {
    requests: http2::SendRequest<Body>,
    bearer: Option<String>,
    /// The protocol that each request shows: this program's own until [`Channel::greet`], then the one that both ends speak.
    protocol: u16,
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
    Ok(Channel { requests, bearer, protocol: PROTOCOL, address: address.to_owned() })
}

/// A request's body of bytes at hand.
fn whole(bytes: Vec<u8>) -> Body {
    UnsyncBoxBody::new(Full::new(Bytes::from(bytes)))
}

impl Channel {
    pub(super) fn lost(&self, why: impl Into<String>) -> RemoteError {
        RemoteError::Lost(self.address.clone(), why.into())
    }

    /// Exchanges hellos, and finds the protocol that both ends speak. A server whose own is an older one refuses the first request;
    /// where this program still speaks that one, it asks again with it.
    /// Errors: those of the request, or the protocols do not meet.
    pub(super) async fn greet(&mut self, limit: Duration) -> Result<Hello, RemoteError> {
        self.greet_in(&SPOKEN, limit).await
    }

    async fn greet_in(&mut self, spoken: &RangeInclusive<u16>, limit: Duration) -> Result<Hello, RemoteError> {
        self.protocol = *spoken.end();
        let first: Result<Hello, RemoteError> = self.call(Method::GET, HELLO, &(), limit).await;
        let hello = match first {
            Err(RemoteError::Version(_, server)) if server < self.protocol && spoken.contains(&server) => {
                self.protocol = server;
                self.call(Method::GET, HELLO, &(), limit).await?
            }
            first => first?,
        };
        check_protocol(&hello, spoken)?;
        self.protocol = hello.protocol;
        Ok(hello)
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
            .header(PROTOCOL_HEADER, protocol_header(self.protocol, VERSION))
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

/// Checks the protocol of a server's hello: a server that is too old to check a client's still reports its own.
pub(super) fn check_protocol(hello: &Hello, spoken: &RangeInclusive<u16>) -> Result<(), RemoteError> {
    if spoken.contains(&hello.protocol) {
        return Ok(());
    }
    let mismatch = Mismatch {
        client: VERSION.to_owned(),
        client_protocol: *spoken.end(),
        server: hello.version.chars().filter(char::is_ascii_graphic).take(32).collect(),
        server_protocol: hello.protocol,
    };
    Err(RemoteError::Version(mismatch.to_string(), hello.protocol))
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

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::StatusCode;
    use hyper::service::service_fn;
    use narrows_wire::api::{Permissions, Reason};
    use std::future::ready;

    fn hello_of(protocol: u16) -> Hello {
        Hello {
            version: "0.2.0".to_owned(),
            protocol,
            host: "server".to_owned(),
            data_port: 5220,
            data_address: None,
            permissions: Permissions { measure: true, inventory: false, tune: false, trial_most_ms: 0 },
            capabilities: Vec::new(),
        }
    }

    /// What a server answers that speaks these protocols.
    fn answer(request: &Request<Incoming>, spoken: &RangeInclusive<u16>) -> Response<Full<Bytes>> {
        let header = request.headers().get(PROTOCOL_HEADER).and_then(|value| value.to_str().ok()).expect("a header");
        let shown = header.split(' ').next().and_then(|number| number.parse::<u16>().ok()).expect("a number");
        let (status, body) = if spoken.contains(&shown) {
            (StatusCode::OK, serde_json::to_vec(&hello_of(shown)))
        } else {
            let (message, version) = ("incompatible versions".to_owned(), "0.2.0".to_owned());
            let refusal = Refusal { reason: Reason::VersionMismatch, message, version, protocol: *spoken.end() };
            (StatusCode::UPGRADE_REQUIRED, serde_json::to_vec(&refusal))
        };
        let mut response = Response::new(Full::new(Bytes::from(body.expect("JSON"))));
        *response.status_mut() = status;
        response
    }

    /// The protocol of a client that speaks 4 and 5, and of the hello that a server of these gives it.
    fn agreed(server: RangeInclusive<u16>) -> Result<(u16, u16), RemoteError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let (ours, theirs) = tokio::io::duplex(64 << 10);
            let service =
                service_fn(move |request: Request<Incoming>| ready(Ok::<_, Infallible>(answer(&request, &server))));
            let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(builder.serve_connection(TokioIo::new(theirs), service));
            let mut channel = over(ours, "server", None).await?;
            let hello = channel.greet_in(&(4..=5), REQUEST).await?;
            Ok::<_, RemoteError>((channel.protocol, hello.protocol))
        })
    }

    #[test]
    fn the_ends_use_the_lower_one_of_their_protocols_if_both_speak_it() {
        assert_eq!(agreed(4..=5), Ok((5, 5)));
        assert_eq!(agreed(4..=4), Ok((4, 4)), "an older server, which refuses 5");
        assert_eq!(agreed(5..=6), Ok((5, 5)), "a newer server");
        for server in [3, 6] {
            let refused = RemoteError::Version("incompatible versions".to_owned(), server);
            assert_eq!(agreed(server..=server), Err(refused));
        }
    }

    #[test]
    fn a_server_that_does_not_check_is_judged_by_its_hello() {
        let check = |server: u16, spoken: RangeInclusive<u16>| {
            check_protocol(&hello_of(server), &spoken).map_err(|error| error.to_string())
        };
        assert_eq!([4, 5].map(|server| check(server, 4..=5)), [Ok(()), Ok(())]);
        let refused = |server: u16, older: &str| -> Result<(), String> {
            Err(format!(
                "incompatible versions: client narrows {VERSION} (protocol 5), server narrows 0.2.0 (protocol \
                {server}); upgrade the {older}"
            ))
        };
        assert_eq!([3, 6].map(|server| check(server, 4..=5)), [refused(3, "server"), refused(6, "client")]);
        // As of data connections, which speak one protocol.
        assert_eq!(check(4, 5..=5), refused(4, "server"));
    }
}
