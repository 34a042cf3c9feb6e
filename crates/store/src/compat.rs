//! The formats of stored runs, and how each is converted to today's. A new format is one line in [`FORMS`].

use crate::{Error, columns};
use narrows_model::Run;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// One step: converts a run to the next format.
pub type Upgrade = fn(Value) -> Result<Value, String>;

/// A past or present format.
pub struct Form {
    pub format: u32,
    /// The first program version that wrote it.
    pub since: &'static str,
    /// The step to the next format; `None` for the current one.
    pub upgrade: Option<Upgrade>,
}

/// Every format, oldest first. The last one is what this program writes.
pub const FORMS: &[Form] = &[
    // Format 1 was never released.
    Form { format: 2, since: "0.1.0", upgrade: None },
];

/// The fields that identify a format; everything else may differ between formats.
#[derive(Deserialize)]
struct Head {
    format: u64,
    #[serde(default)]
    made_by: Option<String>,
}

/// Parses a run of any known format.
/// Errors: the file and what is wrong with it: not a run, a newer format, a format that never existed.
pub fn read(bytes: &[u8], path: &Path) -> Result<Run, Error> {
    read_by(FORMS, bytes, path)
}

fn read_by(forms: &[Form], bytes: &[u8], path: &Path) -> Result<Run, Error> {
    let no_run = |why: String| Error::NoRun(path.to_owned(), why);
    let head: Head = serde_json::from_slice(bytes).map_err(|error| no_run(error.to_string()))?;
    let newest = forms.last().map_or(0, |form| form.format);
    let known = |format: u64| forms.iter().position(|form| u64::from(form.format) == format);
    let Some(at) = known(head.format) else {
        return Err(if head.format > u64::from(newest) {
            let made_by = head.made_by.unwrap_or_else(|| "unknown".to_owned());
            Error::TooNew { path: path.to_owned(), made_by, format: head.format, known: newest }
        } else {
            Error::NeverExisted(path.to_owned(), head.format)
        });
    };
    if at + 1 == forms.len() {
        // The current format, which is nearly every file: parsed directly, without an intermediate tree.
        return serde_json::from_slice(bytes).map_err(|error| no_run(error.to_string()));
    }
    let mut tree = columns::tree(bytes).map_err(no_run)?;
    for form in &forms[at..] {
        if let Some(upgrade) = form.upgrade {
            tree = upgrade(tree).map_err(|why| no_run(format!("format {}: {why}", form.format)))?;
        }
    }
    serde_json::from_value(tree).map_err(|error| no_run(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_ends_with_the_current_format() {
        assert_eq!(FORMS.last().unwrap().format, Run::FORMAT);
        for pair in FORMS.windows(2) {
            assert_eq!(pair[0].format + 1, pair[1].format);
            assert!(pair[0].upgrade.is_some(), "form {} has no way up", pair[0].format);
        }
        assert!(FORMS.last().unwrap().upgrade.is_none());
    }

    #[test]
    fn an_older_format_is_converted_step_by_step() {
        // A format 1 that called the id `name`, as an invented past.
        const WITH_PAST: &[Form] = &[
            Form {
                format: 1,
                since: "0.0.1",
                upgrade: Some(|mut tree| {
                    let map = tree.as_object_mut().ok_or("not a JSON object")?;
                    let id = map.remove("name").ok_or("it has no `name`")?;
                    map.insert("id".into(), id);
                    map.insert("format".into(), 2.into());
                    Ok(tree)
                }),
            },
            Form { format: 2, since: "0.1.0", upgrade: None },
        ];
        let run = crate::file::tests::run("20250101-000000-00000001");
        let mut tree = serde_json::to_value(&run).unwrap();
        let map = tree.as_object_mut().unwrap();
        map.insert("format".into(), 1.into());
        let without_name = serde_json::to_vec(&map).unwrap();
        let id = map.remove("id").unwrap();
        map.insert("name".into(), id);
        let old = serde_json::to_vec(&map).unwrap();
        assert_eq!(read_by(WITH_PAST, &old, Path::new("x")).unwrap(), run);
        let error = read_by(WITH_PAST, &without_name, Path::new("x")).unwrap_err().to_string();
        assert_eq!(error, "x is not a narrows run file: format 1: it has no `name`");
    }

    #[test]
    fn a_newer_format_is_explained() {
        let newer = br#"{"format": 7, "made_by": "narrows 9.1.0", "whatever": [1, 2]}"#;
        let error = read(newer, Path::new("/tmp/a.run.json")).unwrap_err();
        assert_eq!(
            error.to_string(),
            "cannot read /tmp/a.run.json: written by a newer narrows (narrows 9.1.0) in format 7, this version reads \
            up to 2; upgrade narrows"
        );
        let error = read(br#"{"format": 0}"#, Path::new("a")).unwrap_err();
        assert_eq!(error.to_string(), "cannot read a: unknown format 0; the file is damaged");
    }

    #[test]
    fn an_invalid_run_is_named_with_its_line() {
        for (bytes, part) in [
            (&b"hello"[..], "line 1 column 1"),
            (b"", "EOF"),
            (b"{}", "missing field `format`"),
            (br#"{"format": 2}"#, "missing field"),
            (br#"{"format": -1}"#, "invalid value"),
        ] {
            let error = read(bytes, Path::new("there/x.json")).unwrap_err().to_string();
            assert!(error.starts_with("there/x.json is not a narrows run file: ") && error.contains(part), "{error}");
        }
    }
}
