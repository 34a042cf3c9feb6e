//! # cloud-allowance
//!
//! The cloud provider limits an instance to the bandwidth or packet rate of its size.
//!
//! **Shows**: the driver's statistics `*_allowance_exceeded` grow throughout the load, with TCP loss or a queue.
//!
//! **Mistaken for**: a policer or shaper of the path, random loss. A few exceeded packets are short bursts and
//! harmless.
//!
//! **Fix**: a larger instance; larger packets if the packet rate is exceeded.
//!
//! Source: Amazon EC2 User Guide, *Monitor network performance for ENA settings on your EC2 instance*.

use crate::causes::shared::bound::end_bound;
use crate::causes::shared::device::statistic;
use crate::causes::shared::rule::*;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "cloud-allowance",
    about: "the cloud limits the instance to its allowance",
    roles: &[Role::Sender, Role::Receiver],
    needs: &[keys::NIC_STAT, keys::NIC_DRIVER],
    assess: |evidence, role| answer(assess(evidence, role)),
    look_alikes: &["path-policer", "path-shaper", "random-loss", "path-capacity"],
    fix: |_, _| advice("use an instance with a larger allowance; if the packet rate is exceeded, use larger packets (jumbo frames)"),
    rank: 8,
    explains_link: true,
    device: true,
    ..Cause::COMMON
};

const SENDING: [&str; 2] = ["bw_out_allowance_exceeded", "pps_allowance_exceeded"];
const RECEIVING: [&str; 2] = ["bw_in_allowance_exceeded", "pps_allowance_exceeded"];

/// Fewer exceeded packets of those sent are short bursts.
const PART: f64 = 1e-3;
const FEW: u64 = 20;

fn assess(evidence: &TcpEvidence, role: Role) -> Ruling {
    let who = who(evidence, role);
    let names = if role == Role::Sender { &SENDING } else { &RECEIVING };
    let Some((name, exceeded)) = statistic(evidence, role, names) else {
        return Err(if evidence.text(role, keys::NIC_DRIVER) == Some("ena") {
            cannot_tell(format!("the statistics of the driver of {who} could not be read"))
        } else {
            contradicts(format!("the driver of {who} counts no allowances"))
        });
    };
    if exceeded == 0 {
        return Err(contradicts(format!("{who} stayed within its allowance")));
    }
    let loss = known(evidence.base.loss_whole, "the sender's retransmissions could not be read")?;
    let part = exceeded as f64 / loss.sent.max(1) as f64;
    if exceeded < FEW || part < PART {
        return Err(contradicts(format!("only {exceeded} packets of {who} exceeded its allowance")));
    }
    if evidence.path_has_room() {
        return Err(contradicts("the path carried clearly more than the goodput"));
    }
    refuted(end_bound(evidence))?;
    let queue = evidence.queue_stood().filter(|stood| *stood);
    let witnesses = [
        Some(counter(format!("{name} of {who} grew by {exceeded}"))),
        (loss.lost() >= FEW).then(|| counter(format!("TCP lost {} of {} segments", loss.lost(), loss.sent))),
        queue.map(|_| counter(evidence.queue_words())),
    ];
    supports(0.95, witnesses)
}

#[cfg(test)]
mod tests {
    use crate::testing::{*, no_more};
    use super::*;

    /// A small instance that sends 600 Mbit/s, and a queue in front of what it may send.
    fn truth(exceeded: i64) -> Scene {
        let facts = with(ordinary_host(), fact("nic.driver", "ena", Unit::Text));
        Scene {
            goodput_bps: 600e6,
            early_peak_bps: 600e6,
            lost: 300,
            segments: 415_000,
            sender_facts: with(facts, fact("nic.speed", 10_000_000_000_i64, Unit::BitsPerSecond)),
            sender_counts: vec![("nic.stat.bw_out_allowance_exceeded", exceeded)],
            ..Scene::default()
        }
    }

    fn of(scene: &Scene) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, &[])
    }

    #[test]
    fn an_allowance_that_is_exceeded_all_the_time_is_named() {
        named(&truth(9_000), &[], "cloud-allowance", Place::Client);
    }

    #[test]
    fn short_bursts_are_none() {
        assert_contradicts(&of(&truth(400)), "only 400 packets");
        assert_supports(&of(&truth(420)));
        assert_contradicts(&of(&truth(0)), "within its allowance");
        let scene = truth(400);
        assert_eq!(verdict(&scene, &no_more(&scene)).status, Status::Healthy);
    }

    #[test]
    fn a_path_with_room_and_an_end_that_holds_back_are_other_causes() {
        let scene = Scene { sender_counts: truth(9_000).sender_counts, ..slow() };
        assert_contradicts(&of(&scene), "carried clearly more");
        assert_contradicts(&of(&Scene { sender_thread: 0.97, ..truth(9_000) }), "data thread");
    }

    #[test]
    fn statistics_that_an_instance_does_not_give_leave_it_open() {
        assert_cannot_tell(&of(&Scene { sender_counts: Vec::new(), ..truth(0) }), "could not be read");
        assert_contradicts(&of(&Scene::default()), "counts no allowances");
    }
}
