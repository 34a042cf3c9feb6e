//! Reproducible random numbers: xoshiro256++ (Blackman, Vigna: *Scrambled linear pseudorandom number generators*, 2021),
//! seeded by splitmix64.

/// A generator. Not for secrets.
#[derive(Debug, Clone)]
pub struct Random([u64; 4]);

impl Random {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut split = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        };
        Self([split(), split(), split(), split()])
    }

    /// 64 uniform bits.
    pub fn bits(&mut self) -> u64 {
        let [a, b, c, d] = self.0;
        let result = a.wrapping_add(d).rotate_left(23).wrapping_add(a);
        let (c, d) = (c ^ a, d ^ b);
        self.0 = [a ^ d, b ^ c, c ^ (b << 17), d.rotate_left(45)];
        result
    }

    /// Uniform in [0, 1).
    pub fn unit(&mut self) -> f64 {
        let value = (self.bits() >> 11) as f64;
        value / 9_007_199_254_740_992.0
    }

    /// True with this probability; draws no number if it is 0.
    pub fn chance(&mut self, probability: f64) -> bool {
        probability > 0.0 && self.unit() < probability
    }

    /// Uniform from 0 to `most`, inclusive.
    pub fn up_to(&mut self, most: u64) -> u64 {
        let span = u128::from(most) + 1;
        u64::try_from((u128::from(self.bits()) * span) >> 64).unwrap_or(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_numbers() {
        let draw = |seed| {
            let mut random = Random::new(seed);
            [random.bits(), random.bits(), random.bits()]
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn probabilities_match() {
        let mut random = Random::new(7);
        let hits = (0..1_000_000).filter(|_| random.chance(0.01)).count();
        assert!((9_600..10_400).contains(&hits), "{hits} of 10^6: four standard deviations are 400");
        assert!(!random.chance(0.0));
        assert!(random.chance(1.0));
    }

    #[test]
    fn numbers_stay_in_their_range() {
        let mut random = Random::new(3);
        let draws: Vec<_> = (0..1000).map(|_| random.up_to(9)).collect();
        assert!((0..=9).all(|value| draws.contains(&value)));
        assert!(draws.iter().all(|value| *value <= 9));
        assert_eq!(random.up_to(0), 0);
    }
}
