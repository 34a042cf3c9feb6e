//! What a fault is: its places, its parameter, and its effect on a host or on the path.

use super::undo::Undo;
use super::value::{Unit, Value};
use crate::host::Host;
use crate::site::Site;
use crate::{Error, Result};
use narrows_model::lab::Impairment;
use narrows_model::{Direction, Flow};
use serde::{Deserialize, Serialize};

/// The number that a fault takes.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    /// The kind of number.
    pub unit: Unit,
    /// The default, as the user would write it.
    pub default: &'static str,
    /// What the number means.
    pub about: &'static str,
}

/// A parameter with its default, as the user would write it, and its meaning.
pub(super) const fn takes(unit: Unit, default: &'static str, about: &'static str) -> Option<Parameter> {
    Some(Parameter { unit, default, about })
}

impl Parameter {
    /// What the parameter takes, with an example.
    fn expected(&self) -> String {
        format!("a {} such as {} ({})", self.unit, self.default, self.about)
    }
}

/// A fault that can be injected and removed.
#[derive(Debug)]
pub struct Fault {
    /// The id of the cause that it produces.
    pub id: &'static str,
    pub about: &'static str,
    /// Where it is available.
    pub places: &'static [Site],
    /// Its number, if it takes one.
    pub parameter: Option<Parameter>,
    /// Injects it into a host.
    pub host: Option<fn(&Host, &Value) -> Result<Undo>>,
    /// Changes the impairment of the path while it is active, per direction.
    pub path: Option<fn(&mut Impairment, &Value, Way)>,
}

/// Where a fault is, and which packets it affects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Way {
    pub at: Site,
    /// The direction of the packets.
    pub flow: Flow,
}

impl Way {
    /// Whether the packets go to the host that has the fault.
    pub fn is_towards_fault(self) -> bool {
        Site::from(self.flow.receiver()) == self.at
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActiveFault {
    pub id: String,
    pub at: Site,
    /// Its value as text; empty if it takes none.
    pub value: String,
    /// For a fault of the path: the direction of the affected packets.
    pub direction: Direction,
    pub about: String,
}

pub(super) const HOSTS: &[Site] = &[Site::Client, Site::Server];
pub(super) const PATH: &[Site] = &[Site::Path];
/// A device under test.
pub(super) const ROUTER: &[Site] = &[Site::Router];

impl Fault {
    /// Takes no number and has no effect: what the others begin from.
    pub(super) const NONE: Self = Self { id: "", about: "", places: &[], parameter: None, host: None, path: None };

    /// The error for a value that parses but is not possible.
    pub(super) fn refused(&self, value: &str, cause: &str) -> Error {
        let expected = self.parameter.map_or_else(|| "none".to_owned(), |parameter| parameter.expected());
        Error::BadValue { id: self.id, value: value.to_owned(), expected, cause: cause.to_owned() }
    }

    /// The value at a place: the given text, or the default.
    /// Errors: the fault is not available there, or the value is invalid.
    pub fn value(&self, place: Site, words: Option<&str>) -> Result<Value> {
        if !self.places.contains(&place) {
            let places = self.places.iter().map(|place| place.word()).collect::<Vec<_>>().join(" or ");
            return Err(Error::WrongPlace { id: self.id, place, places });
        }
        let bad = |expected: String, cause: String| {
            let value = words.unwrap_or_default().chars().take(64).collect();
            Error::BadValue { id: self.id, value, expected, cause }
        };
        match (self.parameter, words) {
            (None, None) => Ok(Value::None),
            (None, Some(_)) => Err(bad("none".to_owned(), "drop it".to_owned())),
            (Some(parameter), words) => {
                let parsed = Value::parse(parameter.unit, words.unwrap_or(parameter.default));
                parsed.map_err(|cause| bad(parameter.expected(), cause))
            }
        }
    }
}
