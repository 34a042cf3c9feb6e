//! Tolerant parsers of the kernel's text files: an unexpected item is skipped with an error and the rest is kept; all have
//! limits.

use crate::Missing;
use narrows_model::words::units;
use std::str::FromStr;

/// Maximum number of lines per file.
const LINES_MAX: usize = 20_000;
/// Maximum number of words per line.
const WORDS_MAX: usize = 4_096;
/// Maximum number of CPUs in a list: twice the kernel's own limit.
const CPUS_MAX: usize = 16_384;
/// Maximum length of a name.
const NAME_MAX: usize = 128;

/// The lines of a text with their numbers from 1, up to the limit.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().take(LINES_MAX).enumerate().map(|(index, line)| (index + 1, line))
}

/// The words of a line, up to the limit.
pub(crate) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split_ascii_whitespace().take(WORDS_MAX)
}

pub(crate) fn number<T: FromStr>(path: &str, line: usize, word: &str) -> Result<T, Missing> {
    word.trim().parse().map_err(|_| bad(path, line, word, "number"))
}

/// One hexadecimal number without a prefix.
pub(crate) fn hexadecimal(path: &str, line: usize, word: &str) -> Result<u64, Missing> {
    u64::from_str_radix(word.trim(), 16).map_err(|_| bad(path, line, word, "hexadecimal number"))
}

/// An unexpected item; its text is truncated to a readable length.
pub(crate) fn bad(path: &str, line: usize, item: &str, wanted: &'static str) -> Missing {
    Missing::Parse { path: path.to_owned(), line, item: item.chars().take(60).collect(), wanted }
}

/// Whether a word can be the name of a counter: printable, of reasonable length.
pub(crate) fn is_name(word: &str) -> bool {
    !word.is_empty() && word.len() <= NAME_MAX && word.chars().all(|c| c.is_ascii_graphic())
}

/// An item of a text: its name, and its number or why there is none.
pub(crate) type Item<'a, T> = (&'a str, Result<T, Missing>);

/// `Name: 12 kB` or `name 12`: the first word and the number after it. Lines without a number are items with an error.
pub(crate) fn key_values<'a>(path: &'a str, text: &'a str) -> impl Iterator<Item = Item<'a, i64>> {
    lines(text).filter_map(move |(line, content)| {
        let mut words = words(content);
        let name = words.next()?.trim_end_matches(':');
        let value = words
            .next()
            .map_or_else(|| Err(bad(path, line, content, "name and number")), |word| number(path, line, word));
        is_name(name).then_some((name, value))
    })
}

/// The number after a word on the line that begins so: `TCP: inuse 5 orphan 0 tw 0 alloc 7 mem 2`.
pub(crate) fn number_after(path: &str, text: &str, start: &str, word: &str) -> Result<i64, Missing> {
    let missing = || Missing::because(format!("{path} gives no memory of {start}"));
    let (line, content) = lines(text).find(|(_, content)| content.starts_with(start)).ok_or_else(missing)?;
    let found = words(content).skip_while(|found| *found != word).nth(1).ok_or_else(missing)?;
    number(path, line, found)
}

/// Pairs of lines, as in `/proc/net/netstat` and `/proc/net/snmp`: names, then numbers, both after the same prefix.
///
/// Yields prefix, name and number.
pub(crate) fn paired_lines<'a>(path: &str, text: &'a str) -> Vec<(&'a str, &'a str, Result<i64, Missing>)> {
    let mut items = Vec::new();
    let mut header: Option<(&str, &str)> = None;
    for (line, content) in lines(text) {
        let Some((prefix, rest)) = content.split_once(':') else {
            header = None;
            continue;
        };
        match header.take() {
            Some((same, names)) if same == prefix => {
                let pairs = words(names).zip(words(rest)).filter(|(name, _)| is_name(name));
                items.extend(pairs.map(|(name, word)| (prefix, name, number(path, line, word))));
            }
            _ => header = Some((prefix, rest)),
        }
    }
    items
}

/// A list of CPUs or nodes: `0-3,8`. Empty text is an empty list.
pub(crate) fn cpu_list(path: &str, text: &str) -> Result<Vec<u32>, Missing> {
    units::parse_list(text, CPUS_MAX).map_err(|part| bad(path, 1, &part, "list of CPUs"))
}

/// A CPU mask: hexadecimal words of 32 bits separated by commas, the highest first.
pub(crate) fn cpu_mask(path: &str, text: &str) -> Result<Vec<u32>, Missing> {
    let mut cpus = Vec::new();
    let words: Vec<&str> = text.trim().split(',').collect();
    if words.len() > CPUS_MAX / 32 {
        return Err(bad(path, 1, text, "mask of CPUs"));
    }
    for (index, word) in (0_u32..).zip(words.iter().rev()) {
        let bits = u32::from_str_radix(word, 16).map_err(|_| bad(path, 1, word, "mask of CPUs"))?;
        cpus.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| index * 32 + bit));
    }
    Ok(cpus)
}

/// A list of numbers as short ranges: `0-3`, `8`.
pub(crate) fn ranges(numbers: &[u32]) -> Vec<String> {
    let mut sorted = numbers.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let runs = sorted.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    runs.filter_map(|run| match (run.first()?, run.last()?) {
        (first, last) if first == last => Some(first.to_string()),
        (first, last) => Some(format!("{first}-{last}")),
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn pairs_of_lines_are_matched_by_their_prefix() {
        let text = "Tcp: MaxConn RetransSegs\nTcp: -1 42\nUdp: InDatagrams New\nUdp: 7 x\nOdd: a\nIp: b\nIp: 1\n";
        let items = paired_lines("/proc/net/snmp", text);
        assert_eq!(
            items[..3],
            [("Tcp", "MaxConn", Ok(-1)), ("Tcp", "RetransSegs", Ok(42)), ("Udp", "InDatagrams", Ok(7))]
        );
        let error = items[3].2.as_ref().expect_err("x is no number").to_string();
        assert_eq!(error, "/proc/net/snmp line 4: invalid number `x`");
        assert_eq!(items[4], ("Ip", "b", Ok(1)), "an odd line costs only itself");
    }

    #[test]
    fn lists_and_masks_of_cpus_agree() {
        let list = cpu_list("f", "0-2,32,35\n").expect("a list");
        assert_eq!(list, [0, 1, 2, 32, 35]);
        assert_eq!(cpu_mask("f", "00000009,00000007\n").expect("a mask"), list);
        assert_eq!(ranges(&list), ["0-2", "32", "35"]);
        assert!(cpu_list("f", "0-4294967295").is_err());
        assert!(cpu_list("f", "3-1").is_err());
        assert!(cpu_list("f", "\n").expect("none").is_empty());
    }

    #[test]
    fn key_values_take_the_number_after_the_name() {
        let items: Vec<_> = key_values("/proc/meminfo", "MemTotal:  2048 kB\n\nhalf\npswpin 3\n").collect();
        assert_eq!(items[0], ("MemTotal", Ok(2048)));
        assert!(items[1].1.is_err());
        assert_eq!(items[2], ("pswpin", Ok(3)));
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "\\PC{0,400}") {
            paired_lines("f", &text);
            let _ = key_values("f", &text).count();
            let _ = cpu_list("f", &text);
            let _ = cpu_mask("f", &text);
        }

        #[test]
        fn no_text_of_the_right_letters_panics(text in "[A-Za-z0-9:,\\-\\. \n]{0,400}") {
            paired_lines("f", &text);
            let _ = key_values("f", &text).count();
            let _ = cpu_list("f", &text);
            let _ = cpu_mask("f", &text);
        }

        #[test]
        fn ranges_name_what_a_list_names(mut cpus in proptest::collection::vec(0_u32..300, 0..40)) {
            cpus.sort_unstable();
            cpus.dedup();
            prop_assert_eq!(cpu_list("f", &ranges(&cpus).join(",")).expect("a list"), cpus);
        }
    }

    #[test]
    fn memory_is_parsed_after_its_name() {
        let text = "sockets: used 40
TCP: inuse 5 orphan 0 tw 0 alloc 7 mem 2
UDP: inuse 1
";
        assert_eq!(number_after("f", text, "TCP:", "mem"), Ok(2));
        assert!(number_after("f", text, "UDP:", "mem").is_err());
        let text = "UDP6: inuse 2
FRAG6: inuse 3 memory 13312
";
        assert_eq!(number_after("f", text, "FRAG6:", "memory"), Ok(13_312));
        assert!(
            number_after(
                "f", "FRAG: inuse 3
", "FRAG:", "memory"
            )
            .is_err()
        );
    }
}
