//! What a trace shows, in sentences.

use super::hops::{lost_of, more, unlimited};
use super::place::place;
use narrows_model::trace::report::{TraceEnd, TraceFinding, TraceHop};
use narrows_model::words::figures::float;
use narrows_model::words::show::plural;
use narrows_model::words::units::percent;
use narrows_model::{AnswerKind, Ending, ProbePurpose, TraceProtocol, TraceRecord, TraceReport};

/// Probes by which hops in front of a loss are told from those behind it.
const SURE: u32 = 50;

/// Loss that is worth a sentence.
const LOSS: f64 = 0.05;
/// Hops that lose less than one in front of them do so by chance with this probability at least.
const CHANCE: f64 = 0.05;

/// The least size of a search for the MTU: what every IPv4 host must accept (RFC 791, section 3.2).
const LEAST_TRIED: u32 = 576;

fn finding(id: &str, harm: bool, says: String) -> TraceFinding {
    TraceFinding { id: id.to_owned(), harm, says }
}

/// All findings, harm first.
pub(super) fn findings(record: &TraceRecord, report: &TraceReport) -> Vec<TraceFinding> {
    let mut all = Vec::new();
    mtu(record, report, &mut all);
    end(record, report, &mut all);
    loss(record, report, &mut all);
    paths(report, &mut all);
    asymmetry(report, &mut all);
    nat(record, report, &mut all);
    all.sort_by_key(|it| !it.harm);
    all
}

fn mtu(record: &TraceRecord, report: &TraceReport, all: &mut Vec<TraceFinding>) {
    let between = |[after, before]: [u8; 2]| (place(&report.hops, after), place(&report.hops, before));
    let mut hole = |hops: [u8; 2], what: String, bytes: u32| {
        let (from, to) = between(hops);
        // Below what every host must take no size was tried: a probe of few bytes came through.
        let headers = if report.target.contains(':') { 60 } else { 40 };
        let lower = (bytes >= LEAST_TRIED).then(|| format!(", or lower the MSS to {}", bytes - headers));
        let says = format!(
            "between {from} and {to}, {what} vanish without an ICMP message; fix the filter or the MTU there{}",
            lower.unwrap_or_default()
        );
        all.push(finding("black-hole", true, says));
    };
    for step in report.mtu.iter().flat_map(|mtu| &mtu.steps).filter(|step| !step.reported) {
        hole([step.after_hop, step.before_hop], format!("packets above {} bytes", step.mtu_bytes), step.mtu_bytes);
    }
    if let Some(it) = super::mtu::hole(record, &report.hops) {
        let what = format!(
            "packets of {} bytes (those of {} pass; not all sizes were tried)",
            it.fails_bytes, it.passes_bytes
        );
        hole(it.between, what, it.passes_bytes);
    }
    for step in report.mtu.iter().flat_map(|mtu| &mtu.steps).filter(|step| step.reported) {
        let (from, to) = between([step.after_hop, step.before_hop]);
        let (bytes, by) = (step.mtu_bytes, step.address.as_deref().unwrap_or_default());
        let says = format!("the MTU shrinks to {bytes} bytes between {from} and {to}; {by} reports it");
        all.push(finding("mtu-shrinks", false, says));
    }
}

fn end(record: &TraceRecord, report: &TraceReport, all: &mut Vec<TraceFinding>) {
    match &report.end {
        TraceEnd::Rejected { ttl, hop, address, mark } => {
            let why = match mark.as_str() {
                "!A" => "administratively prohibited",
                "!H" => "host unreachable",
                "!N" => "network unreachable",
                "!P" => "protocol unreachable",
                "!<3>" => "port unreachable",
                _ => "unreachable",
            };
            let at = hop.map_or_else(|| format!("TTL {ttl}"), |hop| format!("hop {hop}"));
            let says = format!("{address} at {at} rejects the probes: {why} ({mark})");
            all.push(finding("filtered", true, says));
        }
        TraceEnd::Silent { after_hop } => {
            let from = place(&report.hops, *after_hop);
            let says = format!(
                "nothing answers behind {from}: a filter at or behind it drops {} or the ICMP answers; {}",
                match record.plan.protocol {
                    TraceProtocol::Tcp => format!("TCP to port {}", record.plan.port),
                    other => other.word().to_owned(),
                },
                beside(record)
            );
            all.push(finding("silent", true, says));
        }
        TraceEnd::Refused { ttl } => {
            // A router decides about the TTL before it filters, so the last one that answered has filtered nothing but what goes on.
            let last = report.hops.iter().rev().find(|hop| hop.ttl < *ttl && hop.answered > 0);
            let before = place(&report.hops, last.map_or(0, |hop| hop.ttl));
            let says = format!(
                "TCP to port {} is refused (RST): it is closed on the target, or a filter at or behind {before} answers in the target's name; \
                 --protocol icmp, or the --port of a service that is open, tells which",
                record.plan.port
            );
            all.push(finding("refused", false, says));
        }
        TraceEnd::Reached { .. } | TraceEnd::MaxHops => {}
    }
}

/// What other ports of a silent target say.
fn beside(record: &TraceRecord) -> String {
    let of = |answers: bool| {
        record.other_ports.iter().filter(move |(_, it)| **it == answers).map(|(port, _)| port.to_string())
    };
    let (answered, silent) = (of(true).collect::<Vec<_>>(), of(false).collect::<Vec<_>>());
    if !answered.is_empty() {
        return format!("TCP to {} is answered, so the filter is for this port", ports(&answered, "and"));
    }
    match silent.is_empty() {
        true => "try another --protocol or --port".to_owned(),
        false => format!("TCP to {} has no answer either", ports(&silent, "or")),
    }
}

/// `port 22`, `ports 22, 80 and 443`.
fn ports(all: &[String], word: &str) -> String {
    match all.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("ports {} {word} {last}", rest.join(", ")),
        _ => format!("port {}", all.concat()),
    }
}

/// Loss begins where it stays for all hops behind.
fn loss(record: &TraceRecord, report: &TraceReport, all: &mut Vec<TraceFinding>) {
    let limiting: Vec<&TraceHop> = report.hops.iter().filter(|hop| hop.limits_answers).collect();
    if let Some(worst) = limiting.iter().filter_map(|hop| hop.loss).reduce(f64::max) {
        let who = listed(&limiting);
        let says = format!(
            "{who}: up to {} of the probes have no answer, but later hops answer more; ICMP is limited there, the path \
             does not lose these packets",
            percent(worst)
        );
        all.push(finding("icmp-rate-limit", false, says));
    }
    // What rejects limits its answers, and it answers the probes to itself and to all hops behind it.
    let rejects = match &report.end {
        TraceEnd::Rejected { ttl, hop, .. } => hop.unwrap_or(*ttl),
        _ => u8::MAX,
    };
    let end = report.hops.last().map_or(0, |hop| hop.ttl);
    // What the target itself answers is not limited; ICMP errors may be limited everywhere (icmp(7), icmp_ratelimit).
    let by_target = matches!(report.end, TraceEnd::Reached { .. } | TraceEnd::Refused { .. })
        && record.plan.protocol != TraceProtocol::Udp;
    let counts = |hop: &TraceHop| match by_target && hop.ttl == end {
        true => lost_of(hop),
        false => unlimited(record, hop, end),
    };
    // Each hop with the probes whose answers no limit can have stopped.
    let answering: Vec<(&TraceHop, [u64; 2])> = report
        .hops
        .iter()
        .filter(|hop| hop.answered > 0 && !hop.limits_answers && hop.ttl < rejects)
        .map(|hop| (hop, counts(hop)))
        .collect();
    // A hop is behind a part of the loss if it, and all behind it, lose probes that no limit stops.
    let certain = |[missing, sent]: [u64; 2]| {
        missing > 1 && narrows_stats::wilson(missing, sent, 0.95).is_some_and(|[low, _]| low > LOSS)
    };
    // The last hop tells, or the last one in front of it where enough of its probes are beyond doubt.
    let lossy = |it: [u64; 2]| share(it).is_some_and(|lost| lost > LOSS);
    let behind = answering.len().saturating_sub(1);
    // Loss at a hop is loss of the path only where the hops behind it show it, too.
    let stays = |at: usize| {
        let behind = answering[at + 1..].iter().fold([0; 2], |sum, (_, it)| [sum[0] + it[0], sum[1] + it[1]]);
        narrows_stats::more_often(answering[at].1, behind).is_none_or(|p| p > CHANCE)
    };
    let tells = answering
        .iter()
        .enumerate()
        .rposition(|(at, (_, it))| lossy(*it) && (at == behind || (certain(*it) && stays(at))));
    let Some((&(last, total), before)) = tells.and_then(|at| answering[..=at].split_last()) else {
        let hops: Vec<&TraceHop> = answering.iter().map(|(hop, _)| *hop).filter(|hop| lost_of(hop)[0] > 0).collect();
        all.extend(unexplained(&hops, by_target, end));
        return;
    };
    let lost = share(total).unwrap_or_default();
    // The loss does not fall along the path. Answers that a limit stops only add to it, so a hop that loses less than those behind it is in
    // front of a part of the loss.
    let questions = 2 * answering.len() as u64;
    let from = (0..before.len()).rev().find(|at| {
        let here = lost_of(before[*at].0);
        let behind = before[at + 1..]
            .iter()
            .chain([&(last, total)])
            .fold([0; 2], |sum, (_, it)| [sum[0] + it[0], sum[1] + it[1]]);
        more(total, here, questions) || more(behind, here, questions)
    });
    let shows = before.iter().rev().take_while(|(_, it)| certain(*it)).count();
    let mut to = before.len() - shows;
    if let Some(from) = from {
        let here = lost_of(before[from].0);
        to = (to.max(from + 1)..before.len()).find(|at| more(before[*at].1, here, questions)).unwrap_or(before.len());
    }
    let (first, second) = (from.map_or(0, |at| before[at].0.ttl), answering[to].0.ttl);
    let (from_place, to_place) = (place(&report.hops, first), place(&report.hops, second));
    let rest = from.map(|at| before[at].0).and_then(|hop| hop.loss).filter(|loss| *loss > LOSS.min(lost / 2.0));
    let mut says = format!(
        "{} loss there and back{} between {from_place} and {to_place} ({} of {} to hop {}{} have no answer)",
        percent(lost),
        if rest.is_some() { ", a part of it" } else { " begins" },
        total[0],
        plural(total[1], "probe"),
        last.ttl,
        if total == lost_of(last) { "" } else { " whose answers no limit of ICMP can have stopped" }
    );
    if let Some(rest) = rest {
        says += &format!(
            "; whether {from_place}, with {}, is behind another part or limits its answers is not known",
            percent(rest)
        );
    }
    if by_target && second > first + 1 && record.plan.rounds < SURE {
        says += "; --count 50 narrows the place";
    }
    if !by_target {
        says += "; or the ICMP answers are limited from there on: only answers of the target itself (--protocol icmp, or tcp to an open \
                 port) exclude that";
    }
    all.push(finding("loss", by_target, says));
}

/// Missing answers that are no loss for certain: the table shows them, so it is said what they may be.
fn unexplained(hops: &[&TraceHop], by_target: bool, end: u8) -> Option<TraceFinding> {
    let most = hops.iter().max_by(|a, b| a.loss.unwrap_or(0.0).total_cmp(&b.loss.unwrap_or(0.0)))?;
    let [missing, sent] = lost_of(most);
    let why = match (by_target, hops.iter().any(|hop| hop.ttl == end)) {
        (true, false) => "the target answered all of its own, so the path is not known to lose any",
        (true, true) => "too few to tell loss from limited answers; --count 50 tells",
        (false, _) => {
            "ICMP errors may be limited there (Linux: one per second and host), so this is not known to be loss; answers of the \
             target itself tell (--protocol icmp, or tcp to an open port)"
        }
    };
    let up_to = if hops.len() > 1 { "up to " } else { "" };
    let says = format!("{}: {up_to}{missing} of {} have no answer; {why}", listed(hops), plural(sent, "probe"));
    Some(finding("missing-answers", false, says))
}

fn share([missing, sent]: [u64; 2]) -> Option<f64> {
    (sent > 0).then(|| float(missing) / float(sent))
}

fn paths(report: &TraceReport, all: &mut Vec<TraceFinding>) {
    let wide: Vec<&TraceHop> = report.hops.iter().filter(|hop| routers(hop) > 1).collect();
    let Some(widest) = wide.iter().max_by_key(|hop| routers(hop)) else { return };
    let sure = if wide.iter().all(|hop| hop.complete) { "with 95 % confidence no more" } else { "there may be more" };
    let says = format!(
        "{} on equal-cost paths at {}; {} tried, {sure}",
        plural(routers(widest) as u64, "router"),
        listed(&wide),
        plural(widest.flows.into(), "flow")
    );
    all.push(finding("ecmp", false, says));
}

fn routers(hop: &TraceHop) -> usize {
    hop.nodes.len()
}

/// `hop 3`, `hops 3, 4`
fn listed(hops: &[&TraceHop]) -> String {
    let ttls: Vec<String> = hops.iter().map(|hop| hop.ttl.to_string()).collect();
    format!("{} {}", if ttls.len() == 1 { "hop" } else { "hops" }, ttls.join(", "))
}

/// The reverse path of the last hop that answers is longer or shorter than the forward path. What rejects a probe of a higher TTL is nearer
/// than that.
fn asymmetry(report: &TraceReport, all: &mut Vec<TraceFinding>) {
    if let Some(back) = &report.back {
        return traced_asymmetry(report, back, all);
    }
    let back = |hop: &TraceHop| {
        let node = hop.nodes.iter().find(|node| node.marks.is_empty() && node.return_hops.is_some());
        node.and_then(|node| node.return_hops).map(|back| (hop.ttl, back))
    };
    let known: Vec<(u8, u8)> = report.hops.iter().filter_map(back).collect();
    let Some((ttl, last)) = known.last().copied().filter(|(ttl, back)| ttl != back) else { return };
    let first = known.iter().rposition(|(ttl, back)| ttl == back).map_or(known[0].0, |at| known[at + 1].0);
    let says = format!(
        "{} to {}, about {last} on the reverse path (by the TTL of the answers); the paths differ from hop {first} on",
        plural(ttl.into(), "hop"),
        place(&report.hops, ttl)
    );
    all.push(finding("asymmetry", false, says));
}

/// The same, where the path back was traced, too: its length and its MTU.
fn traced_asymmetry(report: &TraceReport, back: &TraceReport, all: &mut Vec<TraceFinding>) {
    let hops = |report: &TraceReport| match report.end {
        TraceEnd::Reached { ttl } => Some(ttl),
        _ => None,
    };
    if let Some((there, back)) = hops(report).zip(hops(back)).filter(|(there, back)| there != back) {
        let says = format!("{} there, {} back (both traced)", plural(there.into(), "hop"), plural(back.into(), "hop"));
        all.push(finding("asymmetry", false, says));
    }
    let mtu = |report: &TraceReport| report.mtu.as_ref().filter(|mtu| mtu.to_target).map(|mtu| mtu.path_bytes);
    if let Some((there, back)) = mtu(report).zip(mtu(back)).filter(|(there, back)| there != back) {
        all.push(finding("asymmetry", false, format!("path MTU {there} bytes there, {back} bytes back (both traced)")));
    }
}

/// A router that answers in the name of the target translates addresses.
fn nat(record: &TraceRecord, report: &TraceReport, all: &mut Vec<TraceFinding>) {
    let target = record.plan.target;
    let router = record.probes.iter().filter(|probe| {
        probe.answer.as_ref().is_some_and(|it| it.kind == AnswerKind::TimeExceeded && it.from == target)
    });
    if let Some(ttl) = router.map(|probe| probe.ttl).min() {
        let says = format!(
            "address translation (NAT) at or before {}: a router there answers with the target's address",
            place(&report.hops, ttl)
        );
        all.push(finding("nat", false, says));
    }
}

/// What was not measured, and why.
pub(super) fn remarks(record: &TraceRecord, report: &TraceReport) -> Vec<String> {
    let mut all = Vec::new();
    let plan = &record.plan;
    if plan.protocol == TraceProtocol::Tcp {
        all.push("path MTU: not measured, since a TCP SYN cannot be large; use --protocol udp or icmp".to_owned());
    } else if plan.mtu && report.mtu.is_none() && !plan.continuous {
        let sent = record.probes.iter().any(|probe| probe.purpose == ProbePurpose::Mtu);
        all.push(match sent {
            true if super::mtu::hole(record, &report.hops).is_some() => {
                "path MTU: the trace ended before it was known".to_owned()
            }
            true => "path MTU: unknown, since neither large probes nor small ones behind them got an answer".to_owned(),
            false if record.ending != Ending::Complete => {
                "path MTU: not measured, since the trace ended before".to_owned()
            }
            false => "path MTU: not measured, since no hop answers to which large probes could be sent".to_owned(),
        });
    }
    if record.unmatched > 0 {
        all.push(format!(
            "{} not counted: {}",
            plural(record.unmatched, "answer"),
            match plan.protocol {
                TraceProtocol::Tcp => "they came so late that they may be of a SYN that the kernel sent again",
                _ => "they quote too little of their probes to tell which",
            }
        ));
    }
    if record.forgotten > 0 {
        all.push(format!("the first {} are not in these figures", plural(record.forgotten, "probe")));
    }
    all
}
