//! The client's handle of the other end, for callers that block. It owns a small runtime whose one thread keeps the control
//! connection alive while the caller measures.
//!
//! The runtime's thread is started by [`Remote::connect`], and so is in the network namespace of its caller.

mod channel;
mod data;
mod dial;
mod error;
mod events;
mod frames;
mod pin;
mod session;
mod spec;
mod ssh;

pub use error::{RemoteError, TrialError};
pub use session::Session;
pub use spec::TargetSpec;

use crate::instruments::Instruments;
use crate::server::VERSION;
use channel::Channel;
use hyper::Method;
use narrows_model::Target;
use narrows_wire::api::{Hello, SessionUse};
use narrows_wire::{Mismatch, PROTOCOL};
use session::Held;
use spec::{Meaning, family_of};
use ssh::Ssh;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// For a plain request.
const REQUEST: Duration = Duration::from_secs(10);
/// Over ssh the first answer may wait for a user who types a password.
const SSH_HELLO: Duration = Duration::from_secs(120);

/// How to reach the other end.
#[derive(Clone)]
pub struct Options {
    /// What this end measures with.
    pub instruments: Arc<dyn Instruments>,
    /// The command that is narrows on the other end of ssh.
    pub remote_command: String,
    /// The port of the data connections where ssh starts the server; 0: a free one.
    pub ssh_data_port: u16,
    /// Whether a server that ssh starts may change its host.
    pub allow_tune: bool,
    /// The devices by which a server that ssh starts may send and count frames.
    pub frames: Vec<String>,
    /// A local command that stands in for ssh and everything after it.
    pub instead_of_ssh: Option<Vec<String>>,
}

impl Options {
    /// The defaults; the remote command is `narrows`, or what the environment variable `NARROWS_REMOTE_COMMAND` says.
    #[must_use]
    pub fn new(instruments: Arc<dyn Instruments>) -> Self {
        let remote_command = std::env::var("NARROWS_REMOTE_COMMAND")
            .ok()
            .filter(|command| !command.trim().is_empty())
            .unwrap_or_else(|| "narrows".to_owned());
        Self {
            instruments,
            remote_command,
            ssh_data_port: 0,
            allow_tune: false,
            frames: Vec::new(),
            instead_of_ssh: None,
        }
    }
}

/// The other end.
pub struct Remote {
    // Dropped in this order: what uses the runtime before it.
    channel: Option<Channel>,
    ssh: Option<Ssh>,
    hello: Hello,
    data: SocketAddr,
    asked: String,
    instruments: Arc<dyn Instruments>,
    runtime: Runtime,
}

impl Remote {
    /// Finds the other end, checks that it is the right one, and exchanges hellos.
    ///
    /// # Errors
    /// A sentence for each way in which that fails, with what to do.
    pub fn connect(spec: &TargetSpec, options: &Options) -> Result<Self, RemoteError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("narrows-control")
            .enable_all()
            .build()
            .map_err(|error| RemoteError::Here(format!("cannot start the control connection: {error}")))?;
        let meaning = spec.meaning()?;
        let (spec, options) = (spec.clone(), options.clone());
        let (asked, instruments) = (spec.asked.clone(), options.instruments.clone());
        // On the runtime's own thread: ssh ends with the thread that started it.
        let reaching = runtime.spawn(async move {
            match meaning {
                Meaning::Direct { host, port } => direct(&host, port, &spec).await.map(|(c, h, d)| (c, None, h, d)),
                Meaning::Ssh { destination, host, port } => {
                    through_ssh(&destination, &host, port, &spec, &options).await.map(|(c, s, h, d)| (c, Some(s), h, d))
                }
            }
        });
        let reached = runtime.block_on(reaching).map_err(|error| RemoteError::Here(error.to_string()))?;
        let (channel, ssh, hello, data) = match reached {
            Ok(reached) => reached,
            Err(error) => {
                runtime.shutdown_background();
                return Err(error);
            }
        };
        check_protocol(&hello)?;
        Ok(Self { channel: Some(channel), ssh, hello, data, asked, instruments, runtime })
    }

    /// What the other end says of itself and of what we may do.
    #[must_use]
    pub const fn hello(&self) -> &Hello {
        &self.hello
    }

    /// Where the data connections go.
    #[must_use]
    pub const fn data_address(&self) -> SocketAddr {
        self.data
    }

    /// The other end as a run remembers it.
    #[must_use]
    pub fn target(&self) -> Target {
        Target { asked: self.asked.clone(), address: self.data.to_string(), family: family_of(self.data.ip()) }
    }

    /// The time that each of `count` fresh data connections took to be set up, in microseconds, smallest first: one RTT
    /// each, of an idle path.
    ///
    /// # Errors
    /// The first connection that could not be made.
    pub fn idle_rtt_us(&self, count: u32) -> Result<Vec<u64>, RemoteError> {
        let mut times = (0..count).map(|_| data::probe(self.data)).collect::<Result<Vec<_>, _>>()?;
        times.sort_unstable();
        Ok(times)
    }

    /// Opens a session that may put load on the path, and waits for its turn. `on_queue` hears the place in the queue, from
    /// 1, and why there is one, now and then the same again; where it returns false the waiting ends.
    ///
    /// # Errors
    /// The queue is full, the server is gone, or `on_queue` gave up.
    pub fn open_session(&self, on_queue: &mut dyn FnMut(u32, &str) -> bool) -> Result<Session<'_>, RemoteError> {
        Session::open(Held::Borrowed(self), SessionUse::Load, on_queue)
    }

    /// The same, of a session that holds the other end as long as it lives.
    ///
    /// # Errors
    /// As [`Remote::open_session`].
    pub fn open_shared_session(
        remote: &Arc<Self>,
        on_queue: &mut dyn FnMut(u32, &str) -> bool,
    ) -> Result<Session<'static>, RemoteError> {
        Session::open(Held::Shared(remote.clone()), SessionUse::Load, on_queue)
    }

    /// As [`Remote::open_look`], of a session that holds the other end as long as it lives.
    ///
    /// # Errors
    /// As [`Remote::open_look`].
    pub fn open_shared_look(remote: &Arc<Self>) -> Result<Session<'static>, RemoteError> {
        Session::open(Held::Shared(remote.clone()), SessionUse::Look, &mut |_, _| true)
    }

    /// Opens a session that only reads the other end's inventory, and does not wait.
    ///
    /// # Errors
    /// Too many do, or the server is gone.
    pub fn open_look(&self) -> Result<Session<'_>, RemoteError> {
        Session::open(Held::Borrowed(self), SessionUse::Look, &mut |_, _| true)
    }

    fn channel(&self) -> Result<&Channel, RemoteError> {
        self.channel.as_ref().ok_or_else(|| RemoteError::Here("the connection is closed".to_owned()))
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        // Without the last handle of requests the connection says goodbye and closes, and over ssh the server's input ends.
        self.channel = None;
        if let Some(mut ssh) = self.ssh.take() {
            self.runtime.block_on(ssh.finish());
        } else {
            self.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(10)).await });
        }
    }
}

/// A server that is too old to check our protocol still tells its own.
fn check_protocol(hello: &Hello) -> Result<(), RemoteError> {
    if hello.protocol == PROTOCOL {
        return Ok(());
    }
    let mismatch = Mismatch {
        client: VERSION.to_owned(),
        client_protocol: PROTOCOL,
        server: hello.version.chars().filter(char::is_ascii_graphic).take(32).collect(),
        server_protocol: hello.protocol,
    };
    Err(RemoteError::Version(mismatch.to_string()))
}

async fn direct(host: &str, port: u16, spec: &TargetSpec) -> Result<(Channel, Hello, SocketAddr), RemoteError> {
    let addresses = dial::resolve(host, port, spec.family).await?;
    let connecting = tokio::task::spawn_blocking(move || dial::connect_first(&addresses));
    let (address, stream) = connecting.await.map_err(|error| RemoteError::Here(error.to_string()))??;
    let channel = channel::over_tls(stream, address.to_string(), spec.token.as_ref()).await?;
    let hello: Hello = channel.call(Method::GET, "/v1/hello", &(), REQUEST).await?;
    let data = SocketAddr::new(address.ip(), hello.data_port);
    Ok((channel, hello, scoped(data, address)))
}

/// A link-local address keeps its scope.
fn scoped(data: SocketAddr, like: SocketAddr) -> SocketAddr {
    match (data, like) {
        (SocketAddr::V6(mut data), SocketAddr::V6(like)) => {
            data.set_scope_id(like.scope_id());
            SocketAddr::V6(data)
        }
        (data, _) => data,
    }
}

async fn through_ssh(
    destination: &str,
    host: &str,
    port: Option<u16>,
    spec: &TargetSpec,
    options: &Options,
) -> Result<(Channel, Ssh, Hello, SocketAddr), RemoteError> {
    let (mut ssh, output, input) = Ssh::start(destination, port, spec.family, options)?;
    let greeted = async {
        let channel = channel::over(tokio::io::join(output, input), destination, None).await?;
        let hello: Hello = channel.call(Method::GET, "/v1/hello", &(), SSH_HELLO).await?;
        Ok::<_, RemoteError>((channel, hello))
    };
    let (channel, hello) = match greeted.await {
        Ok(greeted) => greeted,
        // What the other end says in the protocol is its word; all else is ssh's.
        Err(error @ (RemoteError::Version(_) | RemoteError::NotAllowed(_) | RemoteError::Server(_))) => {
            return Err(error);
        }
        Err(error) => return Err(ssh.failure(&error.to_string()).await),
    };
    // The name first, as everywhere; a name that only ssh knows has the address by which sshd was reached.
    let data = match dial::resolve(host, hello.data_port, spec.family).await {
        Ok(addresses) => addresses.first().copied(),
        Err(error) => match hello.data_address.as_deref().and_then(|address| address.parse().ok()) {
            Some(address) => Some(SocketAddr::new(address, hello.data_port)),
            None => return Err(error),
        },
    };
    let data =
        data.ok_or_else(|| RemoteError::UnknownHost { host: host.to_owned(), why: "it has no address".to_owned() })?;
    Ok((channel, ssh, hello, data))
}
