//! The client of responsiveness tests (draft-ietf-ippm-responsiveness-09): HTTP/2 over TLS with narrows, Apple's server or any other.
//!
//! Unlike the other engines it is asynchronous: what it measures is HTTP/2, as applications use it.

mod connection;
mod load;
mod run;
mod target;

pub use narrows_views::responsiveness::report;
pub use run::measure;
pub use target::{Target, parse};

use crate::remote::TrustError;
use thiserror::Error;

/// Why there is no test.
#[derive(Debug, Error)]
pub enum ResponsivenessFailure {
    /// The user's word is no server.
    #[error("invalid server `{0}`: {1}; write HOST, HOST:PORT or https://HOST/PATH")]
    Target(String, String),
    /// Nothing says which key the server must have.
    #[error(
        "cannot verify the key of {0}: no token of it is known; store it with `narrows trust`, name a CA with --ca FILE, or take any \
         key with --insecure"
    )]
    NoTrust(String),
    #[error(transparent)]
    Trust(#[from] TrustError),
    /// The server cannot be used for a test.
    #[error("cannot test against {0}: {1}")]
    Server(String, String),
    #[error("cannot test: {0}")]
    Here(String),
}
