//! Speed, duplex and autonegotiation (`ETHTOOL_GLINKSETTINGS`, `ETHTOOL_SLINKSETTINGS`).

use super::{Device, link_modes};
use crate::Result;
use serde::{Deserialize, Serialize};

/// Both directions at once, or in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Duplex {
    /// One direction at a time.
    Half,
    /// Both directions at once.
    Full,
}

/// The negotiated link settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Link {
    /// Megabits per second; `None` if the driver does not know, such as without a cable.
    pub speed_mbps: Option<u32>,
    /// `None` if the driver does not know.
    pub duplex: Option<Duplex>,
    /// Whether speed and duplex are negotiated; `None` if the driver does not know.
    pub autoneg: Option<bool>,
    /// The names of all modes that the device supports.
    pub supported: Vec<String>,
    /// The names of the advertised modes.
    pub advertised: Vec<String>,
    /// The names of the modes that the link partner advertises.
    pub partner: Vec<String>,
}

impl Link {
    /// The highest speed among the supported modes, in megabits per second.
    pub fn speed_max_mbps(&self) -> Option<u32> {
        self.supported.iter().filter_map(|mode| link_modes::speed_mbps(mode)).max()
    }
}

/// A requested change of a link; `None` keeps the current value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LinkChange {
    /// Megabits per second.
    pub speed_mbps: Option<u32>,
    pub duplex: Option<Duplex>,
    pub autoneg: Option<bool>,
}

const GLINKSETTINGS: u32 = 0x4c;
const SLINKSETTINGS: u32 = 0x4d;
/// The fixed part of `struct ethtool_link_settings` in words; three maps of modes follow.
const FIXED: usize = 12;
/// `link_mode_masks_nwords` is a signed byte.
const WORDS_MAX: usize = 127;
const UNKNOWN_SPEED: u32 = u32::MAX;

type Settings = [u32; FIXED + 3 * WORDS_MAX];

fn byte(words: &Settings, offset: usize) -> u8 {
    words.get(offset / 4).map_or(0, |word| word.to_ne_bytes()[offset % 4])
}

fn set_byte(words: &mut Settings, offset: usize, value: u8) {
    if let Some(word) = words.get_mut(offset / 4) {
        let mut bytes = word.to_ne_bytes();
        bytes[offset % 4] = value;
        *word = u32::from_ne_bytes(bytes);
    }
}

const DUPLEX: usize = 8;
const AUTONEG: usize = 11;
const NWORDS: usize = 15;

impl Device {
    /// The current link settings.
    /// Errors: no such device; the driver does not support it.
    pub fn link(&self) -> Result<Link> {
        Ok(decode(&self.link_settings()?))
    }

    /// Changes speed, duplex or autonegotiation and keeps the rest.
    /// Errors: no such device, no permission, or no driver support.
    pub fn set_link(&self, change: LinkChange) -> Result<()> {
        let mut words = self.link_settings()?;
        words[0] = SLINKSETTINGS;
        if let Some(speed) = change.speed_mbps {
            words[1] = speed;
        }
        if let Some(duplex) = change.duplex {
            set_byte(&mut words, DUPLEX, u8::from(duplex == Duplex::Full));
        }
        if let Some(autoneg) = change.autoneg {
            set_byte(&mut words, AUTONEG, u8::from(autoneg));
        }
        // SAFETY: the kernel reads the fixed part and three maps of at most 127 words each.
        unsafe { self.call("set the link of", &mut words) }.map(drop)
    }

    fn link_settings(&self) -> Result<Settings> {
        let mut words: Settings = [0; FIXED + 3 * WORDS_MAX];
        words[0] = GLINKSETTINGS;
        // The first call has no room for modes: the kernel answers with the required size, as a negative number.
        // SAFETY: the kernel fills the fixed part of 12 words.
        unsafe { self.call("read the link settings of", &mut words) }?;
        let wanted = byte(&words, NWORDS).cast_signed().unsigned_abs();
        words = [0; FIXED + 3 * WORDS_MAX];
        words[0] = GLINKSETTINGS;
        set_byte(&mut words, NWORDS, wanted.min(WORDS_MAX as u8));
        // SAFETY: the kernel fills the fixed part and three maps of at most 127 words each.
        unsafe { self.call("read the link settings of", &mut words) }?;
        Ok(words)
    }
}

fn decode(words: &Settings) -> Link {
    let count = usize::from(byte(words, NWORDS)).min(WORDS_MAX);
    let map = |index: usize| {
        let start = FIXED + index * count;
        link_modes::names(words.get(start..start + count).unwrap_or_default())
    };
    Link {
        speed_mbps: Some(words[1]).filter(|speed| *speed != UNKNOWN_SPEED && *speed != 0),
        duplex: match byte(words, DUPLEX) {
            0 => Some(Duplex::Half),
            1 => Some(Duplex::Full),
            _ => None,
        },
        autoneg: match byte(words, AUTONEG) {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        },
        supported: map(0),
        advertised: map(1),
        partner: map(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_decoded_by_the_kernels_layout() {
        let mut words: Settings = [0; FIXED + 3 * WORDS_MAX];
        words[1] = 10_000;
        set_byte(&mut words, DUPLEX, 1);
        set_byte(&mut words, AUTONEG, 1);
        set_byte(&mut words, NWORDS, 2);
        words[FIXED] = 1 << 5 | 1 << 12; // supported: 1000baseT/Full, 10000baseT/Full
        words[FIXED + 2] = 1 << 5; // advertised
        let link = decode(&words);
        assert_eq!((link.speed_mbps, link.duplex, link.autoneg), (Some(10_000), Some(Duplex::Full), Some(true)));
        assert_eq!(link.speed_max_mbps(), Some(10_000));
        assert_eq!(link.advertised, ["1000baseT/Full"]);
        assert!(link.partner.is_empty());
    }

    #[test]
    fn an_unknown_speed_is_missing() {
        let mut words: Settings = [0; FIXED + 3 * WORDS_MAX];
        words[1] = UNKNOWN_SPEED;
        set_byte(&mut words, DUPLEX, 0xff);
        assert_eq!((decode(&words).speed_mbps, decode(&words).duplex), (None, None));
        set_byte(&mut words, NWORDS, 255); // more than the maximum
        assert!(decode(&words).supported.is_empty());
    }
}
