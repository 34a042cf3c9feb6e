//! The kinds that a manifest can have, with their types in the schema of the API. These types ignore unknown fields and give missing ones a
//! default. So an object is read as its type and written again: what is not there any more is unknown, what is there now was missing.

use k8s_openapi::Resource;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, PersistentVolumeClaim, Service};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

struct Kind {
    api_version: &'static str,
    name: &'static str,
    /// Reads an object as this kind, and writes it again.
    rewrite: fn(&Value) -> Result<Value, String>,
}

const KINDS: &[Kind] = &[
    kind::<ConfigMap>(),
    kind::<DaemonSet>(),
    kind::<Deployment>(),
    kind::<Namespace>(),
    kind::<PersistentVolumeClaim>(),
    kind::<Service>(),
];

const fn kind<T: Resource + DeserializeOwned + Serialize>() -> Kind {
    Kind { api_version: T::API_VERSION, name: T::KIND, rewrite: rewrite::<T> }
}

fn rewrite<T: DeserializeOwned + Serialize>(object: &Value) -> Result<Value, String> {
    let typed: T =
        serde_path_to_error::deserialize(object).map_err(|error| format!("`{}`: {}", error.path(), error.inner()))?;
    serde_json::to_value(typed).map_err(|error| error.to_string())
}

/// What is wrong with an object by the schema of its kind.
pub(crate) fn mistakes(object: &Value) -> Vec<String> {
    let [api_version, name] = ["apiVersion", "kind"].map(|field| object[field].as_str().unwrap_or_default());
    let Some(kind) = KINDS.iter().find(|kind| (kind.api_version, kind.name) == (api_version, name)) else {
        return vec![format!("cannot check kind `{name}` of `{api_version}`: it is unknown; add it to KINDS")];
    };
    let mut wrong = Vec::new();
    match (kind.rewrite)(object) {
        Ok(known) => compare("", object, &known, &mut wrong),
        Err(error) => wrong.push(error),
    }
    if object["metadata"]["name"].as_str().unwrap_or_default().is_empty() {
        wrong.push("`metadata.name` is missing".to_owned());
    }
    wrong
}

/// Compares the paths of what was read with those of what was written. Values may differ: a quantity can be read as a number, and is text.
fn compare(path: &str, read: &Value, written: &Value, wrong: &mut Vec<String>) {
    match (read, written) {
        (Value::Object(read), Value::Object(written)) => {
            let below = |field: &str| if path.is_empty() { field.to_owned() } else { format!("{path}.{field}") };
            for (field, value) in read {
                match written.get(field) {
                    Some(written) => compare(&below(field), value, written, wrong),
                    None if value.is_null() => wrong.push(format!("`{}` has no value", below(field))),
                    None => wrong.push(format!("`{}` is an unknown field", below(field))),
                }
            }
            let missing = written.keys().filter(|field| !read.contains_key(*field));
            wrong.extend(missing.map(|field| format!("`{}` is missing", below(field))));
        }
        (Value::Array(read), Value::Array(written)) => {
            for (nth, (read, written)) in read.iter().zip(written).enumerate() {
                compare(&format!("{path}[{nth}]"), read, written, wrong);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEPLOYMENT: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: fleet, namespace: site}
spec:
  replicas: 1
  selector: {matchLabels: {app: fleet}}
  strategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 10%}}
  template:
    metadata: {labels: {app: fleet}}
    spec:
      containers:
        - name: controller
          ports: [{name: fleet, containerPort: 5223}]
          readinessProbe: {tcpSocket: {port: fleet}}
          livenessProbe: {tcpSocket: {port: 5223}}
          resources: {requests: {cpu: 1, memory: 1.5Gi}, limits: {cpu: 0.5}}
      volumes:
        - {name: key, secret: {secretName: key, defaultMode: 0440}}
        - {name: tmp, emptyDir: {}}
";

    fn of(text: &str) -> Vec<String> {
        mistakes(&crate::parse("m", text).expect("YAML")[0].value)
    }

    /// What is wrong after a change of the text.
    fn after(old: &str, new: &str) -> Vec<String> {
        assert!(DEPLOYMENT.contains(old), "{old}");
        of(&DEPLOYMENT.replacen(old, new, 1))
    }

    #[test]
    fn what_can_be_written_in_two_ways_is_right_in_both() {
        assert_eq!(of(DEPLOYMENT), [""; 0]);
        assert_eq!(after("cpu: 1,", "cpu: '1',"), [""; 0]);
    }

    #[test]
    fn an_unknown_field_is_a_mistake_wherever_it_is() {
        assert_eq!(after("replicas: 1", "replicas: 1\n  replica: 1"), ["`spec.replica` is an unknown field"]);
        let path = "spec.template.spec.containers[0].ports[0].hostport";
        assert_eq!(
            after("containerPort: 5223", "containerPort: 5223, hostport: 1"),
            [format!("`{path}` is an unknown field")]
        );
        assert_eq!(after("replicas: 1", "replicas:"), ["`spec.replicas` has no value"]);
    }

    #[test]
    fn a_missing_field_is_a_mistake() {
        let path = "spec.template.spec.containers[0].ports[0].containerPort";
        assert_eq!(after(", containerPort: 5223", ""), [format!("`{path}` is missing")]);
        assert_eq!(after("name: fleet, namespace", "namespace"), ["`metadata.name` is missing"]);
    }

    #[test]
    fn a_wrong_type_is_a_mistake() {
        for (old, new, path) in [
            ("replicas: 1", "replicas: '1'", "spec.replicas"),
            ("app: fleet}}\n  strategy", "app: 1}}\n  strategy", "spec.selector.matchLabels.app"),
            ("emptyDir: {}", "emptyDir: []", "spec.template.spec.volumes[1].emptyDir"),
        ] {
            let said = after(old, new);
            assert!(said.len() == 1 && said[0].starts_with(&format!("`{path}`: invalid type: ")), "{said:?}");
        }
    }

    #[test]
    fn an_unknown_kind_is_a_mistake() {
        let says =
            |kind: &str, api: &str| [format!("cannot check kind `{kind}` of `{api}`: it is unknown; add it to KINDS")];
        assert_eq!(after("Deployment", "Deploy"), says("Deploy", "apps/v1"));
        assert_eq!(after("apps/v1", "apps/v2"), says("Deployment", "apps/v2"));
        assert_eq!(after("kind: Deployment", ""), says("", "apps/v1"));
    }
}
