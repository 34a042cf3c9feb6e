//! Where frames were lost, in words: only of an accounting in which no counter contradicts another.

use super::accounting::{Post, posts};
use super::counts::{Counts, sum};
use crate::data::AccountLine;
use narrows_model::host::hop::DropCount;
use narrows_model::words::units::grouped;

/// The sentences, in the order of the way. A line whose drops are more than what is missing there says so.
pub(super) fn losses(counts: &Counts, lines: &mut [AccountLine]) -> Vec<String> {
    let lost = counts.lost();
    if lost <= 0 {
        return Vec::new();
    }
    let mut sentences = Vec::new();
    let mut named = 0;
    // What was last counted, and hops since then that gave no count.
    let mut before = Post::new("the generator", counts.sent, 0);
    let mut silent: Vec<&str> = Vec::new();
    // What a hop since then rightly did not forward.
    let mut kept = if counts.hops.is_empty() { counts.not_forwarded() } else { 0 };
    for (index, hop) in counts.hops.iter().enumerate() {
        if !hop.counts() {
            silent.push(&hop.name);
            kept += i128::from(hop.not_forwarded);
            continue;
        }
        if let Some(input) = hop.input {
            let post = Post::new(&hop.name, input, hop.uncertainty);
            let gap = gap(&before, &post) - std::mem::take(&mut kept);
            named += before_input(gap, &before, &post, &silent, &hop.before, &mut sentences);
            silent.clear();
            before = post;
        }
        kept += i128::from(hop.not_forwarded);
        if let Some(output) = hop.output {
            let post = Post::new(&hop.name, output, hop.uncertainty);
            let drops: Vec<DropCount> = if hop.input.is_some() {
                hop.inside.clone()
            } else {
                hop.before.iter().chain(&hop.inside).cloned().collect()
            };
            let gap = gap(&before, &post) - std::mem::take(&mut kept);
            let (counted, trouble) = inside(gap, &before, &post, &silent, &drops, &mut sentences);
            named += counted;
            silent.clear();
            if let (Some(trouble), Some(line)) = (trouble, lines.get_mut(index + 1)) {
                line.trouble.get_or_insert(trouble);
            }
            before = post;
        }
    }
    let receiver = Post::new("the receiver", counts.received, 0);
    let gap = gap(&before, &receiver) - kept;
    named += before_input(gap, &before, &receiver, &silent, &[], &mut sentences);
    if named == 0 {
        let error: u64 = posts(counts).iter().fold(0, |sum, post| sum.saturating_add(post.error));
        sentences.push(format!(
            "{} lost, but the counters are not exact enough to say where (± {})",
            frames(lost),
            grouped(error)
        ));
    }
    sentences
}

/// By how much a count falls.
fn gap(before: &Post, after: &Post) -> i128 {
    i128::from(before.frames) - i128::from(after.frames)
}

/// What is missing between two stations, before the second one counts: `gap` is it.
fn before_input(
    gap: i128,
    before: &Post,
    after: &Post,
    silent: &[&str],
    drops: &[DropCount],
    says: &mut Vec<String>,
) -> i128 {
    let error = i128::from(before.error) + i128::from(after.error);
    let mut counted = 0;
    let claimed = sum(drops);
    if claimed > 0 && claimed <= gap.max(0) + error {
        says.push(format!("{} dropped by {}: {}", frames(claimed), after.who, reasons(drops)));
        counted = claimed;
    }
    let rest = gap - counted;
    if rest > error && rest > 0 {
        let by = match silent {
            [] => "which no counter explains".to_owned(),
            names => format!("where {} gave no counters", names.join(" and ")),
        };
        says.push(format!("{} lost between {} and {}, {by}", frames(rest), before.who, after.who));
        counted += rest;
    }
    counted
}

/// What is missing inside a hop (`gap` is it), and what its line must say of its drops.
fn inside(
    gap: i128,
    before: &Post,
    after: &Post,
    silent: &[&str],
    drops: &[DropCount],
    says: &mut Vec<String>,
) -> (i128, Option<String>) {
    let own = before.who == after.who;
    if !own && drops.is_empty() {
        return (before_input(gap, before, after, silent, drops, says), None);
    }
    // Both counts of a hop may be wrong.
    let error = i128::from(before.error) + i128::from(after.error);
    let claimed = sum(drops);
    if claimed > gap.max(0) + error {
        let trouble = format!(
            "it says that it dropped {} ({}), but only {} are missing: some are of other traffic, or counted twice",
            frames(claimed),
            reasons(drops),
            grouped(gap.max(0))
        );
        if gap > error {
            says.push(format!("{} lost at {}, by its counters for: {}", frames(gap), after.who, reasons(drops)));
            return (gap, Some(trouble));
        }
        return (0, Some(trouble));
    }
    let mut counted = 0;
    if claimed > 0 {
        says.push(format!("{} dropped by {}: {}", frames(claimed), after.who, reasons(drops)));
        counted = claimed;
    }
    let rest = gap - counted;
    if rest > error && rest > 0 {
        let at = if own { format!("in {}", after.who) } else { format!("between {} and {}", before.who, after.who) };
        says.push(format!("{} lost {at}, which none of its counters explains", frames(rest)));
        counted += rest;
    }
    (counted, None)
}

/// `1 frame`, `1,234 frames`.
fn frames(n: i128) -> String {
    format!("{} frame{}", grouped(n), if n == 1 { "" } else { "s" })
}

/// `nftables rule 1,000, qdisc r1 3`; one reason without its number.
fn reasons(drops: &[DropCount]) -> String {
    match drops {
        [only] => only.reason.clone(),
        many => {
            many.iter().map(|drop| format!("{} {}", drop.reason, grouped(drop.frames))).collect::<Vec<_>>().join(", ")
        }
    }
}
