//! The measurement server: `narrows serve`.
//!
//! One port takes the TLS control connections and the data connections, distinguished by their first bytes ([`listen`]), and the
//! UDP port of the same number the hellos of UDP streams ([`datagrams`]); over ssh the control connection is standard input and
//! output instead. Everything that a session started or changed ends with it ([`life`]).
//!
//! One thread runs it all but the engines and collectors, which run on blocking threads of their own. All are started from
//! the thread that called [`Server::start`], and so are in its network namespace.

mod admission;
mod api;
pub(crate) mod audit;
mod bucket;
mod config;
mod datagrams;
mod events;
mod frames;
mod gate;
mod holder;
mod iperf3;
mod life;
mod limits;
pub(crate) mod listen;
mod metrics;
mod own_test;
mod page;
mod places;
mod quic;
mod reflector;
pub(crate) mod refusal;
pub(crate) mod request;
mod responsiveness;
pub(crate) mod rights;
mod running;
mod session;
mod shared;
mod tally;
mod trial;
mod turns;
mod unauthenticated;

pub use crate::helper::{Separation, SeparationError};
pub use admission::{Admission, Passes};
pub use audit::AuditTo;
pub use config::{ServeConfig, StampConfig};

pub(crate) use frames::bounds;
pub(crate) use shared::source_of;

use crate::VERSION;
use crate::helper::{self, Bounds, Helpers, Role};
use crate::tokens::{FRESH, Tokens};
use crate::trust::{Identity, TrustError};
use crate::tune::{Tuner, Undoing, Undone};
use audit::{Action, Audit, By, Event};
use narrows_model::words::units::bps;
use narrows_sys::net::{self, Carried};
use narrows_sys::udp::UdpListener;
use narrows_wire::stamp::clock::ClockError;
use narrows_wire::token::Token;
use shared::Shared;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;

/// Why there is no server.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The port is in use.
    #[error("port {0} is taken: another `narrows serve` may be running; stop it, or choose another with --port")]
    PortTaken(u16),
    /// The same of an agent of a fleet.
    #[error(
        "port {0} is taken: another `narrows fleet agent` may run here; stop it, or choose another with --port; each agent \
        needs a token of its own"
    )]
    AgentPortTaken(u16),
    /// The port cannot be opened for another reason.
    #[error(transparent)]
    Listen(#[from] narrows_sys::Error),
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The key does not work.
    #[error("the server's key cannot be used: {0}")]
    Tls(#[from] tokio_rustls::rustls::Error),
    /// The network process could not be separated.
    #[error(transparent)]
    Separation(#[from] SeparationError),
    /// A helper ended before the server.
    #[error(
        "the helper `{}` ended; the server stops, and its next start undoes what was changed", .0.word()
    )]
    HelperLost(Role),
    /// The page cannot be shown.
    #[error("cannot show the page: {0}")]
    Page(String),
    /// No thread or no event queue.
    #[error("cannot start the server: {0}")]
    Start(std::io::Error),
}

#[derive(Debug)]
pub struct Server;

impl Server {
    /// Starts to serve, in the network namespace of the calling thread, and returns as soon as the port is open.
    ///
    /// What an earlier server left changed when it was killed is rolled back first. The limit of open files is raised: each
    /// connection is one.
    pub fn start(config: ServeConfig) -> Result<ServerHandle, ServeError> {
        // With fewer it serves fewer, and says so when it comes to that.
        let _ = narrows_sys::process::raise_open_files();
        if config.page.is_some() && config.separation != Separation::None && narrows_sys::process::is_root() {
            let why = "as root, the process that speaks to the network may not read the store; add --user root, or start the server as an ordinary user";
            return Err(ServeError::Page(why.to_owned()));
        }
        let is_agent = config.agent.is_some();
        let taken = move |port| {
            move |error: narrows_sys::Error| match error.errno() {
                Some(98) if is_agent => ServeError::AgentPortTaken(port),
                Some(98) => ServeError::PortTaken(port), // EADDRINUSE
                _ => ServeError::Listen(error),
            }
        };
        let at = config.bind.map(|address| SocketAddr::new(address, config.port));
        let carried = if config.multipath { Carried::Multipath } else { Carried::Plain };
        let listener =
            at.map_or_else(|| net::listen_everywhere(config.port, carried), |at| net::listen_by(at, carried));
        let listener = listener.map_err(taken(config.port))?;
        let port = listener.local_addr().map_err(ServeError::Start)?.port();
        let at = config.bind.map(|address| SocketAddr::new(address, port));
        let datagrams = at.map_or_else(|| UdpListener::bind(port), UdpListener::bind_at).map_err(taken(port))?;
        let stamp = config.stamp.as_ref().map(|stamp| {
            let at = config.bind.map(|address| SocketAddr::new(address, stamp.port));
            let listener = at.map_or_else(|| UdpListener::bind(stamp.port), UdpListener::bind_at);
            let listener =
                listener.and_then(|listener| listener.mark().map(|()| listener)).map_err(taken(stamp.port))?;
            Ok::<_, ServeError>((listener, stamp.clone(), reflector::own_clock()))
        });
        let stamp = stamp.transpose()?;
        let stamp_port = stamp.as_ref().map(|(listener, ..)| listener.port());
        let reflects = stamp.as_ref().map(|(listener, stamp, _)| stamp.words(listener.port()));
        listener.set_nonblocking(true).map_err(ServeError::Start)?;
        let iperf3 =
            config.iperf3.map(|port| iperf3::Ports::open(port, config.bind).map_err(taken(port))).transpose()?;
        let iperf3_port = iperf3.as_ref().map(|ports| ports.port);
        let scraped = config.metrics.map(|at| {
            let listener = net::listen_at(at).map_err(taken(at.port()))?;
            let opened = listener.set_nonblocking(true).and_then(|()| listener.local_addr());
            Ok::<_, ServeError>((listener, opened.map_err(ServeError::Start)?))
        });
        let (scraped, metrics) = scraped.transpose()?.unzip();
        let tests = config.responsiveness.map(|port| {
            let at = config.bind.map(|address| SocketAddr::new(address, port));
            let listener = at.map_or_else(|| net::listen(port), net::listen_at).map_err(taken(port))?;
            let opened = listener.set_nonblocking(true).and_then(|()| listener.local_addr());
            Ok::<_, ServeError>((listener, opened.map_err(ServeError::Start)?.port()))
        });
        let tests = tests.transpose()?;
        let tests_port = tests.as_ref().map(|(_, port)| *port);
        let quic = config.quic.map(|port| {
            let at = config.bind.map(|address| SocketAddr::new(address, port));
            let listener = at.map_or_else(|| UdpListener::bind(port), UdpListener::bind_at).map_err(taken(port))?;
            Ok::<_, ServeError>((listener.watched().map_err(ServeError::Start)?, listener.port()))
        });
        let (quic, quic_port) = quic.transpose()?.unzip();
        let identity = match (config.stdio, &config.of_one_run) {
            (true, _) => None,
            (_, Some(_)) => Some(Identity::of_one_run()?),
            _ => Some(Identity::load_or_make(&config.state, config.token_file.as_deref())?),
        };
        let sink = config.audit.as_ref().map(AuditTo::sink).transpose()?;
        let acceptor = identity.as_ref().map(listen::acceptor).transpose()?;
        let of_tests = identity.as_ref().filter(|_| tests.is_some()).map(responsiveness::acceptor).transpose()?;
        let of_quic = identity.as_ref().filter(|_| quic.is_some()).map(quic::config).transpose()?;
        let (token, warnings) =
            identity.map(|identity| ((identity.token, identity.token_file), identity.warnings)).unzip();
        let (stop, stopped) = watch::channel(false);
        let tuner = Tuner::new(&config.state, "serve");
        let (mut recovered, undone) = recover(&tuner);
        let (state, frames) = (config.state.clone(), config.frames.clone());
        let bounds = Bounds { state, allow_tune: config.allow_tune, frames, port, process: std::process::id() };
        // Code before this line has all privileges and no network input; code after it, the reverse.
        let (deputies, mut helpers, separated) = {
            let of_iperf3 = iperf3.as_ref().map(|ports| &ports.datagrams);
            let shared = [Some(&datagrams), of_iperf3].into_iter().flatten().collect::<Vec<_>>();
            helper::separate(&config.separation, &bounds, tuner, &shared)?
        };
        // Threads come after it.
        let audit = Audit::of(sink);
        audit.note(&By::default(), &Event::Start { version: VERSION, port });
        undone.iter().for_each(|event| audit.note(&By::default(), event));
        recovered.extend(warnings.into_iter().flatten());
        let secret = token.as_ref().map(|(token, _): &(Token, _)| token.secret.clone());
        let (reading, state) = (deputies.reading.clone(), config.state.clone());
        let tokens = Tokens::new(&config.state, Box::new(move || reading.tokens(&state)), FRESH);
        let reading = deputies.reading.clone();
        let mut shared = Shared::new(config, port, secret, (tokens, audit), deputies, stop.clone());
        let mut shown = Ok(());
        let shared = Arc::new_cyclic(|own| {
            let page = shared.config.page.clone().map(|spec| page::page(&spec, &shared, own.clone(), reading));
            shown = page.transpose().map(|page| shared.page = page);
            shared
        });
        shown.map_err(ServeError::Page)?;
        let lost = Arc::default();
        helpers.watch(&stop, &lost);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Start)?;
        let tests = tests.zip(of_tests).map(|((listener, _), acceptor)| {
            responsiveness::start(listener, acceptor, shared.config.responsiveness_rate_bps)
        });
        let tests = tests.transpose().map_err(ServeError::Start)?;
        let quic = quic.zip(of_quic).map(|(socket, own)| quic::start(socket, own, shared.config.quic_rate_bps));
        let quic = quic.transpose().map_err(ServeError::Start)?;
        let serving = shared.clone();
        let thread = std::thread::Builder::new()
            .name("narrows-serve".to_owned())
            .spawn(move || {
                runtime.block_on(run(serving, listener, datagrams, stamp, acceptor, iperf3, scraped, stopped));
                // A blocking read of standard input cannot be interrupted: what still runs is left behind.
                runtime.shutdown_timeout(Duration::from_millis(100));
            })
            .map_err(ServeError::Start)?;
        Ok(ServerHandle {
            port,
            iperf3_port,
            metrics,
            tests_port,
            quic_port,
            _tests: [tests, quic],
            token,
            stop,
            thread: Some(thread),
            recovered,
            separated,
            stamp_port,
            reflects,
            lost,
            _helpers: helpers,
        })
    }
}

/// Rolls back what a killed server left changed; reports it as sentences and as audit events.
fn recover(tuner: &Tuner) -> (Vec<String>, Vec<Event>) {
    let unreadable = tuner.unreadable().unwrap_or_default();
    let undone = match tuner.recover() {
        Ok(undone) => undone,
        Err(error) => return (vec![format!("cannot read the journal of changes: {error}")], Vec::new()),
    };
    let tell = |undoing: Undoing| {
        let change = &undoing.entry.change;
        let failure = undoing.outcome.as_ref().err().map(ToString::to_string);
        let event = Event::changed(Action::Undo, change, failure);
        let set = &change.set;
        let sentence = match undoing.outcome {
            Ok(Undone::SetBack) => format!("rolled back a change of a killed server: {set}"),
            Ok(otherwise) => format!("change `{set}` of a killed server: {otherwise}"),
            Err(error) => format!("cannot undo change `{set}` of a killed server: {error}"),
        };
        (sentence, event)
    };
    let (mut sentences, events): (Vec<_>, Vec<_>) = undone.into_iter().map(tell).unzip();
    sentences.extend(unreadable.iter().map(ToString::to_string));
    (sentences, events)
}

#[allow(clippy::too_many_arguments)] // one call, and each is a socket of its own
async fn run(
    shared: Arc<Shared>,
    listener: std::net::TcpListener,
    datagrams: UdpListener,
    stamp: Option<(UdpListener, StampConfig, ClockError)>,
    acceptor: Option<tokio_rustls::TlsAcceptor>,
    iperf3: Option<iperf3::Ports>,
    scraped: Option<std::net::TcpListener>,
    mut stopped: watch::Receiver<bool>,
) {
    shared.listens(&listener);
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let accepting = tokio::spawn(listen::accept(shared.clone(), listener, acceptor));
    let listening = tokio::spawn(datagrams::listen(shared.clone(), datagrams));
    let of_iperf3 = iperf3.map(|ports| tokio::spawn(iperf3::serve(shared.clone(), ports)));
    let of_scrapers = scraped.map(|listener| tokio::spawn(metrics::listen(listener, shared.clone())));
    let reflecting = stamp.map(|(listener, config, clock)| tokio::spawn(reflector::listen(listener, config, clock)));
    if shared.config.stdio {
        tokio::spawn(listen::standard_streams(shared.clone()));
    }
    // The sender is held by `shared`, so an error cannot be.
    let _ = stopped.wait_for(|stop| *stop).await;
    accepting.abort();
    listening.abort();
    of_iperf3.inspect(tokio::task::JoinHandle::abort);
    of_scrapers.inspect(tokio::task::JoinHandle::abort);
    reflecting.inspect(tokio::task::JoinHandle::abort);
    shared.end_all("the server was stopped").await;
    shared.audit.note(&By::default(), &audit::Event::Stop);
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct ServerHandle {
    port: u16,
    iperf3_port: Option<u16>,
    metrics: Option<SocketAddr>,
    tests_port: Option<u16>,
    quic_port: Option<u16>,
    _tests: [Option<bucket::Threads>; 2],
    token: Option<(Token, PathBuf)>,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
    recovered: Vec<String>,
    separated: String,
    stamp_port: Option<u16>,
    reflects: Option<String>,
    lost: Arc<OnceLock<Role>>,
    /// Dropped after the server has ended.
    _helpers: Helpers,
}

impl ServerHandle {
    /// The port that it listens on.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The port for clients of iperf3, if they are served.
    pub const fn iperf3_port(&self) -> Option<u16> {
        self.iperf3_port
    }

    /// Where scrapers read `/metrics`, if they may.
    pub const fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// The port of responsiveness tests, if they are served.
    pub const fn responsiveness_port(&self) -> Option<u16> {
        self.tests_port
    }

    /// The UDP port of tests over QUIC, if they are served.
    pub const fn quic_port(&self) -> Option<u16> {
        self.quic_port
    }

    /// The port of STAMP sessions, if they are reflected.
    pub const fn stamp_port(&self) -> Option<u16> {
        self.stamp_port
    }

    /// The token that clients need; none over ssh.
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref().map(|(token, _)| token)
    }

    pub fn token_file(&self) -> Option<&Path> {
        self.token.as_ref().map(|(_, path)| path.as_path())
    }

    /// Sentences on changes that an earlier server had left, and their roll-back.
    pub fn recovered(&self) -> &[String] {
        &self.recovered
    }

    /// A sentence on what runs as whom.
    pub fn separated(&self) -> &str {
        &self.separated
    }

    /// One line for the user: the port, the token's file and the key's fingerprint.
    pub fn announcement(&self) -> String {
        match &self.token {
            Some((token, file)) => format!(
                "narrows serves on port {} (TCP and UDP); token in {}; key {}",
                self.port,
                file.display(),
                token.fingerprint
            ),
            None => format!("narrows serves on standard input and output, data on port {} (TCP and UDP)", self.port),
        }
    }

    /// A sentence on the reflector of STAMP sessions, if there is one.
    pub fn reflects(&self) -> Option<&str> {
        self.reflects.as_deref()
    }

    /// Waits until it has ended, over ssh with its standard input.
    pub fn wait(mut self) {
        self.join();
    }

    /// Ends all sessions, undoes what they changed, and waits for that: as a drop.
    pub fn stop(self) {}

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic there was already reported by its hook.
            let _ = thread.join();
        }
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.join();
    }
}

/// Serves until SIGINT, SIGTERM or SIGHUP: the long-running command. `announce` gets the lines for the user, first of all
/// [`ServerHandle::announcement`].
pub fn serve(config: ServeConfig, announce: &mut dyn FnMut(&str)) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Start)?;
    let (shows, bind) = (config.page.is_some(), config.bind);
    let rates = [config.iperf3_rate_bps, config.responsiveness_rate_bps, config.quic_rate_bps];
    let open_to =
        |flag: &str, rate: u64| format!("without a token, at most {} each way (--{flag}-rate)", bps(rate as f64));
    let handle = Server::start(config)?;
    // Over ssh standard error belongs to ssh: what is said there is taken for the reason of a failure.
    if handle.token.is_some() {
        announce(&handle.announcement());
        if let Some(port) = handle.iperf3_port() {
            announce(&format!(
                "iperf3 clients are served on port {port} (TCP and UDP), {}",
                open_to("iperf3", rates[0])
            ));
        }
        if let Some(port) = handle.responsiveness_port() {
            announce(&format!(
                "responsiveness tests are served on port {port} (https://HOST:{port}{}), {}",
                narrows_wire::responsiveness::WELL_KNOWN,
                open_to("responsiveness", rates[1])
            ));
        }
        if let Some(port) = handle.quic_port() {
            announce(&format!("tests over QUIC are served on UDP port {port}, {}", open_to("quic", rates[2])));
        }
        if let Some(at) = handle.metrics() {
            announce(&format!("scrapers read http://{at}/metrics, without a token"));
        }
        if shows {
            announce(&crate::web::announcement(bind, handle.port()));
        }
        announce(handle.separated());
        handle.reflects().iter().for_each(|line| announce(line));
    }
    for line in handle.recovered() {
        announce(line);
    }
    let mut ended = handle.stop.subscribe();
    runtime
        .block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let mut terminate = signal(SignalKind::terminate())?;
            let mut hang_up = signal(SignalKind::hangup())?;
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
                _ = hang_up.recv() => {}
                _ = ended.wait_for(|stop| *stop) => {}
            }
            Ok(())
        })
        .map_err(ServeError::Start)?;
    let lost = handle.lost.clone();
    handle.stop();
    lost.get().map_or(Ok(()), |role| Err(ServeError::HelperLost(*role)))
}
