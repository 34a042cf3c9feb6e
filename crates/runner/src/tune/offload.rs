//! Offload features of a device, by the words of `ethtool -K`. Each word stands for several features of the kernel; the
//! roll-back sets each of them as it was requested before.

use super::error::TuneError;
use super::knob::{Knob, not_in_table, on_off, parse_on_off};
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
        TABLE
            .iter()
            .find(|(word, _)| *word == self.feature)
            .map(|(_, belongs)| *belongs)
            .ok_or_else(|| not_in_table("the offload feature", self.feature, TABLE.iter().map(|(word, _)| *word)))
    }

    /// The device's features that the word stands for.
    fn features(&self) -> Result<Vec<Feature>, TuneError> {
        let belongs = self.belongs()?;
        let mut features = Device::open(self.device)?.features()?;
        features.retain(|feature| belongs(&feature.name));
        Ok(features)
    }

    /// Those that can be changed on this device.
    fn changeable(&self) -> Result<Vec<Feature>, TuneError> {
        let mut features = self.features()?;
        features.retain(|feature| feature.changeable);
        Ok(features)
    }

    /// As ethtool sees it: on where any of them is.
    fn is_as_wanted(&self, features: &[Feature]) -> bool {
        features.iter().any(|feature| feature.active) == self.on
    }
}

impl Knob for Offload<'_> {
    fn what(&self) -> String {
        format!("{} of {}", self.feature, self.device)
    }

    fn target(&self) -> String {
        on_off(self.on).to_owned()
    }

    fn check(&self) -> Result<(), TuneError> {
        self.belongs().map(drop)
    }

    fn current(&self) -> Result<String, TuneError> {
        let features = self.changeable()?;
        Ok(features.iter().map(|f| format!("{}={}", f.name, on_off(f.requested))).collect::<Vec<_>>().join(" "))
    }

    fn holds(&self) -> Result<bool, TuneError> {
        Ok(self.is_as_wanted(&self.features()?))
    }

    fn set(&self) -> Result<(), TuneError> {
        let features = self.changeable()?;
        if features.is_empty() {
            return Err(self.not_obtained("unchanged, since the interface fixes it".to_owned()));
        }
        let states: Vec<_> =
            features.into_iter().map(|feature| FeatureState { name: feature.name, on: self.on }).collect();
        Device::open(self.device)?.set_features(&states)?;
        // `on` may stay without effect where another feature is missing; one that is active will do.
        let obtained = self.is_as_wanted(&self.changeable()?);
        if obtained { Ok(()) } else { Err(self.not_obtained(on_off(!self.on).to_owned())) }
    }

    fn write(&self, note: &str) -> Result<(), TuneError> {
        let belongs = self.belongs()?;
        let state = |item: &str| {
            let (name, state) = item.split_once('=').filter(|(name, _)| belongs(name))?;
            Some(FeatureState { name: name.to_owned(), on: parse_on_off(state)? })
        };
        let states: Option<Vec<_>> = note.split_ascii_whitespace().map(state).collect();
        let states = states.ok_or_else(|| self.bad(note, "a list of features with =on or =off"))?;
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
