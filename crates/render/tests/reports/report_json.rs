//! The JSON of a diagnosis: what scripts rely on, and its published schema.

use crate::samples;

use narrows_model::Report;
use narrows_render::json;
use serde_json::Value;

#[test]
#[allow(clippy::disallowed_methods)] // a test that reads pages
fn the_published_schemas_are_fresh() {
    for name in json::schema_names() {
        let page = format!("{}/../../docs/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
        // Without both texts: they are long.
        assert!(
            std::fs::read_to_string(page).ok() == json::schema(name).unwrap(),
            "run: cargo run -p narrows-render --example schema -- {name} > docs/{name}.schema.json"
        );
    }
    assert_eq!(json::schema("nothing").unwrap(), None);
}

/// Each path with the kind of value it must hold. `*` is any index. Scripts rely on these: add, never take away.
const PROMISED: &[(&str, &str)] = &[
    ("schema", "string"),
    ("verdict.status", "string"),
    ("verdict.goodput_bps", "number"),
    ("verdict.direction", "string"),
    ("verdict.causes.*.id", "string"),
    ("verdict.causes.*.at", "string"),
    ("verdict.causes.*.confidence", "number"),
    ("verdict.causes.*.ceiling_bps", "number"),
    ("verdict.causes.*.predicted_bps", "number"),
    ("verdict.causes.*.predicted_interval_bps.*", "number"),
    ("verdict.causes.*.witnesses.*", "object"),
    ("verdict.causes.*.rejected.*.id", "string"),
    ("verdict.causes.*.rejected.*.why", "string"),
    ("verdict.causes.*.fix.commands.*", "object"),
    ("accounts.roofline.*.id", "string"),
    ("accounts.roofline.*.at", "string"),
    ("accounts.roofline.*.bps", "number"),
    ("accounts.roofline.*.interval_bps.*", "number"),
    ("accounts.roofline.*.method", "string"),
    ("accounts.time_budget.app_idle", "number"),
    ("accounts.time_budget.receive_window", "number"),
    ("accounts.time_budget.send_buffer", "number"),
    ("accounts.time_budget.congestion_window", "number"),
    ("accounts.time_budget.recovery", "number"),
    ("accounts.time_budget.unexplained", "number"),
    ("hosts.client.facts.*.key", "string"),
    ("hosts.client.facts.*.value", "any"),
    ("hosts.client.facts.*.unit", "string"),
    ("hosts.client.facts.*.source", "string"),
    ("hosts.server.facts.*.key", "string"),
    ("proof.before_bps.*", "number"),
    ("proof.after_bps.*", "number"),
    ("proof.gain", "number"),
    ("proof.gain_interval.*", "number"),
    ("proof.predicted_bps", "number"),
];

/// The type of a value, as readers of JSON see it.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn at<'a>(value: &'a Value, path: &[&str]) -> Vec<&'a Value> {
    let Some((first, rest)) = path.split_first() else { return vec![value] };
    match value {
        Value::Array(items) if *first == "*" => items.iter().flat_map(|item| at(item, rest)).collect(),
        Value::Object(map) => map.get(*first).map_or_else(Vec::new, |inner| at(inner, rest)),
        _ => vec![],
    }
}

#[test]
fn holds_what_scripts_rely_on() {
    let report: Value = serde_json::from_str(&json::pretty(&samples::three_acts()).unwrap()).unwrap();
    for (path, wanted) in PROMISED {
        let found = at(&report, &path.split('.').collect::<Vec<_>>());
        assert!(!found.is_empty(), "{path} is gone");
        for value in found {
            assert!(*wanted == "any" || kind(value) == *wanted, "{path} is {value}, not a {wanted}");
        }
    }
    assert_eq!(report["schema"], "narrows.report/1");
    assert_eq!(report["verdict"]["status"], "limited");
    assert_eq!(report["verdict"]["causes"][0]["at"], "server");
}

#[test]
fn every_status_word() {
    let word = |report: &Report| serde_json::to_value(report).unwrap()["verdict"]["status"].clone();
    assert_eq!(word(&samples::limited()), "limited");
    assert_eq!(word(&samples::healthy()), "healthy");
    assert_eq!(word(&samples::suspected()), "suspected");
    assert_eq!(word(&samples::unknown()), "unknown");
}

#[test]
fn comes_back_as_it_was() {
    for (name, report) in samples::all() {
        let text = json::pretty(&report).unwrap();
        assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report, "{name}");
        assert_eq!(json::line(&report).unwrap().lines().count(), 1);
    }
}

#[test]
fn the_schema_asks_for_every_key_of_a_report() {
    let schema: Value = serde_json::from_str(&json::schema("report").unwrap().unwrap()).unwrap();
    let report = serde_json::to_value(samples::three_acts()).unwrap();
    for key in report.as_object().unwrap().keys() {
        assert!(schema["properties"].get(key).is_some(), "{key}");
    }
}
