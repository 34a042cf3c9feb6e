//! A stored run: read, diagnosed again and written in every format. Its corpus is `fixtures/runs`.

use super::records::write;
use narrows_render::{Format, Style};
use std::path::Path;

pub(crate) fn run(bytes: &[u8]) {
    let Ok(run) = narrows_store::compat::read(bytes, Path::new("fuzz")) else { return };
    narrows_runner::report(&run).iter().for_each(write);
    narrows_runner::search_report(&run).iter().for_each(write);
    narrows_runner::sweep_report(&run).iter().for_each(write);
    if let Some(measurement) = narrows_runner::measurement(&run) {
        for format in [Format::Text, Format::Json, Format::Ndjson, Format::Markdown, Format::Csv] {
            let _ = measurement.write(format, Style::default());
        }
    }
}
