//! Who may test.

/// The users and the key.
#[derive(Debug)]
pub(in crate::server) struct Auth {}
