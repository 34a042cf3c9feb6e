//! Extensions of STAMP: type, length and value behind the datagram (RFC 8972 section 4).

use super::{CODE, Key};

/// Bytes before a value: flags, type, length.
pub const HEAD: usize = 4;
/// The reflector does not know the type: set by the sender, cleared by who knows it.
pub const UNKNOWN: u8 = 0x80;
/// The length is wrong.
pub const MALFORMED: u8 = 0x40;
/// The code does not fit.
pub const INTEGRITY: u8 = 0x20;

/// The types that narrows knows; a reflector passes on all others untouched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Type {
    /// Bytes without meaning, for the size.
    Padding = 1,
    /// Where the reflector's times come from.
    TimestampInfo = 3,
    /// DSCP and ECN as received.
    ClassOfService = 4,
    /// Packets sent and received.
    DirectMeasurement = 5,
    /// When the reply before this one really left.
    FollowUp = 7,
    /// The code over the sequence number and the extensions before it.
    Hmac = 8,
}

impl Type {
    const ALL: [Self; 6] =
        [Self::Padding, Self::TimestampInfo, Self::ClassOfService, Self::DirectMeasurement, Self::FollowUp, Self::Hmac];

    pub fn of(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|it| *it as u8 == number)
    }

    /// Bytes of its value; `None`: any number.
    pub const fn bytes(self) -> Option<usize> {
        match self {
            Self::Padding => None,
            Self::TimestampInfo | Self::ClassOfService => Some(4),
            Self::DirectMeasurement => Some(12),
            Self::FollowUp | Self::Hmac => Some(16),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tlv<'a> {
    /// [`UNKNOWN`], [`MALFORMED`], [`INTEGRITY`].
    pub flags: u8,
    /// Its type, if narrows knows it.
    pub kind: Option<Type>,
    /// Where it begins behind the datagram.
    pub at: usize,
    pub value: &'a [u8],
}

/// The extensions behind a datagram, as far as their lengths are right.
pub fn read(bytes: &[u8]) -> impl Iterator<Item = Tlv<'_>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let [flags, kind, high, low] = *bytes.get(at..)?.first_chunk::<HEAD>()?;
        let value = bytes.get(at + HEAD..at + HEAD + usize::from(u16::from_be_bytes([high, low])))?;
        let tlv = Tlv { flags, kind: Type::of(kind), at, value };
        at += HEAD + value.len();
        Some(tlv)
    })
}

/// Appends an extension as a sender sends it.
pub fn append(to: &mut Vec<u8>, kind: Type, value: &[u8]) {
    let length = u16::try_from(value.len()).unwrap_or(u16::MAX);
    to.extend_from_slice(&[UNKNOWN, kind as u8]);
    to.extend_from_slice(&length.to_be_bytes());
    to.extend_from_slice(&value[..length.into()]);
}

/// Appends the code over a datagram's sequence number and its extensions so far (section 4.8).
pub fn append_code(to: &mut Vec<u8>, key: &Key, sequence: u32) {
    let code = code(key, sequence, to);
    append(to, Type::Hmac, &code);
}

pub(super) fn code(key: &Key, sequence: u32, before: &[u8]) -> [u8; CODE] {
    key.code(&[&sequence.to_be_bytes()[..], before].concat())
}

/// Whether the extensions of an authenticated datagram are whole: there are none, padding alone, or a code that fits and has nothing but
/// padding behind it.
pub fn is_whole(extensions: &[u8], key: &Key, sequence: u32) -> bool {
    let all: Vec<Tlv<'_>> = read(extensions).collect();
    match all.iter().position(|tlv| tlv.kind == Some(Type::Hmac)) {
        Some(at) => {
            let text = [&sequence.to_be_bytes()[..], &extensions[..all[at].at]].concat();
            all[at + 1..].iter().all(|tlv| tlv.kind == Some(Type::Padding)) && key.verifies(&text, all[at].value)
        }
        None => all.is_empty() || matches!(&all[..], [one] if one.kind == Some(Type::Padding)),
    }
}

/// DSCP and ECN of a request as the reflector received them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClassOfService {
    /// The DSCP that the sender wants in the reply.
    pub wanted_dscp: u8,
    /// The DSCP of the request on arrival.
    pub dscp: u8,
    /// The ECN field of the request on arrival.
    pub ecn: u8,
    /// Whether the reflector refused the wanted DSCP.
    pub refused: bool,
}

impl ClassOfService {
    /// Its four bytes: DSCP1 (6 bits), DSCP2 (6), ECN (2), RP (2), reserved.
    pub fn write(self) -> [u8; 4] {
        let class = u16::from(self.wanted_dscp & 63) << 10 | u16::from(self.dscp & 63) << 4;
        let [a, b] = (class | u16::from(self.ecn & 3) << 2 | u16::from(self.refused)).to_be_bytes();
        [a, b, 0, 0]
    }

    pub fn read(value: &[u8]) -> Option<Self> {
        let [a, b, _, _] = *value.first_chunk::<4>()?;
        Some(Self { wanted_dscp: a >> 2, dscp: (a & 3) << 4 | b >> 4, ecn: b >> 2 & 3, refused: b & 3 != 0 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_code_covers_what_is_before_it() {
        let key = Key::new(b"0123456789abcdef").expect("a key");
        let mut all = Vec::new();
        assert!(is_whole(&all, &key, 3));
        append(&mut all, Type::Padding, &[0; 5]);
        assert!(is_whole(&all, &key, 3));
        append(&mut all, Type::ClassOfService, &[0; 4]);
        assert!(!is_whole(&all, &key, 3));
        append_code(&mut all, &key, 3);
        assert!(is_whole(&all, &key, 3) && !is_whole(&all, &key, 4));
        append(&mut all, Type::Padding, &[0; 8]);
        assert!(is_whole(&all, &key, 3));
        append(&mut all, Type::FollowUp, &[0; 16]);
        assert!(!is_whole(&all, &key, 3));
    }

    proptest! {
        #[test]
        fn classes_come_back(wanted_dscp in 0_u8..64, dscp in 0_u8..64, ecn in 0_u8..4, refused: bool) {
            let class = ClassOfService { wanted_dscp, dscp, ecn, refused };
            prop_assert_eq!(ClassOfService::read(&class.write()), Some(class));
        }

        #[test]
        fn any_bytes_end(bytes: Vec<u8>) {
            let read: Vec<_> = read(&bytes).collect();
            prop_assert!(read.iter().map(|tlv| HEAD + tlv.value.len()).sum::<usize>() <= bytes.len());
            let _ = is_whole(&bytes, &Key::new(b"k").expect("a key"), 0);
        }
    }
}
