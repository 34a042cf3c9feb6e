//! Socket options and priorities that need a privilege, set by another process where this one has none.
//!
//! A process without privileges appoints a deputy, which passes the socket on; the process with them fulfils the wish after checks of
//! its own ([`crate::fulfil`]).

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

/// What an ordinary user may not set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wish {
    /// A receive buffer of so many bytes, above `net.core.rmem_max`.
    ReceiveBuffer(u32),
    /// A send buffer of so many bytes, above `net.core.wmem_max`.
    SendBuffer(u32),
    /// A port below 1024, which is the server's own.
    Bind(SocketAddr),
    /// A congestion control that is not in `net.ipv4.tcp_allowed_congestion_control`.
    CongestionControl(String),
    /// Real-time priority 1 of a thread of this process, where its limit (`RLIMIT_RTPRIO`) is lower.
    RealTime(u32),
}

type Deputy = Box<dyn Fn(Option<BorrowedFd<'_>>, &Wish) -> bool + Send + Sync>;

static DEPUTY: OnceLock<Deputy> = OnceLock::new();

/// Appoints the deputy of this process; the first one stays.
pub fn appoint(deputy: impl Fn(Option<BorrowedFd<'_>>, &Wish) -> bool + Send + Sync + 'static) {
    let _ = DEPUTY.set(Box::new(deputy));
}

/// Asks the deputy, if there is one; returns whether the option of the socket is set.
pub(crate) fn ask(socket: impl AsFd, wish: &Wish) -> bool {
    DEPUTY.get().is_some_and(|deputy| deputy(Some(socket.as_fd()), wish))
}

/// The same for a wish without a socket.
pub(crate) fn ask_alone(wish: &Wish) -> bool {
    DEPUTY.get().is_some_and(|deputy| deputy(None, wish))
}
