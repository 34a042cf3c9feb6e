//! The causes of UDP: one file each, one line each in the table. A file holds its documentation, its rule and its tests.

pub(crate) use crate::causes::tcp::{advice, cannot_tell, contradicts, counter, witness};
use crate::evidence::udp::UdpEvidence;
use crate::judge::assessment::Assessment;
use crate::role::Role;
use narrows_model::{Command, Fix, Key, Setting, Witness, words::units};

/// A cause of loss, or of a lower rate than was asked for, that narrows can name.
pub struct UdpCause {
    /// The public id; it never changes its meaning, and may be that of a cause of TCP.
    pub id: &'static str,
    /// One sentence for a reader who does not know the word.
    pub about: &'static str,
    /// Where it can be.
    pub roles: &'static [Role],
    /// The facts that its rule reads, with the unit that it expects.
    pub needs: &'static [Key],
    /// Whether the evidence supports it.
    pub assess: fn(&UdpEvidence<'_>, Role) -> Assessment,
    /// What it is mistaken for; the other cause's own words against itself are the reason given.
    pub look_alikes: &'static [&'static str],
    /// What to do.
    pub fix: fn(&UdpEvidence<'_>, Role) -> Fix,
    /// What the ledger loses less once it is mended, as the ids of its stages; none where a rate is what it costs.
    pub stages: &'static [&'static str],
    /// Whether a path that this binds is healthy.
    pub healthy: bool,
}

/// The table drives the diagnosis, `narrows list causes` and the manual.
macro_rules! causes {
    ($($module:ident),* $(,)?) => {
        $(pub mod $module;)*
        /// Every cause of UDP.
        pub static TABLE: &[&UdpCause] = &[$(&$module::CAUSE),*];
    };
}

causes! {
    checksum_errors,
    filter_drop,
    ip_fragmentation,
    path_capacity,
    path_policer,
    qdisc_drop,
    random_loss,
    shallow_queue,
    small_datagrams,
    softnet_backlog,
    udp_memory,
    udp_receive_buffer,
    udp_send_queue,
}

/// Each cause at each role that it can have.
pub fn every_role() -> impl Iterator<Item = (&'static UdpCause, Role)> {
    TABLE.iter().flat_map(|cause| cause.roles.iter().map(move |role| (*cause, *role)))
}

/// The cause of that id.
#[must_use]
pub fn by_id(id: &str) -> Option<&'static UdpCause> {
    TABLE.iter().find(|cause| cause.id == id).copied()
}

/// A stage that holds less than this part of the loss is not why the trial lost what it lost.
const PART: f64 = 0.1;

/// The first witness: so many datagrams ended at this stage, and that is a part of the loss that counts.
///
/// # Errors
/// The assessment where it is not so.
fn at_stage(evidence: &UdpEvidence<'_>, id: &str, dropped: Option<u64>) -> Result<(u64, f64, Witness), Assessment> {
    let missing = evidence.base.missing();
    if missing == 0 {
        return Err(contradicts("nothing was lost"));
    }
    let Some(stage) = evidence.base.stage(id) else { return Err(cannot_tell(format!("the ledger has no stage {id}"))) };
    let dropped = dropped.unwrap_or(stage.dropped);
    if dropped == 0 {
        let known = stage.counted || stage.dropped > 0;
        return Err(if known {
            contradicts(format!("{id}: nothing was dropped there"))
        } else {
            cannot_tell(&*stage.source)
        });
    }
    if dropped <= stage.uncertainty.saturating_mul(2) {
        return Err(cannot_tell(format!(
            "{id}: {dropped} drops, of which up to {} may be of other traffic",
            stage.uncertainty
        )));
    }
    #[allow(clippy::cast_precision_loss)]
    let share = (dropped as f64 / missing as f64).min(1.0);
    if share < PART {
        return Err(contradicts(format!("{id}: only {dropped} of {missing} lost datagrams were dropped there")));
    }
    let says = format!("the ledger: {dropped} of {missing} lost datagrams ended at {id} ({})", stage.source);
    Ok((dropped, share, counter(says)))
}

/// The second witness of a counter that must have grown about as much: by half at least. It counts packets, which may be batches
/// of datagrams.
fn says_the_same(evidence: &UdpEvidence<'_>, dropped: u64, count: Option<u64>, what: &str) -> Option<Witness> {
    let batch = if evidence.base.accounting.segmented || evidence.base.accounting.coalesced {
        evidence.base.accounting.batch_most
    } else {
        1
    };
    let count = count.filter(|n| *n > 0)?;
    (count.saturating_mul(2).saturating_mul(batch) >= dropped).then(|| counter(format!("{what} grew by {count}")))
}

/// What a stage and its second witnesses say.
fn supports(first: Witness, share: f64, others: impl IntoIterator<Item = Option<Witness>>) -> Assessment {
    let witnesses = std::iter::once(first).chain(others.into_iter().flatten()).collect();
    Assessment::Supports { share, witnesses }
}

/// A fix by one sysctl, which `--try` can apply.
fn sysctl_fix(evidence: &UdpEvidence<'_>, role: Role, advice: String, key: &str, value: String) -> Fix {
    let at = evidence.place(role);
    let setting = Setting::Sysctl { key: key.to_owned(), value };
    Fix {
        advice,
        commands: vec![Command { at, run: setting.to_string() }],
        settings: vec![(at, setting)],
        ..Fix::default()
    }
}

/// A fix by commands that narrows does not apply itself.
fn command_fix(evidence: &UdpEvidence<'_>, role: Role, advice: String, commands: &[String]) -> Fix {
    let at = evidence.place(role);
    Fix { advice, commands: commands.iter().map(|run| Command { at, run: run.clone() }).collect(), ..Fix::default() }
}

/// The end's busiest thread or core, where it is full: then no buffer helps.
fn full_core(evidence: &UdpEvidence<'_>, role: Role) -> Option<String> {
    const FULL: f64 = 0.95;
    let (share, what) = evidence.end(role)?.busiest()?;
    (share >= FULL)
        .then(|| format!("{what} of the {} is busy {} of the time", evidence.place(role), units::percent(share)))
}

/// Rounded up to a power of two.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn rounded(bytes: f64, most: u64) -> u64 {
    (bytes.max(1.0) as u64).min(most).next_power_of_two()
}

/// What a rule says where the loss is on the path: the paced experiments' word.
fn on_the_path(evidence: &UdpEvidence<'_>, id: &str) -> Assessment {
    if let Err(assessment) = at_stage(evidence, "path", None) {
        return assessment;
    }
    evidence.paced.assessment(id).unwrap_or_else(|| cannot_tell("no experiment tells"))
}
