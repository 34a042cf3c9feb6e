//! The packet ledger against the lab's own counters: the load makes the lab drop at one known place, and both must agree.

use crate::demo::{Stage, StageError};
use crate::scenarios::SeatWord as Seat;
use crate::stored;
use narrows_lab::{LabSpec, Row, Watch};
use narrows_model::lab::Impairment;
use narrows_model::{Direction, Flow, Place, Report};

/// Where the lab drops, and how it is made to.
struct Case {
    /// The stage of the ledger.
    stage: &'static str,
    /// The cause that a diagnosis names; nothing where there is nothing to name.
    cause: Option<&'static str>,
    /// Of the path, both ways.
    rate_bps: u64,
    /// A fault, where, and its size.
    fault: Option<(&'static str, Seat, Option<&'static str>)>,
    words: &'static [&'static str],
}

const GIGABIT: u64 = 1_000_000_000;

const CASES: [Case; 7] = [
    Case { stage: "delivered", cause: None, rate_bps: GIGABIT, fault: None, words: &["300M"] },
    Case {
        stage: "qdisc",
        cause: Some("qdisc-drop"),
        rate_bps: 10 * GIGABIT,
        fault: Some(("qdisc-drop", Seat::Sender, None)),
        words: &["3G"],
    },
    Case {
        stage: "path",
        cause: Some("random-loss"),
        rate_bps: GIGABIT,
        fault: Some(("random-loss", Seat::Path, Some("0.5%"))),
        words: &["300M"],
    },
    // More than the path carries fills its queue: a healthy path at its capacity.
    Case { stage: "path", cause: None, rate_bps: GIGABIT / 10, fault: None, words: &["150M"] },
    Case {
        stage: "softnet",
        cause: Some("softnet-backlog"),
        rate_bps: GIGABIT,
        fault: Some(("softnet-backlog", Seat::Receiver, None)),
        words: &["300M"],
    },
    Case {
        stage: "receive-filter",
        cause: Some("filter-drop"),
        rate_bps: GIGABIT,
        fault: Some(("filter-drop", Seat::Receiver, None)),
        words: &["100M"],
    },
    Case {
        stage: "receive-buffer",
        cause: Some("udp-receive-buffer"),
        rate_bps: 10 * GIGABIT,
        fault: None,
        words: &["2G", "--receive-buffer", "6k"],
    },
];

/// The lab's counters see the packets of the control connection as well, which in a full queue sends the same again and again.
const CONTROL: u64 = 64;

pub fn verify(watch: &mut dyn Watch) -> Result<(), StageError> {
    for case in &CASES {
        for flow in [Flow::Up, Flow::Down] {
            let load = case.words.join(" ");
            watch.begins(&format!("ledger, drops at {}, {}, {load}", case.stage, flow.direction()));
            if !watch.row(&row(case, flow)?) {
                return Ok(());
            }
        }
    }
    Ok(())
}

fn row(case: &Case, flow: Flow) -> Result<Row, StageError> {
    let way = Impairment { rate_bps: case.rate_bps, delay_us: 500, ..Impairment::default() };
    let spec = LabSpec { name: "verify".to_owned(), up: way.clone(), down: way, ..LabSpec::default() };
    let stage = Stage::up(&spec, &[])?;
    if let Some((id, seat, value)) = case.fault {
        stage.lab.fault(id, seat.place(flow), value, Direction::Both)?;
    }
    let direction = flow.direction();
    let load = ["--direction", direction.word(), "--ipv4", "--duration", "3s"];
    let file = stage.scratch.join("verify.run.json");
    let before = dropped(&stage, flow)?;
    let name = file.to_string_lossy();
    let words = [&["measure", "udp", "server", "--quiet", "--output", &name, "--rate"], case.words, &load].concat();
    stage.run("the load", &words)?;
    let after = dropped(&stage, flow)?;
    let run = stored::load(&file, stored::OWN)?;
    let ledger = crate::ledgers(&run).into_iter().find(|ledger| ledger.flow == flow);
    let ledger = ledger.ok_or_else(|| StageError::Failed("the load", "its run has no ledger".to_owned()))?;
    let of = |id: &str| ledger.stages.iter().filter(|stage| stage.id == id).map(|stage| stage.dropped).sum::<u64>();
    let elsewhere: u64 = ledger.stages.iter().map(|stage| stage.dropped).sum::<u64>() - of(case.stage);
    // What a socket has no room for the lab does not see: all that is missing, where the lab lost nothing.
    let lost = after.since(&before);
    let truth = if case.stage == "receive-buffer" && lost.is_empty() {
        ledger.offered - ledger.delivered
    } else {
        lost.at(case.stage)
    };
    let named = named(case, &stage, &load)?;
    let expected = case.cause.map_or("healthy", |cause| cause);
    let met = ledger.unexplained == 0
        && elsewhere == 0
        && truth.checked_sub(of(case.stage)).is_some_and(|more| more <= CONTROL)
        && (of(case.stage) > 0 || case.stage == "delivered")
        && named == expected;
    let what =
        format!("{} of {}, {direction}: named {named}, unexplained {}", case.stage, ledger.offered, ledger.unexplained);
    let (requested, measured) = (truth as f64, of(case.stage) as f64);
    Ok(Row { what, requested, measured, unit: "drops", tolerance: "all, and named", met })
}

/// What a diagnosis of the same load says.
fn named(case: &Case, stage: &Stage, load: &[&str]) -> Result<String, StageError> {
    let words: &[&str] = &["diagnose", "server", "--format", "json", "--quiet", "--exit-zero", "--udp", "--rate"];
    let report: Report = stage.report("the diagnosis", &[words, case.words, load].concat())?;
    let status = report.verdict.status;
    Ok(if status == narrows_model::diagnosis::verdict::Status::Healthy {
        "healthy".to_owned()
    } else {
        report.verdict.causes.first().map_or_else(|| "nothing".to_owned(), |cause| cause.id.clone())
    })
}

/// What the lab dropped so far on the way of a flow.
struct Dropped {
    qdisc: u64,
    path: u64,
    softnet: u64,
    filter: u64,
}

fn dropped(stage: &Stage, flow: Flow) -> Result<Dropped, StageError> {
    let host = |place: Place| stage.lab.host(place.word())?.counters();
    let (sender, receiver) = (host(flow.sender())?, host(flow.receiver())?);
    let path = stage.lab.counters(flow);
    Ok(Dropped {
        qdisc: sender.qdisc_drops,
        path: path.dropped_loss + path.dropped_queue + path.dropped_policer + path.dropped_mtu + path.dropped_device,
        softnet: receiver.rx_dropped,
        filter: receiver.filter_input_drops.unwrap_or(0),
    })
}

impl Dropped {
    const fn since(&self, before: &Self) -> Self {
        Self {
            qdisc: self.qdisc - before.qdisc,
            path: self.path - before.path,
            softnet: self.softnet - before.softnet,
            filter: self.filter - before.filter,
        }
    }

    const fn is_empty(&self) -> bool {
        self.qdisc + self.path + self.softnet + self.filter == 0
    }

    fn at(&self, stage: &str) -> u64 {
        match stage {
            "qdisc" => self.qdisc,
            "path" => self.path,
            "softnet" => self.softnet,
            "receive-filter" => self.filter,
            _ => 0,
        }
    }
}
