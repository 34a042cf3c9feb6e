//! Connection tracking: entries, their limit, and what it dropped. Source: kernel `net/netfilter/nf_conntrack_standalone.c`,
//! `ct_cpu_seq_show`; `Documentation/networking/nf_conntrack-sysctl.rst`.

use crate::collector::{Class, Collector, Context, Sink, always};
use super::settings;
use crate::{Missing, parse};
use narrows_model::host::settings::Group;
use narrows_model::{FactKey, keys};

pub(super) const COLLECTOR: Collector = Collector {
    id: "conntrack",
    about: "tracked connections, their limit, packets dropped because the table was full",
    provides: &[
        keys::CONNTRACK_COUNT,
        keys::CONNTRACK_MAX,
        keys::CONNTRACK_DROP,
        keys::CONNTRACK_EARLY_DROP,
        keys::CONNTRACK_INSERT_FAILED,
    ],
    class: Class::Both,
    can_run: always,
    collect,
};

const STATISTICS: &str = "/proc/net/stat/nf_conntrack";

/// Columns of the statistics, by their names there.
const COLUMNS: [(&str, FactKey); 3] = [
    ("drop", keys::CONNTRACK_DROP),
    ("early_drop", keys::CONNTRACK_EARLY_DROP),
    ("insert_failed", keys::CONNTRACK_INSERT_FAILED),
];

fn collect(context: &Context<'_>, sink: &mut Sink<'_>) -> Result<(), Missing> {
    let text = context.host.read(STATISTICS);
    for (name, key) in COLUMNS {
        sink.put(key, text.as_ref().map_err(Clone::clone).and_then(|text| sum(text, name)), STATISTICS);
    }
    settings::read(context, sink, Group::Conntrack)
}

/// The sum of a column over the CPUs: a line of names, then a line of hexadecimal numbers for each.
fn sum(text: &str, column: &str) -> Result<u64, Missing> {
    let mut lines = parse::lines(text);
    let names = lines.next().map_or("", |(_, names)| names);
    let at = parse::words(names).position(|name| name == column);
    let at = at.ok_or_else(|| Missing::because(format!("{STATISTICS} of this kernel has no column {column}")))?;
    lines.try_fold(0_u64, |sum, (line, content)| {
        let word = parse::words(content).nth(at).ok_or_else(|| parse::bad(STATISTICS, line, content, "line of numbers"))?;
        Ok(sum.saturating_add(parse::hexadecimal(STATISTICS, line, word)?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Linux 6.18, two CPUs; the table was full.
    const TEXT: &str = "entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  \
                        expect_new expect_create expect_delete search_restart\n\
                        00000004  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000002 0000a0f1 00000001 \
                        00000000  00000000 00000000 00000000 00000000\n\
                        00000004  00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 00000000 0000000f 00000003 \
                        00000000  00000000 00000000 00000000 00000000\n";

    #[test]
    fn a_column_is_found_by_its_name_and_summed_over_the_cpus() {
        assert_eq!(sum(TEXT, "drop"), Ok(0xa0f1 + 0xf));
        assert_eq!(sum(TEXT, "early_drop"), Ok(4));
        assert_eq!(sum(TEXT, "insert_failed"), Ok(2));
    }

    #[test]
    fn a_column_or_a_number_that_is_not_there_says_so() {
        assert!(sum(TEXT, "evicted").expect_err("no such column").to_string().contains("no column evicted"));
        assert!(sum("", "drop").is_err());
        assert!(sum("entries drop\n0001\n", "drop").is_err());
        assert!(sum("entries drop\n0001 gone\n", "drop").is_err());
    }
}
