//! How a stream ended, and what the record says about it.

use std::io;

/// Why a data thread stopped.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// As planned.
    Complete,
    /// By the stop flag.
    Stopped,
    /// The receiver never reported that it is ready.
    NoGo,
    /// No datagram arrived.
    NoData,
    /// The sender's end message never came: its total is not known.
    NoFin,
    /// The socket failed.
    Broken(io::Error),
}

impl Outcome {
    /// The remark for the record, if any.
    pub(crate) fn remark(&self, stream: u32) -> Option<String> {
        Some(match self {
            Self::Complete | Self::Stopped => return None,
            Self::NoGo => format!("stream {stream}: the receiver never said that it was ready, so nothing was sent"),
            Self::NoData => format!("stream {stream}: not one datagram came"),
            Self::NoFin => format!(
                "stream {stream}: the sender's last word did not come; losses after the last datagram that came are not counted here"
            ),
            Self::Broken(error) => format!("stream {stream}: the socket failed: {error}"),
        })
    }
}
