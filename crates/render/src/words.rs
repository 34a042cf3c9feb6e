//! Text in columns: cleaning, cutting, padding, wrapping. Every character counts as one column.

pub use narrows_model::words::show::{clean, plural};

use narrows_model::Flow;
use narrows_model::run::report::ProofView;
use narrows_model::words::figures::nanos;
use narrows_model::words::show::nominal;
use narrows_model::words::units::{bps, micros};

/// The text, or a dash for an unknown value.
pub fn or_dash(text: Option<String>) -> String {
    text.unwrap_or_else(|| "–".to_owned())
}

/// The nearest whole number.
pub fn rounded(value: f64) -> u64 {
    value.round() as u64
}

/// The width of a text in columns.
pub fn columns(text: &str) -> usize {
    text.chars().count()
}

/// The text in at most `max` columns. A longer one loses its middle: the ends of an address or a name matter more.
pub fn fit(text: &str, max: usize) -> String {
    let long = columns(text);
    if long <= max {
        return text.to_owned();
    }
    if max < 2 {
        return "…".chars().take(max).collect();
    }
    let tail = (max - 1) / 2;
    let head = max - 1 - tail;
    text.chars().take(head).chain(['…']).chain(text.chars().skip(long - tail)).collect()
}

/// The text in exactly `wide` columns, aligned left.
pub fn left(text: &str, wide: usize) -> String {
    let text = fit(text, wide);
    let blanks = wide - columns(&text);
    text + &" ".repeat(blanks)
}

/// The text in exactly `wide` columns, aligned right.
pub fn right(text: &str, wide: usize) -> String {
    let text = fit(text, wide);
    " ".repeat(wide - columns(&text)) + &text
}

/// The columns that fit into `room`, by position. Each has its width and its rank: those of the highest rank are left out first, and
/// those of rank 0 never.
pub(crate) fn fitting(columns: &[(usize, u8)], room: usize) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..columns.len()).collect();
    while kept.iter().map(|at| columns[*at].0).sum::<usize>() > room {
        let Some(least) = kept.iter().copied().max_by_key(|at| columns[*at].1).filter(|at| columns[*at].1 > 0) else {
            break;
        };
        kept.retain(|at| *at != least);
    }
    kept
}

/// Both ends of a flow.
pub(crate) const fn ends(flow: Flow) -> &'static str {
    match flow {
        Flow::Up => "client to server",
        Flow::Down => "server to client",
    }
}

/// Milliseconds as a time.
pub fn millis(ms: u64) -> String {
    micros(ms.saturating_mul(1000))
}

/// `200 ns`, `5 us`: a round time on an axis.
pub fn round_time(ns: u64) -> String {
    nominal(&nanos(ns))
}

/// The text in lines of at most `wide` columns; a longer word is cut.
pub fn wrap(text: &str, wide: usize) -> Vec<String> {
    let wide = wide.max(8);
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let mut rest: Vec<char> = word.chars().collect();
        if used > 0 && used + 1 + rest.len() > wide {
            lines.push(String::new());
            used = 0;
        }
        while !rest.is_empty() {
            let gap = usize::from(used > 0);
            let taken: Vec<char> = rest.drain(..rest.len().min(wide - used - gap)).collect();
            used += gap + taken.len();
            if let Some(line) = lines.last_mut() {
                line.extend(" ".chars().take(gap));
                line.extend(&taken);
            }
            if !rest.is_empty() {
                lines.push(String::new());
                used = 0;
            }
        }
    }
    lines
}

/// `602 to 666 Mbit/s`, `902 Mbit/s to 1.05 Gbit/s`.
pub fn range([low, high]: [f64; 2]) -> String {
    let (low, high) = (bps(low), bps(high));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((number, a)), Some((_, b))) if a == b => format!("{number} to {high}"),
        _ => format!("{low} to {high}"),
    }
}

/// Where a prediction should lie, or that it is a lower bound.
pub fn predicted(interval_bps: Option<[f64; 2]>) -> String {
    interval_bps.map_or_else(|| "at least: more was not measured".to_owned(), range)
}

/// The gain of a fix with its interval: `17.1 times as much, 16.7 to 17.5 at 95 %`.
pub fn times(proof: &ProofView) -> String {
    let (Some(gain), Some([low, high])) = (proof.gain, proof.gain_interval) else {
        return "nothing arrived without the fix".to_owned();
    };
    let digits = if gain >= 99.95 {
        0
    } else if gain >= 9.995 {
        1
    } else {
        2
    };
    format!("{gain:.digits$} times as much, {low:.digits$} to {high:.digits$} at 95 %")
}

/// `97 %`, `<1 %`, `0 %`: a share in whole percent.
pub fn share(part: f64) -> String {
    match part * 100.0 {
        percent if percent > 0.0 && percent < 1.0 => "<1 %".to_owned(),
        99.5..100.0 => ">99 %".to_owned(),
        percent => format!("{percent:.0} %"),
    }
}

/// Means of equal parts of the values as blocks of eight heights, with `bottom` or the lowest mean at the bottom. Values that differ by
/// less than a five-hundredth are the same.
pub(crate) fn sparkline(values: &[f64], wide: usize, bottom: Option<f64>) -> String {
    const BLOCKS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let columns = wide.min(values.len());
    let mean = |n: usize| {
        let part = &values[n * values.len() / columns..(n + 1) * values.len() / columns];
        part.iter().sum::<f64>() / part.len() as f64
    };
    let means: Vec<f64> = (0..columns).map(mean).collect();
    let low = bottom.unwrap_or_else(|| means.iter().copied().fold(f64::INFINITY, f64::min));
    let high = means.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // A difference that figures do not show is none.
    let span = if bottom.is_none() && high - low <= 0.002 * high.abs() { 0.0 } else { high - low };
    let block = |mean: f64| {
        BLOCKS[if span > 0.0 {
            ((mean - low) / span * 7.0).round() as usize
        } else if bottom.is_some() {
            0
        } else {
            3
        }]
    };
    means.into_iter().map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cutting_keeps_both_ends() {
        assert_eq!(fit("fe80::260:ddff:fe47:7d71%eth2", 13), "fe80::…1%eth2");
        assert_eq!(fit("abc", 3), "abc");
        assert_eq!(fit("abcd", 3), "a…d");
        assert_eq!(fit("abcd", 1), "…");
        assert_eq!(fit("abcd", 0), "");
        assert_eq!(left("ab", 4), "ab  ");
        assert_eq!(right("ab", 4), "  ab");
        assert_eq!(columns(&left("äöüß–abcdef", 6)), 6);
    }

    #[test]
    fn the_least_important_columns_are_left_out_first() {
        let columns = [(5, 0), (10, 2), (10, 1), (5, 0)];
        assert_eq!(fitting(&columns, 30), [0, 1, 2, 3]);
        assert_eq!(fitting(&columns, 29), [0, 2, 3]);
        assert_eq!(fitting(&columns, 19), [0, 3]);
        assert_eq!(fitting(&columns, 1), [0, 3]);
    }

    #[test]
    fn wrapping_never_exceeds_and_loses_nothing() {
        let text = "The server's receive window ends at 262144 bytes averyveryverylongwordwithoutanyblank end";
        for wide in [8, 13, 20, 40, 200] {
            let lines = wrap(text, wide);
            assert!(lines.iter().all(|line| columns(line) <= wide), "{wide}: {lines:?}");
            let letters = |s: &str| s.chars().filter(|c| *c != ' ').collect::<String>();
            assert_eq!(letters(&lines.concat()), letters(text));
        }
        assert_eq!(wrap("", 10), [""]);
    }

    #[test]
    fn a_sparkline_is_as_wide_as_its_values_or_its_room() {
        assert_eq!(sparkline(&[0.0, 3.5, 7.0], 10, None), "▁▅█");
        assert_eq!(sparkline(&[1.0, 1.0, 5.0, 5.0], 2, None), "▁█");
        assert_eq!(sparkline(&[2.0, 2.0], 5, None), "▄▄");
        assert_eq!(sparkline(&[47.80, 47.81], 5, None), "▄▄");
        assert_eq!(sparkline(&[], 5, None), "");
        assert_eq!(sparkline(&[1.0, 2.0], 5, Some(0.0)), "▅█");
        assert_eq!(sparkline(&[0.0, 0.0], 5, Some(0.0)), "▁▁");
    }
}
