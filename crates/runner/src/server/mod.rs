//! The other end: `narrows serve`.
//!
//! One port takes the TLS control connections and the data connections, told apart by their first bytes ([`listen`]), and the
//! same number the hellos of UDP streams ([`datagrams`]); over
//! ssh the control connection is standard input and output instead ([`stdio`]). Everything that a session started or
//! changed ends with it ([`session`]).
//!
//! One thread runs it all but the engines and collectors, which run on blocking threads of their own. All are started from
//! the thread that called [`Server::start`], and so are in its network namespace.

mod api;
mod datagrams;
mod events;
mod frames;
mod gate;
mod limits;
mod listen;
mod refusal;
mod rights;
mod session;
mod shared;
mod stdio;
mod trial;
mod unauthenticated;

use crate::instruments::Instruments;
use crate::trust::{Identity, TrustError};
use narrows_sys::net;
use narrows_sys::udp::UdpListener;
use narrows_wire::token::Token;
pub(crate) use refusal::VERSION;
use shared::Shared;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use thiserror::Error;
use tokio::sync::watch;

/// The port that is served where none is named.
pub const DEFAULT_PORT: u16 = 5220;

/// How to serve.
#[derive(Clone)]
pub struct ServeConfig {
    /// The port of control and data; 0 takes a free one.
    pub port: u16,
    /// Where key, token and journal are.
    pub state: PathBuf,
    /// Where the token is, if not in the state directory.
    pub token_file: Option<PathBuf>,
    /// Whether clients without a token may measure, within limits.
    pub open: bool,
    /// The most that clients without a token may send or be sent, in bits per second.
    pub open_most_bps: u64,
    /// Whether clients with a token may change settings of this host.
    pub allow_tune: bool,
    /// The devices by which clients with a token may send and count raw frames; empty: none.
    pub frames: Vec<String>,
    /// How many sessions may put load on the path at the same time.
    pub parallel: usize,
    /// How many more may wait for their turn.
    pub queue: usize,
    /// Whether the control connection is standard input and output; the port then takes data connections alone.
    pub stdio: bool,
    /// What this end measures with.
    pub instruments: Arc<dyn Instruments>,
}

impl ServeConfig {
    /// The defaults: one load at a time, closed, no tuning.
    #[must_use]
    pub fn new(state: PathBuf, instruments: Arc<dyn Instruments>) -> Self {
        Self {
            port: DEFAULT_PORT,
            state,
            token_file: None,
            open: false,
            open_most_bps: 1_000_000_000,
            allow_tune: false,
            frames: Vec::new(),
            parallel: 1,
            queue: 16,
            stdio: false,
            instruments,
        }
    }
}

/// Why there is no server.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The port is taken.
    #[error("port {port} is taken: another `narrows serve` may be running; stop it, or choose another with --port")]
    PortTaken {
        /// The port.
        port: u16,
    },
    /// The port cannot be had for another reason.
    #[error(transparent)]
    Listen(#[from] narrows_sys::Error),
    /// Key or token.
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The key does not work.
    #[error("the server's key cannot be used: {0}")]
    Tls(#[from] tokio_rustls::rustls::Error),
    /// No thread or no event queue.
    #[error("cannot start the server: {0}")]
    Start(std::io::Error),
}

/// The other end.
#[derive(Debug)]
pub struct Server;

impl Server {
    /// Starts to serve, in the network namespace of the calling thread, and returns as soon as the port is open.
    ///
    /// What an earlier server left changed when it was killed is set back first. The process may have as many files open as
    /// its user may: each connection is one, and the usual 1024 are few.
    ///
    /// # Errors
    /// Why there is no server, in a sentence that says what to do.
    pub fn start(config: ServeConfig) -> Result<ServerHandle, ServeError> {
        // With fewer it serves fewer, and says so when it comes to that.
        let _ = narrows_sys::process::raise_open_files();
        let listener = net::listen(config.port).map_err(|error| match error.errno() {
            Some(98) => ServeError::PortTaken { port: config.port },
            _ => ServeError::Listen(error),
        })?;
        let port = listener.local_addr().map_err(ServeError::Start)?.port();
        let datagrams = UdpListener::bind(port).map_err(|error| match error.errno() {
            Some(98) => ServeError::PortTaken { port },
            _ => ServeError::Listen(error),
        })?;
        listener.set_nonblocking(true).map_err(ServeError::Start)?;
        let identity = if config.stdio {
            None
        } else {
            Some(Identity::load_or_make(&config.state, config.token_file.as_deref())?)
        };
        let acceptor = identity.as_ref().map(listen::acceptor).transpose()?;
        let token = identity.map(|identity| (identity.token, identity.token_file));
        let (stop, stopped) = watch::channel(false);
        let shared =
            Arc::new(Shared::new(config, port, token.as_ref().map(|(token, _)| token.secret.clone()), stop.clone()));
        let recovered = shared.recover();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Start)?;
        let serving = shared.clone();
        let thread = std::thread::Builder::new()
            .name("narrows-serve".to_owned())
            .spawn(move || {
                runtime.block_on(run(serving, listener, datagrams, acceptor, stopped));
                // A blocking read of standard input cannot be interrupted: what still runs is left behind.
                runtime.shutdown_timeout(Duration::from_millis(100));
            })
            .map_err(ServeError::Start)?;
        Ok(ServerHandle { port, token, stop, thread: Some(thread), recovered })
    }
}

async fn run(
    shared: Arc<Shared>,
    listener: std::net::TcpListener,
    datagrams: UdpListener,
    acceptor: Option<tokio_rustls::TlsAcceptor>,
    mut stopped: watch::Receiver<bool>,
) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let accepting = tokio::spawn(listen::accept(shared.clone(), listener, acceptor));
    let listening = tokio::spawn(datagrams::listen(shared.clone(), datagrams));
    if shared.config.stdio {
        tokio::spawn(stdio::serve(shared.clone()));
    }
    // The sender is held by `shared`, so an error cannot be.
    let _ = stopped.wait_for(|stop| *stop).await;
    accepting.abort();
    listening.abort();
    shared.end_all("the server was stopped").await;
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct ServerHandle {
    port: u16,
    token: Option<(Token, PathBuf)>,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
    recovered: Vec<String>,
}

impl ServerHandle {
    /// The port that it listens on.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The token that clients need; none over ssh.
    #[must_use]
    pub fn token(&self) -> Option<&Token> {
        self.token.as_ref().map(|(token, _)| token)
    }

    /// Where the token is.
    #[must_use]
    pub fn token_file(&self) -> Option<&Path> {
        self.token.as_ref().map(|(_, path)| path.as_path())
    }

    /// Sentences on what an earlier server had left changed and what became of it.
    #[must_use]
    pub fn recovered(&self) -> &[String] {
        &self.recovered
    }

    /// One line for the user: where it listens, the token's file and the key's fingerprint.
    #[must_use]
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

    /// What stops it from elsewhere, such as a handler of signals.
    #[must_use]
    pub fn stopper(&self) -> ServerStop {
        ServerStop(self.stop.clone())
    }

    /// Waits until it has ended, by [`ServerStop::stop`] or, over ssh, with its standard input.
    pub fn wait(mut self) {
        self.join();
    }

    /// Ends all sessions, undoes what they changed, and waits for that.
    pub fn stop(mut self) {
        self.stopper().stop();
        self.join();
    }

    fn join(&mut self) {
        if let Some(thread) = self.thread.take() {
            // A panic there was already told by its hook.
            let _ = thread.join();
        }
    }
}

impl Drop for ServerHandle {
    fn drop(&mut self) {
        self.stopper().stop();
        self.join();
    }
}

/// Stops a server.
#[derive(Debug, Clone)]
pub struct ServerStop(watch::Sender<bool>);

impl ServerStop {
    /// Tells it to end; its sessions end, and what they changed is undone.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

/// Serves until SIGINT, SIGTERM or SIGHUP: the long-running command. `announce` gets the lines for the user, first of all
/// [`ServerHandle::announcement`].
///
/// # Errors
/// Why there is no server.
pub fn serve(config: ServeConfig, announce: &mut dyn FnMut(&str)) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ServeError::Start)?;
    let handle = Server::start(config)?;
    // Over ssh standard error belongs to ssh: what is said there is taken for the reason of a failure.
    if handle.token.is_some() {
        announce(&handle.announcement());
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
    handle.stop();
    Ok(())
}
