//! The load of a generator: frames a second, bit/s on the wire, a share of the line, or all that can be.

use super::FrameWordError;
use crate::load::frames::FrameLoad;
use crate::load::line_rate::frames_per_second;
use crate::words::units::{decimal, split, without_bits};

const EXAMPLES: &str = "1.2Mpps, 9.4G (on the wire), 50% (of the line rate) or max";
const NO_LINK: &str =
    "is a share of the line rate, but the link speed is unknown; write a load like 1.2Mpps, 9.4G or max";
/// What a generator paces, frames a second.
const PACED: std::ops::RangeInclusive<f64> = 0.01..=1e9;

/// Reads `1.2Mpps`, `500kpps` (frames a second), `9.4G`, `100Mbit/s` (bit/s on the wire: 8 × (frame with FCS + 20) for each frame),
/// `50%` (of what the link of `link_bps` carries) or `max`. `mean_bytes` is the mean frame with FCS over one turn of the sizes.
/// Errors: no such word, a share where `link_bps` is not known or above 100 %, or a load that no generator could pace.
pub fn parse_load(word: &str, link_bps: Option<u64>, mean_bytes: f64) -> Result<FrameLoad, FrameWordError> {
    let trimmed = word.trim();
    if trimmed == "max" {
        return Ok(FrameLoad::Max);
    }
    let not_a = || FrameWordError::not_a(word, "load", EXAMPLES);
    let must = |must| FrameWordError::of(word, &format!("is an invalid load: it must be {must}"));
    let frames = if let Some(percent) = trimmed.strip_suffix('%') {
        let percent = plain(percent.trim_end()).ok_or_else(not_a)?;
        if percent > 100.0 {
            return Err(must("at most 100 % of the line rate, or max"));
        }
        let link = link_bps.filter(|bps| *bps > 0).ok_or_else(|| FrameWordError::of(word, NO_LINK))?;
        let link = link as f64;
        frames_per_second(link * percent / 100.0, mean_bytes)
    } else if let Some(frames) = trimmed.strip_suffix("pps") {
        scaled(frames).ok_or_else(not_a)?
    } else {
        frames_per_second(scaled(without_bits(trimmed)).ok_or_else(not_a)?, mean_bytes)
    };
    if PACED.contains(&frames) {
        Ok(FrameLoad::FramesPerSecond(frames))
    } else {
        Err(must("from 0.01 to 10^9 frames a second"))
    }
}

/// `1.2M` as a number.
fn scaled(word: &str) -> Option<f64> {
    let (digits, prefix) = split(word);
    Some(plain(digits)? * decimal(prefix.trim_start())?)
}

/// Digits with a point: no sign, no exponent, no infinity.
fn plain(digits: &str) -> Option<f64> {
    let whole = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    digits.parse().ok().filter(|_| whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIGABIT: Option<u64> = Some(1_000_000_000);

    fn frames(word: &str, link_bps: Option<u64>, mean_bytes: f64) -> f64 {
        match parse_load(word, link_bps, mean_bytes).expect(word) {
            FrameLoad::FramesPerSecond(frames) => frames,
            FrameLoad::Max => panic!("{word} is a number"),
        }
    }

    #[test]
    fn every_word_becomes_frames_a_second() {
        assert_eq!(frames("1.2Mpps", None, 64.0), 1_200_000.0);
        assert_eq!(frames("500kpps", None, 64.0), 500_000.0);
        assert_eq!(frames("0.5pps", None, 64.0), 0.5);
        assert_eq!(frames("9.4G", None, 64.0), 9.4e9 / 672.0);
        assert_eq!(frames("672Mbit/s", None, 64.0), 1e6);
        assert_eq!(frames("50%", GIGABIT, 1518.0), 500e6 / 12_304.0);
        assert_eq!(frames("100 %", GIGABIT, 64.0).floor(), 1_488_095.0);
        assert_eq!(parse_load("max", None, 64.0), Ok(FrameLoad::Max));
    }

    #[test]
    fn a_mix_counts_with_its_mean() {
        assert_eq!(frames("10G", None, 4246.0 / 12.0).floor(), 3_343_736.0);
    }

    #[test]
    fn what_is_no_load_is_named() {
        let refused = |word: &str, link| parse_load(word, link, 64.0).expect_err(word).to_string();
        for word in ["", "fast", "%", "pps", "-1G", "1e3pps", "infpps", "nan", "5 %%", "1.2.3M", "10X"] {
            assert_eq!(
                refused(word, GIGABIT),
                format!(
                    "invalid load `{word}`; write it like 1.2Mpps, 9.4G (on the wire), 50% (of the line rate) or max"
                )
            );
        }
        for link in [None, Some(0)] {
            assert_eq!(
                refused("50%", link),
                "`50%` is a share of the line rate, but the link speed is unknown; write a load like 1.2Mpps, 9.4G or \
                max"
            );
        }
        assert!(refused("101%", GIGABIT).ends_with("it must be at most 100 % of the line rate, or max"));
        for word in ["0", "0%", "0.001pps", "2Gpps", "9999999T"] {
            assert!(refused(word, GIGABIT).ends_with("it must be from 0.01 to 10^9 frames a second"), "{word}");
        }
    }
}
