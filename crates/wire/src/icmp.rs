//! ICMP errors: what type and code say (RFC 792, RFC 1812, RFC 4443), and the extensions that they carry (RFC 4884, RFC 4950).

use narrows_model::{AnswerKind, MplsLabel};

/// Label stack entries that are read; the rest of a deeper stack is left out.
const MAX_LABELS: usize = 16;
/// A router that is older than RFC 4884 puts extensions behind so many bytes of the packet that it quotes (RFC 4884, section 5.1).
const OLD_OFFSET: usize = 128;

/// What an ICMP error of this type and code says; `None`: not an answer to a probe.
pub const fn kind(ipv4: bool, kind: u8, code: u8) -> Option<AnswerKind> {
    use AnswerKind::{NoHost, NoNetwork, NoProtocol, Prohibited, Reached, TimeExceeded, TooBig, Unreachable};
    Some(match (ipv4, kind, code) {
        // In transit; code 1 is about reassembly.
        (true, 11, 0) | (false, 3, 0) => TimeExceeded,
        (true, 3, 3) | (false, 1, 4) => Reached,
        (true, 3, 4) | (false, 2, _) => TooBig,
        (true, 3, 0 | 6 | 11) | (false, 1, 0) => NoNetwork,
        (true, 3, 1 | 7 | 12) | (false, 1, 3) => NoHost,
        (true, 3, 2) | (false, 4, 1) => NoProtocol,
        (true, 3, 9 | 10 | 13) | (false, 1, 1 | 5 | 6) => Prohibited,
        (true, 3, code) | (false, 1, code) => Unreachable(code),
        _ => return None,
    })
}

/// The MPLS label stack in an ICMP error. `quoted`: the bytes behind the headers of the quoted packet, which had `header_bytes`;
/// `offset`: where the kernel found the extensions in them.
pub fn mpls(quoted: &[u8], offset: Option<usize>, header_bytes: usize) -> Vec<MplsLabel> {
    let offset = offset.unwrap_or_else(|| OLD_OFFSET.saturating_sub(header_bytes));
    let Some(extension) = quoted.get(offset..).filter(|bytes| is_extension(bytes)) else { return Vec::new() };
    let mut rest = extension.get(4..).unwrap_or_default();
    let mut labels = Vec::new();
    while let Some((&[l0, l1, class, kind], _)) = rest.split_first_chunk::<4>() {
        let length = usize::from(u16::from_be_bytes([l0, l1]));
        let Some(body) = rest.get(4..length) else { break };
        if (class, kind) == (1, 1) {
            labels.extend(body.as_chunks::<4>().0.iter().map(|entry| label(u32::from_be_bytes(*entry))));
        }
        rest = rest.get(length..).unwrap_or_default();
    }
    labels.truncate(MAX_LABELS);
    labels
}

const fn label(entry: u32) -> MplsLabel {
    let [_, _, low, ttl] = entry.to_be_bytes();
    MplsLabel { label: entry >> 12, class: low >> 1 & 7, ttl }
}

/// Version 2, and a checksum that is right or absent.
fn is_extension(bytes: &[u8]) -> bool {
    let Some(&[version, _, c0, c1]) = bytes.first_chunk() else { return false };
    version >> 4 == 2 && ((c0, c1) == (0, 0) || sum(bytes) == 0xFFFF)
}

/// The Internet checksum (RFC 1071), not inverted.
fn sum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| u64::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)])));
    let mut sum: u64 = words.sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A label stack as a router with RFC 4950 sends it, behind `offset` bytes.
    fn quoted(offset: usize, entries: &[u32]) -> Vec<u8> {
        let mut extension = vec![0x20, 0, 0, 0];
        extension.extend(u16::try_from(4 + 4 * entries.len()).expect("short").to_be_bytes());
        extension.extend([1, 1]);
        entries.iter().for_each(|entry| extension.extend(entry.to_be_bytes()));
        let checksum = !sum(&extension);
        extension[2..4].copy_from_slice(&checksum.to_be_bytes());
        [vec![0; offset], extension].concat()
    }

    #[test]
    fn types_and_codes_have_the_marks_of_traceroute() {
        let mark = |ipv4, of, code| kind(ipv4, of, code).map(AnswerKind::mark);
        let marks = [(3, 0), (3, 1), (3, 2), (3, 4), (3, 5), (3, 13)].map(|(of, code)| mark(true, of, code));
        assert_eq!(marks.map(Option::unwrap), ["!N", "!H", "!P", "!F", "!<5>", "!A"]);
        let marks = [(1, 0), (1, 1), (1, 2), (1, 3), (2, 0), (4, 1)].map(|(of, code)| mark(false, of, code));
        assert_eq!(marks.map(Option::unwrap), ["!N", "!A", "!<2>", "!H", "!F", "!P"]);
        assert_eq!(
            (kind(true, 11, 0), kind(false, 3, 0)),
            (Some(AnswerKind::TimeExceeded), Some(AnswerKind::TimeExceeded))
        );
        assert_eq!((kind(true, 3, 3), kind(false, 1, 4)), (Some(AnswerKind::Reached), Some(AnswerKind::Reached)));
        assert_eq!((kind(true, 11, 1), kind(true, 4, 0), kind(true, 8, 0)), (None, None, None));
    }

    #[test]
    fn a_label_stack_is_read_where_the_kernel_or_the_old_rule_puts_it() {
        let stack = [24_015 << 12 | 5 << 9 | 1, 16 << 12 | 1 << 8 | 254];
        let labels = [MplsLabel { label: 24_015, class: 5, ttl: 1 }, MplsLabel { label: 16, class: 0, ttl: 254 }];
        assert_eq!(mpls(&quoted(36, &stack), Some(36), 28), labels);
        assert_eq!(mpls(&quoted(100, &stack), None, 28), labels);
        assert_eq!(mpls(&quoted(36, &stack), Some(4), 28), []);
        let mut wrong = quoted(36, &stack);
        *wrong.last_mut().expect("bytes") ^= 1;
        assert_eq!(mpls(&wrong, Some(36), 28), [], "a wrong checksum");
        assert_eq!(mpls(&quoted(0, &[7 << 12; 40]), Some(0), 28).len(), MAX_LABELS);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read(bytes: Vec<u8>, offset: Option<u16>, header: u8) {
            let _ = mpls(&bytes, offset.map(usize::from), header.into());
            let whole = [&[0x20, 0, 0, 0][..], &bytes].concat();
            assert!(mpls(&whole, Some(0), 0).len() <= MAX_LABELS);
        }
    }
}
