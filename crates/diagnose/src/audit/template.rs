//! The sentences of hazards: text with the facts that a rule needs, by their number in `needs`.
//!
//! `{0}` is the first fact as people read it, `{0#}` the same as a plain number, `{0|eth0}` with a word for when the fact
//! is missing. A part in square brackets is left out where one of its facts is missing.

use narrows_model::words::show::nominal;
use narrows_model::words::units::{bps, bytes};
use narrows_model::{FactKey, Snapshot, Unit};

/// A fact by its number in the rule, and the host that knows it.
type Known<'a> = &'a dyn Fn(usize) -> Option<(&'a Snapshot, FactKey)>;

/// The text with its facts; `None` where a fact is missing that has neither brackets nor a word instead.
pub(super) fn fill(template: &str, known: Known<'_>) -> Option<String> {
    let Some((before, rest)) = template.split_once('[') else { return plain(template, known) };
    let (optional, after) = rest.split_once(']')?;
    Some(plain(before, known)? + &plain(optional, known).unwrap_or_default() + &fill(after, known)?)
}

fn plain(template: &str, known: Known<'_>) -> Option<String> {
    let mut parts = template.split('{');
    let mut text = parts.next()?.to_owned();
    for part in parts {
        let (place, after) = part.split_once('}')?;
        let (place, instead) = place.split_once('|').map_or((place, None), |(place, word)| (place, Some(word)));
        let (place, exact) = place.strip_suffix('#').map_or((place, false), |place| (place, true));
        let (host, key) = known(place.parse().ok()?)?;
        text += &show(host, key, exact).or_else(|| instead.map(str::to_owned))?;
        text += after;
    }
    Some(text)
}

fn show(host: &Snapshot, key: FactKey, exact: bool) -> Option<String> {
    if key.unit == Unit::Text {
        return host.text(key.name).map(str::to_owned);
    }
    let number = host.number(key.name)?;
    Some(match key.unit {
        _ if exact => whole(number).to_string(),
        Unit::Bytes => bytes(whole(number)),
        Unit::BitsPerSecond => nominal(&bps(number)),
        Unit::Fraction => format!("{number:.2}"),
        _ => whole(number).to_string(),
    })
}

/// A count as a whole number, for sentences.
pub(crate) const fn whole(value: f64) -> u64 {
    value as u64
}

#[cfg(test)]
mod tests {
    use super::super::rule::tests::host;
    use super::*;
    use narrows_model::Value;

    #[test]
    fn facts_are_shown_by_their_unit_and_may_be_missing() {
        const NEEDS: [FactKey; 3] = [
            FactKey::new("a.bytes", Unit::Bytes),
            FactKey::new("a.rate", Unit::BitsPerSecond),
            FactKey::new("a.name", Unit::Text),
        ];
        let host = host(&[
            ("a.bytes", Value::Integer(65536), Unit::Bytes),
            ("a.rate", Value::Integer(1_000_000_000), Unit::BitsPerSecond),
        ]);
        let text = |template: &str| fill(template, &|at| Some((&host, *NEEDS.get(at)?)));
        assert_eq!(text("{0} at {1}, {0#}").as_deref(), Some("64 KiB at 1 Gbit/s, 65536"));
        assert_eq!(text("of {2|DEVICE}[ by {2}][ at {1}].").as_deref(), Some("of DEVICE at 1 Gbit/s."));
        assert_eq!(text("of {2}"), None);
        assert_eq!(text("of {3}"), None);
    }
}
