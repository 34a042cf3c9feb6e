//! How a server is started.

use super::admission::{Admission, Passes};
use super::audit::AuditTo;
use crate::DEFAULT_PORT;
use crate::helper::Separation;
use crate::instruments::LiveInstruments;
use crate::iperf3::auth::Users;
use crate::web::PageSpec;
use narrows_model::words::show::plural;
use narrows_render::metrics::AgentFigures;
use narrows_wire::stamp::Key;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

#[derive(Clone)]
pub struct ServeConfig {
    /// The port of control and data; 0 takes a free one.
    pub port: u16,
    /// The one address to listen at; `None`: all of this host.
    pub bind: Option<IpAddr>,
    /// Whether clients may connect by Multipath TCP.
    pub multipath: bool,
    /// Where key, token and journal are.
    pub state: PathBuf,
    /// Whom a server admits that has its key and token for this run alone: in memory, and in no file.
    pub of_one_run: Option<Arc<Admission>>,
    /// Passes that others give beside those that sessions ask for.
    pub passes: Arc<Passes>,
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
    /// Whether what speaks to the network is separated from what has privileges.
    pub separation: Separation,
    /// Where the audit log goes, if anywhere.
    pub audit: Option<AuditTo>,
    /// The port of iperf3's clients, if they are served; 0 takes a free one.
    pub iperf3: Option<u16>,
    /// Whom of iperf3's clients it serves; `None`: everyone.
    pub iperf3_users: Option<Arc<Users>>,
    /// The most that all tests of iperf3 together may carry each way, in bits per second.
    pub iperf3_rate_bps: u64,
    /// The port of responsiveness tests, if they are served; 0 takes a free one.
    pub responsiveness: Option<u16>,
    /// The most that all of these tests together may carry each way, in bits per second.
    pub responsiveness_rate_bps: u64,
    /// The UDP port of tests over QUIC, if they are served; 0 takes a free one.
    pub quic: Option<u16>,
    /// The most that all of these tests together may carry each way, in bits per second.
    pub quic_rate_bps: u64,
    /// Where scrapers read `/metrics`, if they may.
    pub metrics: Option<SocketAddr>,
    /// The agent that it belongs to, for them.
    pub agent: Option<Arc<Mutex<AgentFigures>>>,
    /// The page for browsers, if it is shown.
    pub page: Option<PageSpec>,
    /// How to reflect STAMP sessions, if at all.
    pub stamp: Option<StampConfig>,
    /// What this end measures with.
    pub instruments: LiveInstruments,
}

impl ServeConfig {
    /// The defaults: one load at a time, closed, no tuning.
    pub fn new(state: PathBuf, instruments: LiveInstruments) -> Self {
        Self {
            port: DEFAULT_PORT,
            bind: None,
            multipath: false,
            state,
            of_one_run: None,
            passes: Arc::default(),
            token_file: None,
            open: false,
            open_most_bps: 1_000_000_000,
            allow_tune: false,
            frames: Vec::new(),
            parallel: 1,
            queue: 16,
            stdio: false,
            separation: Separation::None,
            audit: None,
            iperf3: None,
            iperf3_users: None,
            iperf3_rate_bps: 1_000_000_000,
            responsiveness: None,
            responsiveness_rate_bps: 1_000_000_000,
            quic: None,
            quic_rate_bps: 1_000_000_000,
            metrics: None,
            agent: None,
            page: None,
            stamp: None,
            instruments,
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct StampConfig {
    /// The port; 0 takes a free one.
    pub port: u16,
    /// The networks whose packets are answered.
    pub peers: Vec<(IpAddr, u8)>,
    /// Whether all others are, too.
    pub any: bool,
    /// The key, for authenticated sessions alone.
    pub key: Option<Key>,
    /// Whose packets are answered besides: who came to a server of one run.
    pub admission: Option<Arc<Admission>>,
}

impl StampConfig {
    /// What is said at the start.
    pub(super) fn words(&self, port: u16) -> String {
        let whom = if self.any { "everyone".to_owned() } else { plural(self.peers.len() as u64, "known network") };
        let mode = if self.key.is_some() { "authenticated" } else { "open" };
        format!("reflects STAMP sessions on UDP port {port}, {mode} mode, for {whom}")
    }
}
