//! The causes: one file each, one line each in the table.
//!
//! A cause's file holds its documentation (what it is, how it shows, what it is mistaken for and what separates them,
//! the fix, the source), its rule and its tests.

use crate::evidence::tcp::Evidence;
use crate::experiments::Experiment;
use crate::judge::assessment::Assessment;
use crate::role::Role;
use narrows_model::{Ceiling, Command, Fix, Key, Method, Rejected, Setting, Witness, words::units};

/// A limit that narrows can name.
pub struct Cause {
    /// The public id; it never changes its meaning.
    pub id: &'static str,
    /// One sentence for a reader who does not know the word.
    pub about: &'static str,
    /// Where it can be.
    pub roles: &'static [Role],
    /// The facts that its rule reads, with the unit that it expects.
    pub needs: &'static [Key],
    /// Goodput under this limit alone; `None` where it cannot be given a value.
    pub ceiling: fn(&Evidence<'_>, Role) -> Option<Ceiling>,
    /// Whether the dynamic evidence supports it.
    pub assess: fn(&Evidence<'_>, Role) -> Assessment,
    /// What it is mistaken for; the other cause's own words against itself are the reason given.
    pub look_alikes: &'static [&'static str],
    /// What to do.
    pub fix: fn(&Evidence<'_>, Role) -> Fix,
    /// Whether a path that this binds is healthy.
    pub healthy: bool,
    /// Among causes that testify alike the more specific one goes first: higher is more specific.
    pub rank: u8,
}

/// The table drives the diagnosis, `narrows list causes` and the manual.
macro_rules! causes {
    ($($module:ident),* $(,)?) => {
        $(pub mod $module;)*
        /// Every cause.
        pub static TABLE: &[&Cause] = &[$(&$module::CAUSE),*];
    };
}

causes! {
    app_core_saturated,
    congestion_control,
    link_speed,
    local_shaper,
    mtu_mismatch,
    offloads_off,
    pacing_cap,
    path_capacity,
    path_policer,
    path_shaper,
    pcie_width,
    qdisc_drop,
    random_loss,
    receiver_app_slow,
    sack_off,
    sender_app_slow,
    softirq_core_saturated,
    tcp_receive_buffer_fixed,
    tcp_receive_window,
    tcp_send_buffer,
    tcp_send_buffer_fixed,
    tester_limited,
    window_scaling_off,
}

/// Each cause at each role that it can have.
pub fn every_role() -> impl Iterator<Item = (&'static Cause, Role)> {
    TABLE.iter().flat_map(|cause| cause.roles.iter().map(move |role| (*cause, *role)))
}

/// The cause of that id.
#[must_use]
pub fn by_id(id: &str) -> Option<&'static Cause> {
    TABLE.iter().find(|cause| cause.id == id).copied()
}

// What the rules share: small builders, so that a cause's file reads as its rule.

pub(crate) fn witness(kind: &str, says: impl Into<String>) -> Witness {
    Witness { kind: kind.to_owned(), says: says.into() }
}

pub(crate) fn counter(says: impl Into<String>) -> Witness {
    witness("counter", says)
}

fn parameter(says: impl Into<String>) -> Witness {
    witness("parameter", says)
}

fn experiment(says: impl Into<String>) -> Witness {
    witness("experiment", says)
}

pub(crate) fn contradicts(why: impl Into<String>) -> Assessment {
    Assessment::Contradicts(why.into())
}

pub(crate) fn cannot_tell(why: impl Into<String>) -> Assessment {
    Assessment::CannotTell { why: why.into(), ask: None }
}

fn ask(experiment: Experiment, why: impl Into<String>) -> Assessment {
    Assessment::CannotTell { why: why.into(), ask: Some(experiment) }
}

/// A ceiling with a relative interval around its value.
fn ceiling_at(
    id: &str,
    evidence: &Evidence<'_>,
    role: Role,
    bps: f64,
    [low, high]: [f64; 2],
    method: Method,
    how: String,
) -> Option<Ceiling> {
    (bps.is_finite() && bps > 0.0).then(|| Ceiling {
        id: id.to_owned(),
        at: evidence.place(role),
        bps,
        interval_bps: [bps * low, bps * high],
        method,
        how,
    })
}

/// A ceiling of a window that is in flight as a whole: at best one window each smallest RTT; where the window leaves
/// as one burst the RTT grows by the time that the burst takes on the slower link. Windows of a few super-packets are
/// also rounded down to whole ones.
fn window_ceiling(
    id: &str,
    evidence: &Evidence<'_>,
    role: Role,
    window_bytes: f64,
    method: Method,
    how: String,
) -> Option<Ceiling> {
    let best = evidence.window_bps(window_bytes)?;
    let worst = link_bps(evidence).map_or(0.8 * best, |link| best / (1.0 + best / link));
    // Acknowledgements soon space a window out that takes a small part of the round trip; a large part stays a burst.
    let likely = best / (1.0 + 0.5 * (best / worst - 1.0).min(0.5));
    let mut ceiling = ceiling_at(id, evidence, role, likely, [1.0, 1.0], method, how)?;
    ceiling.interval_bps = [worst.min(0.9 * likely), best];
    Some(ceiling)
}

fn no_ceiling(_: &Evidence<'_>, _: Role) -> Option<Ceiling> {
    None
}

/// A window or buffer that holds the sender back at the very rate that it allows.
fn held_back(evidence: &Evidence<'_>) -> Option<String> {
    let (window, buffer) = (evidence.held_by_window()?, evidence.held_by_buffer()?);
    [
        (&tcp_receive_window::CAUSE, Role::Receiver, window),
        (&tcp_receive_buffer_fixed::CAUSE, Role::Receiver, window),
        (&tcp_send_buffer::CAUSE, Role::Sender, buffer),
        (&tcp_send_buffer_fixed::CAUSE, Role::Sender, buffer),
    ]
    .into_iter()
    .filter(|(_, _, held)| *held >= 0.2)
    .find(|(cause, role, _)| {
        (cause.ceiling)(evidence, *role)
            .is_some_and(|ceiling| crate::judge::ceilings::sits_at(&ceiling, evidence.goodput_bps()))
    })
    .map(|(cause, _, held)| {
        format!("{} held the sender back {} of the time, at its ceiling", cause.id, units::percent(held))
    })
}

/// Why an end, and not the path, explains the goodput, where one does. What an end holds back also makes bursts, and
/// with them small queues and a fast beginning: they say nothing of the path then.
fn end_bound(evidence: &Evidence<'_>) -> Option<String> {
    if let Some(why) = held_back(evidence) {
        return Some(why);
    }
    if receiver_app_slow::reader_lags(evidence) {
        return Some("data waits unread at the receiver: its application is what holds the sender back".to_owned());
    }
    for role in [Role::Sender, Role::Receiver] {
        if let Some(share) = evidence.end(role).and_then(|end| end.thread_share).filter(|share| *share >= 0.85) {
            return Some(format!(
                "the data thread of {} fills {} of a core",
                who(evidence, role),
                units::percent(share)
            ));
        }
    }
    let behind = evidence.writer_behind()?;
    (behind >= 0.2).then(|| format!("the application left the connection idle {} of the time", units::percent(behind)))
}

/// Why the CPU is not what ends the goodput, where that is known: it lies at the slower link, or a window explains it.
fn cpu_innocent(evidence: &Evidence<'_>) -> Option<String> {
    if fills_link(evidence) {
        return Some("the goodput is what the slower link carries".to_owned());
    }
    held_back(evidence)
}

/// A fix by one sysctl, which `--try` can apply.
fn sysctl_fix(evidence: &Evidence<'_>, role: Role, advice: String, key: &str, value: String) -> Fix {
    setting_fix(evidence, role, advice, Setting::Sysctl { key: key.to_owned(), value })
}

/// A fix by one setting, which `--try` can apply.
fn setting_fix(evidence: &Evidence<'_>, role: Role, advice: String, setting: Setting) -> Fix {
    let at = evidence.place(role);
    Fix {
        advice,
        commands: vec![Command { at, run: setting.to_string() }],
        settings: vec![(at, setting)],
        ..Fix::default()
    }
}

/// The look-alikes that deny themselves at each of their roles, with their own words; `ask` gives what one of them says at
/// each.
pub(crate) fn rejected(look_alikes: &[&str], ask: impl Fn(&str) -> Option<Vec<Assessment>>) -> Vec<Rejected> {
    let one = |id: &&str| {
        let mut reasons = Vec::new();
        for assessment in ask(id)? {
            let Assessment::Contradicts(why) = assessment else { return None };
            reasons.push(why);
        }
        Some(Rejected { id: (*id).to_owned(), why: reasons.into_iter().next().unwrap_or_default() })
    };
    look_alikes.iter().filter_map(one).collect()
}

/// A fix in words alone.
pub(crate) fn advice(text: impl Into<String>) -> Fix {
    Fix { advice: text.into(), ..Fix::default() }
}

/// The three words of `tcp_rmem` or `tcp_wmem` with a new maximum, in the kernel's form.
fn raised_max(evidence: &Evidence<'_>, role: Role, prefix: &str, max_bytes: u64) -> Option<String> {
    let word = |which: &str| evidence.number(role, &format!("{prefix}.{which}"));
    Some(format!("{:.0} {:.0} {max_bytes}", word("min")?, word("default")?))
}

/// The buffer that the path needs once this limit is gone: twice the product of the fastest rate known and the RTT,
/// so that half of it may be overhead, rounded up to a power of two; at least 4 MiB.
fn needed_buffer_bytes(evidence: &Evidence<'_>) -> Option<u64> {
    let target_bps = link_bps(evidence).unwrap_or(10.0 * evidence.goodput_bps()).max(evidence.goodput_bps());
    let bdp = target_bps / 8.0 * evidence.min_rtt_us? / 1e6;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let twice = (2.0 * bdp / 0.5).max(f64::from(4 << 20)) as u64;
    Some(twice.min(1 << 30).next_power_of_two())
}

/// The slower of the two links in bits per second on the wire, where both or one are known and real.
fn link_bps(evidence: &Evidence<'_>) -> Option<f64> {
    [Role::Sender, Role::Receiver].into_iter().filter_map(|role| real_link_bps(evidence, role)).reduce(f64::min)
}

/// Goodput that the slower of the two links carries with full segments.
fn link_goodput_bps(evidence: &Evidence<'_>) -> Option<f64> {
    Some(link_bps(evidence)? * evidence.wire_efficiency(evidence.base.mss_bytes?))
}

/// Whether the goodput is all that the slower link carries. A goodput above it says that the speed was never enforced.
pub(crate) fn fills_link(evidence: &Evidence<'_>) -> bool {
    link_goodput_bps(evidence).is_some_and(|link| (0.95..=1.03).contains(&(evidence.goodput_bps() / link)))
}

/// The link speed of a host's device, where the device has one: virtual devices (veth, bridges, tunnels, those that a
/// hypervisor makes up) report a number that nothing enforces; a TUN device has one only where it was set.
fn real_link_bps(evidence: &Evidence<'_>, role: Role) -> Option<f64> {
    if !matches!(evidence.text(role, "nic.kind")?, "physical" | "tun") {
        return None;
    }
    evidence.number(role, "nic.speed").filter(|bps| *bps > 0.0)
}

/// `the sender, client` for sentences.
fn who(evidence: &Evidence<'_>, role: Role) -> String {
    match role {
        Role::Sender => format!("the sender ({})", evidence.place(role)),
        Role::Receiver => format!("the receiver ({})", evidence.place(role)),
        Role::Path => "the path".to_owned(),
    }
}
