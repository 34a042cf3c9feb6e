//! The link modes by their bit. Source: kernel `include/uapi/linux/ethtool.h`, `enum ethtool_link_mode_bit_indices`; the
//! numbers are part of the kernel's stable interface.

/// The name of each link mode; the line is its bit.
const LINK_MODES: &str = include_str!("link_modes.txt");

/// Megabits per second of a link mode by its name (`10000baseT/Full`); `None` for a mode without a speed (`Autoneg`,
/// `FIBRE`).
pub(super) fn speed_mbps(mode: &str) -> Option<u32> {
    let digits = mode.find("base").and_then(|end| mode.get(..end))?;
    digits.parse().ok()
}

/// The names of the modes whose bits are set; a bit that is newer than this table reads `bit 130`.
pub(super) fn names(words: &[u32]) -> Vec<String> {
    let mut names = Vec::new();
    for (index, word) in words.iter().enumerate() {
        for bit in (0..32).filter(|bit| word >> bit & 1 == 1) {
            let number = index * 32 + bit;
            names.push(LINK_MODES.lines().nth(number).map_or_else(|| format!("bit {number}"), str::to_owned));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_have_the_names_of_the_kernel() {
        let modes: Vec<&str> = LINK_MODES.lines().collect();
        assert_eq!((modes.len(), modes[12]), (125, "10000baseT/Full"));
        assert_eq!(modes[66], "200000baseCR4/Full");
        assert_eq!(modes[124], "1600000baseDR8_2/Full");
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
