//! Whether a server is separated, and why it cannot be.

use thiserror::Error;

/// Whether and how the server is separated.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Separation {
    /// Not at all: everything is in one process with the rights of its user.
    #[default]
    None,
    /// As the user `narrows` if there is one, otherwise `nobody`; where this process is not root, as [`Separation::None`].
    Usual,
    User(String),
}

/// Why the server cannot be separated from its privileges. It does not start then.
#[derive(Debug, Error)]
pub enum SeparationError {
    /// The user was named, and this process cannot become it.
    #[error("cannot become user {0}: this process is not root; start it as root, or as that user without --user")]
    NotRoot(String),
    /// There is no such user.
    #[error("cannot become user {0}: /etc/passwd, or this user namespace, does not have it; make it, or name another")]
    NoUser(String),
    /// The user is root by another name.
    #[error("cannot become user {0}: it is root by another name; for one process with all rights give --user root")]
    IsRoot(String),
    /// Privileges are dropped while there is one thread.
    #[error("cannot drop privileges: this process has several threads already; give --user root to keep them")]
    Threads,
    #[error("cannot start a helper: {0}; give --user root to run everything in one process")]
    Start(std::io::Error),
    #[error("cannot {what}: {source}; give --user root to run everything in one process")]
    System {
        /// A verb in the infinitive.
        what: &'static str,
        source: narrows_sys::Error,
    },
}
