//! What keeps a trial from starting. What goes wrong once data flows becomes a remark in the record, for what was measured
//! until then is kept.

use thiserror::Error;

/// Why no trial could be made.
#[derive(Debug, Error)]
pub enum TrafficError {
    /// The plan is unsound.
    #[error("the plan cannot be run: {0}")]
    Plan(String),
    /// Nothing to move data on.
    #[error("the trial has no streams: connect at least one before it begins")]
    NoStreams,
    /// A path moves no data of its own.
    #[error("a trial runs on the client or the server, not on the path")]
    NotAnEnd,
    /// The sockets are not those of the plan.
    #[error("the plan cannot be run on these sockets: {0}")]
    Sockets(String),
    /// A socket did not take an option.
    #[error("{on}: {source}{allowed}")]
    Option {
        /// `stream 3`, or `new connection` before it has a number.
        on: String,
        /// The operation and the value requested.
        #[source]
        source: narrows_sys::Error,
        /// What this host allows, as the end of the sentence; may be empty.
        allowed: String,
    },
    /// A thread could not be started.
    #[error("cannot start the thread of stream {stream}: {source}; use fewer streams or raise the limit of threads")]
    Thread {
        stream: u32,
        #[source]
        source: std::io::Error,
    },
    /// A stream of datagrams could not be opened.
    #[error(transparent)]
    Udp(#[from] crate::udp::error::UdpError),
}

impl TrafficError {
    pub(crate) fn option(on: &str, source: narrows_sys::Error, allowed: &str) -> Self {
        Self::Option { on: on.to_owned(), source, allowed: allowed.to_owned() }
    }
}
