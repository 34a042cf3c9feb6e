//! On which CPUs the data threads of a load run.

use crate::words::place::Place;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How data threads are placed on CPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(rename_all = "lowercase")]
pub enum Pin {
    /// A fast load tries a placement in its first tenths of a second, and keeps it where it moves more.
    #[default]
    Auto,
    /// The scheduler places them.
    None,
    /// Each stream has the CPU of its number in the list, which begins again at its end.
    List,
}

/// Which CPUs the data threads use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Default)]
#[serde(default)]
pub struct Placement {
    /// How they are placed on these CPUs.
    pub pin: Pin,
    /// CPUs of the client's threads; empty: all that the process may use.
    pub client_cpus: Vec<u32>,
    /// The same of the server.
    pub server_cpus: Vec<u32>,
}

impl Placement {
    /// The most CPUs of a list, and more than the highest number.
    pub const MAX_CPUS: u32 = 1024;

    /// The CPUs of an end.
    pub fn cpus(&self, place: Place) -> &[u32] {
        if place == Place::Client { &self.client_cpus } else { &self.server_cpus }
    }

    /// What is wrong with it, if anything.
    pub(crate) fn check(&self) -> Result<(), String> {
        for cpus in [&self.client_cpus, &self.server_cpus] {
            if cpus.len() > Self::MAX_CPUS as usize || cpus.iter().any(|cpu| *cpu >= Self::MAX_CPUS) {
                return Err(format!("a list of CPUs has up to {0} of them, with numbers below {0}", Self::MAX_CPUS));
            }
        }
        if self.pin == Pin::List && self.client_cpus.is_empty() && self.server_cpus.is_empty() {
            return Err("threads are pinned to a list of CPUs, and there is none".to_owned());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_short_and_name_cpus_that_can_be() {
        let with = |pin, client_cpus: &[u32]| Placement { pin, client_cpus: client_cpus.to_vec(), server_cpus: vec![] };
        assert_eq!([Pin::Auto, Pin::None].map(|pin| with(pin, &[]).check()), [Ok(()), Ok(())]);
        assert_eq!(with(Pin::List, &[0, 1023]).check(), Ok(()));
        assert!(with(Pin::List, &[]).check().is_err_and(|why| why.contains("there is none")));
        assert!(with(Pin::Auto, &[1024]).check().is_err_and(|why| why.contains("CPU")));
        assert!(with(Pin::Auto, &[0; 1025]).check().is_err());
    }
}
