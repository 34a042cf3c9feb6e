//! # app-small-writes
//!
//! The sending application hands its data to the kernel in small pieces: the cost of the calls, and not of the data, fills its core.
//!
//! **Shows**: the data thread of the sender is busy, each of its calls writes little, and the same load in larger writes carries clearly
//! more.
//!
//! **Mistaken for**: a core that is full of the data itself, a slow application (it would sleep between its writes).
//!
//! **Fix**: larger writes: a buffer in the application, `writev`, `TCP_CORK`.
//!
//! Source: tcp(7), writev(2); the gain is measured.

use crate::causes::shared::bound::cpu_innocent;
use crate::causes::shared::rule::*;
use crate::experiments::tcp::LARGER_WRITES;
use narrows_model::load::tcp::TcpPlan;

pub const CAUSE: Cause<TcpEvidence> = Cause {
    id: "app-small-writes",
    about: "the sending application writes in small pieces, and their calls fill its core",
    roles: &[Role::Sender],
    assess,
    look_alikes: &["app-core-saturated", "sender-app-slow", "tcp-send-buffer", "path-capacity"],
    fix,
    rank: 9,
    removed_by: Some(&LARGER_WRITES),
    ..Cause::COMMON
};

/// From here on a call costs less than the copying of what it writes.
const SMALL_BYTES: f64 = 8_192.0;

/// A thread that is less busy waits for something else.
const BUSY: f64 = 0.6;

/// Two loads of one path differ by less.
const GAIN: f64 = 1.3;

fn assess(evidence: &TcpEvidence, _: Role) -> Assessment {
    let base = &evidence.base;
    let Some(bytes) = base.write_bytes else { return cannot_tell("the calls of the sending application were not counted") };
    if bytes >= SMALL_BYTES {
        return contradicts(format!("the sending application wrote {} in each call", units::bytes(bytes as u64)));
    }
    let Some(busy) = base.sender.thread_share else { return cannot_tell("the times of the sender's CPUs could not be read") };
    // Where other programs take turns on its core, its calls wait for that core, too.
    let ready = busy + base.sender.thread_waits.unwrap_or(0.0);
    if ready < BUSY {
        return contradicts(format!("the writing thread used or waited for a core {} of the time", units::percent(ready)));
    }
    if let Some(why) = cpu_innocent(evidence) {
        return contradicts(why);
    }
    let Some(larger) = evidence.made(&LARGER_WRITES) else {
        return ask(&LARGER_WRITES, format!("the writes are of {bytes:.0} bytes; whether larger ones carry more was not measured"));
    };
    let gain = larger.goodput_bps / evidence.goodput_bps();
    if gain < GAIN {
        return contradicts(format!("writes of 128 KiB carried no more ({})", units::bps(larger.goodput_bps)));
    }
    let small = counter(format!(
        "the sending application wrote {bytes:.0} bytes in each call, and its calls took {} of a core",
        units::percent(busy)
    ));
    let larger = experiment(format!("writes of 128 KiB carried {}, {gain:.1} times as much", units::bps(larger.goodput_bps)));
    Assessment::Supports { share: busy, witnesses: vec![small, larger] }
}

fn fix(evidence: &TcpEvidence, _: Role) -> Fix {
    let message_bytes = TcpPlan::default().message_bytes;
    let load = TcpPlan { message_bytes, keeps_message_bytes: true, ..evidence.load.clone() };
    Fix { load: Some(load.into()), ..advice("write in larger pieces: gather them in a buffer or by writev, or cork the socket (TCP_CORK)") }
}

#[cfg(test)]
mod tests {
    use crate::testing::*;
    use super::*;

    /// 64 bytes a call, which fill the thread's core at 120 Mbit/s.
    fn truth() -> Scene {
        let load = TcpPlan { message_bytes: 64, ..slow().load };
        Scene { goodput_bps: 120e6, write_bytes: 64, sender_thread: 0.97, load, ..slow() }
    }

    fn larger(goodput_bps: f64) -> Scene {
        Scene { goodput_bps, ..truth() }
    }

    fn of(scene: &Scene, experiments: &[(&str, &Scene)]) -> Assessment {
        assessment(&CAUSE, Role::Sender, scene, experiments)
    }

    #[test]
    fn small_writes_are_named_where_larger_ones_carry_more() {
        assert!(next(&truth(), &[]).contains(&LARGER_WRITES.id));
        let finding = named(&truth(), &[("larger-writes", &larger(700e6))], "app-small-writes", Place::Client);
        assert_rejects(&finding, "sender-app-slow", "had data to send");
        assert_eq!(finding.prediction.expect("what larger writes carried").bps, larger(700e6).goodput_bps);
        assert_eq!(finding.fix.load.expect("a load").get::<TcpPlan>().expect("TCP").message_bytes, 128 << 10);
    }

    #[test]
    fn a_core_that_larger_writes_do_not_relieve_is_full_of_the_data() {
        assert_contradicts(&of(&truth(), &[("larger-writes", &larger(130e6))]), "no more");
        let verdict = crate::testing::verdict(&truth(), &[("larger-writes", &larger(130e6))]);
        assert_eq!(verdict.causes[0].id, "app-core-saturated", "{verdict:#?}");
        assert_contradicts(&of(&Scene { write_bytes: 65_536, ..truth() }, &[]), "64 KiB in each call");
    }

    #[test]
    fn small_writes_of_a_thread_that_sleeps_cost_nothing() {
        assert_contradicts(&of(&Scene { sender_thread: 0.3, ..truth() }, &[]), "30 % of the time");
        assert_contradicts(&of(&full_path(truth()), &[]), "capacity of the slower link");
        assert_asks(&of(&truth(), &[]), &LARGER_WRITES);
        assert_cannot_tell(&of(&Scene { hidden: &[Hidden::Threads], ..truth() }, &[]), "could not be read");
    }
}
