//! The body of a stored run: its JSON, as columns, compressed, with a checksum.

use crate::{LARGEST, columns};
use ring::digest::{SHA256, digest};
use serde_json::Value;
use zstd::bulk::{Compressor, Decompressor};

/// How a body is coded. A number in the store never changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Codec {
    Plain = 0,
    /// JSON as columns, zstd with [`DICTIONARY`].
    Columns = 1,
}

/// What runs have in common: keys, units, names of facts. Trained by `zstd --train --maxdict=32768` from the columns of the runs of
/// `fixtures/runs`; of a diagnosis it saves a quarter. It never changes: another one is another [`Codec`].
const DICTIONARY: &[u8] = include_bytes!("../dictionary/columns-1.zdict");

/// What stands in the store.
pub(crate) struct Body {
    pub(crate) codec: i64,
    pub(crate) sha256: Vec<u8>,
    pub(crate) bytes: Vec<u8>,
}

/// The level of zstd: higher ones take several times as long for a tenth less.
const LEVEL: i32 = 9;
/// That of large runs: a higher one takes tens of megabytes.
const LEVEL_PLAIN: i32 = 3;

/// Codes the JSON of a run.
pub(crate) fn encode(json: &[u8]) -> Result<Body, String> {
    // The columnar form is used only if it gives back exactly this value.
    let columnar = || {
        let json = Some(json).filter(|json| json.len() <= columns::TEXT_MAX)?;
        let value: Value = serde_json::from_slice(json).ok()?;
        let text = serde_json::to_vec(&columns::encode(value.clone())?).ok()?;
        let back = columns::decode(columns::tree(&text).ok()?).ok()?;
        (back == value).then_some(text)
    };
    let (codec, text) = columnar().map_or((Codec::Plain, None), |text| (Codec::Columns, Some(text)));
    let packed = match &text {
        Some(text) => Compressor::with_dictionary(LEVEL, DICTIONARY).and_then(|mut it| it.compress(text)),
        None => zstd::bulk::compress(json, LEVEL_PLAIN),
    };
    let bytes = packed.map_err(|error| error.to_string())?;
    Ok(Body { codec: codec as i64, sha256: digest(&SHA256, &bytes).as_ref().to_vec(), bytes })
}

/// The JSON of a body; the order of its keys may differ.
pub(crate) fn decode(body: &Body) -> Result<Vec<u8>, String> {
    if digest(&SHA256, &body.bytes).as_ref() != body.sha256 {
        return Err("its checksum does not match".to_owned());
    }
    let limit = usize::try_from(LARGEST).unwrap_or(usize::MAX);
    let plain = || zstd::bulk::decompress(&body.bytes, limit);
    let columnar =
        || Decompressor::with_dictionary(DICTIONARY).and_then(|mut it| it.decompress(&body.bytes, columns::TREE_MAX));
    match body.codec {
        0 => plain().map_err(|error| error.to_string()),
        1 => {
            let text = columnar().map_err(|error| error.to_string())?;
            json_of_columns(&text)
        }
        other => Err(format!("it has the unknown coding {other}; upgrade narrows")),
    }
}

/// The JSON of a run from its text as columns.
/// Errors: what is wrong with it.
pub fn json_of_columns(text: &[u8]) -> Result<Vec<u8>, String> {
    serde_json::to_vec(&columns::decode(columns::tree(text)?)?).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_too_long_is_not_unpacked() {
        let text = vec![b' '; columns::TREE_MAX + 1];
        let bytes = Compressor::with_dictionary(LEVEL, DICTIONARY).unwrap().compress(&text).unwrap();
        let body = Body { codec: 1, sha256: digest(&SHA256, &bytes).as_ref().to_vec(), bytes };
        // The error of the decompressor, not that of a parser.
        assert_eq!(decode(&body).unwrap_err(), "Destination buffer is too small");
    }

    #[test]
    fn a_body_comes_back_and_damage_is_noticed() {
        let json = br#"{"s":[{"a":1,"b":0.1},{"a":2,"b":0.2},{"a":4,"b":0.3}]}"#;
        let mut body = encode(json).unwrap();
        assert_eq!((body.codec, decode(&body).unwrap()), (1, json.to_vec()));
        *body.bytes.last_mut().unwrap() ^= 1;
        assert_eq!(decode(&body).unwrap_err(), "its checksum does not match");
        let body = encode(br#"{"~":1}"#).unwrap();
        assert_eq!((body.codec, decode(&body).unwrap()), (0, br#"{"~":1}"#.to_vec()));
    }

    /// Diagnoses of random paths: one in eleven, since the tree of a run takes its time without optimisation.
    #[test]
    fn a_diagnosis_takes_at_most_20_kib() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/runs/drawn.jsonl.zst");
        let lines = zstd::decode_all(&narrows_sys::files::read(file.as_ref(), 64 << 20).unwrap()[..]).unwrap();
        let (mut raw, mut stored, mut count) = (0, 0, 0);
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).step_by(11) {
            let run = serde_json::from_slice::<Value>(line).unwrap()["run"].take();
            let json = serde_json::to_vec(&run).unwrap();
            let body = encode(&json).unwrap();
            assert_eq!(body.codec, 1);
            assert_eq!(serde_json::from_slice::<Value>(&decode(&body).unwrap()).unwrap(), run);
            (raw, stored, count) = (raw + json.len(), stored + body.bytes.len(), count + 1);
        }
        println!("{count} diagnoses: {} bytes of JSON, {} bytes stored, on average", raw / count, stored / count);
        assert!(stored / count <= 20 << 10, "{}", stored / count);
    }
}
