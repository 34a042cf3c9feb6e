//! `narrows mcp`: commands as tools of assistants.

use crate::failure::{Failure, Outcome};

/// Serve assistants by the Model Context Protocol over standard input and output
#[derive(Debug, clap::Args)]
#[command(after_help = "Example, as an assistant's configuration has it:\n  \
    {\"mcpServers\": {\"narrows\": {\"command\": \"narrows\", \"args\": [\"mcp\"]}}}\n\
    Its tools are audit, connections, trace, diagnose, measure, mesh, history, report and fleet_status.")]
pub(crate) struct Args {
    /// Let tools try fixes: settings are changed, and rolled back
    #[arg(long)]
    allow_tune: bool,
}

impl Args {
    pub(crate) fn run(self) -> Outcome {
        narrows_runner::mcp::serve(self.allow_tune).map_err(Failure::run)?;
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use crate::cli::Cli;
    use clap::Parser as _;
    use narrows_runner::mcp::{command_of, schemas};
    use serde_json::{Map, Value, json};

    /// Something that an argument of a tool takes.
    fn examples(name: &str, schema: &Value) -> Vec<Value> {
        let text = match name {
            "peer" => "10.0.0.0/8",
            "rate" | "expect" => "100M",
            "budget_bytes" => "20G",
            "since" => "7d",
            "why_not" => "bottleneck-link",
            _ => "b",
        };
        match (schema["enum"].as_array(), schema["type"].as_str()) {
            (Some(words), _) => words.clone(),
            (_, Some("boolean")) => vec![json!(true)],
            (_, Some("integer")) => vec![schema["minimum"].clone(), schema["maximum"].clone()],
            (_, Some("array")) => vec![json!(["ssh://a", "ssh://b"])],
            _ => vec![json!(text)],
        }
    }

    /// Each tool by itself, and with each value of each argument.
    #[test]
    fn the_command_line_takes_what_each_tool_makes_of_its_arguments() {
        let mut tried = 0;
        for (tool, schema) in schemas() {
            let properties = schema["properties"].as_object().expect("a map");
            let needed = schema["required"].as_array().expect("a list").iter().filter_map(Value::as_str);
            let least: Map<String, Value> =
                needed.map(|name| (name.to_owned(), examples(name, &properties[name])[0].clone())).collect();
            for (name, schema) in properties {
                for example in examples(name, schema) {
                    let mut given = least.clone();
                    given.insert(name.clone(), example);
                    // Neither goes without the other.
                    if tool == "diagnose" && ["rate", "udp"].contains(&name.as_str()) {
                        given.extend([("udp".to_owned(), json!(true)), ("rate".to_owned(), json!("100M"))]);
                    }
                    let words = command_of(tool, &given).expect("a command");
                    let parsed = Cli::try_parse_from([&["narrows".to_owned()], &words[..]].concat());
                    let wrong = parsed.err().map(|error| error.to_string());
                    assert_eq!(wrong, None, "{tool} {given:?}: {words:?}");
                    tried += 1;
                }
            }
        }
        assert!(tried > 40, "{tried}");
    }
}
