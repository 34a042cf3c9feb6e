//! Inputs made from a corpus by random changes; the same seed makes the same inputs.

/// Longer inputs are not made from shorter seeds.
const MAX_GROWTH: usize = 256;
/// Numbers and marks at the edges of formats.
const EDGES: &[&[u8]] = &[
    &[0],
    &[1],
    &[0x7f],
    &[0x80],
    &[0xff],
    &[0; 2],
    &[0xff; 2],
    &[0xff; 4],
    &[0, 0, 0, 0x80],
    &[0xff, 0xff, 0xff, 0x7f],
    &[0xff; 8],
    &[0; 8],
    b"-1",
    b"0",
    b"1e999",
    b"18446744073709551616",
    b"\"\"",
    b"[]",
    b"{}",
    b"null",
    b":",
    b",",
    b"\n",
    b"\0",
    b"\x1b[2J",
    b"%",
    b"..",
];

/// A maker of inputs.
#[derive(Debug)]
pub struct Mutator {
    seeds: Vec<Vec<u8>>,
    state: u64,
    input: Vec<u8>,
}

impl Mutator {
    /// From the inputs of a corpus.
    pub fn new(mut seeds: Vec<Vec<u8>>, seed: u64) -> Self {
        seeds.push(Vec::new());
        Self { seeds, state: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, input: Vec::new() }
    }

    /// xorshift64*.
    fn random(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    fn below(&mut self, most: usize) -> usize {
        let most = u128::try_from(most.max(1)).unwrap_or(1);
        usize::try_from((u128::from(self.random()) * most) >> 64).unwrap_or(0)
    }

    pub fn next_input(&mut self) -> &[u8] {
        let seed = self.below(self.seeds.len());
        let mut input = std::mem::take(&mut self.input);
        input.clear();
        input.extend_from_slice(&self.seeds[seed]);
        let most = input.len() + MAX_GROWTH;
        for _ in 0..=self.below(6) {
            self.change(&mut input);
        }
        input.truncate(most);
        self.input = input;
        &self.input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.below(input.len());
        let what = self.random();
        match what % 9 {
            0..=2 if !input.is_empty() => input[at] ^= 1 << ((what >> 32) % 8),
            3 if !input.is_empty() => input[at] = (what >> 32).to_le_bytes()[0],
            4 => {
                let edge = EDGES[self.below(EDGES.len())];
                let end = (at + edge.len()).min(input.len());
                input.splice(at..end, edge.iter().copied());
            }
            5 => {
                let edge = EDGES[self.below(EDGES.len())];
                input.splice(at..at, edge.iter().copied());
            }
            6 => {
                let count = self.below(16);
                input.drain(at..(at + count).min(input.len()));
            }
            7 => input.truncate(at),
            _ => {
                let other = self.below(self.seeds.len());
                let from = self.below(self.seeds[other].len());
                let count = self.below(32);
                let part = self.seeds[other].iter().skip(from).take(count).copied();
                let part: Vec<u8> = part.collect();
                input.splice(at..at, part);
            }
        }
    }
}
