//! A fleet in simulated time on the real scheduler, controller and store: how long decisions take, and what they take of memory and disk. It
//! fails where they take more than is promised.
//!
//!     cargo run --release -p narrows-store --example fleet -- [HOSTS [SITES [DAYS [STORE [mesh]]]]]
//!
//! `mesh`: each host probes each other one once a day, and the days end now; the fleet's file is beside the store, so that a controller can show them.

use narrows_fleet::control::{Control, Has};
use narrows_fleet::plan::Fleet;
use narrows_fleet::protocol::{Admits, Agent, Found, Order, Outcome, Poll, Settings, What};
use narrows_fleet::{cost, truth::Truth};
use narrows_model::run::mesh::{MeshPath, MeshState};
use narrows_store::Store;
use narrows_sys::{clock, files};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};

const BEGIN_MS: u64 = 1_700_000_000_000;
const DAY_MS: u64 = 86_400_000;
/// An agent without work speaks so often.
const SPEAKS_S: u64 = 50;

/// An agent: what it has, and what it found.
#[derive(Default)]
struct Stub {
    working: BTreeMap<u64, Vec<Order>>,
    outcomes: Vec<Outcome>,
    admits: Admits,
}

/// How long decisions took, in microseconds.
#[derive(Default)]
struct Times(Vec<u32>);

impl Times {
    fn took<T>(&mut self, what: impl FnOnce() -> T) -> T {
        let began = clock::now();
        let done = what();
        self.0.push(u32::try_from(clock::micros_since(began)).unwrap_or(u32::MAX));
        done
    }

    /// The median, and in words what most of them, and the longest one, took.
    fn words(&mut self) -> (u32, String) {
        self.0.sort_unstable();
        let at = |part: f64| self.0.get((self.0.len() as f64 * part) as usize).or(self.0.last()).copied().unwrap_or(0);
        let [middle, most, longest] = [0.5, 0.99, 1.0].map(at);
        (middle, format!("{} times; {middle} us (median), {most} us (99 %), {longest} us (most)", self.0.len()))
    }
}

/// The file of the fleet.
fn file(hosts: usize, sites: usize, is_mesh: bool) -> String {
    let hosts: String =
        (0..hosts).map(|nth| format!("hosts.h{nth:06} = {{ group = 's{:03}' }}\n", nth % sites)).collect();
    let (design, every) = if is_mesh { ("mesh", "1d") } else { ("regular", "30m") };
    format!(
        "name = 'simulated'\n{hosts}[[mesh]]\nname = 'sites'\ndesign = 'representatives'\n[[mesh.test]]\nkind = 'load'\nevery = '1h'\n\
         [[mesh]]\nname = 'all'\ndesign = '{design}'\n[[mesh.test]]\nkind = 'probe'\nevery = '{every}'\n"
    )
}

fn found(what: What) -> Found {
    match what {
        What::Probe { .. } => Found::Probe(MeshPath {
            rtt_us: Some([91.5, 101.25, 120.0]),
            packets: Some([43, 0, 0]),
            ..MeshPath::default()
        }),
        _ => Found::Load(MeshState::Measured {
            goodput_bps: 9.4e8,
            retransmits: Some(12),
            busy: [Some(0.21), Some(0.34)],
        }),
    }
}

fn exchange<T: Truth>(control: &mut Control<'_, T>, stub: &mut Stub, host: usize, now_ms: u64) -> Result<(), T::Error> {
    let word = str::to_owned;
    let agent = Agent { version: word("1"), port: 5221, fingerprint: word("f"), stamp: 5222, started: word("s") };
    let outcomes: Vec<Outcome> = stub.outcomes.iter().take(64).cloned().collect();
    let working = stub.working.values().flatten().map(|it| it.ticket.clone());
    let working = working.chain(stub.outcomes.iter().map(|it| it.ticket.clone())).collect();
    let poll =
        Poll { agent, outcomes, working, admitted: stub.admits.version, clock: None, settings: Settings::default() };
    let from = IpAddr::from([10, (host >> 16) as u8, (host >> 8) as u8, host as u8]);
    let Some((has, taken)): Option<(Has, Vec<_>)> = control.poll(host, Some(from), poll, now_ms)? else {
        return Ok(());
    };
    stub.outcomes.retain(|it| !taken.contains(&it.ticket));
    let Some(reply) = control.reply(host, &has, &|_| "s".to_owned(), now_ms) else { return Ok(()) };
    if let Some(admits) = reply.admits {
        stub.admits = admits;
    }
    for order in reply.orders {
        stub.working.entry(now_ms + order.in_ms + order.lasts_ms).or_default().push(order);
    }
    Ok(())
}

fn megabytes(bytes: u64) -> String {
    format!("{:.0} MB", bytes as f64 / 1e6)
}

/// The most memory that this process had so far, kB.
fn peak_kb() -> Result<u64, Box<dyn std::error::Error>> {
    let status = files::read_text(Path::new("/proc/self/status"))?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).ok_or("no VmHWM")?;
    Ok(peak.trim().trim_end_matches(" kB").parse()?)
}

fn size(store: &Path) -> u64 {
    files::read_text(Path::new("/proc/self/io")).map_or(0, |_| std::fs::metadata(store).map_or(0, |it| it.len()))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args().skip(1);
    let mut number = |usual: usize| words.next().map_or(Ok(usual), |word| word.parse::<usize>());
    let (hosts, sites, days) = (number(5_000)?, number(40)?, number(7)?);
    let store = words.next().map_or_else(|| PathBuf::from("target/fleet-simulated.db"), PathBuf::from);
    let is_mesh = words.next().is_some_and(|word| word == "mesh");
    let text = file(hosts, sites, is_mesh);
    let fleet = Fleet::read(&text)?;
    let begin_ms = if is_mesh { (clock::unix_us() / 1_000).saturating_sub(days as u64 * DAY_MS) } else { BEGIN_MS };
    let checked = cost::check(&fleet);
    let promised: u64 = checked.tests.iter().map(|it| it.stored_bytes_a_day).sum();
    let planned: u64 = checked.tests.iter().map(|it| it.tests_a_day).sum();
    println!(
        "{hosts} hosts in {sites} sites, {days} days: {planned} tests and {} in the store a day",
        megabytes(promised)
    );
    let began = clock::now();
    let mut opened = Store::open(&store)?;
    let before = size(&store);
    files::write_whole(&store.with_extension("toml"), text.as_bytes(), 0o600)?;
    let mut control = Control::new(&fleet, opened.tests_of(&fleet), begin_ms);
    let mut stubs: Vec<Stub> = (0..hosts).map(|_| Stub::default()).collect();
    let mut ready: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
    let (mut decisions, mut looks, mut reported) = (Times::default(), Times::default(), 0);
    for second in 0..days as u64 * 86_400 {
        let now_ms = begin_ms + second * 1_000;
        reported += looks.took(|| control.tick(now_ms))?.len();
        let mut turn = control.changed();
        turn.extend((0..hosts).skip((second % SPEAKS_S) as usize).step_by(SPEAKS_S as usize));
        while let Some(entry) = ready.first_entry().filter(|it| *it.key() <= now_ms) {
            for host in entry.remove() {
                let stub = &mut stubs[host];
                let later = stub.working.split_off(&(now_ms + 1));
                let over = std::mem::replace(&mut stub.working, later).into_values().flatten();
                stub.outcomes.extend(over.map(|it| Outcome { found: found(it.what), ticket: it.ticket }));
                turn.insert(host);
            }
        }
        for host in turn {
            decisions.took(|| exchange(&mut control, &mut stubs[host], host, now_ms))?;
            if let Some((at, _)) = stubs[host].working.first_key_value() {
                ready.entry(*at).or_default().insert(host);
            }
            if !stubs[host].outcomes.is_empty() {
                ready.entry(now_ms + 1_000).or_default().insert(host);
            }
        }
        if (second + 1) % 86_400 == 0 {
            println!(
                "day {}: {} s of real time; at most {} of memory; the store has {}",
                (second + 1) / 86_400,
                began.elapsed().as_secs(),
                megabytes(peak_kb()? * 1_024),
                megabytes(size(&store) - before)
            );
        }
    }
    let (middle_us, words) = decisions.words();
    println!("decisions: {words}");
    println!("looks at what is due: {}", looks.words().1);
    for ((mesh, _), counts) in control.counts() {
        println!(
            "{}: {} done, {} failed, {} missed",
            fleet.meshes[mesh].name, counts.done, counts.failed, counts.missed
        );
    }
    let (stored, promised) = (size(&store) - before, promised * days as u64);
    println!("{reported} reported; the store has {}, promised {}", megabytes(stored), megabytes(promised));
    let limits = [
        ("a decision takes more than 1 ms (median)", middle_us > 1_000),
        ("more than 2 GiB of memory", peak_kb()? > 2 << 20),
        ("the store is not within 10 % of what is promised", stored.abs_diff(promised) * 10 > promised),
    ];
    let broken: Vec<&str> = limits.into_iter().filter(|(_, is)| *is).map(|(what, _)| what).collect();
    // A mesh of all hosts is more than a day's tests: what is missed takes no place in the store.
    if broken.is_empty() || is_mesh { Ok(()) } else { Err(broken.join("; ").into()) }
}
