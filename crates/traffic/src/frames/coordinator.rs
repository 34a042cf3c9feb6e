//! Runs the workers, each on its own CPU, and samples their counts.

use super::cpu_slot::CpuSlot;
use super::error::FrameError;
use super::samples::Samples;
use super::tally::Counts;
use super::worker::Crew;
use crate::Stop;
use narrows_model::load::frames::FrameInterval;
use narrows_sys::cpu::ThreadId;
use narrows_sys::{clock, cpu, thread};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// How a trial ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ended {
    AsPlanned,
    Stopped,
    Failed(String),
}

/// What the workers did.
#[derive(Debug)]
pub(super) struct Done {
    pub(super) counts: Vec<Counts>,
    /// All samples but the last one.
    pub(super) intervals: Vec<FrameInterval>,
    pub(super) ended: Ended,
    /// Since the first frame was due.
    pub(super) end_us: u64,
}

/// How much before ordinary programs a worker runs, where that is allowed.
const NICE: i32 = -15;
/// How often the interface is checked: an XDP program continues after it is gone.
const DEVICE_CHECK_NS: u64 = 200_000_000;
/// How often the workers are checked when they may be done …
const STEP: Duration = Duration::from_millis(5);
const READY_STEP: Duration = Duration::from_millis(1);
/// … and before: each check interrupts a worker's CPU for a moment.
const SELDOM: Duration = Duration::from_millis(50);

/// How long to wait for workers: the kernel first allocates the pages of live frames, which takes tens of milliseconds. With a
/// fixed start time, a late worker would never send its first frames.
const GET_READY: Duration = Duration::from_secs(3);
/// Between the announcement of the start and the start.
const LEAD_NS: u64 = 2_000_000;

/// The workers are not done before `not_before` has passed since their start.
pub(super) fn run(
    crew: Crew,
    samples: &Samples<'_>,
    interval_ms: u64,
    not_before: Duration,
    stop: &Stop,
    on_sample: &mut impl FnMut(FrameInterval),
) -> Result<Done, FrameError> {
    let cpus = cpu::allowed_cpus()?;
    // Raised by a worker that fails and where a thread does not start, so that the others end too.
    let over = Arc::new(AtomicBool::new(false));
    thread::interruptible()?;
    let (mut meters, mut threads) = (Vec::new(), Vec::new());
    let names: Vec<Arc<OnceLock<ThreadId>>> = crew.workers.iter().map(|_| Arc::default()).collect();
    let slots: Vec<Option<CpuSlot>> = crew.workers.iter().map(|_| CpuSlot::take(&cpus)).collect();
    for (number, (mut worker, meter)) in (0_u32..).zip(crew.workers) {
        meters.push(meter);
        let (stop, end) = (stop.clone(), Arc::clone(&over));
        let cpu = slots[number as usize].as_ref().map(CpuSlot::cpu);
        let name = Arc::clone(&names[number as usize]);
        let body = move || -> Result<(), FrameError> {
            let _ = name.set(cpu::this_thread());
            cpu::name_this_thread(&format!("frames-{number}"));
            // Before ordinary programs, but without starving them: frames that this delays too long are unsent.
            let _ = thread::set_nice(NICE);
            if let Some(cpu) = cpu {
                cpu::pin(&[cpu])?;
            }
            let result = (|| {
                while !stop.is_set() && !end.load(Ordering::Relaxed) && worker.work()? {}
                Ok(())
            })();
            if result.is_err() {
                end.store(true, Ordering::Relaxed);
            }
            result
        };
        match std::thread::Builder::new().name(format!("frames-{number}")).spawn(body) {
            Ok(thread) => threads.push(thread),
            Err(source) => {
                over.store(true, Ordering::Relaxed);
                return Err(end_all(&threads, &names, FrameError::Thread { worker: number, source }));
            }
        }
    }
    let counts = || -> Vec<Counts> { meters.iter().map(|meter| meter.counts()).collect() };
    let waited = clock::now();
    while !meters.iter().all(|meter| meter.ready())
        && !threads.iter().any(JoinHandle::is_finished)
        && !stop.is_set()
        && waited.elapsed() < GET_READY
    {
        clock::sleep(READY_STEP);
    }
    let start_ns = clock::monotonic_ns() + LEAD_NS;
    if let Some(error) = meters.iter().find_map(|meter| meter.start(start_ns).err()) {
        over.store(true, Ordering::Relaxed);
        return Err(end_all(&threads, &names, error.into()));
    }
    // Before the start nothing has passed.
    let since_ns = || clock::monotonic_ns().saturating_sub(start_ns);
    let interval_ns = interval_ms * 1_000_000;
    let mut intervals = Vec::new();
    let mut next_ns = interval_ns;
    let (mut next_check_ns, mut broken) = (DEVICE_CHECK_NS, None);
    while threads.iter().any(|thread| !thread.is_finished()) {
        let passed_ns = since_ns();
        let left = not_before.saturating_sub(Duration::from_nanos(passed_ns));
        let next_sample = Duration::from_nanos(next_ns.saturating_sub(passed_ns));
        clock::sleep(left.clamp(STEP, SELDOM).min(next_sample));
        let all = stop.is_set() || over.load(Ordering::Relaxed);
        for ((thread, name), meter) in threads.iter().zip(&names).zip(&meters) {
            if !thread.is_finished()
                && (all || meter.done())
                && let Some(name) = name.get()
            {
                thread::interrupt(*name);
            }
        }
        let now_ns = since_ns();
        if now_ns >= next_check_ns && broken.is_none() {
            next_check_ns = now_ns + DEVICE_CHECK_NS;
            broken = samples.out_of_order();
            over.fetch_or(broken.is_some(), Ordering::Relaxed);
        }
        if now_ns >= next_ns {
            let seen = samples.during(now_ns, &counts());
            on_sample(seen);
            intervals.push(seen);
            next_ns = (now_ns / interval_ns + 1) * interval_ns;
        }
    }
    let end_us = since_ns() / 1000;
    let mut ended = if stop.is_set() { Ended::Stopped } else { Ended::AsPlanned };
    for thread in threads {
        match thread.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => ended = Ended::Failed(error.to_string()),
            Err(_) => ended = Ended::Failed("a worker failed".to_owned()),
        }
    }
    // The kernel's error alone does not say that the interface is gone.
    if matches!(ended, Ended::Failed(_)) {
        broken = broken.or_else(|| samples.out_of_order());
    }
    if let Some(why) = broken {
        ended = Ended::Failed(why);
    }
    Ok(Done { counts: counts(), intervals, ended, end_us })
}

/// Waits for workers that were stopped.
fn end_all(
    threads: &[JoinHandle<Result<(), FrameError>>],
    names: &[Arc<OnceLock<ThreadId>>],
    why: FrameError,
) -> FrameError {
    while threads.iter().any(|thread| !thread.is_finished()) {
        names.iter().filter_map(|name| name.get()).for_each(|name| thread::interrupt(*name));
        clock::sleep(STEP);
    }
    why
}
