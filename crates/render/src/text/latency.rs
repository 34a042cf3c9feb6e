//! The latency of the path idle and under the load, and where the difference waits.

use super::hosts::NARROW;
use super::page::Page;
use crate::words::{columns, right};
use narrows_model::run::report::{LatencySpread, Queue, WorkingLatency};
use narrows_model::words::units::micros;
use narrows_model::{Direction, Report};

pub(super) fn write(page: &mut Page, report: &Report) {
    let Some(latency) = &report.accounts.latency else { return };
    page.heading("latency", &format!("({}; {MEANING})", way(latency)));
    let [name, p50, p95, p99] = HEAD;
    let wide = if page.width() < NARROW { 8 } else { 11 };
    page.line(&line(name, &[p50, p95, p99].map(str::to_owned), wide));
    for (name, cells, of) in rows(latency) {
        let cells = line(name, &cells, wide);
        let whole = format!("{cells}  {of}");
        if columns(&whole) <= page.room() {
            page.line(&whole);
        } else {
            // Wrapped, the cells would not stand below their headings.
            page.line(&cells);
            page.labelled("    ", &of, None);
        }
    }
    if let Some(words) = waits(latency) {
        page.labelled("  ", &words, None);
    }
}

/// What is above the columns.
pub(crate) const HEAD: [&str; 4] = ["", "p50", "p95", "p99"];

/// What the round trips of the load are.
pub(crate) const MEANING: &str = "its own round trips, as TCP smooths them";

fn line(name: &str, cells: &[String; 3], wide: usize) -> String {
    let cells: String = cells.iter().map(|cell| right(cell, wide)).collect();
    let pad = " ".repeat(12_usize.saturating_sub(columns(name)));
    format!("  {name}{pad}{cells}")
}

/// Which way the load went.
pub(crate) fn way(latency: &WorkingLatency) -> &'static str {
    match latency.direction {
        Direction::Up => "load from client to server",
        Direction::Down => "load from server to client",
        Direction::Both => "load both ways",
    }
}

/// Name, percentiles, and of how many values.
pub(crate) fn rows(latency: &WorkingLatency) -> Vec<(&'static str, [String; 3], String)> {
    let time = |us: f64| micros(us.clamp(0.0, 1e12).round() as u64);
    let cells = |it: LatencySpread| [Some(it.p50), it.p95, it.p99].map(|us| us.map_or_else(|| "-".to_owned(), time));
    let idle = latency.idle_us.map(|it| ("idle", cells(it), format!("{} probes", it.count)));
    let loaded = latency.loaded_us.map_or_else(
        || ("under load", [(); 3].map(|()| "-".to_owned()), "nothing was acknowledged".to_owned()),
        |it| ("under load", cells(it), format!("{} samples", it.count)),
    );
    idle.into_iter().chain([loaded]).collect()
}

pub(crate) fn waits(latency: &WorkingLatency) -> Option<String> {
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
    let seen = (!seen.is_empty()).then(|| format!("the load adds {seen}"));
    let before = if seen.is_some() { "before that" } else { "before it is sent" };
    let socket = (!socket.is_empty()).then(|| format!("{before}, data waits {socket} in the {sender}'s socket"));
    let words: Vec<String> = seen.into_iter().chain(socket).collect();
    (!words.is_empty()).then(|| words.join("; "))
}
