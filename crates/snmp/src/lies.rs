//! Counts that cannot be true, and what an agent does that gives them. One file a lie, one line in [`LIES`]; the first that
//! tells names it.
//!
//! What is known for certain is what the tester itself counted: on the way from the generator to the receiver every true count
//! lies between what was received and what was sent. A count outside of that, by more than it may be wrong, is impossible. A
//! count inside is never accused for what it is alone: loss looks like it. Only where the counts before and behind it agree with
//! each other and it does not, it is impossible too, since frames do not come back.

mod divided;
mod doubled;
mod impossible;
mod stuck;
mod thousands;
mod wrapped;

use narrows_model::forwarding::HopCount;
use std::fmt;

/// Which of a hop's two counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// Frames that its input took.
    Input,
    /// Frames that its output sent.
    Output,
}

/// A count that cannot be true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Doubt {
    /// [`HopCount::hop`].
    pub hop: String,
    /// Which count.
    pub side: Side,
    /// Id of the lie: `divided`, `wrapped`, …
    pub lie: &'static str,
    /// What it counted.
    pub frames: u64,
    /// A sentence without its subject, which is the hop: `counts 1/1024 of …`.
    pub says: String,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let side = match self.side {
            Side::Input => "input",
            Side::Output => "output",
        };
        write!(f, "{} ({side}) {}", self.hop, self.says)
    }
}

/// One count with all that it is judged by.
#[derive(Debug, Clone, Copy)]
struct Count {
    frames: u64,
    uncertainty: u64,
    /// The nearest possible counts before and behind it.
    beside: [u64; 2],
    /// What was received, and what was sent: it must lie between.
    between: [u64; 2],
}

/// By which part two counts may differ that are called the same.
const SAME: f64 = 0.001;

impl Count {
    fn too_few(&self) -> bool {
        self.frames.saturating_add(self.uncertainty) < self.between[0]
    }

    fn too_many(&self) -> bool {
        self.frames > self.between[1].saturating_add(self.uncertainty)
    }

    /// The count beside it that is `factor` times it, give or take `rounding` frames and 0.1 %. Where the count is possible by
    /// itself, both must be.
    fn beside_is(&self, factor: f64, rounding: f64) -> Option<u64> {
        let wanted = self.frames as f64 * factor;
        let is = |beside: &u64| (*beside as f64 - wanted).abs() <= rounding + SAME * *beside as f64;
        let impossible = self.too_few() || self.too_many();
        if impossible || self.beside.iter().all(is) { self.beside.into_iter().find(is) } else { None }
    }
}

/// Something that an agent may do to its counts.
struct Lie {
    id: &'static str,
    /// The sentence, where a count that cannot be true looks like it.
    tells: fn(&Count) -> Option<String>,
}

/// All that are known, the most telling first. One line each.
const LIES: &[Lie] = &[stuck::LIE, divided::LIE, thousands::LIE, doubled::LIE, wrapped::LIE, impossible::LIE];

/// The counts on the way that cannot be true. `sent` and `received` are the tester's own counts of the same frames, `hops` are
/// in the order of the way; a hop that is silent is not judged. Pure.
#[must_use]
pub fn doubts(sent: u64, received: u64, hops: &[HopCount]) -> Vec<Doubt> {
    let between = [sent.min(received), sent.max(received)];
    let heard = hops.iter().filter(|hop| hop.silent.is_none());
    let counts: Vec<(&HopCount, Side, u64)> = heard
        .flat_map(|hop| [(hop, Side::Input, hop.input), (hop, Side::Output, hop.output)])
        .filter_map(|(hop, side, frames)| Some((hop, side, frames?)))
        .collect();
    let alone =
        |hop: &HopCount, frames| Count { frames, uncertainty: hop.uncertainty, beside: [sent, received], between };
    let possible = |(hop, _, frames): &&(&HopCount, Side, u64)| {
        let count = alone(hop, *frames);
        !count.too_few() && !count.too_many()
    };
    let mut found = Vec::new();
    for (at, (hop, side, frames)) in counts.iter().enumerate() {
        let before = counts[..at].iter().rev().find(possible).map_or(sent, |(.., frames)| *frames);
        let behind = counts[at + 1..].iter().find(possible).map_or(received, |(.., frames)| *frames);
        let count = Count { beside: [before, behind], ..alone(hop, *frames) };
        let told = LIES.iter().find_map(|lie| Some((lie.id, (lie.tells)(&count)?)));
        if let Some((lie, says)) = told {
            found.push(Doubt { hop: hop.hop.clone(), side: *side, lie, frames: *frames, says });
        }
    }
    found
}

/// Digits in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests;
