//! How a message reaches a target: requests over TCP or TLS, and mails.

use crate::remote::{resolve, words};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Collected, Full, Limited};
use hyper::Request;
use hyper::client::conn::http1;
use hyper::header::{CONTENT_TYPE, HOST, USER_AGENT};
use hyper_util::rt::TokioIo;
use lettre::address::Envelope;
use lettre::message::header::{HeaderName, HeaderValue};
use lettre::message::{Mailbox, SinglePart};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{CertificateStore, Tls, TlsParameters};
use lettre::transport::smtp::extension::ClientId;
use lettre::{AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
use narrows_fleet::alert::{Login, Mail, Place, Target};
use narrows_model::words::show::clean;
use narrows_sys::{clock, files, net, process};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// To an address of a target.
const CONNECTS: Duration = Duration::from_secs(5);
/// For a request with its answer.
const ANSWERS: Duration = Duration::from_secs(10);
/// For a mail. A server may look at it for long, and one that was taken all the same would be sent twice.
const TAKES: Duration = Duration::from_secs(60);
/// Of an answer that is no success.
const ANSWER_MAX_BYTES: usize = 16 << 10;
const WORDS_CHARS_MAX: usize = 300;
const PASSWORD_BYTES_MAX: u64 = 1_000;

/// Whether a delivery may arrive later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Again {
    /// It was refused.
    Never,
    /// The target answers, so that what is wrong may be this message: others should not wait for it for long.
    Soon,
    /// The target, or the way to it, is away.
    Long,
}

/// Why a delivery failed, and whether the next try may not.
pub(in super::super) struct Failed {
    pub(in super::super) why: String,
    pub(in super::super) again: Again,
}

impl Failed {
    fn new(why: &str, again: bool) -> Self {
        let again = if again { Again::Long } else { Again::Never };
        Self { why: clean(&why.chars().take(WORDS_CHARS_MAX).collect::<String>()), again }
    }
}

/// What reaches a target.
pub(in super::super) enum Carrier {
    Http(Place, Option<TlsConnector>),
    /// With what of a login no error may show: servers repeat commands that they do not understand.
    Mail(Box<AsyncSmtpTransport<Tokio1Executor>>, Envelope, Vec<String>),
}

impl Carrier {
    pub(in super::super) fn of(target: &Target, tls: Option<&TlsConnector>) -> Result<Self, String> {
        match target {
            Target::Webhook(place, _) | Target::Alertmanager(place) | Target::Collector(place) => {
                let tls = place.tls.then(|| tls.cloned().ok_or("there is no TLS")).transpose()?;
                Ok(Self::Http(place.clone(), tls))
            }
            Target::Mail { server: place, from, to, login } => {
                let address = |word: &String| word.parse::<lettre::Address>().map_err(|error| words(&error));
                let to = to.iter().map(address).collect::<Result<Vec<_>, _>>()?;
                let envelope = Envelope::new(Some(address(from)?), to).map_err(|error| words(&error))?;
                let server = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(place.host.as_str())
                    .port(place.port)
                    .hello_name(ClientId::Domain(process::host_name()))
                    .timeout(Some(CONNECTS))
                    .tls(tls_of(place, login.is_some())?);
                let Some(login) = login else { return Ok(Self::Mail(Box::new(server.build()), envelope, Vec::new())) };
                let (user, password) = (login.user.clone(), password(login)?);
                let shown =
                    [password.clone(), STANDARD.encode(&password), STANDARD.encode(format!("\0{user}\0{password}"))];
                let server = server.credentials(Credentials::new(user, password)).build();
                Ok(Self::Mail(Box::new(server), envelope, shown.into()))
            }
        }
    }

    pub(in super::super) async fn carry(&self, body: &[u8]) -> Result<(), Failed> {
        let late = |limit: Duration| Failed::new(&format!("no answer within {} s", limit.as_secs()), true);
        match self {
            Self::Http(place, tls) => {
                let posted = timeout(ANSWERS, post(place, tls.as_ref(), body)).await;
                posted.unwrap_or_else(|_| Err(late(ANSWERS)))
            }
            Self::Mail(server, envelope, secrets) => match timeout(TAKES, server.send_raw(envelope, body)).await {
                Ok(Ok(_)) => Ok(()),
                Ok(Err(error)) => {
                    let why = match (error.to_string(), error.status()) {
                        (why, _) if why.contains("STARTTLS is not supported") => {
                            "it offers no STARTTLS, and a login is sent over TLS only: use another port, or smtps://"
                                .to_owned()
                        }
                        (why, status) if secrets.iter().any(|it| why.contains(it)) => status
                            .map_or_else(|| "the login failed".to_owned(), |code| format!("the login failed ({code})")),
                        (why, _) => why,
                    };
                    Err(Failed::new(&why, !error.is_permanent()))
                }
                Err(_) => Err(late(TAKES)),
            },
        }
    }
}

/// How a mail server is reached: with a certificate of an authority that this host trusts where the file asks for TLS or has a login.
fn tls_of(place: &Place, has_login: bool) -> Result<Tls, String> {
    let parameters = TlsParameters::builder(place.host.clone());
    let is_checked = place.tls || has_login;
    let parameters = if is_checked {
        parameters
    } else {
        // Whoever could forge the certificate could as well hide that there is TLS, so checking it protects nobody (RFC 7435).
        parameters
            .certificate_store(CertificateStore::None)
            .dangerous_accept_invalid_certs(true)
            .dangerous_accept_invalid_hostnames(true)
    };
    let parameters = parameters.build().map_err(|error| error.to_string())?;
    Ok(match (place.tls, is_checked) {
        (true, _) => Tls::Wrapper(parameters),
        (false, true) => Tls::Required(parameters),
        (false, false) => Tls::Opportunistic(parameters),
    })
}

/// The password of a login: what its file holds, without the end of the line.
/// Errors: the file, and what is wrong with it, never what it holds.
fn password(login: &Login) -> Result<String, String> {
    let (path, file) = (&login.password_file, login.password_file.display());
    let bytes = files::read(path, PASSWORD_BYTES_MAX).map_err(|error| error.to_string())?;
    if files::shared_with(path) == Some("everybody") {
        return Err(format!("others can read {file}, which holds a password: chmod 600 {file}"));
    }
    let text = String::from_utf8(bytes).unwrap_or_default();
    let line = text.trim_end_matches(['\r', '\n']);
    if line.is_empty() || line.chars().any(char::is_control) {
        return Err(format!("cannot read a password from {file}: write it as its only line"));
    }
    Ok(line.to_owned())
}

/// A mail as it is sent.
pub(super) fn letter(mail: &Mail, from: &str, to: &[String]) -> Result<Vec<u8>, String> {
    let mailbox = |word: &str| word.parse::<Mailbox>().map_err(|error| words(&error));
    // Nobody's absence should be answered to it (RFC 3834).
    let automatic = HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned());
    let mut builder = lettre::Message::builder()
        .from(mailbox(from)?)
        .date(SystemTime::UNIX_EPOCH + Duration::from_micros(clock::unix_us()))
        .subject(mail.subject.as_str())
        .message_id(Some(mail.id.clone()))
        .raw_header(automatic);
    for to in to {
        builder = builder.to(mailbox(to)?);
    }
    if let Some(id) = &mail.answers {
        builder = builder.in_reply_to(id.clone()).references(id.clone());
    }
    let letter = builder.singlepart(SinglePart::plain(mail.text.clone())).map_err(|error| words(&error))?;
    Ok(letter.formatted())
}

/// Posts a body. A redirect is no success: it would lead the message elsewhere.
async fn post(place: &Place, tls: Option<&TlsConnector>, body: &[u8]) -> Result<(), Failed> {
    let request = Request::post(place.path.as_str())
        .header(HOST, place.authority.as_str())
        .header(CONTENT_TYPE, "application/json")
        .header(USER_AGENT, "narrows")
        .body(Full::new(Bytes::copy_from_slice(body)))
        .map_err(|error| Failed::new(&words(&error), false))?;
    let stream = connect(place).await.map_err(|why| Failed::new(&why, true))?;
    let Some(tls) = tls else { return exchange(stream, request).await };
    let name = ServerName::try_from(place.host.clone()).map_err(|error| Failed::new(&words(&error), false))?;
    let stream = tls.connect(name, stream).await.map_err(|error| Failed::new(&words(&error), true))?;
    exchange(stream, request).await
}

/// Connects to the first address that answers; the error is of the last one.
async fn connect(place: &Place) -> Result<TcpStream, String> {
    let addresses = resolve(&place.host, place.port, None).await.map_err(|error| error.to_string())?;
    let connecting = move || {
        let mut outcome = Err("it has no address".to_owned());
        for address in addresses {
            let stream = net::connect(address, CONNECTS, |_| Ok::<_, narrows_sys::Error>(()));
            outcome = stream.map_err(|error| error.to_string());
            if outcome.is_ok() {
                break;
            }
        }
        outcome
    };
    let stream = spawn_blocking(connecting).await.map_err(|error| words(&error))??;
    stream.set_nonblocking(true).map_err(|error| words(&error))?;
    TcpStream::from_std(stream).map_err(|error| words(&error))
}

async fn exchange<S>(stream: S, request: Request<Full<Bytes>>) -> Result<(), Failed>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let failed = |error: hyper::Error| Failed::new(&words(&error), true);
    let (mut requests, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(failed)?;
    // The connection ends with this function, however that ends.
    let mut connections = JoinSet::new();
    connections.spawn(async move {
        let _ = connection.await;
    });
    let answer = requests.send_request(request).await.map_err(failed)?;
    let status = answer.status();
    if status.is_success() {
        return Ok(());
    }
    let says = Limited::new(answer.into_body(), ANSWER_MAX_BYTES).collect().await;
    let says = says.map(Collected::to_bytes).unwrap_or_default();
    // Of the client's errors, these two are those of a moment: 408 Request Timeout and 429 Too Many Requests.
    let again = status.is_server_error() || [408, 429].contains(&status.as_u16());
    let why = format!("it answers {status} {}", String::from_utf8_lossy(&says));
    let again = if again { Again::Soon } else { Again::Never };
    Err(Failed { again, ..Failed::new(why.trim_end(), false) })
}
