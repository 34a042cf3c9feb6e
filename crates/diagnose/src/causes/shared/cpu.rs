//! What causes of a slow host share: whether a core is full, and whether the other end waits for the application.

use crate::causes::shared::tcp::{ceiling_at, who};
use crate::causes::shared::words::counter;
use crate::evidence::cores::CoreShare;
use crate::evidence::tcp::{EndView, TcpEvidence};
use crate::experiments::tcp::AWAKE_CORES;
use crate::judge::{EXTRAPOLATION, Evidence as _};
use crate::role::Role;
use narrows_model::{Ceiling, Method, Witness, keys, words::units};

/// The ceiling of a load that uses this part of the CPU time that it can get. What it costs at a small part of that is no ceiling:
/// larger loads come in larger batches, which cost less per byte.
pub(crate) fn cpu_ceiling(
    id: &str,
    evidence: &TcpEvidence,
    role: Role,
    part: f64,
    spread: [f64; 2],
    how: String,
) -> Option<Ceiling> {
    let bps = evidence.goodput_bps() / part.min(1.0);
    (part * EXTRAPOLATION >= 1.0).then(|| ceiling_at(id, evidence, role, bps, spread, Method::Inferred, how))?
}

/// A data thread or a softirq core is full from here on.
const FULL: f64 = 0.85;

/// How much of the time the other side of an application's socket waited for it: it ran empty while the writer did something else, or
/// full while the reader did. `None` where it did not, or that is not known.
pub(crate) fn peer_waits(evidence: &TcpEvidence, role: Role) -> Option<(f64, Witness)> {
    let (share, what) = match role {
        Role::Sender => (evidence.writer_behind()?, "the socket buffer had free space"),
        _ => (evidence.held_by_window()?, "the sender waited for the receive window"),
    };
    (share >= 0.2).then(|| (share, counter(format!("{what} {} of the time", units::percent(share)))))
}

/// The full core of an end: that of its busiest data thread, or the one that processes packets.
pub(crate) fn full_core(evidence: &TcpEvidence, role: Role) -> Option<(f64, Witness)> {
    let thread = evidence.end(role)?.thread_share.map(|share| (share, "the busiest data thread"));
    let softirq = evidence.softirq_core(role).map(|core| (core.softirq, "packet processing"));
    let (share, what) = [thread, softirq].into_iter().flatten().max_by(|a, b| a.0.total_cmp(&b.0))?;
    (share >= FULL).then(|| {
        (share, counter(format!("{what} of {} took {} of a core", who(evidence, role), units::percent(share))))
    })
}

/// BPF programs that take less of a core cost less than a seventh of the goodput: no more than what is called healthy
/// ([`crate::evidence::tcp::AT_CAPACITY`]).
pub(crate) const BPF_WORTH: f64 = 0.15;

/// What BPF programs take of the core that is full.
pub(crate) struct BpfShare<'a> {
    /// How full the core is; of what.
    pub(crate) full: f64,
    pub(crate) what: &'static str,
    /// Their part of it: at least, likely, at most. `None` where their time could not be read.
    pub(crate) of_core: Option<[f64; 3]>,
    pub(crate) end: &'a EndView,
}

/// The views of an end, in the baseline and in the experiment that shows what an idle core hides, with the length of each in seconds.
pub(crate) fn views(evidence: &TcpEvidence, role: Role) -> impl Iterator<Item = (&EndView, f64)> {
    let views = [Some(&evidence.base), evidence.made(&AWAKE_CORES)].into_iter().flatten();
    views.map(move |view| (if role == Role::Sender { &view.sender } else { &view.receiver }, view.whole_s))
}

/// Whether a key is of a program of XDP: `<family><id>.<type>.<name>`.
fn is_xdp(key: &str, family: &str) -> bool {
    key.strip_prefix(family).and_then(|name| name.split('.').nth(1)) == Some("xdp")
}

/// Cores that BPF programs kept busy: all, and those of XDP, which see received packets alone.
fn cores_of_bpf((end, whole_s): (&EndView, f64)) -> Option<[f64; 2]> {
    let family = keys::BPF_PROGRAM_RUN_US.name.trim_end_matches('*');
    let xdp = end.counts.iter().filter(|(key, _)| is_xdp(key, family)).map(|(_, us)| *us).sum();
    let [all, xdp]: [u64; 2] = [*end.counts.get(keys::BPF_RUN_US.name)?, xdp];
    Some([all, xdp.min(all)].map(|us| us as f64 / 1e6 / whole_s.max(1e-3)))
}

/// Cores that BPF programs of a host kept busy; `None` where that is not counted.
pub(crate) fn bpf_cores(evidence: &TcpEvidence, role: Role) -> Option<f64> {
    views(evidence, role).filter_map(cores_of_bpf).map(|[all, _]| all).reduce(f64::max)
}

/// What BPF programs take of the fullest core of a host, where one is full of the kernel's work or of the data thread.
pub(crate) fn bpf_share(evidence: &TcpEvidence, role: Role) -> Option<BpfShare<'_>> {
    views(evidence, role).filter_map(|view| share_in(evidence, role, view)).max_by(|a, b| a.full.total_cmp(&b.full))
}

/// Programs run in the kernel, so as much of their time is likely on a core as of the kernel's. For a full thread only what fits nowhere
/// else counts, since most programs run where packets are received.
fn share_in<'a>(evidence: &TcpEvidence, role: Role, (end, whole_s): (&'a EndView, f64)) -> Option<BpfShare<'a>> {
    let kernel = |core: &CoreShare| core.softirq + core.system;
    let core = end.cores.iter().max_by(|a, b| kernel(a).total_cmp(&kernel(b)))?;
    let packets = kernel(core);
    // A core that is full of system calls is the thread's where one fills a core.
    let calls = core.softirq < 0.5 * packets;
    let thread = end.thread_share.filter(|share| *share > packets || *share >= FULL && calls);
    let full = thread.unwrap_or(packets);
    let what = if thread.is_some() { "the busiest data thread" } else { "packet processing" };
    let elsewhere = (end.cores.iter().map(kernel).sum::<f64>() - full).max(0.0);
    let of_core = cores_of_bpf((end, whole_s)).map(|[run, xdp]| {
        let own = if role == Role::Receiver { xdp * own_part(evidence, end) } else { 0.0 };
        let parts = match thread {
            Some(_) => [run - xdp - elsewhere, run - xdp - elsewhere, run - xdp],
            None => [(run - elsewhere).max(own), (run * full / (full + elsewhere).max(1e-6)).max(own), run],
        };
        parts.map(|part| part.clamp(0.0, full))
    });
    (full >= FULL).then_some(BpfShare { full, what, of_core, end })
}

/// What part of the runs of XDP programs was for the packets of this connection, at least: all of them are received by one core.
fn own_part(evidence: &TcpEvidence, end: &EndView) -> f64 {
    let family = keys::BPF_PROGRAM_RUNS.name.trim_end_matches('*');
    let runs: u64 = end.counts.iter().filter(|(key, _)| is_xdp(key, family)).map(|(_, runs)| *runs).max().unwrap_or(0);
    let sent = evidence.base.loss_whole.map_or(0, |loss| loss.sent);
    if evidence.base.streams == 1 && runs > 0 { (sent as f64 / runs as f64).min(1.0) } else { 0.0 }
}

/// That BPF programs take so much of the full core that they are why it is full.
pub(crate) fn bpf_explains(evidence: &TcpEvidence, role: Role) -> Option<String> {
    let [_, part, _] = bpf_share(evidence, role)?.of_core?;
    (part >= BPF_WORTH).then(|| format!("BPF programs took {} of that core", units::percent(part)))
}
