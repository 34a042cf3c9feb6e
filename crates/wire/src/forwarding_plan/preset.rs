//! What a plan file leaves out: values for a small lab where a report shall be there in minutes, and those of the RFCs.

use narrows_model::forwarding::{LatencyTest, LossTest, RecoveryTest, ThroughputTest, WorstCaseTest};
use narrows_model::run::search::Goal;

/// The frame sizes of RFC 2544, section 9.1, and RFC 5180, section 5.1.1, on Ethernet.
pub(super) const RFC_2544_SIZES: [u32; 7] = [64, 128, 256, 512, 1024, 1280, 1518];
/// The simple IMIX: 7 × 64, 4 × 570, 1 × 1518, spread so that no size comes in one piece.
pub(super) const IMIX: [u32; 12] = [64, 570, 64, 64, 570, 64, 1518, 64, 570, 64, 64, 570];

/// Which values are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preset {
    /// Minutes.
    Quick,
    /// The RFCs' own.
    Rfc2544,
}

impl Preset {
    pub(super) const WORDS: [(&'static str, Self); 2] = [("quick", Self::Quick), ("rfc2544", Self::Rfc2544)];

    const fn pick<T: Copy>(self, quick: T, rfc: T) -> T {
        match self {
            Self::Quick => quick,
            Self::Rfc2544 => rfc,
        }
    }

    pub(super) const fn sizes(self) -> &'static [u32] {
        match self {
            Self::Quick => &[64, 512, 1518],
            Self::Rfc2544 => &RFC_2544_SIZES,
        }
    }

    pub(super) const fn learning_frames(self) -> u32 {
        self.pick(100, 1_000)
    }

    /// RFC 2544, section 23: 2 s.
    pub(super) const fn residue_ms(self) -> u64 {
        self.pick(500, 2_000)
    }

    /// RFC 2544, section 23: 5 s.
    pub(super) const fn rest_ms(self) -> u64 {
        self.pick(200, 5_000)
    }

    pub(super) fn throughput(self) -> ThroughputTest {
        let goals = match self {
            Self::Quick => vec![Goal::ndr(), Goal::pdr()],
            Self::Rfc2544 => vec![Goal::rfc2544()],
        };
        ThroughputTest { goals, confirm: 5, max_search_ms: self.pick(120_000, 7_200_000) }
    }

    /// RFC 2544, section 26.2: 20 times 120 s.
    pub(super) const fn latency(self) -> LatencyTest {
        LatencyTest { duration_ms: self.pick(5_000, 120_000), repetitions: self.pick(5, 20) }
    }

    /// RFC 2544, sections 24 and 26.3: steps of a tenth, 60 s.
    pub(super) const fn loss(self) -> LossTest {
        LossTest { step: 0.1, duration_ms: self.pick(2_000, 60_000) }
    }

    /// RFC 9004: 50.
    pub(super) const fn burst_repetitions(self) -> u32 {
        self.pick(5, 50)
    }

    /// RFC 2544, section 26.5: 60 s.
    pub(super) const fn recovery(self) -> RecoveryTest {
        let ms = self.pick(5_000, 60_000);
        RecoveryTest { overload_ms: ms, after_ms: ms, repetitions: self.pick(3, 10) }
    }

    pub(super) const fn worst_case(self) -> WorstCaseTest {
        WorstCaseTest { duration_ms: self.pick(5_000, 60_000), repetitions: 5 }
    }
}
