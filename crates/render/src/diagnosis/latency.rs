//! The latency of the path idle and under the load, and where the difference waits.

use crate::doc::{Doc, Sentence};
use crate::table::{Cell, Column, Row, Table};
use narrows_model::run::report::{LatencySpread, Queue, WorkingLatency};
use narrows_model::words::units::micros;
use narrows_model::{Direction, Report};

pub(super) fn add(doc: Doc, report: &Report) -> Doc {
    let Some(latency) = &report.accounts.latency else { return doc };
    let columns = ["p50", "p95", "p99"].map(Column::figures);
    let columns: Vec<_> =
        [Column::words("")].into_iter().chain(columns).chain([Column::words("of").beneath(true)]).collect();
    let mut table = Table::new("", "", &columns);
    for (name, times, of) in rows(latency) {
        let cells = [name.to_owned()].into_iter().chain(times).chain([of]);
        table.rows.push(Row::new(cells.map(Cell::new).collect()));
    }
    doc.section("latency", &format!("{}; its own round trips, as TCP smooths them", way(latency)))
        .table(table)
        .sentences(waits(latency).map(|words| Sentence::new(&words)))
}

/// Which way the load went.
fn way(latency: &WorkingLatency) -> &'static str {
    match latency.direction {
        Direction::Up => "load from client to server",
        Direction::Down => "load from server to client",
        Direction::Both => "load both ways",
    }
}

/// Name, percentiles, and of how many values.
fn rows(latency: &WorkingLatency) -> Vec<(&'static str, [String; 3], String)> {
    let time = |us: f64| micros(us.clamp(0.0, 1e12).round() as u64);
    let cells = |it: LatencySpread| [Some(it.p50), it.p95, it.p99].map(|us| us.map_or_else(|| "-".to_owned(), time));
    let idle = latency.idle_us.map(|it| ("idle", cells(it), format!("{} probes", it.count)));
    let loaded = latency.loaded_us.map_or_else(
        || ("under load", [(); 3].map(|()| "-".to_owned()), "nothing was acknowledged".to_owned()),
        |it| ("under load", cells(it), format!("{} samples", it.count)),
    );
    idle.into_iter().chain([loaded]).collect()
}

fn waits(latency: &WorkingLatency) -> Option<String> {
    let sender = if latency.direction == Direction::Down { "server" } else { "client" };
    let of = |queues: &[Queue]| {
        let waits = latency.waits.iter().filter(|wait| queues.contains(&wait.queue));
        let words = waits.map(|wait| {
            let time = micros(wait.us.clamp(0.0, 1e12).round() as u64);
            match wait.queue {
                Queue::Socket => time,
                Queue::Device => format!("{time} in the queue of the {sender}'s device"),
                Queue::Path => format!("{time} on the path"),
                Queue::HostsOrReversePath => format!(
                    "{time} in the hosts (late acknowledgements, unread data) or on the reverse path: the path profile shows no such queue"
                ),
                Queue::PathOrHosts => format!("{time} on the path or in the hosts, which TCP's RTT does not tell apart"),
            }
        });
        words.collect::<Vec<_>>().join(", ")
    };
    let beyond = [Queue::Device, Queue::Path, Queue::HostsOrReversePath, Queue::PathOrHosts];
    let (seen, socket) = (of(&beyond), of(&[Queue::Socket]));
    // Waits that are too short to be distinguished have no place of their own.
    let told: f64 = latency.waits.iter().filter(|wait| beyond.contains(&wait.queue)).map(|wait| wait.us).sum();
    let rise = latency.loaded_us.zip(latency.idle_us).map(|(loaded, idle)| loaded.p50 - idle.p50);
    let rise = rise.filter(|rise| told < 0.95 * rise).map(|rise| micros(rise.clamp(0.0, 1e12).round() as u64));
    let seen = (!seen.is_empty()).then(|| match rise {
        Some(rise) => format!("the load adds {rise} (medians): {seen}, the rest in waits that are too short to locate"),
        None => format!("the load adds {seen}"),
    });
    let before = if seen.is_some() { "before that" } else { "before it is sent" };
    let socket = (!socket.is_empty()).then(|| format!("{before}, data waits {socket} in the {sender}'s socket"));
    let words: Vec<String> = seen.into_iter().chain(socket).collect();
    (!words.is_empty()).then(|| words.join("; "))
}
