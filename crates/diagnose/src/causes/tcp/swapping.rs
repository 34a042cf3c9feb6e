//! # swapping
//!
//! A host has too little memory: pages of the application are read from disk during the transfer, and it stalls.
//!
//! **Shows**: `pswpin` and `pswpout` grow throughout the trial, tasks wait for memory (PSI), and the connection waits
//! for the application.
//!
//! **Mistaken for**: a slow application, a full core. Swap in use without paging costs nothing.
//!
//! **Fix**: more memory, or fewer programs; `vm.swappiness`; a higher `memory.max` of the control group.
//!
//! Source: kernel `Documentation/accounting/psi.rst`; proc(5), `/proc/vmstat`.

use crate::causes::shared::bound::held_back;
use crate::causes::shared::cpu::peer_waits;
use crate::causes::shared::rule::*;
use crate::causes::tcp::receiver_app_slow::reader_lags;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "swapping",
    about: "a host swaps, and its application stalls",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[
        keys::VMSTAT_PSWPIN,
        keys::VMSTAT_PSWPOUT,
        keys::VMSTAT_PGMAJFAULT,
        keys::MEMORY_PRESSURE_SOME_US,
        keys::TCP_RMEM_MAX,
        keys::TCP_WMEM_MAX,
    ],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["sender-app-slow", "receiver-app-slow", "app-core-saturated", "path-capacity"],
    fix,
    rank: 8,
    ..Cause::COMMON
};

/// Pages per second that keep a disk busy; fewer are of programs that sleep.
const PAGES: f64 = 100.0;

/// Tasks that waited for memory for less of the time did not hold a transfer up.
const WAITED: f64 = 0.05;

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let who = who(evidence, role);
    if evidence.base.shares.is_none() {
        return Err(cannot_tell("the sender's kernel does not report what limited it"));
    }
    let waits = peer_waits(evidence, role).filter(|_| role == Role::Sender || reader_lags(evidence));
    let (share, waits) = found(waits, format!("the connection did not wait for the application of {who}"))?;
    refuted(held_back(evidence))?;
    let (Some(read), Some(written)) = (evidence.grew(role, keys::VMSTAT_PSWPIN), evidence.grew(role, keys::VMSTAT_PSWPOUT))
    else {
        return Err(cannot_tell(format!("whether {who} swapped could not be read")));
    };
    let pages = read.saturating_add(written);
    if (pages as f64) < PAGES * evidence.base.whole_s {
        return Err(contradicts(format!("{who} swapped {pages} pages")));
    }
    let stalled = evidence.grew(role, keys::MEMORY_PRESSURE_SOME_US).map(|us| us as f64 / 1e6 / evidence.base.whole_s.max(1e-3));
    if let Some(part) = stalled.filter(|part| *part < WAITED) {
        return Err(contradicts(format!("tasks of {who} waited for memory only {} of the time", units::percent(part))));
    }
    let faults = evidence.grew(role, keys::VMSTAT_PGMAJFAULT).unwrap_or(0);
    let witnesses = [
        Some(counter(format!("{who} swapped {read} pages in and {written} out, with {faults} major faults"))),
        Some(waits),
        stalled.map(|part| counter(format!("tasks waited for memory {} of the time (PSI)", units::percent(part.min(1.0))))),
        path_has_room(evidence),
    ];
    supports(share, witnesses)
}

fn fix(_: &TcpEvidence, _: Role) -> Fix {
    advice("give the host or its control group more memory, or stop other programs; a lower vm.swappiness keeps \
        programs in memory")
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    /// A writer that leaves the connection idle for most of the time, on a host that swaps.
    fn swaps(pages: i64, stalled_us: i64) -> Scene {
        let sender_counts =
            vec![("vmstat.pswpin", pages), ("vmstat.pswpout", 0), ("memory.pressure.some_us", stalled_us)];
        Scene { busy: 0.3, sender_counts, ..slow() }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, &[])
    }

    #[test]
    fn a_writer_whose_pages_come_back_from_disk_is_named_as_such() {
        named(&swaps(40_000, 4_000_000), &[], "swapping", Place::Client);
    }

    #[test]
    fn pages_that_nobody_waits_for_cost_nothing() {
        assert_contradicts(&of(&swaps(0, 4_000_000)), "swapped 0 pages");
        assert_contradicts(&of(&swaps(790, 4_000_000)), "swapped 790 pages");
        assert_supports(&of(&swaps(810, 4_000_000)));
        assert_contradicts(&of(&swaps(40_000, 300_000)), "only 3.8 %");
        assert_contradicts(&of(&Scene { busy: 1.0, ..swaps(40_000, 4_000_000) }), "did not wait for the application");
        // A reader that keeps up is not slow, whatever holds the window.
        let counts = swaps(40_000, 4_000_000).sender_counts;
        let scene = Scene { rwnd: 0.9, receiver_counts: counts, ..slow() };
        assert_contradicts(&assessment(&CAUSE, Role::Receiver, &scene, &[]), "did not wait for the application");
    }

    #[test]
    fn a_path_at_capacity_and_missing_counters_accuse_no_one() {
        let scene = full_path(Scene { busy: 1.0, ..swaps(40_000, 4_000_000) });
        assert_eq!(verdict(&scene, &[]).status, Status::Healthy);
        assert_cannot_tell(&of(&Scene { sender_counts: Vec::new(), ..swaps(0, 0) }), "could not be read");
        assert_cannot_tell(&of(&Scene { hidden: &[Hidden::LimitedTimes], ..swaps(40_000, 0) }), "the sender's kernel does not report what limited it");
    }
}
