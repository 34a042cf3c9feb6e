//! How fast the store answers with many runs: `make store-bench`. The store is made in the state directory if it is empty.
//!
//! Arguments: the number of runs (100,000), and bytes of content per run (2,000).

use narrows_model::Unit;
use narrows_model::run::history::{Headline, StoredRun};
use narrows_runner::stored::{self, Filter, maintenance};
use narrows_sys::clock;

/// Pairs of hosts; the first has a tenth of the runs.
const SERVERS: u64 = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1).map(|word| word.parse::<u64>());
    let runs = words.next().transpose()?.unwrap_or(100_000);
    let bytes = words.next().transpose()?.unwrap_or(2_000);
    let mut store = stored::store()?;
    let there = store.count(&Filter::default())?;
    if there == 0 {
        let begun = clock::now();
        store.put_all((0..runs).map(|k| (entry(k), narrows_store::KIND_OF_RUNS, content(k, bytes))))?;
        println!("{runs} runs written in {:.1} s", begun.elapsed().as_secs_f64());
    }
    let size = std::fs::metadata(store.path())?.len();
    println!("{} MB, {} bytes a run", size / 1_000_000, size / runs.max(1));
    drop(store);
    for (what, host, offset) in [
        ("history, first page", None, 0),
        ("history, page at 50,000", None, 50_000),
        ("history --host s0", Some("s0"), 0),
        ("history --host s7", Some("s7"), 0),
        ("history --host c", Some("c"), 0),
        ("history --host nosuch", Some("nosuch"), 0),
    ] {
        let begun = clock::now();
        let store = stored::store()?;
        let filter = Filter { host: host.map(str::to_owned), ..Filter::default() };
        let page = maintenance::page(&store, &filter, offset, 50, None)?;
        println!("{what}: {} of {} runs in {:.1} ms", page.runs.len(), page.total, begun.elapsed().as_secs_f64() * 1e3);
    }
    let store = stored::store()?;
    let begun = clock::now();
    let filter = Filter { host: Some("s0".to_owned()), ..Filter::default() };
    let report = maintenance::trend(&store, &filter, None, 0.01, stored::OWN)?;
    for series in &report.series {
        println!(
            "trend of {} runs: {} changes in {:.2} s",
            series.points.len(),
            series.changes.len(),
            begun.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

/// One run an hour; every tenth is of the first server, whose goodput steps by 5 % each 2,000 of its runs.
fn entry(k: u64) -> StoredRun {
    let (server, n) = if k.is_multiple_of(10) { (0, k / 10) } else { (1 + k % (SERVERS - 1), k) };
    let noise = (k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f64 / (1u64 << 24) as f64 - 0.5;
    let level = if n / 2_000 % 2 == 0 { 1.0 } else { 0.95 };
    StoredRun {
        id: format!("run-{k:08}"),
        started_unix_us: 1_500_000_000_000_000 + k * 3_600_000_000,
        who: "ann".into(),
        client: "c".into(),
        server: format!("s{server}"),
        server_name: format!("s{server}"),
        family: "ipv4".into(),
        command: "diagnose".into(),
        plan: "0123456789ab".into(),
        tags: if k.is_multiple_of(100) { vec!["weekly".into()] } else { vec![] },
        figures: vec![
            Headline {
                name: "goodput up".into(),
                value: 1e9 * level * (1.0 + 0.02 * noise),
                unit: Unit::BitsPerSecond,
            },
            Headline { name: "idle RTT".into(), value: 35_000.0, unit: Unit::Microseconds },
        ],
        verdict: "healthy".into(),
        made_by: "narrows 0.1.0".into(),
        raw_bytes: 0,
        stored_bytes: 0,
    }
}

/// Content that does not compress below half.
fn content(k: u64, bytes: u64) -> Vec<u8> {
    let mut state = k;
    let digits = (0..bytes * 2).map(|_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        char::from(b"0123456789abcdef"[(state >> 60) as usize])
    });
    format!("{{\"text\":\"{}\"}}", digits.collect::<String>()).into_bytes()
}
