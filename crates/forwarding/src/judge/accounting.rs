//! The accounting of a trial: generator sent = first hop in = out + drops = … = receiver.
//!
//! Two counts are trusted: what the generator sent and what the receiver got, each frame once by its sequence number. At every
//! station between them the true count lies between these two, since no hop makes frames. That decides what a
//! disagreement is, and a false accusation is worse than *unknown*:
//!
//! - **Impossible counts disagree.** A hop that counts fewer frames than came out at the end, or more than were put in at the
//!   begin, beyond its own error, cannot be right, whatever happened on the way.
//! - **So do counts that grow along the way.** A hop that counts more than the one before it sent, or that sent more than it
//!   took: one of the two is wrong. Which, only a pattern can tell ([`known_pattern`]); without one both are named.
//! - **Falling counts are losses.** Where a count falls, and all that follows agrees with what came out at the end, frames
//!   were lost there: with the reason where the hop counts one, else *unexplained*, at or before that hop. Nothing says that
//!   a counter is wrong, so none is called wrong.
//! - **Frames to the hardware broadcast address** are put in with the others, and a router must not forward them (RFC 1812,
//!   section 5.3.4): what of them does not come out is *not forwarded*, and neither lost nor dropped ([`not_forwarded`](super::broadcast)).
//! - **Drops beyond what is missing** are other packets' or counted twice. The line says so; the trial stands, because what
//!   the tester counted stands.

use super::counts::{Counts, Hop, sum};
use super::losses::losses;
use super::pattern::known_pattern;
use crate::data::{AccountLine, Accounting, ForwardingPlan, ForwardingTrial};
use narrows_model::host::hop::DropCount;
use narrows_model::words::units::grouped;

/// A count on the way.
#[derive(Debug, Clone)]
pub(super) struct Post {
    /// Of whom, as sentences name it: `the generator`, `router`.
    pub(super) who: String,
    /// Index into the lines of the accounting.
    line: usize,
    /// `sent`, `in`, `out`, `received`.
    what: &'static str,
    pub(super) frames: u64,
    pub(super) error: u64,
}

impl Post {
    /// A count without its place in the accounting.
    pub(super) fn new(who: &str, frames: u64, error: u64) -> Self {
        Self { who: who.to_owned(), line: 0, what: "", frames, error }
    }
}

/// The accounting of one direction of a corrected trial: 0 forth, 1 back. It is empty where the trial does not have the direction.
///
/// Learning frames are not in it: counters are read after them.
pub fn account(plan: &ForwardingPlan, trial: &ForwardingTrial, direction: usize) -> Accounting {
    let Some(counts) = Counts::of(plan, trial, direction) else { return Accounting::default() };
    let mut lines = lines(&counts);
    let disagreement = disagreement(&counts, &mut lines);
    let found = if disagreement.is_some() { Vec::new() } else { losses(&counts, &mut lines) };
    let broadcast = (counts.broadcast.due > 0).then_some(counts.broadcast);
    Accounting { lines, lost: signed(counts.lost()), broadcast, found, disagreement }
}

fn signed(n: i128) -> i64 {
    i64::try_from(n).unwrap_or(if n < 0 { i64::MIN } else { i64::MAX })
}

fn lines(counts: &Counts) -> Vec<AccountLine> {
    let less = |a: Option<u64>, b: Option<u64>| Some(i128::from(a?) - i128::from(b?));
    let tester = |hop: &str, input, output, lost_before| AccountLine {
        hop: hop.to_owned(),
        input,
        output,
        lost_before,
        ..AccountLine::default()
    };
    let mut lines = vec![tester("generator", None, Some(counts.sent), None)];
    let mut before = Some(counts.sent);
    for hop in &counts.hops {
        lines.push(AccountLine {
            hop: hop.name.clone(),
            input: hop.input,
            output: hop.output,
            drops: hop.before.iter().chain(&hop.inside).cloned().collect::<Vec<DropCount>>(),
            lost_before: less(before, hop.input).map(signed),
            not_forwarded: hop.not_forwarded,
            unexplained: less(hop.input, hop.output)
                .map(|gone| signed(gone - sum(&hop.inside) - i128::from(hop.not_forwarded))),
            uncertainty: hop.uncertainty,
            trouble: hop.silent.clone(),
        });
        before = hop.output;
    }
    // Without a hop between, nobody else can have kept them back.
    let not_forwarded = if counts.hops.is_empty() { counts.broadcast.not_forwarded() } else { 0 };
    let lost_before = less(before, Some(counts.received)).map(|gone| signed(gone - i128::from(not_forwarded)));
    lines.push(AccountLine { not_forwarded, ..tester("receiver", Some(counts.received), None, lost_before) });
    lines
}

/// Every count that there is, in the order of the way.
pub(super) fn posts(counts: &Counts) -> Vec<Post> {
    let end = counts.hops.len() + 1;
    let tester = |who, line, what, frames| Post { line, what, ..Post::new(who, frames, 0) };
    let mut posts = vec![tester("the generator", 0, "sent", counts.sent)];
    for (index, hop) in counts.hops.iter().enumerate() {
        let post = |what, frames: Option<u64>| {
            frames.map(|frames| Post { line: index + 1, what, ..Post::new(&hop.name, frames, hop.uncertainty) })
        };
        posts.extend(post("in", hop.input));
        posts.extend(post("out", hop.output));
    }
    posts.push(tester("the receiver", end, "received", counts.received));
    posts
}

/// The first disagreement on the way; the line of the hop that is in trouble says so, too.
fn disagreement(counts: &Counts, lines: &mut [AccountLine]) -> Option<String> {
    if counts.received > counts.sent {
        let says = format!(
            "the receiver counts {} frames, but the generator sent only {}: frames of another generator, or a sender \
             that does not count all it sends",
            grouped(counts.received),
            grouped(counts.sent)
        );
        if let Some(line) = lines.last_mut() {
            line.trouble = Some(says.clone());
        }
        return Some(says);
    }
    let posts = posts(counts);
    // The first on the way; of one hop what cannot be comes before what only differs.
    let (line, says) =
        impossible(counts, &posts).into_iter().chain(growing(counts, &posts)).min_by_key(|(line, _)| *line)?;
    if let Some(line) = lines.get_mut(line) {
        line.trouble = Some(says.clone());
    }
    Some(says)
}

/// The first hop with a count that cannot be, whatever happened on the way.
fn impossible(counts: &Counts, posts: &[Post]) -> Option<(usize, String)> {
    let (least, most) = (counts.received, counts.sent);
    let wrong = |post: &Post| {
        let (low, high) = (post.frames.saturating_add(post.error), post.frames.saturating_sub(post.error));
        let limits = if low < least {
            format!("but {} came out at the receiver", grouped(least))
        } else if high > most {
            format!("but only {} were sent", grouped(most))
        } else {
            return None;
        };
        let pattern = [most, least].into_iter().find_map(|truth| known_pattern(post.frames, truth, post.error));
        let why = pattern.map_or_else(String::new, |pattern| format!("; {pattern}"));
        let (who, what, frames) = (&post.who, post.what, grouped(post.frames));
        Some((
            post.line,
            format!("at {who}: it counts {frames} frames {what}, {limits}{}{why}", give_or_take(post.error)),
        ))
    };
    posts.iter().find_map(wrong)
}

/// The first two neighbours of which the latter counts more.
fn growing(counts: &Counts, posts: &[Post]) -> Option<(usize, String)> {
    posts.windows(2).find_map(|pair| {
        let [before, after] = pair else { return None };
        let error = before.error.saturating_add(after.error);
        if after.frames <= before.frames.saturating_add(error) {
            return None;
        }
        let more = grouped(after.frames - before.frames);
        // The one before has too few, or the one after too many; the tester's own counts are not in doubt.
        let too_few = known_pattern(before.frames, after.frames, error)
            .or_else(|| known_pattern(before.frames, counts.sent, before.error));
        let too_many = known_pattern(after.frames, before.frames, error);
        let (line, at, why) = match (too_few, too_many) {
            (Some(why), None) => (before.line, format!("at {}", before.who), why),
            (None, Some(why)) => (after.line, format!("at {}", after.who), why),
            _ if before.line == after.line => {
                (after.line, format!("at {}", after.who), "one of them is wrong".to_owned())
            }
            _ => (after.line, format!("between {} and {}", before.who, after.who), "one of them is wrong".to_owned()),
        };
        let counts = format!(
            "{} counts {} frames {}, {more} more than {} {}",
            after.who,
            grouped(after.frames),
            after.what,
            if before.line == after.line { "it counts".to_owned() } else { format!("{} counts", before.who) },
            before.what,
        );
        Some((line, format!("{at}: {counts}{}; {why}", give_or_take(error))))
    })
}

/// The error in brackets, where there is one.
fn give_or_take(error: u64) -> String {
    if error == 0 { String::new() } else { format!(" (± {})", grouped(error)) }
}

impl Hop {
    /// Whether it gave a count at all.
    pub(super) const fn counts(&self) -> bool {
        self.input.is_some() || self.output.is_some()
    }
}
