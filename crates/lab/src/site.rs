//! Where in a lab a fault is.

use narrows_model::Place;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A host of a lab by its role, or the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Site {
    /// The host `client`.
    Client,
    /// The host `server`.
    Server,
    Path,
    /// The host `router` of a forwarding bench: the device under test.
    Router,
}

impl Site {
    /// The word used in every format; for a host its name.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Path => "path",
            Self::Router => "router",
        }
    }
}

impl From<Place> for Site {
    fn from(place: Place) -> Self {
        match place {
            Place::Client => Self::Client,
            Place::Server => Self::Server,
            Place::Path => Self::Path,
        }
    }
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
