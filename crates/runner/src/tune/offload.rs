//! Offload features of a device, by the words of `ethtool -K`. Each word stands for several features of the kernel; the
//! way back sets each of them as it was wanted before.

use super::{Knob, TuneError};
use narrows_sys::ethtool::{Device, Feature, FeatureState};

/// Whether a feature of the kernel belongs to a word.
type Belongs = fn(&str) -> bool;

/// The words, and which of the kernel's features each stands for (net/ethtool/common.c, `netdev_features_strings`).
const TABLE: &[(&str, Belongs)] = &[
    ("gro", |name| name == "rx-gro"),
    ("gso", |name| name == "tx-generic-segmentation"),
    ("lro", |name| name == "rx-lro"),
    ("rx-checksum", |name| name == "rx-checksum"),
    ("scatter-gather", |name| name == "tx-scatter-gather" || name == "tx-scatter-gather-fraglist"),
    ("tso", |name| name.starts_with("tx-tcp") && name.ends_with("-segmentation")),
    ("tx-checksum", |name| matches!(name, "tx-checksum-ipv4" | "tx-checksum-ip-generic" | "tx-checksum-ipv6")),
];

pub(super) struct Offload<'a> {
    pub(super) device: &'a str,
    pub(super) feature: &'a str,
    pub(super) on: bool,
}

impl Offload<'_> {
    fn belongs(&self) -> Result<Belongs, TuneError> {
        TABLE.iter().find(|(word, _)| *word == self.feature).map(|(_, belongs)| *belongs).ok_or_else(|| {
            let what = self.feature.chars().take(32).collect::<String>().escape_default().to_string();
            let allowed = TABLE.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
            TuneError::NotInTable { what: format!("the offload feature `{what}`"), allowed }
        })
    }

    /// The features that the word stands for and that can be changed on this device.
    fn features(&self) -> Result<Vec<Feature>, TuneError> {
        let belongs = self.belongs()?;
        let mut features = Device::open(self.device)?.features()?;
        features.retain(|feature| feature.changeable && belongs(&feature.name));
        Ok(features)
    }
}

fn word(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

impl Knob for Offload<'_> {
    fn check(&self) -> Result<(), TuneError> {
        self.belongs()?;
        Ok(())
    }

    fn current(&self) -> Result<String, TuneError> {
        let features = self.features()?;
        Ok(features.iter().map(|f| format!("{}={}", f.name, word(f.requested))).collect::<Vec<_>>().join(" "))
    }

    fn holds(&self) -> Result<bool, TuneError> {
        let belongs = self.belongs()?;
        let features = Device::open(self.device)?.features()?;
        let mut of_word = features.iter().filter(|feature| belongs(&feature.name));
        // As ethtool sees it: on where any of them is.
        Ok(if self.on { of_word.any(|f| f.active) } else { of_word.all(|f| !f.active) })
    }

    fn set(&self) -> Result<(), TuneError> {
        let features = self.features()?;
        let not_obtained = |got: &str| TuneError::NotObtained {
            what: format!("{} of {}", self.feature, self.device),
            wanted: word(self.on).to_owned(),
            got: got.to_owned(),
        };
        if features.is_empty() {
            return Err(not_obtained("nothing, since the device fixes it"));
        }
        let states: Vec<_> =
            features.into_iter().map(|feature| FeatureState { name: feature.name, on: self.on }).collect();
        Device::open(self.device)?.set_features(&states)?;
        // `on` may stay without effect where another feature is missing; one that is active will do, as ethtool sees it.
        let now = self.features()?;
        let obtained = if self.on { now.iter().any(|f| f.active) } else { now.iter().all(|f| !f.active) };
        if obtained { Ok(()) } else { Err(not_obtained(word(!self.on))) }
    }

    fn set_back(&self, before: &str) -> Result<(), TuneError> {
        let bad = || TuneError::BadValue {
            what: format!("{} of {}", self.feature, self.device),
            value: before.to_owned(),
            wanted: "a list of features with =on or =off".to_owned(),
        };
        let belongs = self.belongs()?;
        let mut states = Vec::new();
        for item in before.split_ascii_whitespace() {
            let (name, state) = item.split_once('=').ok_or_else(bad)?;
            let on = match state {
                "on" => true,
                "off" => false,
                _ => return Err(bad()),
            };
            if !belongs(name) {
                return Err(bad());
            }
            states.push(FeatureState { name: name.to_owned(), on });
        }
        Ok(Device::open(self.device)?.set_features(&states)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_finds_its_features_on_loopback() {
        for (word, _) in TABLE {
            let offload = Offload { device: "lo", feature: word, on: true };
            assert!(offload.check().is_ok());
            let before = offload.current().expect("lo");
            assert!(before.is_empty() || before.contains('='), "{before}");
        }
        let tso = Offload { device: "lo", feature: "tso", on: true }.current().expect("lo");
        assert!(tso.contains("tx-tcp-segmentation=") && tso.contains("tx-tcp6-segmentation="), "{tso}");
    }

    #[test]
    fn an_unknown_word_names_the_known_ones() {
        let error = Offload { device: "lo", feature: "ntuple", on: true }.check().expect_err("not in the table");
        assert!(error.to_string().contains("it sets only gro, gso"), "{error}");
    }
}
