//! The flags that name the server, and the connection to it.

use crate::failure::Failure;
use clap::Args;
use narrows_model::Family;
use narrows_runner::iperf3::auth::Login;
use narrows_runner::iperf3::{Peer, is_iperf3};
use narrows_runner::live::LiveInstruments;
use narrows_runner::ndt7::{Server, is_ndt7};
use narrows_runner::remote::{Options, Remote, RemoteError, TargetSpec, Trust};
use narrows_runner::web::Proxy;
use narrows_runner::{DEFAULT_PORT, trust, trusted};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// The other end.
#[derive(Debug, Args)]
pub(crate) struct RemoteArgs {
    /// Server: [ssh://[user@]|iperf3://|ndt7://]host[:port]
    #[arg(add = super::known::hosts())]
    host: String,
    #[command(flatten)]
    way: WayArgs,
    #[command(flatten)]
    login: LoginArgs,
}

/// A login at a server of iperf3 with users, and the key of one of ndt7.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
struct LoginArgs {
    /// With iperf3://: user name; the password is in IPERF3_PASSWORD
    #[arg(long, value_name = "NAME", requires = "rsa_public_key_path", hide_short_help = true)]
    username: Option<String>,
    /// With iperf3://: the server's public RSA key (PEM)
    #[arg(long, value_name = "FILE", requires = "username", hide_short_help = true)]
    rsa_public_key_path: Option<PathBuf>,
    /// With iperf3://: encrypt the login as servers before iperf3 3.17 expect it
    #[arg(long, requires = "username", hide_short_help = true)]
    use_pkcs1_padding: bool,
    /// With ndt7://: file with the authorities that may have signed the server's certificate (PEM) [default: those of this host]
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    ca: Option<PathBuf>,
    /// With ndt7://: do not check the server's certificate
    #[arg(long, conflicts_with = "ca", hide_short_help = true)]
    insecure: bool,
}

impl LoginArgs {
    fn login(&self) -> Result<Option<Login>, Failure> {
        let Some((user, key)) = self.username.as_deref().zip(self.rsa_public_key_path.as_deref()) else {
            return Ok(None);
        };
        let password = std::env::var("IPERF3_PASSWORD")
            .map_err(|_| Failure::usage(format!("cannot log in as {user}: set IPERF3_PASSWORD to the password")))?;
        Login::read(user, &password, key, self.use_pkcs1_padding).map(Some).map_err(Failure::run)
    }
}

/// The way to the other end, wherever that is.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct WayArgs {
    /// Server port (TCP and UDP) [default: 5220]
    #[arg(long, short = 'p', value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// File with the server's token (see `narrows trust`)
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    family: FamilyArg,
    /// With ssh://: the narrows command on the server
    #[arg(
        long,
        env = "NARROWS_REMOTE_COMMAND",
        hide_env_values = true,
        value_name = "COMMAND",
        default_value = "narrows",
        hide_short_help = true
    )]
    remote_command: String,
}

/// The addresses that a name may stand for.
#[derive(Debug, Args)]
pub(crate) struct FamilyArg {
    /// Use IPv4 only
    #[arg(long, short = '4', conflicts_with = "ipv6", hide_short_help = true)]
    ipv4: bool,
    /// Use IPv6 only
    #[arg(long, short = '6', hide_short_help = true)]
    ipv6: bool,
}

impl FamilyArg {
    pub(crate) fn family(&self) -> Option<Family> {
        match (self.ipv4, self.ipv6) {
            (true, _) => Some(Family::Ipv4),
            (_, true) => Some(Family::Ipv6),
            _ => None,
        }
    }
}

impl RemoteArgs {
    /// The user's word for the other end.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// The way to it.
    pub(crate) const fn way(&self) -> &WayArgs {
        &self.way
    }

    /// Whether the word names a server of iperf3.
    pub(crate) fn is_iperf3(&self) -> bool {
        is_iperf3(&self.host)
    }

    /// The server of iperf3 that the word names, if it does.
    pub(crate) fn iperf3(&self) -> Result<Option<Peer>, Failure> {
        let login = self.login.login()?;
        if !self.is_iperf3() {
            let why = "cannot use --username here: only servers of iperf3 have users; write iperf3://HOST";
            return if login.is_some() { Err(Failure::usage(why)) } else { Ok(None) };
        }
        self.without_port("iperf3://HOST")?;
        let found = Peer::find(&self.host, self.way.family.family()).map_err(|error| match error {
            RemoteError::BadTarget { .. } => Failure::usage(error),
            _ => Failure::run(error),
        });
        found.map(|peer| Some(peer.with_login(login)))
    }

    /// The server of ndt7 that the word names, if it does.
    pub(crate) fn ndt7(&self) -> Result<Option<Server>, Failure> {
        let LoginArgs { ca, insecure, .. } = &self.login;
        if !is_ndt7(&self.host) {
            let why = "cannot use --ca or --insecure here: they are for servers of ndt7; write ndt7://HOST";
            return if ca.is_some() || *insecure { Err(Failure::usage(why)) } else { Ok(None) };
        }
        self.without_port("ndt7://HOST")?;
        let trust = match ca {
            Some(file) => Trust::Ca(file.clone()),
            None if *insecure => Trust::Any,
            None => Trust::System,
        };
        let found = Server::find(&self.host, self.way.family.family(), trust).map_err(|error| match error {
            RemoteError::BadTarget { .. } => Failure::usage(error),
            _ => Failure::run(error),
        });
        found.map(Some)
    }

    /// Other servers than narrows' own have their port in the word.
    fn without_port(&self, form: &str) -> Result<(), Failure> {
        let said = |port| Failure::usage(format!("cannot use -p here: write the port as {form}:{port}"));
        self.way.port.map_or(Ok(()), |port| Err(said(port)))
    }

    /// Connects. `tune`: whether a server that ssh starts may change its host.
    pub(crate) fn connect(&self, tune: bool, instruments: LiveInstruments) -> Result<Remote, Failure> {
        if self.ndt7()?.is_some() {
            return Err(Failure::usage("only `measure tcp` and `diagnose` have a server of ndt7 as the other end"));
        }
        self.way.connect(&self.host, tune, instruments)
    }
}

impl WayArgs {
    /// The way to a server whose flags are named otherwise.
    pub(crate) fn of(port: u16, token_file: Option<PathBuf>, family: Option<Family>) -> Self {
        let family = FamilyArg { ipv4: family == Some(Family::Ipv4), ipv6: family == Some(Family::Ipv6) };
        Self { port: Some(port), token_file, family, remote_command: "narrows".to_owned() }
    }

    /// The server as the user names it.
    pub(crate) fn spec(&self, host: &str) -> TargetSpec {
        let port = self.port.unwrap_or(DEFAULT_PORT);
        TargetSpec { asked: host.to_owned(), family: self.family.family(), port, token: None }
    }

    pub(crate) fn token_file(&self) -> Option<&Path> {
        self.token_file.as_deref()
    }

    pub(crate) fn remote_command(&self) -> &str {
        &self.remote_command
    }

    /// Connects to a host. `tune`: whether a server that ssh starts may change its host.
    pub(crate) fn connect(&self, host: &str, tune: bool, instruments: LiveInstruments) -> Result<Remote, Failure> {
        let given = trust::client_token(self.token_file.as_deref()).map_err(Failure::run)?;
        let mut spec = TargetSpec { token: given, ..self.spec(host) };
        let is_given = spec.token.is_some();
        if let (None, Ok((name, port, None))) = (&spec.token, spec.server()) {
            spec.token = trusted::stored(&name, port);
        }
        let is_stored = !is_given && spec.token.is_some();
        let options =
            Options { allow_tune: tune, remote_command: self.remote_command.clone(), ..Options::new(instruments) };
        Remote::connect(&spec, &options).map_err(|error| match error {
            RemoteError::BadTarget { .. } => Failure::usage(error),
            RemoteError::NoToken(_) => {
                let (host, port) = match spec.server() {
                    Ok((name, port, None)) if port != DEFAULT_PORT => (name, format!(" -p {port}")),
                    _ => (host.to_owned(), String::new()),
                };
                Failure::run(format!("{error}, or store it once with `narrows trust {host}{port} --token-file FILE`"))
            }
            RemoteError::Fingerprint { .. } | RemoteError::WrongToken(_) if is_stored => {
                Failure::run(format!("{error}; the token was stored by `narrows trust`, which also replaces it"))
            }
            _ => Failure::run(error),
        })
    }
}

/// How the key of a server is checked that has a protocol of its own.
#[derive(Debug, Args)]
#[command(next_help_heading = "Connection")]
pub(crate) struct TrustArgs {
    /// File with the server's token (see `narrows trust`): its key must be that of the token
    #[arg(long, value_name = "PATH")]
    token_file: Option<PathBuf>,
    /// File with the authorities that may have signed the server's certificate (PEM)
    #[arg(long, value_name = "FILE", conflicts_with = "token_file")]
    ca: Option<PathBuf>,
    /// Do not check the server's key
    #[arg(long, conflicts_with_all = ["token_file", "ca"])]
    insecure: bool,
    #[command(flatten)]
    pub(crate) family: FamilyArg,
}

impl TrustArgs {
    /// As told, else by the token of narrows' server on that host; `None` without one.
    pub(crate) fn trust(&self, host: &str) -> Result<Option<Trust>, Failure> {
        if self.insecure {
            return Ok(Some(Trust::Any));
        }
        if let Some(file) = &self.ca {
            return Ok(Some(Trust::Ca(file.clone())));
        }
        let given = trust::client_token(self.token_file.as_deref()).map_err(Failure::run)?;
        Ok(given.or_else(|| trusted::stored(host, DEFAULT_PORT)).map(|token| Trust::Token(Box::new(token))))
    }
}

/// A reverse proxy before the page of `--web`.
#[derive(Debug, Args)]
pub(crate) struct ProxyArgs {
    /// With --web: header by which a reverse proxy names a reader it has authenticated; such a reader changes nothing
    #[arg(long, hide_short_help = true, value_name = "NAME", requires = "web")]
    web_user_header: Option<String>,
    /// With --web-user-header: addresses of that proxy
    #[arg(long, hide_short_help = true, value_name = "ADDRESS,...", value_delimiter = ',', default_values = ["127.0.0.1", "::1"])]
    web_proxy: Vec<IpAddr>,
}

impl ProxyArgs {
    pub(crate) fn proxy(self) -> Option<Proxy> {
        self.web_user_header.map(|header| Proxy { header, from: self.web_proxy })
    }
}
