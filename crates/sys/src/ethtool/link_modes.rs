//! The link modes by their bit. Source: kernel `include/uapi/linux/ethtool.h`, `enum ethtool_link_mode_bit_indices`; the
//! numbers are part of the kernel's stable interface.

/// The name of each link mode; the index is its bit.
pub const LINK_MODES: [&str; 125] = [
    "10baseT/Half",
    "10baseT/Full",
    "100baseT/Half",
    "100baseT/Full",
    "1000baseT/Half",
    "1000baseT/Full",
    "Autoneg",
    "TP",
    "AUI",
    "MII",
    "FIBRE",
    "BNC",
    "10000baseT/Full",
    "Pause",
    "Asym_Pause",
    "2500baseX/Full",
    "Backplane",
    "1000baseKX/Full",
    "10000baseKX4/Full",
    "10000baseKR/Full",
    "10000baseR_FEC",
    "20000baseMLD2/Full",
    "20000baseKR2/Full",
    "40000baseKR4/Full",
    "40000baseCR4/Full",
    "40000baseSR4/Full",
    "40000baseLR4/Full",
    "56000baseKR4/Full",
    "56000baseCR4/Full",
    "56000baseSR4/Full",
    "56000baseLR4/Full",
    "25000baseCR/Full",
    "25000baseKR/Full",
    "25000baseSR/Full",
    "50000baseCR2/Full",
    "50000baseKR2/Full",
    "100000baseKR4/Full",
    "100000baseSR4/Full",
    "100000baseCR4/Full",
    "100000baseLR4_ER4/Full",
    "50000baseSR2/Full",
    "1000baseX/Full",
    "10000baseCR/Full",
    "10000baseSR/Full",
    "10000baseLR/Full",
    "10000baseLRM/Full",
    "10000baseER/Full",
    "2500baseT/Full",
    "5000baseT/Full",
    "FEC_NONE",
    "FEC_RS",
    "FEC_BASER",
    "50000baseKR/Full",
    "50000baseSR/Full",
    "50000baseCR/Full",
    "50000baseLR_ER_FR/Full",
    "50000baseDR/Full",
    "100000baseKR2/Full",
    "100000baseSR2/Full",
    "100000baseCR2/Full",
    "100000baseLR2_ER2_FR2/Full",
    "100000baseDR2/Full",
    "200000baseKR4/Full",
    "200000baseSR4/Full",
    "200000baseLR4_ER4_FR4/Full",
    "200000baseDR4/Full",
    "200000baseCR4/Full",
    "100baseT1/Full",
    "1000baseT1/Full",
    "400000baseKR8/Full",
    "400000baseSR8/Full",
    "400000baseLR8_ER8_FR8/Full",
    "400000baseDR8/Full",
    "400000baseCR8/Full",
    "FEC_LLRS",
    "100000baseKR/Full",
    "100000baseSR/Full",
    "100000baseLR_ER_FR/Full",
    "100000baseCR/Full",
    "100000baseDR/Full",
    "200000baseKR2/Full",
    "200000baseSR2/Full",
    "200000baseLR2_ER2_FR2/Full",
    "200000baseDR2/Full",
    "200000baseCR2/Full",
    "400000baseKR4/Full",
    "400000baseSR4/Full",
    "400000baseLR4_ER4_FR4/Full",
    "400000baseDR4/Full",
    "400000baseCR4/Full",
    "100baseFX/Half",
    "100baseFX/Full",
    "10baseT1L/Full",
    "800000baseCR8/Full",
    "800000baseKR8/Full",
    "800000baseDR8/Full",
    "800000baseDR8_2/Full",
    "800000baseSR8/Full",
    "800000baseVR8/Full",
    "10baseT1S/Full",
    "10baseT1S/Half",
    "10baseT1S_P2MP/Half",
    "10baseT1BRR/Full",
    "200000baseCR/Full",
    "200000baseKR/Full",
    "200000baseDR/Full",
    "200000baseDR_2/Full",
    "200000baseSR/Full",
    "200000baseVR/Full",
    "400000baseCR2/Full",
    "400000baseKR2/Full",
    "400000baseDR2/Full",
    "400000baseDR2_2/Full",
    "400000baseSR2/Full",
    "400000baseVR2/Full",
    "800000baseCR4/Full",
    "800000baseKR4/Full",
    "800000baseDR4/Full",
    "800000baseDR4_2/Full",
    "800000baseSR4/Full",
    "800000baseVR4/Full",
    "1600000baseCR8/Full",
    "1600000baseKR8/Full",
    "1600000baseDR8/Full",
    "1600000baseDR8_2/Full",
];

/// Megabits per second of a link mode by its name (`10000baseT/Full`); `None` for a mode without a speed (`Autoneg`,
/// `FIBRE`).
#[must_use]
pub fn speed_mbps(mode: &str) -> Option<u32> {
    let digits = mode.find("base").and_then(|end| mode.get(..end))?;
    digits.parse().ok()
}

/// The names of the modes whose bits are set; a bit that is newer than this table reads `bit 130`.
pub(super) fn names(words: &[u32]) -> Vec<String> {
    let mut names = Vec::new();
    for (index, word) in words.iter().enumerate() {
        for bit in (0..32).filter(|bit| word >> bit & 1 == 1) {
            let number = index * 32 + bit;
            names.push(LINK_MODES.get(number).map_or_else(|| format!("bit {number}"), |name| (*name).to_owned()));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_have_the_names_of_the_kernel() {
        assert_eq!(LINK_MODES[12], "10000baseT/Full");
        assert_eq!(LINK_MODES[66], "200000baseCR4/Full");
        assert_eq!(LINK_MODES[124], "1600000baseDR8_2/Full");
        assert_eq!(names(&[0b1001, 1 << 31]), ["10baseT/Half", "100baseT/Full", "200000baseSR4/Full"]);
        assert_eq!(names(&[0, 0, 0, 0, 4]), ["bit 130"]);
    }

    #[test]
    fn only_speeds_are_speeds() {
        assert_eq!(speed_mbps("10000baseT/Full"), Some(10_000));
        assert_eq!(speed_mbps("Autoneg"), None);
        assert_eq!(speed_mbps("bit 130"), None);
    }
}
