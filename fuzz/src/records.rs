//! Records of a forwarding benchmark and of raw frames, through their views to bytes.

use narrows_forwarding::data::ab::AbRecord;
use narrows_forwarding::data::record::ForwardingRecord;
use narrows_forwarding::views;
use narrows_model::load::frames::{GenerateRecord, ReceiveRecord};
use narrows_render::{Document, Style};
use narrows_views::frames;

/// Each format of a report.
pub(crate) fn write<R: Document>(report: &R) {
    for format in R::formats() {
        assert!(report.write(format, Style::default()).is_ok_and(|text| text.is_some()));
    }
}

pub(crate) fn run(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 4 {
        0 => {
            if let Ok(record) = serde_json::from_slice::<ForwardingRecord>(bytes) {
                write(&views::report(&record));
            }
        }
        1 => {
            if let Ok(record) = serde_json::from_slice::<AbRecord>(bytes) {
                write(&views::report_pair(&record));
            }
        }
        2 => {
            if let Ok(record) = serde_json::from_slice::<GenerateRecord>(bytes) {
                write(&frames::generate(&record, Some(1_000_000_000)));
            }
        }
        _ => {
            if let Ok(record) = serde_json::from_slice::<ReceiveRecord>(bytes) {
                write(&frames::receive(&record, None));
            }
        }
    }
}
