//! The search on a machine whose cores all stall now and then, as under firmware interrupts (SMI) or an interrupt storm:
//! several trials per load (MLRsearch) against plain bisection, which trusts a single trial per load.

use super::search::{TRIAL, run, stage};
use crate::demo::StageError;
use narrows_lab::{Row, Watch};
use narrows_model::lab::Impairment;
use narrows_sys::{clock, cpu, thread};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Searches with each method.
const REPETITIONS: u32 = 5;
/// How far a bound may be off.
const OFF: f64 = 0.02;
/// How long the hog occupies all cores each time.
const HOG: Duration = Duration::from_millis(200);
/// Offset between cores, so that a sender keeps running while its receiver is stalled on another core. If all stalled
/// at once, the trial would merely be invalid.
const STAGGER: Duration = Duration::from_millis(50);
/// Time between hogs: from this to twice this, irregularly, so that trials cannot synchronise with it.
const PAUSE: Duration = Duration::from_secs(4);
/// The fractions of its multiples spread evenly without ever repeating.
const GOLDEN_RATIO: f64 = 0.618_033_988_749_894_9;

pub fn verify(watch: &mut dyn Watch) -> Result<(), StageError> {
    let path = Impairment { rate_bps: 200_000_000, queue_packets: 20, delay_us: 500, ..Impairment::default() };
    let truth = path.rate_bps as f64 + 20.0 * 1_538.0 * 8.0 / TRIAL.as_secs_f64();
    let stage = stage(&path)?;
    let (over, began) = (AtomicBool::new(false), clock::now());
    std::thread::scope(|scope| {
        let over = &over;
        for core in 0..cpu::allowed_cpus().map_or(1, |cpus| cpus.len()) {
            scope.spawn(move || hog(began + STAGGER * core as u32, over));
        }
        let rows = (|| {
            let mut strayed = 0_u32;
            for repetition in 0..REPETITIONS {
                for method in ["mlr", "bisection"] {
                    watch.begins(&format!("disturbed search, {method}, repetition {}", repetition + 1));
                    let report = run(&stage, &["--method", method, "--goal", "ndr"])?;
                    let found = report.goals.first().and_then(|goal| goal.lower).map_or(0.0, |load| load.wire_bps);
                    let near = (found / truth - 1.0).abs() <= OFF;
                    strayed += u32::from(!near && method == "bisection");
                    let row = Row {
                        what: format!("disturbed, {method}, repetition {}", repetition + 1),
                        requested: truth / 1e6,
                        measured: found / 1e6,
                        unit: "Mbit/s",
                        tolerance: if method == "mlr" { "within 2 %" } else { "none" },
                        met: near || method != "mlr",
                    };
                    if !watch.row(&row) {
                        return Ok(());
                    }
                }
            }
            watch.row(&Row {
                what: "disturbed, bisection: repetitions that are further off than 2 %".to_owned(),
                requested: 1.0,
                measured: f64::from(strayed),
                unit: "of 5",
                tolerance: "at least",
                met: strayed > 0,
            });
            Ok(())
        })();
        over.store(true, Ordering::Relaxed);
        rows
    })
}

/// Holds a core now and then, before every ordinary thread where that is allowed.
fn hog(began: Instant, over: &AtomicBool) {
    let _ = thread::set_real_time();
    let (mut next, mut fraction) = (began, 0.0);
    while !over.load(Ordering::Relaxed) {
        fraction = f64::fract(fraction + GOLDEN_RATIO);
        next += PAUSE.mul_f64(1.0 + fraction);
        while clock::now() < next && !over.load(Ordering::Relaxed) {
            clock::sleep(Duration::from_millis(20).min(next.saturating_duration_since(clock::now())));
        }
        while clock::now() < next + HOG {
            std::hint::spin_loop();
        }
    }
}
