//! Burst loss: the Gilbert–Elliott model. The channel is good or bad, and packets are lost in the bad state only.
//!
//! Source: E. N. Gilbert, *Capacity of a burst-noise channel*, 1960; E. O. Elliott, 1963; as in tc-netem(8) `gemodel` with `1-k` = 0.

use super::random::Random;

/// The state of the chain.
#[derive(Debug, Clone, Copy, Default)]
pub struct GilbertElliott {
    bad: bool,
}

impl GilbertElliott {
    /// Advances by one packet; returns whether that packet is lost.
    ///
    /// `enter`, `leave`: chance per packet to go to the bad state and back. `loss`: chance of loss in it.
    pub fn loses(&mut self, random: &mut Random, enter: f64, leave: f64, loss: f64) -> bool {
        if enter <= 0.0 {
            self.bad = false;
            return false;
        }
        if random.chance(if self.bad { leave } else { enter }) {
            self.bad = !self.bad;
        }
        self.bad && random.chance(loss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_and_length_of_bursts_match_the_model() {
        // Stationary share of the bad state: 0.01 / (0.01 + 0.2); mean stay: 1 / 0.2 packets.
        let (mut chain, mut random) = (GilbertElliott::default(), Random::new(11));
        let lost: Vec<bool> = (0..1_000_000).map(|_| chain.loses(&mut random, 0.01, 0.2, 1.0)).collect();
        let count = lost.iter().filter(|lost| **lost).count();
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        assert!((46_000..49_300).contains(&count), "{count}, expected 47 619");
        let mean = count * 100 / bursts;
        assert!((485..515).contains(&mean), "{mean} hundredths, expected 500");
    }

    #[test]
    fn without_a_bad_state_nothing_is_lost() {
        let (mut chain, mut random) = (GilbertElliott { bad: true }, Random::new(1));
        assert!(!chain.loses(&mut random, 0.0, 0.0, 1.0));
    }
}
