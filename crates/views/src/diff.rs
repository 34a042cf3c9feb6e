//! Two diagnoses side by side: their figures matched, and what differs between them.

use narrows_diagnose::report;
use narrows_model::host::side_by_side::{Known, ROWS, differs};
use narrows_model::run::RunPlan;
use narrows_model::run::diff::{DiffCause, DiffFigure, DiffGroup, DiffParameter, DiffReport, DiffRun, SCHEMA};
use narrows_model::words::show::plural;
use narrows_model::words::units::{bps, percent};
use narrows_model::{Ending, LoadPlan, Place, Report, Run, TcpPlan, TimeBudget, Unit};

/// Two diagnoses of stored runs.
/// Errors: the run, where it is not a diagnosis or not even its first baseline was measured.
pub fn of_runs<'a>(a: &'a Run, b: &'a Run) -> Result<DiffReport, &'a Run> {
    let mut diff = of_reports(&report(a).ok_or(a)?, &report(b).ok_or(b)?);
    if let (RunPlan::Diagnose(of_a), RunPlan::Diagnose(of_b)) = (&a.plan, &b.plan) {
        diff.remarks.extend(loads(&of_a.load, &of_b.load));
    }
    Ok(diff)
}

pub fn of_reports(a: &Report, b: &Report) -> DiffReport {
    let (before, after) = (a.verdict.goodput_bps, b.verdict.goodput_bps);
    let mut diff = DiffReport {
        schema: SCHEMA.to_owned(),
        summary: Vec::new(),
        remarks: remarks(a, b)
            .into_iter()
            .chain(one_sided([&a.hosts, &b.hosts].map(|it| [(&it.client).into(), (&it.server).into()])))
            .collect(),
        runs: [run(a), run(b)],
        goodput_ratio: (before > 0.0).then(|| after / before),
        figures: figures(a, b),
        parameters: [
            (Place::Client, &a.hosts.client, &b.hosts.client),
            (Place::Server, &a.hosts.server, &b.hosts.server),
        ]
        .into_iter()
        .flat_map(|(at, a, b)| parameters(at, a.into(), b.into()))
        .collect(),
    };
    diff.summary = summary(&diff, [before, after]);
    diff
}

fn run(report: &Report) -> DiffRun {
    let first = report.verdict.causes.first();
    DiffRun {
        id: report.run.id.clone(),
        started_unix_us: report.run.started_unix_us,
        ending: report.run.ending.clone(),
        client: report.hosts.client.name.clone(),
        target: report.run.target.asked.clone(),
        direction: report.verdict.direction,
        status: report.verdict.status,
        headline: report.verdict.headline.clone(),
        cause: first.map(|it| DiffCause { id: it.id.clone(), at: it.at, confidence: it.confidence }),
        predicted_bps: first.and_then(|it| {
            let [low, high] = it.predicted_interval_bps?;
            Some([low, it.predicted_bps?, high])
        }),
        limit: report.accounts.path_profile.as_ref().and_then(|profile| profile.limit.clone()),
    }
}

/// The figures that at least one of the two has, in the order of reading.
fn figures(a: &Report, b: &Report) -> Vec<DiffFigure> {
    let mut figures = Vec::new();
    let mut add = |group, name: &str, at, unit, values: [Option<f64>; 2]| {
        if values.iter().any(Option::is_some) {
            figures.push(DiffFigure {
                group,
                name: name.to_owned(),
                at,
                unit,
                values,
                differs: apart(group, unit, values),
            });
        }
    };
    let both = |of: &dyn Fn(&Report) -> Option<f64>| [of(a), of(b)];
    for (group, name, unit, of) in NAMED {
        add(*group, name, None, *unit, both(of));
    }
    let ceiling = |report: &Report, id: &str, at| {
        report.accounts.roofline.iter().find(|it| (&*it.id, it.at) == (id, at)).map(|it| it.bps)
    };
    for it in matched(&a.accounts.roofline, &b.accounts.roofline, |it| (it.id.clone(), it.at)) {
        let values = both(&|report| ceiling(report, &it.id, it.at));
        add(DiffGroup::Ceilings, &it.id, Some(it.at), Unit::BitsPerSecond, values);
    }
    for it in matched(&a.experiments, &b.experiments, |it| it.id.clone()) {
        let of = |report: &Report| Some(report.experiments.iter().find(|other| other.id == it.id)?.goodput_bps);
        add(DiffGroup::Experiments, &it.id, None, Unit::BitsPerSecond, both(&of));
    }
    figures
}

type Figure = fn(&Report) -> Option<f64>;

fn profile(report: &Report) -> Option<&narrows_model::run::report::PathProfileView> {
    report.accounts.path_profile.as_ref()
}

fn share(report: &Report, of: fn(&TimeBudget) -> f64) -> Option<f64> {
    report.accounts.time_budget.as_ref().map(of)
}

fn lost_below(report: &Report) -> Option<f64> {
    let [sent, lost] = profile(report)?.lost_below;
    (sent > 0).then(|| lost as f64 / sent as f64)
}

/// The figures with a name of their own.
#[rustfmt::skip]
const NAMED: &[(DiffGroup, &str, Unit, Figure)] = &[
    (DiffGroup::Goodput, "goodput", Unit::BitsPerSecond, |it| Some(it.verdict.goodput_bps)),
    (DiffGroup::Goodput, "predicted", Unit::BitsPerSecond, |it| it.verdict.causes.first()?.predicted_bps),
    (DiffGroup::Path, "idle RTT", Unit::Microseconds, |it| it.run.idle_rtt_us.map(|us| us as f64)),
    (DiffGroup::Path, "capacity", Unit::BitsPerSecond, |it| profile(it)?.capacity_bps),
    (DiffGroup::Path, "carried", Unit::BitsPerSecond, |it| profile(it).map(|it| it.carried_bps)),
    (DiffGroup::Path, "bucket", Unit::Bytes, |it| profile(it)?.bucket_bytes),
    (DiffGroup::Path, "jitter", Unit::Microseconds, |it| profile(it).map(|it| it.jitter_us)),
    (DiffGroup::Path, "longest queue", Unit::Microseconds, |it| profile(it).map(|it| it.queue_us)),
    (DiffGroup::Path, "loss below capacity", Unit::Fraction, lost_below),
    (DiffGroup::Path, "reordered", Unit::Fraction, |it| profile(it).map(|it| it.reordered)),
    (DiffGroup::Path, "duplicated", Unit::Fraction, |it| profile(it).map(|it| it.duplicated)),
    (DiffGroup::TimeBudget, "receiver's window full", Unit::Fraction, |it| share(it, |it| it.receive_window)),
    (DiffGroup::TimeBudget, "send buffer full", Unit::Fraction, |it| share(it, |it| it.send_buffer)),
    (DiffGroup::TimeBudget, "congestion window or queue", Unit::Fraction, |it| share(it, |it| it.congestion_window)),
    (DiffGroup::TimeBudget, "recovering from loss", Unit::Fraction, |it| share(it, |it| it.recovery)),
    (DiffGroup::TimeBudget, "application idle", Unit::Fraction, |it| share(it, |it| it.app_idle)),
    (DiffGroup::TimeBudget, "unexplained", Unit::Fraction, |it| share(it, |it| it.unexplained)),
];

/// Those of A, then those that only B has.
fn matched<'a, T, K: PartialEq>(a: &'a [T], b: &'a [T], key: impl Fn(&T) -> K) -> Vec<&'a T> {
    let only_b = b.iter().filter(|it| !a.iter().any(|other| key(other) == key(it)));
    a.iter().chain(only_b).collect()
}

/// Two measurements of one path are rarely further apart than this part of the larger …
const SPREAD: f64 = 0.05;
/// … and times hardly more than scheduling adds, microseconds, …
const SPREAD_US: f64 = 200.0;
/// … and shares of time by no more than this.
const SPREAD_SHARE: f64 = 0.03;
/// Of loss, reordering and duplication little counts: this much, and this part of the larger.
const SPREAD_LOSS: (f64, f64) = (0.0005, 0.25);

/// Whether two figures differ.
fn apart(group: DiffGroup, unit: Unit, values: [Option<f64>; 2]) -> bool {
    let [Some(a), Some(b)] = values else { return values[0].is_some() != values[1].is_some() };
    let (difference, larger) = ((a - b).abs(), a.abs().max(b.abs()));
    match unit {
        Unit::Fraction if group == DiffGroup::Path => difference > SPREAD_LOSS.0 && difference > SPREAD_LOSS.1 * larger,
        Unit::Fraction => difference > SPREAD_SHARE,
        Unit::Microseconds => difference > SPREAD_US && difference > SPREAD * larger,
        _ => difference > SPREAD * larger,
    }
}

fn parameters<'a>(at: Place, a: Known<'a>, b: Known<'a>) -> impl Iterator<Item = DiffParameter> + 'a {
    ROWS.iter().filter_map(move |spec| {
        let cells = [a.cell(spec), b.cell(spec)];
        differs(spec, Some(&cells[0]), Some(&cells[1])).then(|| DiffParameter {
            at,
            group: spec.group,
            key: spec.key().to_owned(),
            label: spec.label.to_owned(),
            cells,
        })
    })
}

/// The parameters of either host that differ between two runs of any kind.
pub fn inventory(a: &Run, b: &Run) -> Vec<DiffParameter> {
    [(Place::Client, &a.client, &b.client), (Place::Server, &a.server, &b.server)]
        .into_iter()
        .flat_map(|(at, a, b)| parameters(at, a.into(), b.into()))
        .collect()
}

/// Which parameters of two runs cannot be compared. `names`: those of the runs.
pub fn unknown(a: &Run, b: &Run, names: [&str; 2]) -> Option<String> {
    unknown_ends([a, b].map(|run| [(&run.client).into(), (&run.server).into()]), names)
}

/// Client and server of one run.
type Hosts<'a> = [Known<'a>; 2];

fn unknown_ends(runs: [Hosts<'_>; 2], names: [&str; 2]) -> Option<String> {
    let silent = runs.iter().zip(names).filter_map(|(hosts, name)| {
        let ends = [Place::Client, Place::Server].into_iter().zip(hosts).filter(|(_, it)| it.facts.is_empty());
        let at: Vec<String> = ends.map(|(at, _)| at.to_string()).collect();
        let at = (!at.is_empty()).then(|| at.join(" and the "))?;
        Some(format!("the parameters of the {at} were not recorded in run {name}"))
    });
    let says: Vec<String> = silent.chain(one_sided(runs)).collect();
    (!says.is_empty()).then(|| says.join("; "))
}

/// The number of parameters that only one of two runs knows of an end of which both recorded some.
fn one_sided([a, b]: [Hosts<'_>; 2]) -> Option<String> {
    let known = |host: Known<'_>, spec| host.cell(spec).value.is_some();
    let ends = a.into_iter().zip(b).filter(|(a, b)| !a.facts.is_empty() && !b.facts.is_empty());
    let count = ends
        .map(|(a, b)| ROWS.iter().filter(|spec| spec.compare && known(a, spec) != known(b, spec)).count())
        .sum::<usize>();
    let verb = if count == 1 { "is" } else { "are" };
    (count > 0).then(|| format!("{} {verb} known in one run only", plural(count as u64, "parameter")))
}

/// What differs, most important first.
fn summary(diff: &DiffReport, [before, after]: [f64; 2]) -> Vec<String> {
    let [a, b] = &diff.runs;
    let same = !apart(DiffGroup::Goodput, Unit::BitsPerSecond, [Some(before), Some(after)]);
    let ratio = match diff.goodput_ratio {
        _ if same => "about the same".to_owned(),
        Some(ratio) if ratio >= 2.0 => format!("{ratio:.1} times as much"),
        Some(ratio) => format!("{:+.0} %", (ratio - 1.0) * 100.0),
        None => "none before".to_owned(),
    };
    let mut summary = vec![format!("goodput: {} in A, {} in B ({ratio})", bps(before), bps(after))];
    let at = |cause: &Option<DiffCause>| cause.as_ref().map(|cause| (cause.id.clone(), cause.at));
    let words = |cause: &Option<DiffCause>| {
        cause
            .as_ref()
            .map_or_else(|| "none".to_owned(), |it| format!("{} at the {} ({})", it.id, it.at, percent(it.confidence)))
    };
    let (first, second) = (words(&a.cause), words(&b.cause));
    summary.push(if at(&a.cause) == at(&b.cause) {
        format!("first cause: {first} in A, the same in B")
    } else {
        format!("first cause: {first} in A, {second} in B")
    });
    if let Some([low, predicted, high]) = a.predicted_bps.filter(|_| at(&a.cause) != at(&b.cause)) {
        let word = if (low..=high).contains(&after) { "inside" } else { "outside" };
        summary.push(format!(
            "A predicted {} after its fix; B got {}, {word} the predicted {} to {}",
            bps(predicted),
            bps(after),
            bps(low),
            bps(high)
        ));
    }
    for place in [Place::Client, Place::Server] {
        let labels: Vec<&str> =
            diff.parameters.iter().filter(|it| it.at == place).map(|it| it.label.as_str()).collect();
        if !labels.is_empty() {
            let count = plural(labels.len() as u64, "parameter");
            summary.push(format!("{count} of the {place} changed: {}", labels.join(", ")));
        }
    }
    summary
}

/// Why the two can be compared only in part.
fn remarks(a: &Report, b: &Report) -> Vec<String> {
    let mut remarks = Vec::new();
    let mut unequal = |what: &str, a: &str, b: &str| {
        if a != b {
            remarks.push(format!("{what} is not the same: {a} in A, {b} in B"));
        }
    };
    unequal("the direction", a.verdict.direction.word(), b.verdict.direction.word());
    for (what, a, b) in
        [("the client", &a.hosts.client, &b.hosts.client), ("the server", &a.hosts.server, &b.hosts.server)]
    {
        if ![a, b].iter().any(|host| host.name.is_empty()) {
            unequal(what, &a.name, &b.name);
        }
    }
    for (side, report) in [("A", a), ("B", b)] {
        match &report.run.ending {
            Ending::Complete => {}
            Ending::Interrupted => remarks.push(format!("{side} was interrupted")),
            Ending::Failed(why) => remarks.push(format!("{side} failed: {why}")),
        }
    }
    remarks
}

/// In what the two loads differ.
fn loads(a: &LoadPlan, b: &LoadPlan) -> Option<String> {
    type Field = (&'static str, fn(&TcpPlan, &TcpPlan) -> bool);
    const FIELDS: &[Field] = &[
        ("streams", |a, b| a.streams == b.streams),
        ("duration", |a, b| (a.limit, a.omit_ms) == (b.limit, b.omit_ms)),
        ("message size", |a, b| (a.message_bytes, a.keeps_message_bytes) == (b.message_bytes, b.keeps_message_bytes)),
        ("fixed buffers", |a, b| {
            (a.send_buffer_bytes, a.receive_buffer_bytes) == (b.send_buffer_bytes, b.receive_buffer_bytes)
        }),
        ("congestion control", |a, b| a.congestion_control == b.congestion_control),
        ("MSS", |a, b| a.mss_bytes == b.mss_bytes),
        ("pacing", |a, b| a.pacing_bps == b.pacing_bps),
        ("application", |a, b| a.application == b.application),
    ];
    if a == b {
        return None;
    }
    let (LoadPlan::Tcp(a), LoadPlan::Tcp(b)) = (a, b) else {
        return Some("the loads are not the same".to_owned());
    };
    let fields: Vec<&str> = FIELDS.iter().filter(|(_, same)| !same(a, b)).map(|(name, _)| *name).collect();
    // The direction has a remark of its own.
    (!fields.is_empty()).then(|| format!("the loads are not the same: {}", fields.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_model::{Fact, Value};

    #[test]
    fn what_two_measurements_usually_differ_by_is_no_difference() {
        let of = |unit, a: f64, b: f64| apart(DiffGroup::TimeBudget, unit, [Some(a), Some(b)]);
        let loss = |a: f64, b: f64| apart(DiffGroup::Path, Unit::Fraction, [Some(a), Some(b)]);
        assert!(!of(Unit::BitsPerSecond, 941e6, 930e6) && of(Unit::BitsPerSecond, 941e6, 800e6));
        assert!(!of(Unit::Microseconds, 120.0, 250.0) && of(Unit::Microseconds, 20_000.0, 35_000.0));
        assert!(!of(Unit::Fraction, 0.96, 0.98) && of(Unit::Fraction, 0.96, 0.5));
        assert!(loss(0.0, 0.001) && !loss(0.0, 0.0001) && !loss(0.1, 0.11), "a small loss counts");
        let known = |values| apart(DiffGroup::Path, Unit::Bytes, values);
        assert!(known([None, Some(1.0)]) && !known([None, None]));
    }

    #[test]
    fn parameters_that_a_run_did_not_record_are_not_the_same() {
        let fact =
            |key: &str| Fact { key: key.into(), value: Value::Integer(1), unit: Unit::Number, source: "test".into() };
        let facts = [fact("nic.mtu"), fact("cpu.count")];
        let host = |facts| Known { facts, absent: &[] };
        let (all, one, silent) = (host(&facts), host(&facts[..1]), host(&[]));
        let says = |a, b| unknown_ends([a, b], ["A", "B"]);
        assert_eq!(says([all, one], [all, one]), None);
        assert_eq!(says([all, one], [one, one]).as_deref(), Some("1 parameter is known in one run only"));
        assert_eq!(
            says([silent, all], [silent, silent]).as_deref(),
            Some(
                "the parameters of the client were not recorded in run A; the parameters of the client and the server \
                were not recorded in run B"
            )
        );
    }

    #[test]
    fn loads_differ_by_what_their_users_chose() {
        let plan = |streams, direction| LoadPlan::Tcp(TcpPlan { streams, direction, ..TcpPlan::default() });
        use narrows_model::Direction::{Down, Up};
        assert_eq!(loads(&plan(1, Up), &plan(1, Down)), None);
        assert_eq!(loads(&plan(1, Up), &plan(4, Up)).as_deref(), Some("the loads are not the same: streams"));
        let udp = LoadPlan::Udp(narrows_model::UdpPlan::default());
        assert_eq!(loads(&plan(1, Up), &udp).as_deref(), Some("the loads are not the same"));
    }
}
