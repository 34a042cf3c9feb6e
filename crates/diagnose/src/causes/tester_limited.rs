//! # tester-limited
//!
//! narrows itself, or the machine that it runs on, could not do more.
//!
//! **Shows**: every core of one end is busy; or the engine's own loopback ceiling lies at the measured goodput.
//!
//! **Mistaken for**: anything of the path. A result at this limit says nothing against the path.
//!
//! **Fix**: more cores, more streams, another machine.
//!
//! Source: RFC 6349 section 3 (the test host must itself carry the full rate of the path); `/proc/stat`, proc_stat(5).

use super::{Cause, Testimony, advice, ask, cannot_tell, ceiling, counter, denies};
use crate::evidence::{EndView, Evidence, Seat};
use crate::experiment::Experiment;
use narrows_model::{Ceiling, Fix, Method, units};

/// See the file's head.
pub const CAUSE: Cause = Cause {
    id: "tester-limited",
    about: "the measuring machine itself can do no more",
    seats: &[Seat::Sender, Seat::Receiver],
    needs: &[],
    ceiling: roof,
    witness: testify,
    look_alikes: &["app-core-saturated", "softirq-core-saturated", "path-capacity"],
    fix,
    healthy: false,
    rank: 3,
};

/// Cores are full when this part of all their time is gone: sampling ticks and the gaps between threads leave the rest.
const FULL: f64 = 0.93;

fn roof(evidence: &Evidence<'_>, seat: Seat) -> Option<Ceiling> {
    let busy = evidence.end(seat)?.machine_busy()?;
    if busy < 0.3 {
        return None;
    }
    let how = format!("goodput / {} of all cores that were busy", units::percent(busy));
    let spread = if busy > 0.9 { [0.9, 1.1] } else { [0.6, 1.5] };
    ceiling(CAUSE.id, evidence, seat, evidence.goodput_bps() / busy.min(1.0), spread, Method::Inferred, how)
}

fn testify(evidence: &Evidence<'_>, seat: Seat) -> Testimony {
    let Some(busy) = evidence.end(seat).and_then(EndView::machine_busy) else {
        return cannot_tell("the times of the cores could not be read");
    };
    if busy < FULL {
        return denies(format!(
            "the cores of {} were busy {} of the time",
            super::who(evidence, seat),
            units::percent(busy)
        ));
    }
    if let Some(why) = super::cpu_innocent(evidence) {
        return denies(why);
    }
    let user = evidence.end(seat).map_or(0.0, |end| end.cores.iter().map(|core| core.user + core.steal).sum::<f64>());
    let cores = evidence.end(seat).map_or(1, |end| end.cores.len());
    #[allow(clippy::cast_precision_loss)]
    if user / cores as f64 > 0.5 {
        // The engine lives in system calls and softirqs: so much user code is somebody else's.
        return cannot_tell(format!("other programs take most of the CPU time of {}", super::who(evidence, seat)));
    }
    let Some(more) = evidence.experiments.get(Experiment::MoreStreams.id()) else {
        return ask(
            Experiment::MoreStreams,
            format!(
                "all cores of {} were busy; whether more streams would carry more is not known",
                super::who(evidence, seat)
            ),
        );
    };
    let gain = more.goodput_bps / evidence.goodput_bps();
    if gain > 1.3 {
        return denies(format!("four times the streams carried {gain:.1} times as much"));
    }
    Testimony::Says {
        share: busy,
        witnesses: vec![
            counter(format!(
                "all cores of {} together were busy {} of the time",
                super::who(evidence, seat),
                units::percent(busy)
            )),
            super::experiment(format!(
                "four times the streams carried {}, no more than {}",
                units::bps(more.goodput_bps),
                units::bps(evidence.goodput_bps())
            )),
        ],
    }
}

fn fix(_: &Evidence<'_>, _: Seat) -> Fix {
    advice(
        "measure from a machine with more or faster cores; this result is a lower bound for the path and accuses \
         nothing",
    )
}
