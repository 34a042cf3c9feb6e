//! From form 1, which had a list of trials and a plan of its own for each kind of load, to form 2, in which a load, a record and a
//! sample name their kind.

use serde_json::{Map, Value, json};

/// The lists of trials of form 1, each with the kind of its load.
const LISTS: [(&str, &str); 3] = [("trials", "tcp"), ("udp", "udp"), ("rr", "rr")];
/// Plans of form 1 with the kind of their load.
const MEASURED: [(&str, &str); 3] = [("measure_tcp", "tcp"), ("measure_udp", "udp"), ("measure_rr", "rr")];

/// Turns a run of form 1 into form 2. What it does not know stays as it is, for the reader of form 2 to name.
pub(crate) fn upgrade(mut run: Value) -> Result<Value, String> {
    let map = run.as_object_mut().ok_or("not a JSON object")?;
    map.insert("format".into(), 2.into());
    if let Some(plan) = map.get_mut("plan").and_then(Value::as_object_mut) {
        plan_of(plan);
    }
    for attempt in array(map, "attempts").into_iter().flatten() {
        if let Some(attempt) = attempt.as_object_mut() {
            one_load(attempt, "udp_load");
        }
    }
    let mut trials = Vec::new();
    for (list, kind) in LISTS {
        for mut record in map.remove(list).and_then(|list| list.as_array().cloned()).unwrap_or_default() {
            if let Some(trial) = record.get_mut("trial").and_then(Value::as_object_mut) {
                ["plan", "client", "server"].iter().for_each(|part| name_kind(trial, part, kind));
            }
            trials.push(record);
        }
    }
    trials.sort_by_key(|record| record.get("at_us").and_then(Value::as_u64));
    map.insert("trials".into(), trials.into());
    Ok(run)
}

fn array<'a>(map: &'a mut Map<String, Value>, key: &str) -> Option<&'a mut Vec<Value>> {
    map.get_mut(key)?.as_array_mut()
}

fn plan_of(plan: &mut Map<String, Value>) {
    for (old, kind) in MEASURED {
        if let Some(load) = plan.remove(old) {
            plan.insert("measure".into(), json!({ kind: load }));
        }
    }
    if let Some(diagnose) = plan.get_mut("diagnose").and_then(Value::as_object_mut) {
        one_load(diagnose, "udp");
    }
}

/// `load` of TCP and another key of UDP, which came first where it was there, become one `load`.
fn one_load(map: &mut Map<String, Value>, udp: &str) {
    match map.remove(udp) {
        Some(plan) if !plan.is_null() => {
            map.insert("load".into(), json!({ "udp": plan }));
        }
        _ => name_kind(map, "load", "tcp"),
    }
}

fn name_kind(map: &mut Map<String, Value>, key: &str, kind: &str) {
    if let Some(value) = map.get_mut(key).filter(|value| !value.is_null()) {
        *value = json!({ kind: value.take() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_of_all_kinds_become_one_list_in_the_order_of_time() {
        let record = |at_us: u64| json!({"at_us": at_us, "trial": {"plan": {}, "client": {}, "server": {}}});
        let old = json!({
            "format": 1,
            "plan": {"measure_rr": {"streams": 1}},
            "trials": [record(0), record(9)],
            "udp": [record(5)],
            "attempts": [],
        });
        let new = upgrade(old).unwrap();
        let kinds: Vec<_> = new["trials"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["trial"]["server"].as_object().unwrap().keys().next().unwrap().as_str())
            .collect();
        assert_eq!(kinds, ["tcp", "udp", "tcp"]);
        assert_eq!((&new["format"], &new["plan"]), (&json!(2), &json!({"measure": {"rr": {"streams": 1}}})));
    }

    #[test]
    fn of_two_loads_the_one_of_udp_counted() {
        let plan = json!({"diagnose": {"load": {"streams": 1}, "udp": {"streams": 2}, "budget_ms": 7}});
        let attempts = json!([{"act": 0, "load": {"streams": 3}}, {"act": 1, "load": null}]);
        let new = upgrade(json!({"format": 1, "plan": plan, "trials": [], "attempts": attempts})).unwrap();
        assert_eq!(new["plan"], json!({"diagnose": {"load": {"udp": {"streams": 2}}, "budget_ms": 7}}));
        assert_eq!(new["attempts"], json!([{"act": 0, "load": {"tcp": {"streams": 3}}}, {"act": 1, "load": null}]));
    }
}
