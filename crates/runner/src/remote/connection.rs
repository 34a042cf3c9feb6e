//! The connection to a server, for callers that block. It owns a small runtime whose one thread keeps the control connection
//! alive while the caller measures. That thread is started by [`Remote::connect`], and so is in the network namespace of its caller.

use super::channel::{self, Channel, REQUEST};
use super::data;
use super::error::RemoteError;
use super::session::Session;
use super::spec::{Meaning, TargetSpec, family_of};
use super::ssh::{Options, Ssh};
use crate::instruments::LiveInstruments;
use hyper::Method;
use narrows_model::{Family, Target};
use narrows_sys::net;
use narrows_wire::PROTOCOL;
use narrows_wire::api::{Hello, SessionUse};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// Over ssh the first answer may wait for a user who types a password.
const SSH_HELLO: Duration = Duration::from_secs(120);
const CONNECT: Duration = Duration::from_secs(5);
/// More addresses than that are not tried.
const MAX_ADDRESSES: usize = 8;

/// A connected server. Sessions hold it as well.
#[derive(Clone)]
pub struct Remote(Arc<Connected>);

struct Connected {
    // Dropped in this order: what uses the runtime before it.
    channel: Option<Channel>,
    ssh: Option<Ssh>,
    hello: Hello,
    data: SocketAddr,
    asked: String,
    instruments: LiveInstruments,
    runtime: Runtime,
}

impl Remote {
    /// Connects to a server, checks that it is the right one, and exchanges hellos.
    pub fn connect(spec: &TargetSpec, options: &Options) -> Result<Self, RemoteError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("narrows-control")
            .enable_all()
            .build()
            .map_err(|error| RemoteError::Here(format!("cannot start the control connection: {error}")))?;
        let meaning = spec.meaning()?;
        let (spec, options) = (spec.clone(), options.clone());
        let (asked, instruments) = (spec.asked.clone(), options.instruments);
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
        let channel = Some(channel);
        Ok(Self(Arc::new(Connected { channel, ssh, hello, data, asked, instruments, runtime })))
    }

    /// What the server says of itself and of what this client may do.
    pub fn hello(&self) -> &Hello {
        &self.0.hello
    }

    /// Where the data connections go.
    pub fn data_address(&self) -> SocketAddr {
        self.0.data
    }

    /// The server as a run names it.
    pub fn target(&self) -> Target {
        let data = self.0.data;
        Target { asked: self.0.asked.clone(), address: data.to_string(), family: family_of(data.ip()) }
    }

    /// The time that each of `count` new data connections took to be set up, in microseconds, smallest first: one RTT
    /// each, of an idle path.
    pub fn idle_rtt_us(&self, count: u32) -> Result<Vec<u64>, RemoteError> {
        self.check_data()?;
        let mut times = (0..count).map(|_| data::probe(self.0.data)).collect::<Result<Vec<_>, _>>()?;
        times.sort_unstable();
        Ok(times)
    }

    /// Checks that the server accepts data connections of this program: their hellos carry its own protocol alone, also where the
    /// control connection speaks an older one.
    pub(super) fn check_data(&self) -> Result<(), RemoteError> {
        channel::check_protocol(&self.0.hello, &(PROTOCOL..=PROTOCOL))
    }

    /// Opens a session that may put load on the path, and waits for its turn. `on_queue` is called now and then with the position in
    /// the queue, from 1, and the reason; the wait ends where it returns false.
    pub fn open_session(&self, on_queue: &mut dyn FnMut(u32, &str) -> bool) -> Result<Session, RemoteError> {
        Session::open(self, SessionUse::Load, on_queue)
    }

    /// Opens a session that only reads inventory and counters, and does not wait.
    pub fn open_look(&self) -> Result<Session, RemoteError> {
        Session::open(self, SessionUse::Look, &mut |_, _| true)
    }

    /// Sends a request beside any session, and waits for its answer.
    pub(crate) fn post<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        body: &(impl serde::Serialize + Sync),
        limit: Duration,
    ) -> Result<T, RemoteError> {
        let channel = self.channel()?;
        self.runtime().block_on(channel.call(Method::POST, path, body, limit))
    }

    pub(super) fn instruments(&self) -> LiveInstruments {
        self.0.instruments
    }

    pub(super) fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    pub(super) fn channel(&self) -> Result<&Channel, RemoteError> {
        self.0.channel.as_ref().ok_or_else(|| RemoteError::Here("the connection is closed".to_owned()))
    }
}

impl Drop for Connected {
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

async fn direct(host: &str, port: u16, spec: &TargetSpec) -> Result<(Channel, Hello, SocketAddr), RemoteError> {
    let addresses = resolve(host, port, spec.family).await?;
    let connecting = tokio::task::spawn_blocking(move || connect_first(&addresses));
    let (address, stream) = connecting.await.map_err(|error| RemoteError::Here(error.to_string()))??;
    let mut channel = channel::over_tls(stream, address.to_string(), spec.token.as_ref()).await?;
    let hello = channel.greet(REQUEST).await?;
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
        let mut channel = channel::over(tokio::io::join(output, input), destination, None).await?;
        let hello = channel.greet(SSH_HELLO).await?;
        Ok::<_, RemoteError>((channel, hello))
    };
    let (channel, hello) = match greeted.await {
        Ok(greeted) => greeted,
        // What the other end says in the protocol is its word; all else is ssh's.
        Err(error @ (RemoteError::Version(..) | RemoteError::NotAllowed(_) | RemoteError::Server(_))) => {
            return Err(error);
        }
        Err(error) => return Err(ssh.failure(&error.to_string()).await),
    };
    // The name first, as everywhere; a name that only ssh knows has the address by which sshd was reached.
    let data = match resolve(host, hello.data_port, spec.family).await {
        Ok(addresses) => addresses.first().copied(),
        Err(error) => match hello.data_address.as_deref().and_then(|address| address.parse().ok()) {
            Some(address) => Some(SocketAddr::new(address, hello.data_port)),
            None => return Err(error),
        },
    };
    let data = data.ok_or_else(|| RemoteError::UnknownHost(host.to_owned(), "it has no address".to_owned()))?;
    Ok((channel, ssh, hello, data))
}

/// The addresses of a host, of the family that the user insists on.
pub(crate) async fn resolve(host: &str, port: u16, family: Option<Family>) -> Result<Vec<SocketAddr>, RemoteError> {
    let unknown = |why: String| RemoteError::UnknownHost(host.to_owned(), why);
    let found: Vec<SocketAddr> = tokio::net::lookup_host((host, port))
        .await
        .map_err(|error| unknown(plain_words(&error.to_string())))?
        .collect();
    if found.is_empty() {
        return Err(unknown("the resolver has no address for it".to_owned()));
    }
    let mut fitting: Vec<_> =
        found.into_iter().filter(|address| family.is_none_or(|family| family_of(address.ip()) == family)).collect();
    fitting.dedup();
    fitting.truncate(MAX_ADDRESSES);
    match (fitting.is_empty(), family) {
        (true, Some(Family::Ipv4)) => Err(RemoteError::NoAddressOfFamily(host.to_owned(), "IPv4")),
        (true, _) => Err(RemoteError::NoAddressOfFamily(host.to_owned(), "IPv6")),
        (false, _) => Ok(fitting),
    }
}

/// Host, port and addresses of a server that does not speak narrows' protocol. `asked`: the user's word; `place`: without its scheme; `port`: where it
/// names none; `form`: how it is to be written.
/// Errors: the word makes no sense, or the host is not known.
pub(crate) fn find_foreign(
    (asked, place, form): (&str, &str, &str),
    family: Option<Family>,
    port: u16,
) -> Result<(String, u16, Vec<SocketAddr>), RemoteError> {
    let place = place.strip_suffix('/').unwrap_or(place).to_owned();
    let (host, port, ssh) = TargetSpec { asked: place, family, port, token: None }.server()?;
    if ssh.is_some() {
        return Err(RemoteError::BadTarget(asked.to_owned(), format!("write {form}")));
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| RemoteError::Here(error.to_string()))?;
    let addresses = runtime.block_on(resolve(&host, port, family))?;
    Ok((host, port, addresses))
}

/// The library's words for a failed look-up begin with its own name for it.
fn plain_words(error: &str) -> String {
    error.strip_prefix("failed to lookup address information: ").unwrap_or(error).to_owned()
}

/// The control connection goes on where full-size packets vanish: its own fit into the least MTU of IPv6.
const SEGMENT_BYTES: u16 = 1208;

/// Connects to the first address that answers; the error is of the first one that failed.
pub(crate) fn connect_first(addresses: &[SocketAddr]) -> Result<(SocketAddr, TcpStream), RemoteError> {
    let mut first = None;
    for address in addresses {
        match net::connect(*address, CONNECT, |socket| narrows_sys::tcp::set_max_segment(socket, SEGMENT_BYTES)) {
            Ok(stream) => return Ok((*address, stream)),
            Err(error) => {
                let error = RemoteError::from_connect(address.to_string(), &error);
                first.get_or_insert(error);
            }
        }
    }
    Err(first.unwrap_or_else(|| RemoteError::Connect("no address to connect to".to_owned())))
}
