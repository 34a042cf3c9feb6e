//! Offload features, one by one and in groups (`ETHTOOL_GFEATURES`, `ETHTOOL_SFEATURES`).

use super::{Device, statistics::SET_FEATURES};
use crate::{Error, Result};
use serde::{Deserialize, Serialize};
use std::io;

/// One feature by the kernel's name (`net/ethtool/common.c`, `netdev_features_strings`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Feature {
    /// The kernel's name: `tx-tcp-segmentation`.
    pub name: String,
    /// Whether it is active.
    pub active: bool,
    /// Whether it can be changed.
    #[serde(default)]
    pub changeable: bool,
    /// Whether it is requested; it may wait for another feature that it needs.
    #[serde(default)]
    pub requested: bool,
}

/// A feature's requested state, before or after a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeatureState {
    pub name: String,
    /// Whether it is requested.
    pub on: bool,
}

const GFEATURES: u32 = 0x3a;
const SFEATURES: u32 = 0x3b;

/// The kernel's features behind a user's name: the short and long names of `ethtool -K` and those of narrows.
///
/// A name that ends in `*` matches all names with that prefix. `None` for a name that is not a group.
pub fn feature_group(word: &str) -> Option<&'static [&'static str]> {
    Some(match word {
        "tso" | "tcp-segmentation-offload" => &["tx-tcp*-segmentation"],
        "gso" | "generic-segmentation-offload" => &["tx-generic-segmentation"],
        "gro" | "generic-receive-offload" => &["rx-gro"],
        "lro" | "large-receive-offload" => &["rx-lro"],
        "tx" | "tx-checksum" | "tx_checksum" | "tx-checksumming" => &["tx-checksum-*"],
        "rx" | "rx-checksum" | "rx_checksum" | "rx-checksumming" => &["rx-checksum"],
        "sg" | "scatter-gather" | "scatter_gather" => &["tx-scatter-gather*"],
        _ => return None,
    })
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, end)) => name.len() >= start.len() + end.len() && name.starts_with(start) && name.ends_with(end),
    }
}

/// Whether `word` (a group or a kernel's name) includes this feature.
fn means(word: &str, name: &str) -> bool {
    feature_group(word).map_or(word == name, |patterns| patterns.iter().any(|pattern| matches(pattern, name)))
}

impl Device {
    /// All features of the device.
    pub fn features(&self) -> Result<Vec<Feature>> {
        let count = self.string_count(SET_FEATURES)?;
        let names = self.strings(SET_FEATURES, count)?;
        let blocks = names.len().div_ceil(32);
        // struct ethtool_gfeatures: command, number of blocks, then blocks of available, requested, active, never changed.
        let mut words = vec![0; 2 + blocks * 4];
        words[..2].copy_from_slice(&[GFEATURES, u32::try_from(blocks).unwrap_or(u32::MAX)]);
        // SAFETY: the kernel fills at most the number of blocks that was asked, 4 words each.
        unsafe { self.call("read the features of", &mut words) }?;
        let bit = |index: usize, word: usize| {
            words.get(2 + index / 32 * 4 + word).is_some_and(|word| word >> (index % 32) & 1 == 1)
        };
        let all = names.into_iter().enumerate().filter(|(_, name)| !name.is_empty());
        Ok(all
            .map(|(index, name)| {
                let never_changed = bit(index, 3);
                Feature {
                    name,
                    changeable: bit(index, 0) && !never_changed,
                    requested: bit(index, 1),
                    active: bit(index, 2),
                }
            })
            .collect())
    }

    /// Whether any feature of the group `word` is active; `None` if the device has none of them.
    pub fn feature(&self, word: &str) -> Result<Option<bool>> {
        Ok(state(&self.features()?, word))
    }

    /// Turns a group (`tso`, `tx`, …) or one feature on or off, and returns what was requested before, for
    /// [`Device::set_features`].
    /// Errors: no such device or feature, no permission, or a feature that the driver does not change.
    pub fn set_feature(&self, word: &str, on: bool) -> Result<Vec<FeatureState>> {
        let object = || format!("{word} of {}", self.name());
        let operation = if on { "turn on" } else { "turn off" };
        let fail = |cause: &str| Error::new(operation, object(), io::Error::other(cause));
        let features = self.features()?;
        let meant: Vec<_> = features.iter().filter(|feature| means(word, &feature.name)).collect();
        if meant.is_empty() {
            return Err(fail("unknown feature; see `ethtool -k`, or use a group: tso gso gro lro tx rx sg"));
        }
        let open: Vec<_> = meant.iter().filter(|feature| feature.changeable).collect();
        if open.is_empty() {
            if meant.iter().all(|feature| feature.active == on) {
                return Ok(Vec::new());
            }
            return Err(fail("the driver does not allow changes"));
        }
        let before: Vec<_> = open.iter().map(|f| FeatureState { name: f.name.clone(), on: f.requested }).collect();
        let wanted: Vec<_> = open.iter().map(|f| FeatureState { name: f.name.clone(), on }).collect();
        self.set_features(&wanted)?;
        if state(&self.features()?, word) != Some(on) {
            self.set_features(&before)?;
            return Err(fail("the driver, or a feature that it depends on, prevents it"));
        }
        Ok(before)
    }

    /// Sets features one by one, by the kernel's names: undoes [`Device::set_feature`].
    /// Errors: no such device, no permission.
    pub fn set_features(&self, states: &[FeatureState]) -> Result<()> {
        let count = self.string_count(SET_FEATURES)?;
        let names = self.strings(SET_FEATURES, count)?;
        let blocks = names.len().div_ceil(32);
        // struct ethtool_sfeatures: command, number of blocks, then blocks of valid, requested.
        let mut words = vec![0; 2 + blocks * 2];
        words[..2].copy_from_slice(&[SFEATURES, u32::try_from(blocks).unwrap_or(u32::MAX)]);
        for state in states {
            let index = names.iter().position(|name| *name == state.name).ok_or_else(|| {
                let cause = io::Error::other("unknown feature on this kernel");
                Error::new("set", format!("{} of {}", state.name, self.name()), cause)
            })?;
            let bit = 1 << (index % 32);
            if let Some([valid, requested]) =
                words.get_mut(2 + index / 32 * 2..).and_then(|rest| rest.first_chunk_mut())
            {
                *valid |= bit;
                *requested = if state.on { *requested | bit } else { *requested & !bit };
            }
        }
        // SAFETY: the kernel reads the number of blocks that is given, 2 words each.
        unsafe { self.call("set the features of", &mut words) }.map(drop)
    }
}

/// A group is on if any of its features is; `None` if it has none of them.
fn state(features: &[Feature], word: &str) -> Option<bool> {
    features.iter().filter(|feature| means(word, &feature.name)).map(|feature| feature.active).reduce(|a, b| a || b)
}

impl Feature {
    /// Whether a group or a kernel's name includes this feature.
    pub fn is_meant_by(&self, word: &str) -> bool {
        means(word, &self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_hold_the_features_that_ethtool_puts_there() {
        for (word, name) in [
            ("tso", "tx-tcp-segmentation"),
            ("tso", "tx-tcp6-segmentation"),
            ("tso", "tx-tcp-ecn-segmentation"),
            ("tx", "tx-checksum-ip-generic"),
            ("tx-checksum", "tx-checksum-ipv6"),
            ("sg", "tx-scatter-gather"),
            ("gro", "rx-gro"),
            ("rx-gro-list", "rx-gro-list"),
        ] {
            assert!(means(word, name), "{word} {name}");
        }
        for (word, name) in [("gro", "rx-gro-hw"), ("tso", "tx-generic-segmentation"), ("rx", "rx-gro"), ("sg", "sg")] {
            assert!(!means(word, name), "{word} {name}");
        }
    }

    #[test]
    fn a_group_is_on_where_any_of_it_is() {
        let feature = |name: &str, active| Feature { name: name.into(), active, changeable: true, requested: active };
        let features = [feature("tx-tcp-segmentation", false), feature("tx-tcp6-segmentation", true)];
        assert_eq!(state(&features, "tso"), Some(true));
        assert_eq!(state(&features[..1], "tso"), Some(false));
        assert_eq!(state(&features, "gro"), None);
    }

    #[test]
    fn an_unknown_feature_is_refused_with_a_message() {
        let device = Device::open("lo").expect("a socket");
        let error = device.set_feature("warp-drive", true).expect_err("none");
        assert!(error.to_string().starts_with("cannot turn on warp-drive of lo: unknown feature"), "{error}");
    }
}
