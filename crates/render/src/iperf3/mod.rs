//! Measurements in the shape of `iperf3 -J` (3.12), so that what reads that goes on working: the client's view, with iperf3's keys and types.

mod tcp;
mod udp;

pub(crate) use tcp::tcp;
pub(crate) use udp::udp;

use narrows_model::run::measure::EndCpu;
use narrows_model::run::report::RunView;
use narrows_model::words::date;
use narrows_model::{Ending, Flow};
use serde_json::{Map, Value, json};

/// The socket of a stream: iperf3 has file descriptors there, of which the first is mostly 5.
const fn socket(id: u32) -> u32 {
    id + 5
}

/// Puts keys into an object.
fn with(mut value: Value, more: Value) -> Value {
    if let (Value::Object(map), Value::Object(more)) = (&mut value, more) {
        map.extend(more);
    }
    value
}

/// A span: its times, its bytes and their rate.
fn span(from_s: f64, to_s: f64, bytes: u64, bps: f64) -> Value {
    json!({"start": from_s, "end": to_s, "seconds": to_s - from_s, "bytes": bytes, "bits_per_second": bps})
}

fn place(address: &str) -> (String, u16) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
    (host.trim_matches(['[', ']']).to_owned(), port.parse().unwrap_or(0))
}

/// A stream: its socket and the addresses of client and server.
fn connected(id: u32, client: &str, server: &str) -> Value {
    let ((local_host, local_port), (remote_host, remote_port)) = (place(client), place(server));
    json!({
        "socket": socket(id), "local_host": local_host, "local_port": local_port,
        "remote_host": remote_host, "remote_port": remote_port,
    })
}

/// `Mon, 23 Nov 2026 09:46:36 GMT`
fn http_date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let [year, month, day, hour, minute, second] = date::fields(seconds);
    let (weekday, month) = (DAYS[(seconds / 86_400 % 7) as usize], MONTHS[(month.clamp(1, 12) - 1) as usize]);
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

/// What both protocols begin with.
fn start(run: &RunView, connected: &[Value], bps: u64) -> Value {
    let seconds = run.started_unix_us / 1_000_000;
    let (host, port) = place(&run.target.address);
    json!({
        "connected": connected,
        "version": run.made_by,
        "system_info": run.made_by,
        "timestamp": {"time": http_date(seconds), "timesecs": seconds},
        "connecting_to": {"host": host, "port": port},
        "cookie": run.id,
        "target_bitrate": bps,
    })
}

/// CPU of both hosts, in percent of one CPU.
fn cpu(client: Option<&EndCpu>, server: Option<&EndCpu>) -> Value {
    let shares = |end: Option<&EndCpu>| {
        let host = end.and_then(|end| end.host);
        let percent = |cores: f64| cores * 100.0;
        host.map_or([0.0; 3], |host| {
            let (user, system) = (percent(host.user), percent(host.system + host.softirq));
            [user + system, user, system]
        })
    };
    let ([host_total, host_user, host_system], [remote_total, remote_user, remote_system]) =
        (shares(client), shares(server));
    json!({
        "host_total": host_total, "host_user": host_user, "host_system": host_system,
        "remote_total": remote_total, "remote_user": remote_user, "remote_system": remote_system,
    })
}

/// One interval of a flow: its streams, then all together.
struct Interval {
    flow: Flow,
    streams: Vec<Value>,
    sum: Value,
}

/// The intervals of all flows, in each the streams before their sum: the nth of each make one. Times are since the end of the omitted
/// part.
fn intervals(views: impl Iterator<Item = (Flow, Option<u32>, Value)>) -> Value {
    let (mut all, mut waiting) = (Vec::new(), Vec::new());
    for (flow, stream, value) in views {
        match stream {
            Some(_) => waiting.push(value),
            None => all.push(Interval { flow, streams: std::mem::take(&mut waiting), sum: value }),
        }
    }
    let (up, down): (Vec<_>, Vec<_>) = all.into_iter().partition(|interval| interval.flow == Flow::Up);
    if up.is_empty() || down.is_empty() {
        let alone = up.into_iter().chain(down);
        return alone.map(|it| json!({"streams": it.streams, "sum": it.sum})).collect();
    }
    let both = |(up, down): (Interval, Interval)| {
        let streams: Vec<_> = up.streams.into_iter().chain(down.streams).collect();
        json!({"streams": streams, "sum": up.sum, "sum_bidir_reverse": down.sum})
    };
    up.into_iter().zip(down).map(both).collect()
}

/// The keys of a flow's sums: those of the second flow of two have a suffix.
fn sums(flows: Vec<Vec<(&'static str, Value)>>) -> Map<String, Value> {
    let mut map = Map::new();
    for (nth, flow) in flows.into_iter().enumerate() {
        let suffix = if nth == 0 { "" } else { "_bidir_reverse" };
        map.extend(flow.into_iter().map(|(key, value)| (format!("{key}{suffix}"), value)));
    }
    map
}

/// The whole, with an error where there was one.
fn whole(start: Value, intervals: Value, end: Value, ending: &Ending) -> Value {
    let parts = [("start", start), ("intervals", intervals), ("end", end)];
    let value = Value::Object(parts.into_iter().map(|(key, part)| (key.to_owned(), part)).collect());
    match ending {
        Ending::Complete => value,
        Ending::Interrupted => with(value, json!({"error": "interrupt - the client has terminated"})),
        Ending::Failed(why) => with(value, json!({"error": format!("error - {why}")})),
    }
}
