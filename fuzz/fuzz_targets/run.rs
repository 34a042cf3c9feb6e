//! A stored run: read, diagnosed and rendered, whatever it says. Begin with `fixtures/runs` as corpus.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_render::{Style, json, markdown, text};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let Ok(run) = narrows_store::compat::read(bytes, Path::new("fuzz")) else { return };
    if let Some(report) = narrows_diagnose::report(&run) {
        assert!(json::pretty(&report).is_ok());
        let _ = (text::report(&report, Style::default()), markdown::report(&report));
    }
    let _ = narrows_render::measure::build(&run);
});
