//! The tracepoint's format from tracefs: its id, the offsets of its fields, and the names of the reasons. Reasons are
//! renumbered between kernels, and fields move.

use std::collections::BTreeMap;

/// Above the number of reasons of any kernel.
const REASONS_MAX: usize = 4096;

/// The location of a number in a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    /// The number, in the host's byte order.
    pub(super) fn of(self, data: &[u8]) -> Option<u64> {
        let bytes = data.get(self.offset..self.offset.checked_add(self.size)?)?;
        Some(match self.size {
            1 => u64::from(bytes[0]),
            2 => u64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
            4 => u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
            8 => u64::from_ne_bytes(bytes.try_into().ok()?),
            _ => return None,
        })
    }
}

/// The fields that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) reason: Field,
    pub(super) location: Option<Field>,
}

/// The format of the tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Format {
    pub(super) id: u64,
    pub(super) layout: Layout,
    names: BTreeMap<u32, String>,
}

impl Format {
    /// Parses `format`.
    /// Errors: one sentence: what is missing.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok());
        let id = id.ok_or("the description of skb:kfree_skb gives no number")?;
        let reason = field(text, "reason").ok_or("this kernel has no drop reasons (Linux 5.17 and later)")?;
        let layout = Layout { reason, location: field(text, "location") };
        Ok(Self { id, layout, names: names(text) })
    }

    /// The name of a reason: the kernel's own name, or for a subsystem's reason (its upper 16 bits,
    /// `include/net/dropreason.h`) both numbers.
    pub(super) fn name(&self, reason: u32) -> String {
        match self.names.get(&reason) {
            Some(name) => name.clone(),
            None if reason >> 16 == 0 => format!("REASON_{reason}"),
            None => format!("SUBSYSTEM_{}_{}", reason >> 16, reason & 0xffff),
        }
    }
}

/// A line such as `field:unsigned short protocol; offset:32; size:2; signed:0;`
fn field(text: &str, name: &str) -> Option<Field> {
    let line = text.lines().find(|line| {
        let declared = line.trim().strip_prefix("field:").and_then(|rest| rest.split(';').next());
        declared.and_then(|declared| declared.split_ascii_whitespace().last()) == Some(name)
    })?;
    let number = |word: &str| line.split(';').find_map(|part| part.trim().strip_prefix(word)?.trim().parse().ok());
    let field = Field { offset: number("offset:")?, size: number("size:")? };
    matches!(field.size, 1 | 2 | 4 | 8).then_some(field)
}

/// The pairs `{ 6, "SOCKET_RCVBUFF" }` after `REC->reason` in the `print fmt`.
fn names(text: &str) -> BTreeMap<u32, String> {
    let print = text.lines().find(|line| line.starts_with("print fmt:")).unwrap_or_default();
    let pairs = print.split("REC->reason").nth(1).unwrap_or_default();
    pairs
        .split('{')
        .skip(1)
        .take(REASONS_MAX)
        .filter_map(|pair| {
            let (number, rest) = pair.split_once(',')?;
            let name = rest.split('"').nth(1)?;
            let plain =
                !name.is_empty() && name.len() <= 64 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            Some((value(number.trim())?, name.to_owned())).filter(|_| plain)
        })
        .collect()
}

fn value(word: &str) -> Option<u32> {
    match word.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => word.parse().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Linux 6.18, with fewer reasons.
    const RECENT: &str = "name: kfree_skb\nID: 2310\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:void * skbaddr;\toffset:8;\tsize:8;\tsigned:0;\n\
        \tfield:void * location;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:void * rx_sk;\toffset:24;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned short protocol;\toffset:32;\tsize:2;\tsigned:0;\n\
        \tfield:enum skb_drop_reason reason;\toffset:36;\tsize:4;\tsigned:0;\n\n\
        print fmt: \"skbaddr=%p protocol=%u location=%pS reason: %s\", REC->skbaddr, REC->protocol, REC->location, \
        __print_symbolic(REC->reason, { 2, \"NOT_SPECIFIED\" }, { 6, \"SOCKET_RCVBUFF\" }, { 0x47, \"CPU_BACKLOG\" })\n";

    #[test]
    fn fields_and_names_are_those_of_this_kernel() {
        let format = Format::parse(RECENT).expect("a description");
        assert_eq!(format.id, 2310);
        assert_eq!(format.layout.reason, Field { offset: 36, size: 4 });
        assert_eq!(format.layout.location, Some(Field { offset: 16, size: 8 }));
        assert_eq!([6, 71].map(|reason| format.name(reason)), ["SOCKET_RCVBUFF", "CPU_BACKLOG"]);
        assert_eq!(format.name(99), "REASON_99");
        assert_eq!(format.name(3 << 16 | 5), "SUBSYSTEM_3_5");
        let mut data = [0; 40];
        data[36..].copy_from_slice(&6_u32.to_ne_bytes());
        assert_eq!(format.layout.reason.of(&data), Some(6));
        assert_eq!(format.layout.reason.of(&data[..38]), None);
    }

    #[test]
    fn a_kernel_without_reasons_is_an_error() {
        let old: String =
            RECENT.lines().filter(|line| !line.contains("reason;")).map(|line| format!("{line}\n")).collect();
        assert!(Format::parse(&old).is_err_and(|why| why.contains("5.17")));
        assert!(Format::parse("").is_err());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in "(field:|offset:|size:|reason|ID:|print fmt:|REC->|[0-9;{},\" \n]){0,60}") {
            let _ = Format::parse(&text);
        }
    }
}
