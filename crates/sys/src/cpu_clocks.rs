//! The difference between the clocks of two CPUs: two threads, each on its CPU, exchange readings of `CLOCK_MONOTONIC`
//! through memory. Each reading must lie between two readings of the other clock; over many rounds the tightest ones bound
//! the difference from both sides, as two messages of NTP do (RFC 5905, section 8).

use crate::{clock, cpu};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// Rounds between two CPUs: the tightest of them counts.
const ROUNDS: u64 = 300;
/// The time limit of one pair.
const MAX_PAIR_TIME: Duration = Duration::from_millis(20);
/// The maximum number of CPUs that are compared.
const MAX_CPUS: usize = 64;

/// The maximum difference between the clocks of these CPUs, ns; 0 for one CPU. `None` if it cannot be measured: a CPU
/// is not permitted, or was too busy.
pub fn max_difference_ns(cpus: &[u32]) -> Option<u64> {
    let (first, others) = cpus.split_first()?;
    let mut bounds = Vec::new();
    for other in others.iter().take(MAX_CPUS - 1) {
        let [low, high] = between(*first, *other)?;
        bounds.push(low.unsigned_abs().max(high.unsigned_abs()));
    }
    bounds.sort_unstable_by(|a, b| b.cmp(a));
    // Any two other CPUs differ by at most the sum of their differences from the first.
    Some(bounds.iter().take(2).sum())
}

#[derive(Default)]
struct Board {
    /// The round that the first CPU has started, and the one that the second has answered.
    asked: AtomicU64,
    answered: AtomicU64,
    answer_ns: AtomicU64,
    over: AtomicBool,
}

/// The clock of `b` minus that of `a`: lower and upper bound, ns.
fn between(a: u32, b: u32) -> Option<[i64; 2]> {
    let board = Board::default();
    std::thread::scope(|scope| {
        let answers = std::thread::Builder::new().spawn_scoped(scope, || answer(&board, b)).ok()?;
        let asks = std::thread::Builder::new().spawn_scoped(scope, || {
            let found = ask(&board, a);
            board.over.store(true, Ordering::Relaxed);
            found
        });
        let found = match asks {
            Ok(asks) => asks.join().ok().flatten(),
            Err(_) => None,
        };
        board.over.store(true, Ordering::Relaxed);
        let _ = answers.join();
        found
    })
}

fn ask(board: &Board, cpu: u32) -> Option<[i64; 2]> {
    cpu::pin(&[cpu]).ok()?;
    let since = clock::now();
    let mut bounds: Option<[i64; 2]> = None;
    for round in 1..=ROUNDS {
        let before = clock::monotonic_ns();
        board.asked.store(round, Ordering::Release);
        while board.answered.load(Ordering::Acquire) != round {
            if since.elapsed() > MAX_PAIR_TIME || board.over.load(Ordering::Relaxed) {
                return bounds;
            }
            std::hint::spin_loop();
        }
        let after = clock::monotonic_ns();
        let theirs = board.answer_ns.load(Ordering::Relaxed).cast_signed();
        let [low, high] = bounds.unwrap_or([i64::MIN, i64::MAX]);
        bounds = Some([
            low.max(theirs.wrapping_sub(after.cast_signed())),
            high.min(theirs.wrapping_sub(before.cast_signed())),
        ]);
    }
    bounds
}

fn answer(board: &Board, cpu: u32) {
    if cpu::pin(&[cpu]).is_err() {
        board.over.store(true, Ordering::Relaxed);
        return;
    }
    let mut done = 0;
    while !board.over.load(Ordering::Relaxed) {
        let asked = board.asked.load(Ordering::Acquire);
        if asked == done {
            std::hint::spin_loop();
            continue;
        }
        board.answer_ns.store(clock::monotonic_ns(), Ordering::Relaxed);
        board.answered.store(asked, Ordering::Release);
        done = asked;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clocks_of_a_machine_agree_within_what_a_message_takes() {
        let cpus = cpu::allowed_cpus().unwrap();
        // On a busy machine the measurement may fail; if it succeeds it is a bound.
        if let Some(bound) = max_difference_ns(&cpus) {
            assert!(bound < 20_000_000, "{bound} ns");
        }
        assert_eq!(max_difference_ns(&cpus[..1]), Some(0), "one CPU has one clock");
        assert_eq!(max_difference_ns(&[]), None);
        assert_eq!(max_difference_ns(&[cpus[0], 5_000]), None, "a CPU that is not there");
    }
}
