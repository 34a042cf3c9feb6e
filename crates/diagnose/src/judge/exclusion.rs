//! Verdicts by exclusion. That the path is at capacity, shaped or policed, or that an application was slow, is known only where
//! the hosts' own limits are known not to bind. Where the evidence that would exclude them is missing, such a verdict is
//! open: missing evidence makes no verdict, and never another one.
//!
//! Found by taking evidence away from runs of the fault bank, whose truth is known: without the times of the CPUs a full core
//! looks like a slow application, without the limited-time counters a slow reader like a shaper, as a slow writer does without the
//! memory of its socket; without the facts of a host its slow link, its MTU or its own shaper like the path.

use crate::causes::tcp::{Cause, fills_link};
use crate::evidence::tcp::Evidence;
use crate::role::Role;

/// Random loss is not among them: that it stays when the load is paced at half its rate is an evidence of its own.
const OF_THE_PATH: &[&str] = &["path-capacity", "path-policer", "path-shaper"];
const OF_THE_APPLICATION: &[&str] = &["receiver-app-slow", "sender-app-slow"];
const ENDS: [Role; 2] = [Role::Sender, Role::Receiver];

/// Why a cause that testifies cannot be told from a limit of a host; `None` where the hosts are known.
pub(crate) fn is_open(evidence: &Evidence<'_>, cause: &Cause, role: Role) -> Option<String> {
    if OF_THE_APPLICATION.contains(&cause.id) {
        return without_cpu_times(evidence, role);
    }
    if !OF_THE_PATH.contains(&cause.id) {
        return None;
    }
    if let Some(role) = ENDS.into_iter().find(|role| evidence.text(*role, "nic.kind").is_none()) {
        let at = evidence.place(role);
        return Some(format!("nothing is known of the device of the {at}, so a limit there cannot be excluded"));
    }
    // At the rate of the slower link no host can be what holds it back.
    if fills_link(evidence) {
        return None;
    }
    if evidence.base.shares.is_none() {
        return Some("the sender's kernel does not say what held it back, so its ends cannot be excluded".to_owned());
    }
    if evidence.base.buffer_room_share.is_none() {
        return Some(
            "the memory of the sender's socket could not be read, so a slow writer cannot be excluded".to_owned(),
        );
    }
    ENDS.into_iter().find_map(|role| without_cpu_times(evidence, role))
}

fn without_cpu_times(evidence: &Evidence<'_>, role: Role) -> Option<String> {
    let end = evidence.end(role)?;
    let at = evidence.place(role);
    (end.thread_share.is_none() && end.cores.is_empty())
        .then(|| format!("the times of the {at}'s CPUs could not be read, so a full core cannot be excluded"))
}

#[cfg(test)]
mod tests {
    use crate::testing::{Hidden, Scene, ordinary_host, verdict, virtual_hosts, without};
    use narrows_model::{Status, Verdict};

    /// A path that carries 300 Mbit/s behind a queue, between hosts whose links are not known.
    fn queued() -> Scene {
        virtual_hosts(Scene { goodput_bps: 300e6, early_peak_bps: 300e6, ..Scene::default() })
    }

    #[track_caller]
    fn assert_open(verdict: &Verdict, why: &str) {
        assert_eq!(verdict.status, Status::Unknown, "{verdict:#?}");
        assert!(verdict.missing.iter().any(|missing| missing.contains(why)), "{:?}", verdict.missing);
    }

    #[test]
    fn a_queue_is_capacity_only_where_both_ends_can_be_excluded() {
        assert_eq!(verdict(&queued(), &[]).status, Status::Healthy);
        for (hidden, why) in [
            (&[Hidden::LimitedTimes] as &[Hidden], "what held it back"),
            (&[Hidden::SocketMemory], "a slow writer"),
            (&[Hidden::Cores, Hidden::Threads], "the client's CPUs"),
        ] {
            assert_open(&verdict(&Scene { hidden, ..queued() }, &[]), why);
        }
        for hidden in [&[Hidden::Cores] as &[Hidden], &[Hidden::Threads]] {
            assert_eq!(verdict(&Scene { hidden, ..queued() }, &[]).status, Status::Healthy, "the other one tells");
        }
    }

    #[test]
    fn a_full_link_needs_the_devices_and_nothing_else() {
        let hidden = &[Hidden::LimitedTimes, Hidden::Cores, Hidden::Threads];
        assert_eq!(verdict(&Scene { hidden, ..Scene::default() }, &[]).status, Status::Healthy);
        let silent = Scene { receiver_facts: without(ordinary_host(), "nic.kind"), ..Scene::default() };
        assert_open(&verdict(&silent, &[]), "the device of the server");
    }

    #[test]
    fn a_slow_writer_cannot_be_told_from_a_full_core_without_the_times_of_its_cpus() {
        let idle = Scene { goodput_bps: 200e6, rtt_us: 35_200, busy: 0.3, ..Scene::default() };
        assert_eq!(verdict(&idle, &[]).causes[0].id, "sender-app-slow");
        assert_open(&verdict(&Scene { hidden: &[Hidden::Cores, Hidden::Threads], ..idle }, &[]), "a full core");
    }
}
