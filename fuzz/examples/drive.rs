//! Runs fuzz targets with random changes of their corpus, on any compiler, and counts: `drive SECONDS [TARGET...]`. An input that breaks a
//! parser is kept in `artifacts/TARGET/`. The exit code is 1 if there was one.

use narrows_fuzz::{Mutator, TARGETS, Target};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Inputs between two looks at the clock.
const BATCH: u64 = 64;
/// Broken inputs that are kept of a target.
const MAX_KEPT: u64 = 8;

fn seeds(of: &Path) -> Vec<Vec<u8>> {
    let Ok(entries) = std::fs::read_dir(of) else { return Vec::new() };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.iter().filter_map(|path| std::fs::read(path).ok()).collect()
}

/// Three of each list of a run: a change meets a field rather than the thousandth sample, and ten times as many are tried.
fn shortened(run: &[u8]) -> Vec<u8> {
    fn cut(value: &mut serde_json::Value) {
        match value {
            serde_json::Value::Array(items) => {
                items.truncate(3);
                items.iter_mut().for_each(cut);
            }
            serde_json::Value::Object(fields) => fields.values_mut().for_each(cut),
            _ => {}
        }
    }
    let Ok(mut value) = serde_json::from_slice(run) else { return run.to_vec() };
    cut(&mut value);
    value.to_string().into_bytes()
}

/// Runs a target for a time; the inputs, and those that broke it.
fn drive(target: &Target, time: Duration, seed: u64) -> (u64, u64) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut corpus = seeds(&root.join("corpus").join(target.name));
    if target.name == "run" {
        corpus.extend(seeds(&root.join("../fixtures/runs")).iter().map(|run| shortened(run)));
    }
    let mut mutator = Mutator::new(corpus, seed);
    let (mut inputs, mut broken) = (0, 0);
    let start = Instant::now();
    while start.elapsed() < time {
        for _ in 0..if target.tries < 100 { 1 } else { BATCH } {
            inputs += 1;
            let input = mutator.next_input();
            if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
                broken += 1;
                let directory = root.join("artifacts").join(target.name);
                if broken <= MAX_KEPT && std::fs::create_dir_all(&directory).is_ok() {
                    let _ = std::fs::write(directory.join(format!("drive-{seed:x}-{inputs}")), input);
                }
            }
        }
    }
    (inputs, broken)
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(seconds) = words.next().and_then(|word| word.parse().ok()) else {
        eprintln!("usage: drive SECONDS [TARGET...]");
        return ExitCode::from(2);
    };
    let named: Vec<String> = words.collect();
    if let Some(unknown) = named.iter().find(|name| TARGETS.iter().all(|target| target.name != **name)) {
        eprintln!("unknown target {unknown}");
        return ExitCode::from(2);
    }
    let seed = SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_secs());
    // The first message of each is enough.
    let said = std::sync::atomic::AtomicU32::new(0);
    set_hook(Box::new(move |panic| {
        if said.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 20 {
            eprintln!("{panic}");
        }
    }));
    let mut all = 0;
    for target in TARGETS.iter().filter(|target| named.is_empty() || named.iter().any(|name| name == target.name)) {
        let (inputs, broken) = drive(target, Duration::from_secs(seconds), seed);
        all += broken;
        println!(
            "{:<16} {inputs:>12} inputs {broken:>4} crashes{}",
            target.name,
            if target.strangers { "   reached by strangers" } else { "" }
        );
    }
    ExitCode::from(u8::from(all > 0))
}
