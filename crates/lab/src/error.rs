//! What the lab could not do, on what, why, and what to do about it.

use std::path::PathBuf;
use thiserror::Error;

/// An error of the lab.
#[derive(Debug, Error)]
pub enum Error {
    /// The kernel refused something.
    #[error(transparent)]
    System(#[from] narrows_sys::Error),
    /// The kernel refused a link, an address or a route.
    #[error(transparent)]
    Links(#[from] narrows_sys::rtnl::Error),
    /// The kernel refused a filter.
    #[error(transparent)]
    Filter(#[from] narrows_sys::nftables::Error),
    /// The lab cannot run here at all.
    #[error("the lab cannot run here: {0}")]
    CannotRun(String),
    /// A name that cannot be a lab's.
    #[error("`{0}` cannot be the name of a lab: use 1 to 32 small letters, digits and hyphens, a letter first")]
    BadName(String),
    /// No lab of that name is up.
    #[error("no lab `{name}` is up{hint}; `narrows lab up {name}` begins one")]
    NotUp {
        /// The name asked for.
        name: String,
        /// More, where it is known, with its own punctuation.
        hint: String,
    },
    /// Root of a user namespace is not enough.
    #[error("{what} needs root of the machine itself: run the lab as root")]
    NeedsRoot {
        /// What.
        what: &'static str,
    },
    /// A lab whose shape has no emulated path.
    #[error("lab `{name}` has no emulated path, only plain cables; --topology pair or chain has one")]
    NoPath {
        /// The lab.
        name: String,
    },
    /// No host of that name.
    #[error("the lab has no host `{name}`; it has {known}")]
    UnknownHost {
        /// The name asked for.
        name: String,
        /// The hosts there are.
        known: String,
    },
    /// No fault of that name.
    #[error("there is no fault `{id}`; there are {known}")]
    UnknownFault {
        /// The name asked for.
        id: String,
        /// The faults there are.
        known: String,
    },
    /// A fault cannot be in that place.
    #[error("`{id}` cannot be at {place}; it can be at {places}")]
    WrongPlace {
        /// The fault.
        id: &'static str,
        /// The place asked for.
        place: crate::Site,
        /// Where it can be.
        places: String,
    },
    /// The fault is in force already.
    #[error("`{id}` is already in force at {place}; undo it first")]
    AlreadyInForce {
        /// The fault.
        id: &'static str,
        /// The place asked for.
        place: crate::Site,
    },
    /// The fault is not in force.
    #[error("`{id}` is not in force{place}")]
    NotInForce {
        /// The fault.
        id: String,
        /// ` at server`, or nothing.
        place: String,
    },
    /// A value that the fault does not take.
    #[error("`{value}` is no value for `{id}`, which takes {wanted}: {cause}")]
    BadValue {
        /// The fault.
        id: &'static str,
        /// What was given.
        value: String,
        /// What it takes, with an example.
        wanted: String,
        /// Why it is none.
        cause: String,
    },
    /// An impairment that makes no sense.
    #[error("a path cannot be like that: {0}")]
    BadImpairment(String),
    /// The process that holds the lab did not do it.
    #[error("lab `{name}`: {cause}")]
    Holder {
        /// The lab.
        name: String,
        /// Its words.
        cause: String,
    },
    /// What another process said is not what was expected.
    #[error("cannot understand {what}: {cause}")]
    Format {
        /// The file or message.
        what: String,
        /// Where it differs.
        cause: String,
    },
    /// A conversation with the holder broke.
    #[error("cannot {operation} {path}: {source}")]
    Socket {
        /// A verb in the infinitive.
        operation: &'static str,
        /// The socket.
        path: PathBuf,
        /// What the kernel said.
        #[source]
        source: std::io::Error,
    },
}

/// A result of the lab.
pub type Result<T> = std::result::Result<T, Error>;
