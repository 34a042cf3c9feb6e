//! What objects name of each other: other objects, labels, volumes, ports and variables. It must be defined in one of the files, or be listed
//! here as made by hand.

use crate::Object;
use serde_json::Value;

/// Kind, namespace and name.
type Id<'a> = (&'a str, &'a str, &'a str);

/// Objects that no manifest defines.
const MADE_BY_HAND: &[Id<'static>] = &[
    // The tokens of agents that join: `narrows fleet token --join` prints them, and the head of fleet.yaml says how they get there.
    ("Secret", "narrows", "narrows-agent-token"),
    ("Secret", "narrows-nodes", "narrows-agent-token"),
];

/// Objects that a pod names: a list of its `spec`, where an item has the name, and the kind.
const OF_PODS: &[(&str, &str, &str)] = &[
    ("/imagePullSecrets", "/name", "Secret"),
    ("/volumes", "/configMap/name", "ConfigMap"),
    ("/volumes", "/persistentVolumeClaim/claimName", "PersistentVolumeClaim"),
    ("/volumes", "/secret/secretName", "Secret"),
];

/// The same of a container.
const OF_CONTAINERS: &[(&str, &str, &str)] = &[
    ("/env", "/valueFrom/configMapKeyRef/name", "ConfigMap"),
    ("/env", "/valueFrom/secretKeyRef/name", "Secret"),
    ("/envFrom", "/configMapRef/name", "ConfigMap"),
    ("/envFrom", "/secretRef/name", "Secret"),
];

/// What is wrong with what one of the objects names.
pub(crate) fn mistakes(objects: &[Object], nth: usize) -> Vec<String> {
    let object = &objects[nth];
    let mut check = Check { objects, namespace: object.namespace(), wrong: Vec::new() };
    if objects[..nth].iter().any(|other| id(other) == id(object)) {
        check.wrong.push("it is defined twice".to_owned());
    }
    // Of the kinds here only this one is in no namespace.
    if object.kind() != "Namespace" {
        check.object("Namespace", "", object.namespace());
    }
    check.hosts(&object.value);
    check.service(object);
    check.pods(&object.value["spec"]);
    check.wrong
}

fn id(object: &Object) -> Id<'_> {
    (object.kind(), object.namespace(), object.name())
}

/// The items of a list; none if it is not there.
fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn name(value: &Value) -> &str {
    value["name"].as_str().unwrap_or_default()
}

fn protocol(port: &Value) -> &str {
    port["protocol"].as_str().unwrap_or("TCP")
}

/// Whether a selector has labels, and all of them are there.
fn selects(selector: &Value, labels: &Value) -> bool {
    let all =
        |selector: &serde_json::Map<String, Value>| selector.iter().all(|(key, value)| labels.get(key) == Some(value));
    selector.as_object().is_some_and(|selector| !selector.is_empty() && all(selector))
}

/// All texts of an object.
fn texts<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts(item, found)),
        Value::Object(fields) => fields.values().for_each(|field| texts(field, found)),
        _ => {}
    }
}

/// The variables that Kubernetes puts into a text: `$(NAME)`, but not `$$(NAME)`.
fn variables(text: &str) -> Vec<String> {
    let text = text.replace("$$", "");
    text.split("$(").skip(1).filter_map(|rest| rest.split_once(')')).map(|(name, _)| name.to_owned()).collect()
}

struct Check<'a> {
    objects: &'a [Object],
    /// Of the object that is checked.
    namespace: &'a str,
    wrong: Vec<String>,
}

impl Check<'_> {
    /// That an object is there.
    fn object(&mut self, kind: &str, namespace: &str, name: &str) {
        let wanted = (kind, namespace, name);
        if !MADE_BY_HAND.contains(&wanted) && !self.objects.iter().any(|object| id(object) == wanted) {
            let slash = if namespace.is_empty() { "" } else { "/" };
            self.wrong.push(format!("there is no {kind} `{namespace}{slash}{name}`"));
        }
    }

    /// Names of Services in the DNS of the cluster, also in what a ConfigMap contains.
    fn hosts(&mut self, value: &Value) {
        let mut found = Vec::new();
        texts(value, &mut found);
        for word in
            found.iter().flat_map(|text| text.split(|it: char| !it.is_ascii_alphanumeric() && !"-.".contains(it)))
        {
            if let [name, namespace, "svc", ..] = word.split('.').collect::<Vec<_>>()[..] {
                self.object("Service", namespace, name);
            }
        }
    }

    /// That a Service has pods, and these its ports.
    fn service(&mut self, object: &Object) {
        let selector = &object.value["spec"]["selector"];
        if object.kind() != "Service" || selector.is_null() {
            return;
        }
        let templates = self.objects.iter().filter(|other| other.namespace() == self.namespace);
        let templates = templates.map(|other| &other.value["spec"]["template"]);
        let pods: Vec<&Value> =
            templates.filter(|template| selects(selector, &template["metadata"]["labels"])).collect();
        if pods.is_empty() {
            self.wrong.push("its selector matches no pods of its namespace".to_owned());
        }
        for port in list(&object.value, "/spec/ports") {
            let Some(target) = port["targetPort"].as_str() else { continue };
            let is_it = |other: &Value| name(other) == target && protocol(other) == protocol(port);
            let has = |pod: &&Value| {
                list(pod, "/spec/containers").iter().any(|container| list(container, "/ports").iter().any(is_it))
            };
            if !pods.iter().all(has) {
                self.wrong.push(format!("its pods have no {} port `{target}`", protocol(port)));
            }
        }
    }

    /// What the pods of a Deployment or DaemonSet need.
    fn pods(&mut self, workload: &Value) {
        let template = &workload["template"];
        if template.is_null() {
            return;
        }
        if !selects(&workload["selector"]["matchLabels"], &template["metadata"]["labels"]) {
            self.wrong.push("its selector does not match the labels of its pods".to_owned());
        }
        let pod = &template["spec"];
        self.named(pod, OF_PODS);
        for container in list(pod, "/initContainers").iter().chain(list(pod, "/containers")) {
            self.named(container, OF_CONTAINERS);
            self.container(container, list(pod, "/volumes"));
        }
    }

    fn named(&mut self, value: &Value, places: &[(&str, &str, &str)]) {
        for (items, place, kind) in places {
            for name in list(value, items).iter().filter_map(|item| item.pointer(place)?.as_str()) {
                self.object(kind, self.namespace, name);
            }
        }
    }

    fn container(&mut self, container: &Value, volumes: &[Value]) {
        let there = |items: &[Value], wanted: &str| items.iter().any(|item| name(item) == wanted);
        for mount in list(container, "/volumeMounts").iter().map(name).filter(|mount| !there(volumes, mount)) {
            self.wrong.push(format!("its pods have no volume `{mount}`"));
        }
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            let port = |action: &str| container[probe][action]["port"].as_str();
            let ports = ["tcpSocket", "httpGet"].into_iter().filter_map(port);
            for port in ports.filter(|port| !there(list(container, "/ports"), port)) {
                self.wrong.push(format!("{probe}: the container has no port `{port}`"));
            }
        }
        // What all keys of another object may be is not known here.
        if list(container, "/envFrom").is_empty() {
            let mut found = Vec::new();
            ["command", "args", "env"].iter().for_each(|field| texts(&container[field], &mut found));
            let unknown = |name: &String| !there(list(container, "/env"), name);
            let unknown = found.into_iter().flat_map(variables).filter(unknown);
            self.wrong.extend(unknown.map(|name| format!("the container has no variable `{name}`")));
        }
    }
}

#[cfg(test)]
mod tests {
    const SITE: &str = "
apiVersion: v1
kind: Namespace
metadata: {name: site}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fleet, namespace: site}
data:
  fleet.toml: |
    service = \"agent.site.svc\"
---
apiVersion: v1
kind: Service
metadata: {name: agent, namespace: site}
spec:
  selector: {app: agent}
  ports:
    - {name: load, port: 5221, targetPort: load}
    - {name: other, port: 5222, targetPort: 5222}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: site}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent, tier: one}}
    spec:
      containers:
        - name: agent
          args: ['--name=$(NODE)', '$$(SHELL)', 'agent.site.svc.cluster.local:5223']
          env:
            - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
            - {name: HOME, valueFrom: {configMapKeyRef: {name: fleet, key: home}}}
          ports: [{name: load, containerPort: 5221}]
          readinessProbe: {tcpSocket: {port: load}}
          livenessProbe: {tcpSocket: {port: 5221}}
          volumeMounts: [{name: files, mountPath: /files}]
      volumes: [{name: files, configMap: {name: fleet}}]
";

    fn of(text: &str) -> Vec<String> {
        crate::mistakes(&crate::parse("m", text).expect("YAML"))
    }

    #[test]
    fn what_is_defined_may_be_named() {
        assert_eq!(of(SITE), [""; 0]);
    }

    #[test]
    fn what_is_named_must_be_there() {
        const SERVICE: &str = "Service site/agent";
        const AGENTS: &str = "DaemonSet site/agent";
        for (old, new, place, says) in [
            ("selector: {app", "selector: {apps", SERVICE, "its selector matches no pods of its namespace"),
            ("{matchLabels: {app", "{matchLabels: {apps", AGENTS, "its selector does not match the labels of its pods"),
            ("targetPort: load", "targetPort: lead", SERVICE, "its pods have no TCP port `lead`"),
            ("targetPort: load", "targetPort: load, protocol: UDP", SERVICE, "its pods have no UDP port `load`"),
            ("configMap: {name: fleet", "configMap: {name: flee", AGENTS, "there is no ConfigMap `site/flee`"),
            ("configMap: {name: fleet", "secret: {secretName: key", AGENTS, "there is no Secret `site/key`"),
            (
                "configMap: {name: fleet",
                "persistentVolumeClaim: {claimName: disk",
                AGENTS,
                "there is no PersistentVolumeClaim `site/disk`",
            ),
            ("KeyRef: {name: fleet", "KeyRef: {name: flee", AGENTS, "there is no ConfigMap `site/flee`"),
            ("[{name: files, mount", "[{name: file, mount", AGENTS, "its pods have no volume `file`"),
            ("port: load}}", "port: lead}}", AGENTS, "readinessProbe: the container has no port `lead`"),
            ("$(NODE)", "$(NODES)", AGENTS, "the container has no variable `NODES`"),
            ("agent.site.svc.", "agents.site.svc.", AGENTS, "there is no Service `site/agents`"),
            ("\"agent.site", "\"agent.sites", "ConfigMap site/fleet", "there is no Service `sites/agent`"),
        ] {
            assert!(SITE.contains(old), "{old}");
            assert_eq!(of(&SITE.replacen(old, new, 1)), [format!("m: {place}: {says}")], "{new}");
        }
    }

    #[test]
    fn an_object_has_a_namespace_that_is_defined_and_is_defined_once() {
        let said = of(&SITE.replacen("{name: site}", "{name: sites}", 1));
        assert!(said.len() == 3 && said.iter().all(|it| it.ends_with("there is no Namespace `site`")), "{said:?}");
        let said = of(&format!("{SITE}---{}", SITE.split("---").nth(1).expect("the ConfigMap")));
        assert_eq!(said, ["m: ConfigMap site/fleet: it is defined twice"]);
    }

    #[test]
    fn what_is_made_by_hand_may_be_named() {
        let token = "secret: {secretName: narrows-agent-token";
        let text = SITE.replacen("configMap: {name: fleet", token, 1);
        assert_eq!(of(&text), ["m: DaemonSet site/agent: there is no Secret `site/narrows-agent-token`"]);
        assert_eq!(of(&text.replace(": site}", ": narrows}").replace(".site.", ".narrows.")), [""; 0]);
    }
}
