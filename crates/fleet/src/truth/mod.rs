//! What is known of planned tests: each is made once, or named as missed.
//!
//! A transport may lose, repeat, delay and reorder what agents and the controller say to each other. What decides is here: a test has one
//! name, a lease with a number that only grows (a fencing token), and one end. A result counts once, and only with the newest lease, so an
//! agent that was away for long overwrites nothing (M. Kleppmann, *How to do distributed locking*, 2016).

#[cfg(any(test, feature = "conformance"))]
mod conformance;
mod memory;

#[cfg(any(test, feature = "conformance"))]
pub use conformance::{conforms, of_ten_hosts};
pub use memory::{End, Memory};

use crate::protocol::Found;
use crate::schedule::{HOUR_MS, Name, Planned};
use narrows_mesh::Load;
use narrows_model::run::mesh::MeshState;
use std::ops::RangeInclusive;

/// The right to make a test, until a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    pub name: Name,
    /// Larger than that of any lease of this test before.
    pub fence: u64,
    pub until_ms: u64,
}

/// How a result was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    Stored,
    /// It is there already.
    Again,
    /// Another lease was given since, or the test was named as missed: it does not count.
    TooLate,
}

/// Figures of days are kept for so long: the same month of last year is still there.
pub const DAYS_KEPT_MS: u64 = 400 * 24 * HOUR_MS;

/// What is known of one test, or of those of a day.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Point {
    /// When it was due, or when the day began.
    pub due_ms: u64,
    /// Tests; of a single one 1, of a diagnosis 0.
    pub tests: u64,
    /// Those that were missed, or found nothing.
    pub failed: u64,
    /// Goodput (bit/s) or round-trip time (microseconds): least, middle, most; of days the middle is the mean of the tests'.
    pub figures: Option<[f64; 3]>,
    /// Probe packets, those of them that were lost, and those of the others whose answers were.
    pub packets: [u64; 3],
}

impl Point {
    /// Of one test by what it found; `None`: it was missed.
    pub fn of(due_ms: u64, result: Option<&[u8]>) -> Self {
        let found = result.and_then(|result| serde_json::from_slice::<Found>(result).ok());
        let (figures, packets) = match found {
            Some(Found::Load(MeshState::Measured { goodput_bps, .. })) => (Some([goodput_bps; 3]), [0; 3]),
            Some(Found::Probe(path)) => (path.rtt_us, path.packets.unwrap_or_default()),
            // Beside the load that it belongs to.
            Some(Found::Diagnosis(_)) => return Self { due_ms, ..Self::default() },
            _ => (None, [0; 3]),
        };
        Self { due_ms, tests: 1, failed: u64::from(figures.is_none()), figures, packets }
    }

    /// Both together.
    pub fn and(&self, other: &Self) -> Self {
        let found = |it: &Self| (it.tests.saturating_sub(it.failed)) as f64;
        let both = |[a, b, c]: [f64; 3], [x, y, z]: [f64; 3]| {
            let middle = (b * found(self) + y * found(other)) / (found(self) + found(other)).max(1.0);
            [a.min(x), middle, c.max(z)]
        };
        Self {
            due_ms: self.due_ms.min(other.due_ms),
            tests: self.tests + other.tests,
            failed: self.failed + other.failed,
            figures: self.figures.zip(other.figures).map(|(a, b)| both(a, b)).or(self.figures).or(other.figures),
            packets: [0, 1, 2].map(|nth| self.packets[nth].saturating_add(other.packets[nth])),
        }
    }
}

/// The beginning of a day (UTC).
pub const fn day_of(at_ms: u64) -> u64 {
    at_ms - at_ms % (24 * HOUR_MS)
}

/// When a test of a path was due, and its result.
pub type Due = (u64, Option<Vec<u8>>);

/// Changes of settings that are shown of two hosts.
pub const NOTES_MAX: usize = 200;

/// When the settings of a host changed, which host, and what.
pub type Note = (u64, usize, String);

/// When a test was due, its name and its result.
pub type Ended = (u64, Name, Vec<u8>);

/// Where tests and their ends are kept. A store implements it on its tables, with the same answers.
pub trait Truth {
    type Error;

    /// Writes down tests; what is known of those that are there already stays. How many are new.
    /// Errors: the store's.
    fn plan(&mut self, tests: &[Planned]) -> Result<usize, Self::Error>;

    /// The latest time at which a test that was written down is due.
    /// Errors: the store's.
    fn planned(&mut self) -> Result<Option<u64>, Self::Error>;

    /// Gives these tests, in their order; `None`: somebody has it, it is over, or it was never planned.
    /// Errors: the store's.
    fn lease(&mut self, names: &[Name], now_ms: u64, until_ms: u64) -> Result<Vec<Option<Lease>>, Self::Error>;

    /// Stores results, in their order: all that an agent brought are on the disk after one commit.
    /// Errors: the store's; then none of them is stored.
    fn end(&mut self, results: &[(Lease, Vec<u8>)]) -> Result<Vec<Taken>, Self::Error>;

    /// Names as missed what of a test was due before a time and is in nobody's hands now.
    /// Errors: the store's.
    fn miss(&mut self, mesh: usize, test: usize, due_before_ms: u64, now_ms: u64) -> Result<Vec<Name>, Self::Error>;

    /// Names as missed what of all tests was due before a time and is in nobody's hands now, also what is in the file no more.
    /// Errors: the store's.
    fn miss_all(&mut self, due_before_ms: u64, now_ms: u64) -> Result<(), Self::Error>;

    /// What was named as missed and is due later is open again: the clock that said so was ahead.
    /// Errors: the store's.
    fn reopen(&mut self, now_ms: u64) -> Result<(), Self::Error>;

    /// Tests that were due in this time and are not over, the earliest first, with the newest lease of each, if it was ever given.
    /// Errors: the store's.
    fn open(&mut self, due_ms: RangeInclusive<u64>) -> Result<Vec<(Planned, Option<Lease>)>, Self::Error>;

    /// The results of a test that was due in this time, with that and in its order.
    /// Errors: the store's.
    fn results(&mut self, mesh: usize, test: usize, due_ms: RangeInclusive<u64>) -> Result<Vec<Ended>, Self::Error>;

    /// The tests of a path that were due since a time and are over, the earliest first; without a result, they were missed.
    /// Errors: the store's.
    fn series(&mut self, mesh: usize, test: usize, load: Load, since_ms: u64) -> Result<Vec<Due>, Self::Error>;

    /// The days of a path since a time, of which single tests are kept no more.
    /// Errors: the store's.
    fn days(&mut self, mesh: usize, test: usize, load: Load, since_ms: u64) -> Result<Vec<Point>, Self::Error>;

    /// Folds tests that were due before a time into one figure a day for each path, at most so many at once; how many there were. Days are
    /// kept for [`DAYS_KEPT_MS`] more.
    /// Errors: the store's.
    fn fold(&mut self, before_ms: u64, most: usize) -> Result<usize, Self::Error>;

    /// Keeps what changed of the settings of a host, for [`DAYS_KEPT_MS`].
    /// Errors: the store's.
    fn note(&mut self, host: usize, at_ms: u64, says: &[String]) -> Result<(), Self::Error>;

    /// What changed of the settings of these hosts since a time, the earliest first: the newest [`NOTES_MAX`].
    /// Errors: the store's.
    fn notes(&mut self, hosts: [usize; 2], since_ms: u64) -> Result<Vec<Note>, Self::Error>;

    /// Whether a controller leads until a time: nobody else does now. The others stand by. A store that several machines share counts by its
    /// own clock.
    /// Errors: the store's.
    fn lead(&mut self, controller: &str, now_ms: u64, until_ms: u64) -> Result<bool, Self::Error>;

    /// Keeps what a controller knows beside tests, instead of what it kept before.
    /// Errors: the store's.
    fn keep(&mut self, state: &[u8]) -> Result<(), Self::Error>;

    /// What was kept last.
    /// Errors: the store's.
    fn kept(&mut self) -> Result<Option<Vec<u8>>, Self::Error>;
}
