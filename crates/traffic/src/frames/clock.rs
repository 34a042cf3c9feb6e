//! Which machine's clock made a timestamp, and how closely that clock agrees between CPUs.

use narrows_sys::{cpu, cpu_clocks, files};
use narrows_wire::frame::signature::CLOCKS;
use std::path::Path;
use std::sync::OnceLock;

/// Stands for one start of one kernel (random(4)), and so for one `CLOCK_MONOTONIC`.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The number of this machine's clock in a signature, from 1; 0: not known.
pub(super) fn id() -> u16 {
    static ID: OnceLock<u16> = OnceLock::new();
    *ID.get_or_init(|| files::read_text(Path::new(BOOT_ID)).map_or(0, |text| number(text.trim())))
}

/// FNV-1a, folded into what the signature holds.
fn number(text: &str) -> u16 {
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    u16::try_from(hash % u64::from(CLOCKS - 1)).unwrap_or(0) + 1
}

/// By how much the clocks of two CPUs differ at most, ns; measured once.
pub(super) fn bound_ns() -> Option<u64> {
    static BOUND: OnceLock<u64> = OnceLock::new();
    if let Some(bound) = BOUND.get() {
        return Some(*bound);
    }
    let bound = cpu_clocks::max_difference_ns(&cpu::allowed_cpus().ok()?)?;
    Some(*BOUND.get_or_init(|| bound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_have_numbers_that_differ() {
        let boots = ["0a5f1a8e-8e0c-4a3e-8a52-3b1f3b5b0f11", "0a5f1a8e-8e0c-4a3e-8a52-3b1f3b5b0f12", ""];
        let numbers = boots.map(number);
        assert!(numbers.iter().all(|number| (1..CLOCKS).contains(number)), "{numbers:?}");
        assert_ne!(numbers[0], numbers[1]);
        assert_eq!(id(), id());
    }
}
