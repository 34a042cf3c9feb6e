//! Checks Kubernetes manifests without a cluster: `narrows-manifests FILE...`. Each object must follow the schema of the API, without unknown
//! fields, and what it names must be there. The exit code is 1 if anything is wrong.

#![allow(clippy::disallowed_methods)] // a program of its own, which reads the files that it is given

mod kinds;
mod references;

use serde_json::Value;
use std::process::ExitCode;

/// An object of a manifest.
struct Object {
    file: String,
    value: Value,
}

impl Object {
    fn kind(&self) -> &str {
        self.value["kind"].as_str().unwrap_or_default()
    }

    fn namespace(&self) -> &str {
        self.value["metadata"]["namespace"].as_str().unwrap_or_default()
    }

    fn name(&self) -> &str {
        self.value["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// Puts its file and name before each message.
    fn prefixed(&self, messages: Vec<String>) -> Vec<String> {
        let (file, kind, namespace, name) = (&self.file, self.kind(), self.namespace(), self.name());
        let slash = if namespace.is_empty() { "" } else { "/" };
        messages.into_iter().map(|message| format!("{file}: {kind} {namespace}{slash}{name}: {message}")).collect()
    }
}

/// The objects of a file. Empty documents are none, as for kubectl.
fn parse(file: &str, text: &str) -> Result<Vec<Object>, String> {
    // kubectl reads YAML 1.1, where 0440 is octal.
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    let values: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| format!("cannot parse {file}: {error}"))?;
    if values.is_empty() {
        return Err(format!("cannot check {file}: it contains no object"));
    }
    Ok(values.into_iter().map(|value| Object { file: file.to_owned(), value }).collect())
}

fn read(file: &str) -> Result<Vec<Object>, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {file}: {error}"))?;
    parse(file, &text)
}

/// What is wrong with the objects, each by itself and together.
fn mistakes(objects: &[Object]) -> Vec<String> {
    let of_each = |(nth, object): (usize, &Object)| {
        let mut wrong = kinds::mistakes(&object.value);
        wrong.extend(references::mistakes(objects, nth));
        object.prefixed(wrong)
    };
    objects.iter().enumerate().flat_map(of_each).collect()
}

fn main() -> ExitCode {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        eprintln!("usage: narrows-manifests FILE...");
        return ExitCode::from(2);
    }
    let (mut objects, mut wrong) = (Vec::new(), Vec::new());
    for file in &files {
        match read(file) {
            Ok(found) => objects.extend(found),
            Err(error) => wrong.push(error),
        }
    }
    wrong.extend(mistakes(&objects));
    for message in &wrong {
        eprintln!("{message}");
    }
    println!("{} objects in {}: {} mistakes", objects.len(), files.join(", "), wrong.len());
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_is_read_as_kubectl_reads_it() {
        let objects = parse("m", "# Nothing.\n---\n---\nmode: 0440\n---\nhas: yes\nis: 'yes'\n").expect("two objects");
        assert_eq!(objects.len(), 2);
        assert_eq!(objects[0].value["mode"], 0o440);
        assert_eq!((&objects[1].value["has"], &objects[1].value["is"]), (&Value::Bool(true), &Value::from("yes")));
    }

    #[test]
    fn a_key_that_is_there_twice_is_a_mistake() {
        let said = parse("m", "kind: Service\nkind: Service\n").err().expect("a mistake");
        assert!(said.starts_with("cannot parse m: "), "{said}");
        assert_eq!(parse("m", "# Nothing.\n").err().as_deref(), Some("cannot check m: it contains no object"));
    }
}
