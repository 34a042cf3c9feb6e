//! # path-member
//!
//! One member of a group of equal paths (ECMP, link aggregate) loses packets: only the flows that the group's hash sends over it are hit.
//!
//! **Shows**: the ledger's loss on the path; UDP flows that differ in their ports alone, far below what the path carries, fall into two
//! groups, one that loses about alike and one that loses next to nothing. A trace with the same ports names the router.
//!
//! **Mistaken for**: random loss of the whole path (all flows lose alike), a full or policed path (no flow loses far below the rate).
//!
//! **Fix**: no setting of the hosts: take the member out of the group, or mend its link. Another source port evades it.
//!
//! Source: RFC 2992; IEEE 802.1AX 5.2.4.

use crate::causes::shared::member::{assess_ports, fix};
use crate::causes::shared::profile::{Met, met};
use crate::causes::shared::rule::*;
use crate::causes::shared::udp::{at_most, at_stage};
use crate::experiments::ports::MANY_PORTS;
use narrows_model::words::figures::float;

pub const CAUSE: Cause<UdpEvidence> = Cause {
    id: "path-member",
    about: "one member of a group of equal paths (ECMP, LAG) loses packets",
    roles: &[Role::Path],
    assess: |evidence, _| answer(assess(evidence)),
    look_alikes: &["random-loss", "path-policer", "shallow-queue", "path-capacity"],
    fix: |evidence, _| fix(evidence.paced.get(MANY_PORTS.id)),
    rank: 1,
    stages: &["path"],
    ..Cause::COMMON
};

/// Fewer losses, or rarer ones, are those of any long path.
const FEW: u64 = 5;
const COMMON: f64 = 1e-4;

fn assess(evidence: &UdpEvidence) -> Ruling {
    let (dropped, part, witness) = at_stage(evidence, "path", None)?;
    let base = &evidence.base;
    if dropped < FEW || base.loss() < COMMON {
        return Err(contradicts(format!("only {dropped} of {} datagrams were lost on the path", base.ledger.offered)));
    }
    if let Some(Met::Full | Met::Shaped | Met::Policed) = met(evidence) {
        return Err(contradicts("more was offered than the path carries"));
    }
    let assessment = assess_ports(evidence.paced.get(MANY_PORTS.id), |member| {
        let rates = || base.flows.iter().map(|flow| float(flow.lost) / float(flow.sent.max(1)));
        let lost = rates().fold(0.0, f64::max);
        rates()
            .any(|rate| member.explains(rate))
            .then_some(witness)
            .ok_or_else(|| format!("the load lost {}, not as that member does", units::percent(lost)))
    })?;
    Ok(at_most(assessment, part))
}

#[cfg(test)]
mod tests {
    use crate::diagnose;
    use crate::testing::udp::*;
    use super::*;

    const FLOWS: [u64; 12] = [0, 44, 0, 0, 39, 0, 41, 0, 0, 0, 43, 0];

    #[test]
    fn flows_in_two_groups_name_it_and_clear_the_rest_of_the_path() {
        // Of the paced trials each had a port of its own.
        let base = lost(43, 50);
        let parts =
            [("paced-udp-tenth", &lost(42, 50)), ("paced-udp-half", &lost(43, 50)), ("paced-udp-half-bursts", &lost(44, 50))];
        let before = run(&base, &parts);
        let next = diagnose(&before, 0).expect("a baseline").next;
        assert!(next.iter().any(|planned| planned.id == MANY_PORTS.id), "{next:?}");
        let verdict = diagnose(&with_ports(before, 4_000, &FLOWS), 0).expect("a baseline").verdict;
        assert_eq!((verdict.status, &*verdict.causes[0].id), (Status::Limited, "path-member"), "{verdict:#?}");
        assert!(verdict.causes[0].rejected.iter().any(|it| it.id == "random-loss"), "{verdict:#?}");
        let alike = with_ports(run(&base, &parts), 4_000, &[40, 44, 38, 41, 39, 42, 41, 37, 45, 40, 43, 44]);
        assert_eq!(diagnose(&alike, 0).expect("a baseline").verdict.causes[0].id, "random-loss");
    }

    #[test]
    fn what_was_not_lost_on_the_path_or_not_as_the_member_loses_is_another_cause() {
        assert_contradicts(&assessment(&CAUSE, Role::Path, &UdpScene::default()), "nothing was lost");
        assert_cannot_tell(&assessment(&CAUSE, Role::Path, &lost(43, 50)), "was not measured");
        let other = with_ports(run(&lost(900, 50), &[]), 4_000, &FLOWS);
        let verdict = diagnose(&other, 0).expect("a baseline").verdict;
        assert!(verdict.causes.iter().all(|cause| cause.id != "path-member"), "{verdict:#?}");
    }
}
