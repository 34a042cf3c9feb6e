//! Answers and events as gzip, where the client takes it: a record is text that says nearly the same a hundred times, and a slow path
//! carries it with the next trial waiting.

use flate2::Compression;
use flate2::write::{GzDecoder, GzEncoder};
use std::io::{self, Write as _};

/// The name of the encoding (RFC 9110 8.4.1.3).
pub const ENCODING: &str = "gzip";

/// Packs a stream, so that what was put in comes out at once.
#[derive(Debug)]
pub struct Packer(GzEncoder<Vec<u8>>);

impl Default for Packer {
    fn default() -> Self {
        Self(GzEncoder::new(Vec::new(), Compression::fast()))
    }
}

impl Packer {
    /// The packed form of these bytes, after all that were packed before.
    pub fn pack(&mut self, bytes: &[u8]) -> Vec<u8> {
        // Writing into memory does not fail.
        let _ = self.0.write_all(bytes).and_then(|()| self.0.flush());
        std::mem::take(self.0.get_mut())
    }

    /// The packed form of these bytes, the last ones, with the stream's end and checksum.
    pub fn finish(mut self, bytes: &[u8]) -> Vec<u8> {
        // Writing into memory does not fail.
        let _ = self.0.write_all(bytes);
        self.0.finish().unwrap_or_default()
    }
}

/// Whether a client takes packed answers, by its `Accept-Encoding` (RFC 9110 12.5.3).
pub fn is_taken(accepts: &str) -> bool {
    accepts.split(',').any(|one| {
        let mut words = one.split(';').map(str::trim);
        let refused = |word: &str| word.strip_prefix("q=").is_some_and(|weight| weight.parse() == Ok(0.0));
        words.next() == Some(ENCODING) && !words.any(refused)
    })
}

#[derive(Debug)]
pub struct Unpacker(GzDecoder<Vec<u8>>);

impl Default for Unpacker {
    fn default() -> Self {
        Self(GzDecoder::new(Vec::new()))
    }
}

impl Unpacker {
    /// What these bytes hold, after all that were unpacked before.
    /// Errors: they are not packed, or hold more than `limit` bytes.
    pub fn unpack(&mut self, bytes: &[u8], limit: usize) -> io::Result<Vec<u8>> {
        let mut whole = Vec::new();
        // A small piece holds a thousand times as much at most.
        for piece in bytes.chunks(16 << 10) {
            self.0.write_all(piece)?;
            self.0.flush()?;
            whole.append(self.0.get_mut());
            if whole.len() > limit {
                return Err(io::Error::other(format!("it decompresses to more than {limit} bytes")));
            }
        }
        Ok(whole)
    }

    /// Ends the stream.
    /// Errors: it was cut short, or its checksum is not that of what it held.
    pub fn finish(mut self) -> io::Result<()> {
        self.0.try_finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out_at_once(lines in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20)) {
            let (mut packer, mut unpacker) = (Packer::default(), Unpacker::default());
            for line in lines {
                prop_assert_eq!(unpacker.unpack(&packer.pack(&line), 1 << 20).expect("sound"), line);
            }
        }

        #[test]
        fn any_bytes_are_unpacked_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Unpacker::default().unpack(&bytes, 1 << 20);
        }
    }

    #[test]
    fn an_answer_that_is_cut_short_is_noticed() {
        let whole = Packer::default().finish(b"an answer");
        let mut unpacker = Unpacker::default();
        assert_eq!(unpacker.unpack(&whole, 100).expect("sound"), b"an answer");
        assert!(unpacker.finish().is_ok());
        let mut unpacker = Unpacker::default();
        let _ = unpacker.unpack(&whole[..whole.len() - 5], 100);
        assert!(unpacker.finish().is_err());
    }

    #[test]
    fn clients_say_what_they_take() {
        assert!(is_taken("gzip") && is_taken("br, gzip;q=0.5"));
        assert!(!is_taken("") && !is_taken("gzip;q=0") && !is_taken("br, gzip; q=0.0") && !is_taken("xgzip"));
    }

    #[test]
    fn a_bomb_is_refused_before_it_is_whole() {
        let packed = Packer::default().pack(&vec![b' '; 40 << 20]);
        assert!(packed.len() < 1 << 20, "{}", packed.len());
        let why = Unpacker::default().unpack(&packed, 1 << 20).expect_err("too much").to_string();
        assert_eq!(why, "it decompresses to more than 1048576 bytes");
    }

    #[test]
    fn a_record_shrinks_to_a_tenth() {
        let sample = |n: usize| {
            format!(r#"{{"at_us":{},"tcp":{{"snd_cwnd":{},"rtt_us":{}}}}},"#, n * 100_000, n % 90, 20_000 + n * 7 % 900)
        };
        let record: String = (0..2_000).map(sample).collect();
        let packed = Packer::default().pack(record.as_bytes());
        assert!(packed.len() * 5 < record.len(), "{} of {}", packed.len(), record.len());
    }
}
