//! Times of STAMP: 64 bits of NTP or of PTP, and how far the clock may be out (RFC 8762 section 4.1.1, RFC 4656 section 4.1.2,
//! RFC 8877).

/// Seconds from 1900 to 1970.
const NTP_TO_UNIX_S: u64 = 2_208_988_800;
const SECOND_NS: u64 = 1_000_000_000;

/// How a time is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Clock {
    /// Seconds since 1900 and 2^-32 s.
    #[default]
    Ntp,
    /// Seconds since 1970 and ns.
    Ptp,
}

impl Clock {
    /// `unix_ns` in 64 bits.
    pub const fn write(self, unix_ns: u64) -> u64 {
        let (seconds, nanos) = (unix_ns / SECOND_NS, unix_ns % SECOND_NS);
        match self {
            // Half a unit up, so that it reads back to the same ns.
            Self::Ntp => (seconds.wrapping_add(NTP_TO_UNIX_S) << 32) | (((nanos << 32) + SECOND_NS / 2) / SECOND_NS),
            Self::Ptp => (seconds << 32) | nanos,
        }
    }

    /// ns since the Unix epoch; the NTP era that begins in 2036 is the one meant where the first bit is clear (RFC 5905 section 6).
    pub const fn read(self, raw: u64) -> u64 {
        let (seconds, rest) = (raw >> 32, raw & 0xFFFF_FFFF);
        match self {
            Self::Ntp => {
                let era = if seconds >> 31 == 0 { 1 << 32 } else { 0 };
                (seconds + era).saturating_sub(NTP_TO_UNIX_S) * SECOND_NS + ((rest * SECOND_NS + (1 << 31)) >> 32)
            }
            Self::Ptp => seconds * SECOND_NS + rest,
        }
    }
}

/// How far a clock may be out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ClockError {
    /// Whether the clock follows an external one.
    pub synchronised: bool,
    /// How the times beside it are written.
    pub clock: Clock,
    /// The bound, in ns; rounded up when written.
    pub bound_ns: u64,
}

impl ClockError {
    /// In 16 bits: S, Z, scale, multiplier (never 0).
    pub fn write(self) -> u16 {
        let mut multiplier = ((u128::from(self.bound_ns) << 32).div_ceil(u128::from(SECOND_NS))).max(1);
        let mut scale = 0_u16;
        while multiplier > 255 {
            multiplier = multiplier.div_ceil(2);
            scale += 1;
        }
        let flag = |set: bool, bit: u32| u16::from(set) << bit;
        let multiplier = u16::try_from(multiplier).unwrap_or(255);
        flag(self.synchronised, 15) | flag(self.clock == Clock::Ptp, 14) | (scale.min(63) << 8) | multiplier
    }

    /// From 16 bits.
    pub fn read(raw: u16) -> Self {
        let (scale, multiplier) = (u32::from(raw >> 8 & 63), u128::from(raw & 255));
        let bound_ns = ((multiplier << scale) * u128::from(SECOND_NS)) >> 32;
        Self {
            synchronised: raw >> 15 == 1,
            clock: if raw >> 14 & 1 == 1 { Clock::Ptp } else { Clock::Ntp },
            bound_ns: u64::try_from(bound_ns).unwrap_or(u64::MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_times_and_bounds() {
        assert_eq!(Clock::Ntp.write(0), NTP_TO_UNIX_S << 32);
        assert_eq!(Clock::Ntp.write(500_000_000) & 0xFFFF_FFFF, 1 << 31);
        assert_eq!(Clock::Ptp.write(1_500_000_000), (1 << 32) | 500_000_000);
        // 2^-32 s at scale 0; a second is 128 at scale 25.
        assert_eq!(ClockError::default().write(), 1);
        let second = ClockError { synchronised: true, clock: Clock::Ptp, bound_ns: SECOND_NS };
        assert_eq!(second.write(), 0xC000 | 25 << 8 | 128);
        assert_eq!(ClockError::read(0xC000 | 25 << 8 | 128), second);
    }

    proptest! {
        #[test]
        fn times_come_back(seconds in 1_000_000_000_u64..4_200_000_000, nanos in 0..SECOND_NS) {
            let at = seconds * SECOND_NS + nanos;
            prop_assert_eq!(Clock::Ntp.read(Clock::Ntp.write(at)), at);
            if seconds < 1 << 31 {
                prop_assert_eq!(Clock::Ptp.read(Clock::Ptp.write(at)), at);
            }
        }

        #[test]
        fn a_bound_never_shrinks(bound_ns in 0_u64..1_000_000_000_000, raw: u16) {
            let error = ClockError { synchronised: true, clock: Clock::Ntp, bound_ns };
            let read = ClockError::read(error.write());
            prop_assert!(read.bound_ns + 1 >= bound_ns && read.bound_ns <= bound_ns + bound_ns / 64 + 1);
            let _ = ClockError::read(raw);
        }
    }
}
