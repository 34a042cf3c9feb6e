//! Where the data threads of an end run: as the scheduler places them, or where a trial of a tenth of a second shows that a fast load
//! moves more.
//!
//! | The other end | What is tried |
//! | --- | --- |
//! | on this machine, in a namespace of its own or over loopback | both ends of each stream on one core: a packet is received on the core that sends it, so that data stay in its cache and nobody is woken on another one |
//! | elsewhere | the cores that share a cache with the one that takes the packets in, without that one and its siblings |
//!
//! Both ends try and compare at the same times, each by the bytes that it moves itself.

use narrows_model::words::units;
use narrows_model::{Pin, Place, Placement};
use narrows_sys::cpu::{self, Machine, ThreadId};
use std::sync::atomic::{AtomicBool, Ordering};

/// Slow start is over where both ends are near …
const BEGIN_US: u64 = 50_000;
/// … until then the scheduler's placement is measured …
const TRY_US: u64 = 150_000;
/// … what follows a move is left out …
const SETTLED_US: u64 = 190_000;
/// … and then the other placement is measured.
const END_US: u64 = 290_000;
/// Shorter loads have no time for it.
const LEAST_MS: u64 = 1_000;
/// What is tried takes about half of the CPU time, which is left to all else: it is kept also where it moves a little less, as a tenth of
/// a second does by chance.
const ENOUGH: f64 = 0.9;
/// Below this rate no core is near its limit.
const LEAST_BPS: f64 = 2e9;

/// Whether the two ends of each stream run on one core.
#[derive(Debug, Default)]
pub(crate) struct Together(AtomicBool);

impl Together {
    #[inline]
    pub(crate) fn load(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn set(&self, together: bool) {
        self.0.store(together, Ordering::Relaxed);
    }
}

/// What is known of the data threads at a check.
pub(crate) struct Seen<'a> {
    /// Of each stream, while its thread runs.
    pub(crate) threads: &'a dyn Fn(usize) -> Option<ThreadId>,
    /// Which core took in the last packet of the first stream.
    pub(crate) incoming: &'a dyn Fn() -> Option<u32>,
    /// What all of them have moved.
    pub(crate) bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Stage {
    /// The threads begin.
    Begins,
    /// It is waited for the start to be over.
    Waits,
    /// From there on, with these bytes, the scheduler's placement counts.
    Measures(u64, u64),
    /// The other placement is in force; the scheduler's moved so many bits a second.
    Settles(f64),
    /// From there on, with these bytes, it counts.
    Tries(f64, u64, u64),
    Over,
}

/// The placement of an end's threads.
#[derive(Debug)]
pub(crate) struct Placing<'a> {
    place: Place,
    pin: Pin,
    cpus: Vec<u32>,
    beside: bool,
    streams: usize,
    together: &'a Together,
    machine: &'a Machine,
    stage: Stage,
    /// What was tried, and what it moved instead of that, in bits a second.
    kept: Option<(String, [f64; 2])>,
}

impl<'a> Placing<'a> {
    /// `lasts_ms`: how long the load lasts, if that is known; `beside`: whether the other end is on this machine; `allowed`: the CPUs that
    /// this process may use now, which somebody may have changed since it began.
    pub(crate) fn new(
        plan: &Placement,
        place: Place,
        beside: bool,
        (streams, lasts_ms): (usize, Option<u64>),
        together: &'a Together,
        (machine, allowed): (&'a Machine, Vec<u32>),
    ) -> Self {
        let chosen = plan.cpus(place);
        // Where the CPUs of one end are chosen, those of the other are others.
        let beside = beside && plan.client_cpus == plan.server_cpus && allowed == machine.cpus;
        let cpus = if chosen.is_empty() { allowed } else { chosen.to_vec() };
        let tries = plan.pin == Pin::Auto && lasts_ms.is_none_or(|ms| ms >= LEAST_MS) && cpus.len() > 1;
        let stage = match chosen.is_empty() {
            true if !tries => Stage::Over,
            true => Stage::Waits,
            false => Stage::Begins,
        };
        let pin = if tries || plan.pin == Pin::List { plan.pin } else { Pin::None };
        Self { place, pin, cpus, beside, streams, together, machine, stage, kept: None }
    }

    fn pin_all(&self, seen: &Seen<'_>, cpus: impl Fn(usize) -> Vec<u32>) -> narrows_sys::Result<()> {
        let mut all = (0..self.streams).filter_map(|index| Some((index, (seen.threads)(index)?)));
        all.try_for_each(|(index, thread)| cpu::pin_thread(thread, &cpus(index)))
    }

    /// They run where the scheduler places them.
    fn release(&self, seen: &Seen<'_>) {
        // A thread that has ended needs no other place.
        let _ = self.pin_all(seen, |_| self.cpus.clone());
        self.together.set(false);
    }

    fn one_each(&self, index: usize) -> Vec<u32> {
        vec![self.cpus[index % self.cpus.len()]]
    }

    /// The cores near the one that takes packets in, without it; empty where that leaves none or all.
    fn near(&self, incoming: Option<u32>) -> Vec<u32> {
        let of = |cpu: u32| self.machine.cpus.iter().position(|it| *it == cpu).map(|at| &self.machine.near[at]);
        let Some(near) = incoming.and_then(of) else { return Vec::new() };
        let [siblings, cache] =
            near.each_ref().map(|it| units::parse_list(it, Placement::MAX_CPUS as usize).unwrap_or_default());
        let others = |it: &&u32| cache.contains(it) && !siblings.contains(it) && Some(**it) != incoming;
        let near: Vec<u32> = self.cpus.iter().filter(others).copied().collect();
        // With two cores the scheduler has no other choice.
        if self.cpus.len() > 2 { near } else { Vec::new() }
    }

    /// Puts the other placement in force; what it is, or `None` where there is no other.
    fn tries(&self, seen: &Seen<'_>) -> Option<String> {
        let (done, words) = if self.beside {
            self.together.set(true);
            let words = "each stream has both its ends on one core of this machine".to_owned();
            (self.pin_all(seen, |index| self.one_each(index)), words)
        } else {
            let near = self.near((seen.incoming)());
            let words = format!("data threads run on {} cores beside the one that takes the packets in", near.len());
            near.first()?;
            (self.pin_all(seen, |_| near.clone()), words)
        };
        if done.is_err() {
            self.release(seen);
        }
        done.ok().map(|()| words)
    }

    /// Called some times in a tenth of a second.
    pub(crate) fn check(&mut self, now_us: u64, seen: &Seen<'_>) {
        let rate = |from_us: u64, from: u64| {
            let passed_us = now_us.saturating_sub(from_us).max(1);
            seen.bytes.saturating_sub(from) as f64 * 8e6 / passed_us as f64
        };
        self.stage = match self.stage {
            Stage::Begins if (0..self.streams).all(|index| (seen.threads)(index).is_some()) => {
                let done = match self.pin {
                    Pin::List => self.pin_all(seen, |index| self.one_each(index)),
                    _ => self.pin_all(seen, |_| self.cpus.clone()),
                };
                match (done, self.pin) {
                    (Ok(()), Pin::Auto) => Stage::Waits,
                    (Ok(()), _) => Stage::Over,
                    (Err(error), _) => {
                        self.kept = Some((format!("data threads run on any CPU: {error}"), [0.0; 2]));
                        Stage::Over
                    }
                }
            }
            Stage::Waits if now_us >= BEGIN_US => Stage::Measures(now_us, seen.bytes),
            Stage::Measures(from_us, from) if now_us >= TRY_US => {
                let before = rate(from_us, from);
                match (before >= LEAST_BPS).then(|| self.tries(seen)).flatten() {
                    Some(words) => {
                        self.kept = Some((words, [before, 0.0]));
                        Stage::Settles(before)
                    }
                    None => Stage::Over,
                }
            }
            Stage::Settles(before) if now_us >= SETTLED_US => Stage::Tries(before, now_us, seen.bytes),
            Stage::Tries(before, from_us, from) if now_us >= END_US => {
                let after = rate(from_us, from);
                if after >= ENOUGH * before {
                    self.kept = self.kept.take().map(|(words, _)| (words, [before, after]));
                } else {
                    self.release(seen);
                    self.kept = None;
                }
                Stage::Over
            }
            other => other,
        };
    }

    /// What there is to remark; `otherwise` says how to choose.
    pub(crate) fn remark(&self, otherwise: &str) -> Option<String> {
        let (words, [before, after]) = self.kept.as_ref()?;
        if *after == 0.0 {
            return (*before == 0.0).then(|| words.clone());
        }
        // The other end says the same.
        if self.beside && self.place == Place::Server {
            return None;
        }
        let (before, after) = (units::bps(*before), units::bps(*after));
        Some(format!("{words}: {after} at first instead of {before}{otherwise}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cpus: u32) -> Machine {
        // Pairs of siblings; four share a cache.
        let near = |cpu: u32| [format!("{},{}", cpu & !1, cpu | 1), format!("{}-{}\n", cpu & !3, cpu | 3)];
        Machine { word: "a".to_owned(), cpus: (0..cpus).collect(), near: (0..cpus).map(near).collect() }
    }

    /// A process that may use all of it.
    fn at(machine: &Machine) -> (&Machine, Vec<u32>) {
        (machine, machine.cpus.clone())
    }

    /// The rates that a load has by the scheduler and as it is tried; what is remarked of it, and how it sits at its end.
    fn run(placing: &mut Placing<'_>, [scheduler_bps, tried_bps]: [f64; 2]) -> Option<String> {
        let mut bytes = 0.0;
        for now_ms in (0..400).step_by(20) {
            let tried = matches!(placing.stage, Stage::Settles(_) | Stage::Tries(..));
            bytes += if tried { tried_bps } else { scheduler_bps } / 8.0 * 0.02;
            let seen = Seen { threads: &|_| None, incoming: &|| Some(5), bytes: bytes as u64 };
            placing.check(now_ms * 1000, &seen);
        }
        placing.remark("")
    }

    #[test]
    fn the_placement_that_moves_more_is_kept_and_a_slow_load_is_left_alone() {
        let (together, machine, auto) = (Together::default(), machine(2), Placement::default());
        let new = |streams, ms| Placing::new(&auto, Place::Client, true, (streams, ms), &together, at(&machine));
        let remark = run(&mut new(2, Some(10_000)), [27e9, 51e9]).expect("it moved more");
        assert!(
            remark.contains("on one core of this machine: 51.0 Gbit/s at first instead of 27.0 Gbit/s"),
            "{remark}"
        );
        assert!(together.load());
        assert_eq!(run(&mut new(3, None), [27e9, 23e9]), None);
        assert!(!together.load());
        assert!(run(&mut new(3, None), [27e9, 28e9]).is_some());
        assert!(together.load());
        together.set(false);
        for (streams, ms, bps) in [(1, Some(10_000), 1e9), (1, Some(500), 27e9)] {
            assert_eq!((run(&mut new(streams, ms), [bps, 2.0 * bps]), together.load()), (None, false));
        }
    }

    #[test]
    fn far_ends_run_beside_the_core_of_the_interrupts() {
        let (together, large, auto) = (Together::default(), machine(8), Placement::default());
        let new = |machine| Placing::new(&auto, Place::Server, false, (1, None), &together, at(machine));
        assert_eq!(new(&large).near(Some(5)), [6, 7]);
        assert_eq!((new(&large).near(None), new(&large).near(Some(99))), (vec![], vec![]));
        let small = machine(2);
        assert_eq!(new(&small).near(Some(1)), Vec::<u32>::new());
        let remark = run(&mut new(&large), [20e9, 30e9]).expect("it moved more");
        assert!(
            remark.starts_with("data threads run on 2 cores beside the one that takes the packets in: 30.0 Gbit/s"),
            "{remark}"
        );
        assert!(!together.load());
    }

    #[test]
    fn a_choice_is_kept_as_it_is() {
        let (together, machine) = (Together::default(), machine(4));
        let chosen =
            |pin, client_cpus: &[u32]| Placement { pin, client_cpus: client_cpus.to_vec(), server_cpus: vec![] };
        let stage =
            |plan: &Placement| Placing::new(plan, Place::Client, true, (1, None), &together, at(&machine)).stage;
        assert_eq!(stage(&chosen(Pin::None, &[])), Stage::Over);
        assert_eq!(stage(&chosen(Pin::None, &[1])), Stage::Begins);
        assert_eq!(stage(&chosen(Pin::List, &[1, 3])), Stage::Begins);
        let plan = chosen(Pin::Auto, &[1, 3]);
        let mut placing = Placing::new(&plan, Place::Client, true, (1, None), &together, at(&machine));
        // The server's threads may be anywhere; so may those of a process that was moved since it began.
        let moved =
            Placing::new(&Placement::default(), Place::Client, true, (1, None), &together, (&machine, vec![0, 1]));
        assert_eq!((placing.beside, moved.beside, moved.cpus), (false, false, vec![0, 1]));
        let thread = std::thread::spawn(|| {
            let seen = |placing: &mut Placing<'_>| {
                let threads = |_| Some(ThreadId(0));
                placing.check(0, &Seen { threads: &threads, incoming: &|| None, bytes: 0 });
            };
            let machine = cpu::machine();
            let (together, last) = (Together::default(), *machine.cpus.last().expect("a CPU"));
            let plan = Placement { pin: Pin::List, client_cpus: vec![last], server_cpus: vec![] };
            let mut placing = Placing::new(&plan, Place::Client, false, (1, None), &together, at(machine));
            seen(&mut placing);
            assert_eq!((cpu::allowed_cpus().ok(), placing.remark("")), (Some(vec![last]), None));
            let plan = Placement { client_cpus: vec![1023], ..plan };
            let mut placing = Placing::new(&plan, Place::Client, false, (1, None), &together, at(machine));
            seen(&mut placing);
            assert!(placing.remark("").expect("no such CPU").contains("run on any CPU"));
        });
        thread.join().expect("its assertions");
        placing.check(0, &Seen { threads: &|_| None, incoming: &|| None, bytes: 0 });
        assert_eq!(placing.stage, Stage::Begins);
    }
}
