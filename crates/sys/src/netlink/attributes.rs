//! Netlink attributes: type, length, value; nested. Source: kernel `include/uapi/linux/netlink.h`, `struct nlattr`.

use super::{Error, Result, u16_at};

const HEADER: usize = 4;
const NESTED: u16 = libc::NLA_F_NESTED as u16;
/// Without the flags for nested and network byte order.
const TYPE: u16 = libc::NLA_TYPE_MASK as u16;

/// One attribute of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// Its type, without flags.
    pub kind: u16,
    /// Its value, without padding.
    pub payload: &'a [u8],
}

impl<'a> Attribute<'a> {
    fn array<const N: usize>(&self) -> Option<[u8; N]> {
        self.payload.get(..N)?.try_into().ok()
    }

    pub fn u8(&self) -> Option<u8> {
        self.payload.first().copied()
    }

    /// As a 16-bit number of the host's byte order.
    pub fn u16(&self) -> Option<u16> {
        self.array().map(u16::from_ne_bytes)
    }

    /// As a 32-bit number of the host's byte order.
    pub fn u32(&self) -> Option<u32> {
        self.array().map(u32::from_ne_bytes)
    }

    /// As a 64-bit number of the host's byte order.
    pub fn u64(&self) -> Option<u64> {
        self.array().map(u64::from_ne_bytes)
    }

    /// As a 32-bit number of network byte order.
    pub fn be32(&self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    /// As a 64-bit number of network byte order.
    pub fn be64(&self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// As text, up to the first zero byte.
    pub fn text(&self) -> Option<String> {
        let end = self.payload.iter().position(|byte| *byte == 0).unwrap_or(self.payload.len());
        std::str::from_utf8(self.payload.get(..end)?).ok().map(str::to_owned)
    }

    pub fn nested(&self) -> Attributes<'a> {
        attributes(self.payload)
    }

    /// The first nested attribute of that type.
    pub fn find(&self, kind: u16) -> Option<Attribute<'a>> {
        find(self.payload, kind)
    }
}

/// The attributes in `bytes` in order; ends where one does not fit.
pub fn attributes(bytes: &[u8]) -> Attributes<'_> {
    Attributes(bytes)
}

/// The first attribute of that type.
pub fn find(bytes: &[u8], kind: u16) -> Option<Attribute<'_>> {
    attributes(bytes).find(|attribute| attribute.kind == kind)
}

/// An iterator over attributes.
#[derive(Debug, Clone)]
pub struct Attributes<'a>(&'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = Attribute<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(u16_at(self.0, 0)?);
        let kind = u16_at(self.0, 2)? & TYPE;
        let payload = self.0.get(HEADER..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(Attribute { kind, payload })
    }
}

/// Builds a payload: the family's header, then attributes.
#[derive(Debug, Clone, Default)]
pub struct Builder {
    bytes: Vec<u8>,
    too_long: Option<u16>,
}

impl Builder {
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts with the family's own header (`ifinfomsg`, `tcmsg`, `genlmsghdr`, …).
    pub fn with_header(header: &[u8]) -> Self {
        let mut bytes = header.to_vec();
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        Self { bytes, too_long: None }
    }

    /// Adds an attribute of plain bytes.
    pub fn bytes(&mut self, kind: u16, value: &[u8]) -> &mut Self {
        let start = self.open(kind);
        self.bytes.extend_from_slice(value);
        self.close(start, kind);
        self
    }

    /// Adds an attribute without a value.
    pub fn flag(&mut self, kind: u16) -> &mut Self {
        self.bytes(kind, &[])
    }

    pub fn u8(&mut self, kind: u16, value: u8) -> &mut Self {
        self.bytes(kind, &[value])
    }

    /// Adds a 16-bit number of the host's byte order.
    pub fn u16(&mut self, kind: u16, value: u16) -> &mut Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Adds a 32-bit number of the host's byte order.
    pub fn u32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Adds a 64-bit number of the host's byte order.
    pub fn u64(&mut self, kind: u16, value: u64) -> &mut Self {
        self.bytes(kind, &value.to_ne_bytes())
    }

    /// Adds a 32-bit number of network byte order.
    pub fn be32(&mut self, kind: u16, value: u32) -> &mut Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Adds a 64-bit number of network byte order.
    pub fn be64(&mut self, kind: u16, value: u64) -> &mut Self {
        self.bytes(kind, &value.to_be_bytes())
    }

    /// Adds text with a terminating zero byte.
    pub fn text(&mut self, kind: u16, value: &str) -> &mut Self {
        let start = self.open(kind);
        self.bytes.extend_from_slice(value.as_bytes());
        self.bytes.push(0);
        self.close(start, kind);
        self
    }

    /// Adds a nested attribute with what `fill` adds.
    pub fn nest(&mut self, kind: u16, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let start = self.open(kind | NESTED);
        fill(self);
        self.close(start, kind);
        self
    }

    /// Like [`Builder::nest`], with a family's header before the inner attributes (`VETH_INFO_PEER` has an `ifinfomsg`).
    pub fn nest_with_header(&mut self, kind: u16, header: &[u8], fill: impl FnOnce(&mut Self)) -> &mut Self {
        self.nest(kind, |inner| {
            inner.bytes.extend_from_slice(header);
            inner.bytes.resize(inner.bytes.len().next_multiple_of(4), 0);
            fill(inner);
        })
    }

    /// The payload.
    /// Errors: an attribute that does not fit into netlink's 16-bit length.
    pub fn finish(self) -> Result<Vec<u8>> {
        match self.too_long {
            None => Ok(self.bytes),
            Some(kind) => Err(Error::AttributeTooLong { kind }),
        }
    }

    fn open(&mut self, kind: u16) -> usize {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&0_u16.to_ne_bytes());
        self.bytes.extend_from_slice(&kind.to_ne_bytes());
        start
    }

    fn close(&mut self, start: usize, kind: u16) {
        match u16::try_from(self.bytes.len() - start) {
            Ok(length) => {
                if let Some(field) = self.bytes.get_mut(start..start + 2) {
                    field.copy_from_slice(&length.to_ne_bytes());
                }
            }
            Err(_) => self.too_long = self.too_long.or(Some(kind)),
        }
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_attributes_are_read_back() {
        let mut builder = Builder::with_header(&[7; 6]);
        builder.u32(1, 0xdead_beef).text(2, "eth0").flag(3).nest(4, |inner| {
            inner.u8(1, 9).be64(2, 5);
        });
        let bytes = builder.finish().expect("it fits");
        let body = &bytes[8..]; // the header is padded
        assert_eq!(find(body, 1).and_then(|a| a.u32()), Some(0xdead_beef));
        assert_eq!(find(body, 2).and_then(|a| a.text()).as_deref(), Some("eth0"));
        assert_eq!(find(body, 3).map(|a| a.payload.len()), Some(0));
        let nest = find(body, 4).expect("the nest, without its flag");
        assert_eq!(nest.find(1).and_then(|a| a.u8()), Some(9));
        assert_eq!(nest.find(2).and_then(|a| a.be64()), Some(5));
        assert_eq!(attributes(body).count(), 4);
    }

    #[test]
    fn an_attribute_that_does_not_fit_is_an_error() {
        let mut builder = Builder::new();
        builder.bytes(5, &vec![0; 65_532]);
        assert!(matches!(builder.finish(), Err(Error::AttributeTooLong { kind: 5 })));
    }

    #[test]
    fn truncated_bytes_end_the_list() {
        let mut builder = Builder::new();
        builder.u32(1, 1).u32(2, 2);
        let bytes = builder.finish().expect("it fits");
        for end in 0..bytes.len() {
            assert!(attributes(&bytes[..end]).count() <= 1);
        }
    }
}
