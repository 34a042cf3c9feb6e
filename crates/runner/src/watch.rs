//! Watches interfaces: reads each end at an interval and passes on the view.

use crate::remote::{RemoteError, Session};
use narrows_model::{InterfaceSample, Place, WatchView};
use narrows_sys::clock;
use narrows_traffic::Stop;
use narrows_views::watch::Accumulator;
use std::time::Duration;

/// How often a wait checks the stop flag.
const POLL: Duration = Duration::from_millis(20);

/// One end and how its interfaces are read.
pub struct Watched<'a> {
    pub place: Place,
    pub host: String,
    /// Reads its interfaces; the error is a sentence.
    pub read: Box<dyn FnMut() -> Result<Vec<InterfaceSample>, String> + 'a>,
}

pub fn here() -> Watched<'static> {
    let read = || narrows_collect::interfaces().map_err(|missing| missing.to_string());
    Watched { place: Place::Client, host: narrows_sys::process::host_name(), read: Box::new(read) }
}

/// The server. After a lost connection it is not asked again, because each attempt would wait for a timeout.
pub fn there<'a>(session: &'a Session, host: &str) -> Watched<'a> {
    let mut lost: Option<String> = None;
    let read = move || {
        if let Some(why) = &lost {
            return Err(why.clone());
        }
        session.interfaces().map_err(|error| {
            let why = error.to_string();
            if matches!(error, RemoteError::Lost { .. }) {
                lost = Some(why.clone());
            }
            why
        })
    };
    Watched { place: Place::Server, host: host.to_owned(), read: Box::new(read) }
}

/// Watches until `stop` is set, `count` views were shown, or `show` returns false. The first view follows after the first interval,
/// because a rate needs two readings.
pub fn watch(
    ends: &mut [Watched<'_>],
    interval: Duration,
    count: Option<u64>,
    stop: &Stop,
    show: &mut dyn FnMut(&WatchView) -> bool,
) {
    let mut seen = Accumulator::new();
    read_all(ends, &mut seen);
    repeat(interval, count, stop, &mut || {
        read_all(ends, &mut seen);
        show(&seen.view())
    });
}

/// Calls `step` after each interval until `stop` is set, `count` steps were made, or `step` returns false.
pub(crate) fn repeat(interval: Duration, count: Option<u64>, stop: &Stop, step: &mut dyn FnMut() -> bool) {
    let mut due = clock::now();
    let mut made = 0;
    while count.is_none_or(|count| made < count) {
        // A step that took longer than the interval delays the following ones.
        due = (due + interval).max(clock::now());
        while !stop.is_set() && clock::now() < due {
            clock::sleep(due.saturating_duration_since(clock::now()).min(POLL));
        }
        if stop.is_set() || !step() {
            return;
        }
        made += 1;
    }
}

fn read_all(ends: &mut [Watched<'_>], seen: &mut Accumulator) {
    for end in ends {
        match (end.read)() {
            Ok(samples) => seen.push(end.place, &end.host, &samples),
            Err(why) => seen.silent(end.place, &why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An end whose interface gets a thousand bytes in each millisecond, and that is silent from a reading on.
    fn played(place: Place, silent_from: u64) -> Watched<'static> {
        let mut readings = 0;
        let read = move || {
            readings += 1;
            if readings > silent_from {
                return Err("it is gone".to_owned());
            }
            let (at_us, rx_bytes) = (readings * 1_000, readings * 1_000);
            Ok(vec![InterfaceSample { name: "eth0".into(), at_us, rx_bytes, ..InterfaceSample::default() }])
        };
        Watched { place, host: "a".into(), read: Box::new(read) }
    }

    #[test]
    fn so_many_views_are_shown_and_each_has_rates() {
        let mut ends = [played(Place::Client, u64::MAX), played(Place::Server, 2)];
        let mut views = Vec::new();
        watch(&mut ends, Duration::from_millis(1), Some(3), &Stop::new(), &mut |view| {
            views.push(view.clone());
            true
        });
        assert_eq!(views.len(), 3);
        for (at, view) in views.iter().enumerate() {
            let rx = view.ends[0].interfaces[0].rx;
            assert_eq!((rx.now_bps, rx.total_bytes), (Some(8e6), 1_000 * (at as u64 + 1)));
        }
        let silent: Vec<_> = views.iter().map(|view| view.ends[1].silent.as_deref()).collect();
        assert_eq!(silent, [None, Some("it is gone"), Some("it is gone")]);
    }

    #[test]
    fn a_raised_flag_and_a_reader_that_went_away_end_it() {
        let stop = Stop::new();
        let mut shown = 0;
        watch(&mut [played(Place::Client, 9)], Duration::from_millis(1), None, &stop, &mut |_| {
            shown += 1;
            stop.stop();
            true
        });
        assert_eq!(shown, 1);
        watch(&mut [played(Place::Client, 9)], Duration::from_millis(1), None, &Stop::new(), &mut |_| {
            shown += 1;
            shown < 4
        });
        assert_eq!(shown, 4);
        watch(&mut [played(Place::Client, 9)], Duration::from_secs(3600), None, &stop, &mut |_| {
            shown += 1;
            true
        });
        assert_eq!(shown, 4, "an interval is not waited for");
    }
}
