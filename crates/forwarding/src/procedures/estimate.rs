//! What a mix should carry by the throughputs of single sizes: an *estimate*, shown beside the measured mix and never instead
//! of it.
//!
//! A frame of a size takes the device 1 ÷ throughput of that size; a turn of the mix takes the sum over its frames. That
//! is exact for a device whose cost is per frame and per byte, and for a line. Sizes that were not measured lie on the line
//! between their neighbours in time per frame, which is exact for such a device as well. What the common shortcut takes for
//! granted (the rate of the smallest frames, times the mean size) holds for no device that meets its line.

use crate::data::ForwardingPlan;
use crate::data::plan::Row;

/// The estimate for the mix of one traffic.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimate {
    /// Frames a second.
    pub pps: f64,
    /// Whether the throughput of a size that it is based on is only a lower bound.
    pub at_least: bool,
    /// From which results, and what it takes for granted.
    pub method: String,
}

/// The throughput of one size.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OfSize {
    /// Frame size with FCS.
    pub size: u32,
    /// Frames a second.
    pub pps: f64,
    /// Whether the device may carry more.
    pub at_least: bool,
}

/// The estimate for the mix of a traffic, never above what the line carries of it.
/// Errors: why there is none: no mix, no results, or a size of the mix outside of the sizes measured.
pub fn estimate(plan: &ForwardingPlan, traffic: usize, results: &[OfSize]) -> Result<Estimate, String> {
    let row = Row { traffic, size: None };
    let most_pps = plan.max_pps(row).ok_or("the plan has no mix for this traffic")?;
    let mix = plan.traffic.get(traffic).map(|traffic| traffic.mix.as_slice()).unwrap_or_default();
    let mut sound: Vec<OfSize> = results.iter().copied().filter(|of| of.pps.is_finite() && of.pps > 0.0).collect();
    sound.sort_by_key(|of| of.size);
    sound.dedup_by_key(|of| of.size);
    let (mut turn_s, mut at_least, mut between) = (0.0, false, Vec::new());
    for size in mix {
        let above = sound.iter().position(|of| of.size >= *size);
        let (low, high) = match above.and_then(|index| Some((sound.get(index)?, index))) {
            Some((high, _)) if high.size == *size => (high, high),
            Some((high, index)) if index > 0 => (&sound[index - 1], high),
            _ => return Err(format!("frames of {size} bytes are outside the measured sizes")),
        };
        let part =
            if low.size == high.size { 0.0 } else { f64::from(size - low.size) / f64::from(high.size - low.size) };
        turn_s += (1.0 - part) / low.pps + part / high.pps;
        at_least |= low.at_least || high.at_least;
        if low.size != high.size && !between.contains(size) {
            between.push(*size);
        }
    }
    let pps = (mix.len() as f64 / turn_s).min(most_pps);
    let words = |sizes: &[u32]| sizes.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
    let mut method = "estimate: mean time per frame from the throughput of each size".to_owned();
    if !between.is_empty() {
        method.push_str(&format!("; {} bytes interpolated", words(&between)));
    }
    Ok(Estimate { pps, at_least, method })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::plan;
    use proptest::prelude::*;

    fn of(size: u32, pps: f64) -> OfSize {
        OfSize { size, pps, at_least: false }
    }

    #[test]
    fn the_mean_time_per_frame_counts() {
        // 7 frames at 1 µs, 4 at 2 µs, 1 at 4 µs: 19 µs for 12 frames.
        let results = [of(64, 1e6), of(570, 5e5), of(1518, 2.5e5)];
        let estimate = estimate(&plan(), 0, &results).expect("an estimate");
        assert!((estimate.pps - 12e6 / 19.0).abs() < 1e-3, "{}", estimate.pps);
        assert!(estimate.method.starts_with("estimate:") && !estimate.method.contains("interpolated"));
    }

    #[test]
    fn a_size_between_two_others_is_named() {
        let results = [of(64, 1e6), of(512, 1e6), of(1518, 1e6)];
        let estimate = estimate(&plan(), 0, &results).expect("an estimate");
        assert!((estimate.pps - 1e6).abs() < 1e-6);
        assert!(estimate.method.ends_with("570 bytes interpolated"), "{}", estimate.method);
    }

    #[test]
    fn nothing_is_estimated_beyond_what_was_measured() {
        assert!(estimate(&plan(), 0, &[of(64, 1e6), of(512, 1e6)]).expect_err("570").contains("570 bytes"));
        assert!(estimate(&plan(), 0, &[of(512, 1e6), of(1518, 1e6)]).expect_err("64").contains("64 bytes"));
        assert!(estimate(&plan(), 0, &[]).is_err());
        assert!(estimate(&plan(), 1, &[of(64, 1e6)]).expect_err("no traffic").contains("no mix"));
        let results = [of(64, 1e6), OfSize { at_least: true, ..of(570, 1e6) }, of(1518, 1e6)];
        assert!(estimate(&plan(), 0, &results).expect("an estimate").at_least);
    }

    #[test]
    fn at_line_rate_the_estimate_is_the_line_rate_of_the_mix() {
        let plan = plan();
        let line = |size: u32| of(size, crate::data::plan::line_rate_pps(plan.link_bps, size.into()));
        let estimate = estimate(&plan, 0, &[line(64), line(512), line(1518)]).expect("an estimate");
        let mix = plan.line_pps(Row { traffic: 0, size: None }).expect("a mix");
        // 353.83 bytes with FCS and 20 more: 3.344 Mpps at 10 Gbit/s.
        assert!((mix - 3_343_736.0).abs() < 1.0, "{mix}");
        assert!((estimate.pps / mix - 1.0).abs() < 1e-9, "{} of {mix}", estimate.pps);
    }

    proptest! {
        #[test]
        fn a_device_with_costs_per_frame_and_byte_is_estimated_exactly(per_frame_ns in 100.0..5e3_f64, per_byte_ns in 0.9..5.0_f64) {
            let plan = plan();
            let cost = |size: u32| per_frame_ns + per_byte_ns * f64::from(size);
            let results: Vec<OfSize> = [64, 512, 1518].map(|size| of(size, 1e9 / cost(size))).to_vec();
            let mix = &plan.traffic[0].mix;
            let truth = 1e9 * mix.len() as f64 / mix.iter().map(|size| cost(*size)).sum::<f64>();
            let estimate = estimate(&plan, 0, &results).expect("an estimate");
            prop_assert!((estimate.pps / truth - 1.0).abs() < 1e-9, "{} of {truth}", estimate.pps);
        }
    }
}
