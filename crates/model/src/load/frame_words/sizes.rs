//! Frame sizes: one, a list, a mix by shares, a genome.

use super::{FrameWordError, number};
use crate::load::frames::{FrameFormat, MAX_FRAME_BYTES, MIN_FRAME_BYTES};
use crate::words::units::parse_size;

const EXAMPLES: &str = "64, 64,128,1518, imix, imix:7x64,4x570,1x1518 or genome:aaaaaaabbg";

/// The simple mix of the Internet, 7 × 64, 4 × 570 and 1 × 1518 bytes with FCS: as even as `imix:7x64,4x570,1x1518`, so that no size
/// comes in one piece.
pub const IMIX: [u32; 12] = [64, 570, 64, 64, 570, 64, 1518, 64, 570, 64, 570, 64];

/// The letters of RFC 6985 that have one meaning everywhere.
const GENOME: [(char, u32); 7] = [('a', 64), ('b', 128), ('c', 256), ('d', 512), ('e', 1024), ('f', 1280), ('g', 1518)];

/// Reads frame sizes in bytes with FCS, in the order in which they are sent, again and again:
///
/// - `64`, `64,128,1518`: as written;
/// - `imix:7x64,4x570,1x1518`: shares of sizes, spread as evenly as they can be, so that no burst of one size comes of it;
///   `imix` alone is just this one;
/// - `genome:aaaaaaabbg`: a sequence of RFC 6985, letter by letter.
///
/// Errors: no such word, a size out of 64 to 9216, or a sequence of more than [`FrameFormat::MAX_SIZES`]. The least
/// size of IPv6 and of TCP is larger: [`FrameFormat::check`] knows it.
pub fn parse_sizes(word: &str) -> Result<Vec<u32>, FrameWordError> {
    let not_a = || FrameWordError::not_a(word, "list of frame sizes", EXAMPLES);
    let trimmed = word.trim();
    if let Some(genome) = trimmed.strip_prefix("genome:") {
        long_enough(word, genome.chars().count() as u64)?;
        let size = |letter| GENOME.iter().find(|(of, _)| *of == letter).map(|(_, size)| *size);
        let sizes: Option<Vec<u32>> = genome.chars().map(size).collect();
        return sizes.filter(|sizes| !sizes.is_empty()).ok_or_else(not_a);
    }
    if trimmed == "imix" {
        return Ok(IMIX.to_vec());
    }
    // What is longer than the most that it could be is not taken apart.
    let parts = |list: &str| list.split(',').count() as u64;
    if let Some(mix) = trimmed.strip_prefix("imix:") {
        long_enough(word, parts(mix))?;
        let share = |part: &str| {
            let (count, size) = part.trim().split_once('x')?;
            Some((number(count).filter(|count| *count > 0)?, parse_size(size).ok()?))
        };
        let shares: Option<Vec<(u64, u64)>> = mix.split(',').map(share).collect();
        return spread(word, &shares.ok_or_else(not_a)?);
    }
    long_enough(word, parts(trimmed))?;
    trimmed.split(',').map(|part| frame(word, parse_size(part).map_err(|_| not_a())?)).collect()
}

fn long_enough(word: &str, frames: u64) -> Result<(), FrameWordError> {
    let max = FrameFormat::MAX_SIZES;
    let says = || format!("is a sequence of {frames} frames; the maximum is {max}");
    if frames > max as u64 { Err(FrameWordError::of(word, &says())) } else { Ok(()) }
}

fn frame(word: &str, bytes: u64) -> Result<u32, FrameWordError> {
    let (min, max) = (MIN_FRAME_BYTES, MAX_FRAME_BYTES);
    let says = || format!("has frames of {bytes} bytes; the allowed range is {min} to {max} bytes with FCS");
    let size = u32::try_from(bytes).ok().filter(|size| (min..=max).contains(size));
    size.ok_or_else(|| FrameWordError::of(word, &says()))
}

/// The shortest sequence with these shares: at each place stands the size that is furthest behind its share, the first of those
/// that are equally far.
fn spread(word: &str, shares: &[(u64, u64)]) -> Result<Vec<u32>, FrameWordError> {
    let common = shares.iter().fold(0, |common, (count, _)| divisor(common, *count)).max(1);
    let total = shares.iter().fold(0u64, |sum, (count, _)| sum.saturating_add(count / common));
    long_enough(word, total)?;
    let sizes: Vec<u32> = shares.iter().map(|(_, size)| frame(word, *size)).collect::<Result<_, _>>()?;
    let mut behind: Vec<i64> = vec![0; shares.len()];
    let mut sequence = Vec::new();
    for _ in 0..total {
        for (behind, (count, _)) in behind.iter_mut().zip(shares) {
            *behind += (count / common).cast_signed();
        }
        let furthest = (0..behind.len()).rev().max_by_key(|at| behind[*at]).unwrap_or(0);
        behind[furthest] -= total.cast_signed();
        sequence.push(sizes[furthest]);
    }
    Ok(sequence)
}

/// The greatest that divides both.
const fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(word: &str) -> Vec<u32> {
        parse_sizes(word).expect(word)
    }

    #[test]
    fn lists_and_genomes_stand_as_they_are_written() {
        assert_eq!(sizes("64"), [64]);
        assert_eq!(sizes("64, 128,1518"), [64, 128, 1518]);
        assert_eq!(sizes("1518,64,9k"), [1518, 64, 9216]);
        assert_eq!(sizes("genome:aaaaaaabbg"), [64, 64, 64, 64, 64, 64, 64, 128, 128, 1518]);
        assert_eq!(sizes("genome:abcdefg"), [64, 128, 256, 512, 1024, 1280, 1518]);
    }

    #[test]
    fn a_mix_is_spread_evenly() {
        let imix = sizes("imix");
        assert_eq!(imix, [64, 570, 64, 64, 570, 64, 1518, 64, 570, 64, 570, 64]);
        assert_eq!(sizes("imix:7x64,4x570,1x1518"), imix);
        assert_eq!(sizes("imix:700x64,400x570,100x1518"), imix, "shares, not counts");
        let mean = f64::from(imix.iter().sum::<u32>()) / 12.0;
        assert!((mean - 353.83).abs() < 0.01, "{mean}");
        // With its overhead: 3.344 million frames a second at 10 Gbit/s.
        assert_eq!(crate::load::line_rate::frames_per_second(10e9, mean).floor(), 3_343_736.0);
    }

    #[test]
    fn every_share_comes_as_often_as_it_was_asked_for() {
        let mix = sizes("imix:5x64,3x128,2x256,1x1518");
        let count = |size| mix.iter().filter(|it| **it == size).count();
        assert_eq!((mix.len(), count(64), count(128), count(256), count(1518)), (11, 5, 3, 2, 1));
        assert_eq!(sizes("imix:1x64"), [64]);
    }

    #[test]
    fn what_is_no_size_is_named() {
        let refused = |word: &str| parse_sizes(word).expect_err(word).to_string();
        for word in
            ["", "big", "64,,128", "imix:", "imix:7", "imix:0x64", "imix:+1x64", "genome:", "genome:abx", "IMIX"]
        {
            assert!(
                refused(word).contains(&format!("invalid list of frame sizes `{word}`; write it like 64, ")),
                "{word}"
            );
        }
        assert_eq!(refused("64,63"), "`64,63` has frames of 63 bytes; the allowed range is 64 to 9216 bytes with FCS");
        assert!(refused("imix:1x64,1x9217").contains("frames of 9217 bytes"));
        assert!(refused("99999999999").contains("frames of 99999999999 bytes"));
        for (word, frames) in [(vec!["64"; 65].join(","), "65"), (format!("genome:{}", "a".repeat(70)), "70")] {
            assert!(refused(&word).contains(&format!("is a sequence of {frames} frames; the maximum is 64")));
        }
        assert!(refused("imix:64x64,1x128").contains("a sequence of 65 frames"));
        let most = u64::MAX;
        assert!(refused(&format!("imix:{most}x64,{}x128", most - 1)).contains("the maximum is 64"));
    }
}
