//! A driver's description of itself, its settings and its counters.

use crate::Missing;
use narrows_sys::ethtool::{Channels, Coalesce, Device, Driver, Feature, Link, Pause, Rings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A value that a driver may not report. In a capture: the value itself, or `{"missing": "why"}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Reported<T> {
    /// Why it is not known.
    Missing {
        missing: String,
    },
    Known(T),
}

impl<T> Default for Reported<T> {
    fn default() -> Self {
        Self::Missing { missing: "not in the capture".to_owned() }
    }
}

impl<T> Reported<T> {
    /// The value.
    pub fn get(&self) -> Result<&T, Missing> {
        match self {
            Self::Known(value) => Ok(value),
            Self::Missing { missing } => Err(Missing::because(missing)),
        }
    }

    fn from(what: &str, device: &str, result: narrows_sys::Result<T>) -> Self {
        match result {
            Ok(value) => Self::Known(value),
            Err(error) => Self::Missing { missing: Missing::call(&format!("{what} of {device}"), &error).to_string() },
        }
    }
}

/// A driver's description of itself and its settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Ethtool {
    /// Driver name and version.
    pub driver: Reported<Driver>,
    pub link: Reported<Link>,
    pub rings: Reported<Rings>,
    pub channels: Reported<Channels>,
    pub coalesce: Reported<Coalesce>,
    pub pause: Reported<Pause>,
    pub features: Reported<Vec<Feature>>,
}

/// The driver's own counters by the driver's own names.
pub type Statistics = BTreeMap<String, u64>;

pub(super) fn ask(device: &str) -> Result<Ethtool, Missing> {
    let driver = open(device)?;
    Ok(Ethtool {
        driver: Reported::from("the driver", device, driver.driver()),
        link: Reported::from("the link settings", device, driver.link()),
        rings: Reported::from("the ring sizes", device, driver.rings()),
        channels: Reported::from("the channels", device, driver.channels()),
        coalesce: Reported::from("the interrupt coalescing", device, driver.coalesce()),
        pause: Reported::from("the flow control", device, driver.pause()),
        features: Reported::from("the features", device, driver.features()),
    })
}

pub(super) fn statistics(device: &str) -> Result<Statistics, Missing> {
    let values = open(device)?.statistics();
    let values = values.map_err(|error| Missing::call(&format!("the driver statistics of {device}"), &error))?;
    Ok(values.into_iter().filter(|(name, _)| crate::parse::is_name(name)).collect())
}

fn open(device: &str) -> Result<Device, Missing> {
    Device::open(device).map_err(|error| Missing::call(&format!("the driver of {device}"), &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_survives_a_capture() {
        let told = Ethtool {
            rings: Reported::Known(Rings { rx: 256, rx_max: 4096, tx: 256, tx_max: 4096 }),
            pause: Reported::Missing { missing: "the driver does not tell".into() },
            ..Ethtool::default()
        };
        let json = serde_json::to_string(&told).expect("plain data");
        assert_eq!(serde_json::from_str::<Ethtool>(&json).expect("its own words"), told);
        let by_hand: Ethtool = serde_json::from_str(r#"{"rings": {"rx": 512}}"#).expect("written by hand");
        assert_eq!(by_hand.rings.get().map(|rings| rings.rx), Ok(512));
        assert!(by_hand.link.get().is_err());
    }
}
