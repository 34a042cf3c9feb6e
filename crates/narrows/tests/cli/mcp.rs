//! `narrows mcp` as an assistant speaks to it.

use crate::world::{World, on_loopback};
use narrows_sys::clock;
use narrows_sys::rtnl::Links;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::Duration;

struct Assistant {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    asked: u64,
}

impl Assistant {
    fn start(world: &World, flags: &[&str]) -> Self {
        let mut process =
            world.command(&[&["mcp"], flags].concat()).stdin(Stdio::piped()).spawn().expect("the program");
        let (to, from) = (process.stdin.take().expect("piped"), process.stdout.take().expect("piped"));
        let mut assistant = Self { process, to, from: BufReader::new(from), asked: 0 };
        let hello = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
        });
        let answer = assistant.ask("initialize", &hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "narrows", "{answer}");
        assistant.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        assistant
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.to, "{message}").expect("it listens");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": self.asked, "method": method, "params": params }));
        let mut line = String::new();
        self.from.read_line(&mut line).expect("an answer");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(answer["id"], self.asked, "{answer}");
        answer
    }

    /// Whether a call failed, and what it answers.
    fn call(&mut self, tool: &str, arguments: &Value) -> (bool, String) {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        let result = &answer["result"];
        let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"));
        (result["isError"] == true, text.to_owned())
    }
}

#[test]
fn an_assistant_lists_tools_calls_them_and_is_told_what_is_wrong() {
    on_loopback(|world| {
        let (_server, port, token) = world.serve(&[]);
        assert_eq!(world.run(&["trust", "127.0.0.1", "--port", &port, "--token-file", &token]).code, Some(0));
        let host = format!("127.0.0.1:{port}");
        let mut assistant = Assistant::start(world, &[]);
        let listed = assistant.ask("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().expect("tools");
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        let all = ["audit", "connections", "trace", "diagnose", "measure", "mesh", "history", "report", "fleet_status"];
        assert_eq!(names, all);
        for tool in tools {
            assert_eq!(tool["inputSchema"]["type"], "object", "{tool}");
            assert!(tool["inputSchema"]["properties"].get("try").is_none(), "{tool}");
        }
        let load = json!({ "host": host, "protocol": "tcp", "duration_s": 1, "rate": "20M", "format": "json" });
        let (failed, text) = assistant.call("measure", &load);
        let report: Value = serde_json::from_str(&text).expect("a report");
        assert!(!failed && report["schema"].as_str().is_some_and(|it| it.starts_with("narrows.")), "{text}");
        let load = json!({ "host": host, "protocol": "udp", "duration_s": 1, "rate": "5M" });
        let (failed, text) = assistant.call("measure", &load);
        assert!(!failed && text.contains("Mbit/s"), "{text}");
        let (failed, text) = assistant.call("history", &json!({}));
        assert!(!failed && text.contains("measure"), "{text}");
        let (failed, text) = assistant.call("report", &json!({ "run": "last" }));
        assert!(!failed && text.contains("Mbit/s"), "{text}");
        for (tool, arguments, says) in [
            ("measure", json!({ "host": host }), "needs `protocol`"),
            ("measure", json!({ "host": "--help", "protocol": "tcp" }), "not begin with `-`"),
            ("diagnose", json!({ "host": host, "try": true }), "without --allow-tune"),
            ("report", json!({ "run": "20990101-000000-00000000" }), "20990101"),
            ("trace", json!({ "host": "a", "output": "/tmp/x" }), "no argument `output`"),
        ] {
            let (failed, text) = assistant.call(tool, &arguments);
            assert!(failed && text.contains(says), "{tool}: {text}");
        }
        let unknown = assistant.ask("tools/call", &json!({ "name": "rm", "arguments": {} }));
        assert!(unknown["error"]["message"].as_str().is_some_and(|it| it.contains("audit")), "{unknown}");
        drop(assistant.to);
        assert!(assistant.process.wait().expect("its end").success());
    });
}

/// Whether it cancels its call before, or just goes.
#[test]
fn what_an_assistant_had_measured_is_kept_when_it_goes() {
    for cancels in [false, true] {
        on_loopback(|world| {
            let (_server, port, token) = world.serve(&[]);
            assert_eq!(world.run(&["trust", "127.0.0.1", "--port", &port, "--token-file", &token]).code, Some(0));
            let mut assistant = Assistant::start(world, &[]);
            let load =
                json!({ "host": format!("127.0.0.1:{port}"), "protocol": "tcp", "duration_s": 60, "rate": "50M" });
            let params = json!({ "name": "measure", "arguments": load });
            assistant.say(&json!({ "jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": params }));
            let carried =
                || Links::open().and_then(|mut links| links.get("lo")).expect("the loopback device").rx_packets;
            let (since, before) = (clock::now(), carried());
            while carried() < before + 300 {
                assert!(since.elapsed() < Duration::from_secs(30), "no load");
                clock::sleep(Duration::from_millis(20));
            }
            if cancels {
                let params = json!({ "requestId": 99 });
                assistant.say(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }));
                // The second signal is another one, which ends a command at once.
                clock::sleep(Duration::from_secs(1));
            }
            drop(assistant.to);
            assert!(assistant.process.wait().expect("its end").success());
            let kept = world.run(&["history"]).with_code(0);
            assert!(kept.out.contains("measure tcp") && kept.out.contains("interrupted"), "{cancels}: {kept:?}");
        });
    }
}
