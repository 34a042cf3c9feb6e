//! Every key of a plan file: what it is, what it may be, and what it is when it is not there. The reader takes its known keys
//! from here and the manual its page, so that neither can know more than the other.

/// A table of the file.
#[derive(Debug)]
pub struct Section {
    /// `generator`; empty: the top of the file.
    pub name: &'static str,
    /// How it is written: `[generator]`, `[[traffic]]`.
    pub written: &'static str,
    /// What it is about.
    pub what: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Debug)]
pub struct Key {
    /// As it is written.
    pub name: &'static str,
    /// What it is, and what is allowed.
    pub what: &'static str,
    /// Without it: `required`, or the value that is taken.
    pub default: &'static str,
}

const fn key(name: &'static str, what: &'static str, default: &'static str) -> Key {
    Key { name, what, default }
}

/// The top of the file.
pub(super) const ROOT: Section = Section {
    name: "",
    written: "the top of the file",
    what: "The device and the line, and what holds for every trial.",
    keys: &[
        key("name", "how the report calls the device and its configuration", "required"),
        key("link", "bits per second on the wire, like \"10G\": 100 % of the loads", "required"),
        key(
            "max-load",
            "the most that is offered, frames per second, like \"2Mpps\", where that is less than the line",
            "the line rate",
        ),
        key(
            "preset",
            "\"quick\" for a small lab, \"rfc2544\" for the RFC's own sizes, durations and repetitions",
            "\"quick\"",
        ),
        key("allow-any-address", "whether addresses outside of 198.18.0.0/15 and 2001:2::/48 are taken", "false"),
        key("learning-frames", "frames before each trial so that hops learn addresses", "quick 100, rfc2544 1000"),
        key("residue", "silence after the load before counters are read", "quick \"500ms\", rfc2544 \"2s\""),
        key("rest", "rest before the next trial", "quick \"200ms\", rfc2544 \"5s\""),
        key(
            "wait-for-lost-device",
            "how long a device that no longer answers is waited for; \"0s\": not at all",
            "\"0s\"",
        ),
        key("generator", "table: the port that sends", "required"),
        key("receiver", "table: the port that receives, and sends back where traffic is bidirectional", "required"),
        key(
            "traffic",
            "tables: the frames",
            "one of each family that the ports have addresses of, with the preset's sizes",
        ),
        key("hop", "tables: devices whose counters are part of the books, in the order of the way", "none"),
        key("throughput", "table: the highest rate without loss (RFC 2544, 26.1)", TESTS),
        key("latency", "table: latency at the throughput (RFC 2544, 26.2; RFC 8219)", TESTS),
        key("loss", "table: loss at loads from the maximum down (RFC 2544, 26.3)", TESTS),
        key("back-to-back", "table: the longest burst without loss (RFC 9004)", TESTS),
        key("recovery", "table: time to recover from an overload (RFC 2544, 26.5)", TESTS),
        key("reset", "table: outage of a reset (RFC 6201)", "not measured"),
        key("worst-case", "table: what arrives when frames come at line rate", "not measured"),
        key("ab", "table: two configurations of the device to compare", "none"),
    ],
};

const TESTS: &str = "where no test is named: quick throughput, latency, loss and back-to-back; rfc2544 recovery, too";

/// `[generator]`.
pub(super) const GENERATOR: Section =
    Section { name: "generator", written: "[generator]", what: "The tester's port that sends.", keys: PORT };

/// `[receiver]`.
pub(super) const RECEIVER: Section =
    Section { name: "receiver", written: "[receiver]", what: "The tester's port that receives.", keys: PORT };

const PORT: &[Key] = &[
    key("device", "the tester's device", "required"),
    key("address", "the tester's address there, of 198.18.0.0/15 or 2001:2::/48", "required"),
    key("gateway", "the address of the device under test on that side", "required"),
    key(
        "address6",
        "the tester's address of IPv6, where a plan has traffic of both families: address is then of IPv4",
        "none",
    ),
    key("gateway6", "the device's address of IPv6 on that side", "required with address6"),
    key(
        "host",
        "the host of the device, which runs `narrows serve --frames DEVICE`: a name or address with or without a port, or ssh://[user@]host[:port]",
        "the one that makes the benchmark",
    ),
    key("token-file", "the file with that host's token", "that of --token-file or NARROWS_TOKEN"),
];

/// `[[traffic]]`.
pub(super) const TRAFFIC: Section = Section {
    name: "traffic",
    written: "[[traffic]]",
    what: "Frames through the device.",
    keys: &[
        key("family", "\"ipv4\" or \"ipv6\": one that both ports have addresses of", "that of address"),
        key("transport", "\"udp\" or \"tcp-syn\"", "\"udp\""),
        key(
            "sizes",
            "frame sizes with FCS: a list, or \"rfc2544\" for 64 128 256 512 1024 1280 1518, of which one that is too small for the family becomes the smallest",
            "quick 64, 512, 1518, rfc2544 \"rfc2544\"",
        ),
        key(
            "mix",
            "a mix beside them: a list of sizes, \"imix\" for 7 × 64, 4 × 570, 1 × 1518, or a genome of RFC 6985 like \"genome:aaagb\"",
            "none",
        ),
        key("flows", "flows: source ports from 2000 on", "2000"),
        key(
            "networks",
            "networks of the destinations, 1 to 256, of 24 bits in IPv4 and of 64 bits in IPv6: that of the port's address and those after it",
            "1",
        ),
        key("walk", "the order of the flows, \"odometer\" or \"random\"", "\"odometer\""),
        key("seed", "the seed of a random walk", "1"),
        key("bidirectional", "whether both directions are loaded at the same time", "false"),
        key(
            "modifiers",
            "list of \"broadcast\", \"management\", \"routes\" or tables: the same frames are measured once more under each of them",
            "none",
        ),
    ],
};

/// A modifier in `modifiers`.
pub(super) const MODIFIER: Section = Section {
    name: "traffic.modifiers",
    written: "{ … } in modifiers of a [[traffic]]",
    what: "What the device has to bear beside the frames (RFC 2544, section 11); each is a row of its own beside the same frames \
           without it.",
    keys: &[
        key(
            "kind",
            "\"broadcast\" (frames to the hardware broadcast address among the others, 11.1), \"management\" (an SNMP query each \
             second, 11.2) or \"routes\" (routing updates of RIP version 2, 11.3)",
            "required",
        ),
        key("share", "of broadcast: the part of the load, 0.0001 to 0.5", "0.01"),
        key(
            "agent",
            "of management: who is asked, address or address:port",
            "the device under test where SNMP reads it, else the first hop that SNMP reads",
        ),
        key("version", "of management with an agent: \"2c\" or \"3\"", "\"2c\""),
        key("community", "of SNMP 2c: the community", "required with an agent"),
        key("user", "of SNMP 3: the user", "required with an agent"),
        key("password", "of SNMP 3: the authentication password", "none"),
        key("every", "of routes: the time between two updates; the first comes with the load", "\"30s\""),
        key("networks", "of routes: networks of an update, 1 to 25", "25"),
    ],
};

/// `[[hop]]`.
pub(super) const HOP: Section = Section {
    name: "hop",
    written: "[[hop]]",
    what: "A device between generator and receiver whose counters are read.",
    keys: &[
        key("name", "how the report calls it", "required"),
        key("under-test", "whether it is the device under test; of one hop at most", "false"),
        key("input", "its interface towards the generator", "required"),
        key("output", "its interface towards the receiver", "required"),
        key("source", "table: where its counters are read", "required"),
    ],
};

/// `source` of a hop.
pub(super) const SOURCE: Section = Section {
    name: "hop.source",
    written: "source = { … } of a [[hop]]",
    what: "Where the counters of a hop are read.",
    keys: &[
        key(
            "kind",
            "\"namespace\" (of this machine), \"narrows\" (a host that runs `narrows serve`) or \"snmp\" (an agent with IF-MIB)",
            "required",
        ),
        key(
            "name",
            "of a namespace: its name as `ip netns` has it, \"pid:1234\", \"lab:NAME/HOST\" or a path",
            "required",
        ),
        key(
            "host",
            "of narrows: the host, a name or address with or without a port, or ssh://[user@]host[:port]",
            "required",
        ),
        key("token-file", "of narrows: the file with the host's token", "that of --token-file or NARROWS_TOKEN"),
        key("agent", "of SNMP: address or address:port", "required"),
        key("version", "of SNMP: \"2c\" or \"3\"", "\"2c\""),
        key("community", "of SNMP 2c: the community", "required"),
        key("user", "of SNMP 3: the user", "required"),
        key("password", "of SNMP 3: the authentication password", "none"),
    ],
};

/// `[throughput]`.
pub(super) const THROUGHPUT: Section = Section {
    name: "throughput",
    written: "[throughput]",
    what: "The highest rate without loss, by the search, and trials that confirm it.",
    keys: &[
        key(
            "goals",
            "list of \"ndr\", \"pdr\", \"rfc2544\", \"tst009\" or tables",
            "quick [\"ndr\", \"pdr\"], rfc2544 [\"rfc2544\"]",
        ),
        key("confirm", "trials at the result of the first goal that confirm it", "5"),
        key("max-search", "the longest search of one size", "quick \"2m\", rfc2544 \"2h\""),
    ],
};

/// A goal in `goals`.
pub(super) const GOAL: Section = Section {
    name: "throughput.goals",
    written: "{ … } in goals of [throughput]",
    what: "A goal of one's own.",
    keys: &[
        key("name", "how the report calls it", "required"),
        key("loss-ratio", "a trial that loses more is a high-loss trial, 0 to 0.99", "0"),
        key("exceed-ratio", "the part of the duration sum that may be high-loss trials, 0 to 0.99", "0"),
        key("initial-trial", "the shortest trial", "\"1s\""),
        key("final-trial", "a shorter trial alone does not make a load pass", "\"1s\""),
        key("duration-sum", "trials at one load after which it is decided", "the final trial"),
        key("width", "(upper − lower) ÷ upper that is near enough, 0.0001 to 0.5", "0.005"),
    ],
};

/// `[latency]`.
pub(super) const LATENCY: Section = Section {
    name: "latency",
    written: "[latency]",
    what: "Latency at the throughput.",
    keys: &[
        key("duration", "how long each trial is", "quick \"5s\", rfc2544 \"2m\""),
        key("repetitions", "how many", "quick 5, rfc2544 20"),
    ],
};

/// `[loss]`.
pub(super) const LOSS: Section = Section {
    name: "loss",
    written: "[loss]",
    what: "Loss at loads from the maximum down, until two in a row lose nothing.",
    keys: &[
        key("step", "by which part of the maximum the next load is lower, 0.001 to 0.1", "0.1"),
        key("duration", "how long each trial is", "quick \"2s\", rfc2544 \"60s\""),
    ],
};

/// `[back-to-back]`.
pub(super) const BACK_TO_BACK: Section = Section {
    name: "back-to-back",
    written: "[back-to-back]",
    what: "The longest burst without loss.",
    keys: &[
        key("most-frames", "the longest burst that is tried", "2 s of the smallest frames at the highest rate"),
        key("repetitions", "how often the longest burst is sought", "quick 5, rfc2544 50"),
    ],
};

/// `[recovery]`.
pub(super) const RECOVERY: Section = Section {
    name: "recovery",
    written: "[recovery]",
    what: "Time to recover from an overload.",
    keys: &[
        key("overload", "how long 110 % of the throughput is sent", "quick \"5s\", rfc2544 \"60s\""),
        key("after", "how long half of it is sent after that", "quick \"5s\", rfc2544 \"60s\""),
        key("repetitions", "how often", "quick 3, rfc2544 10"),
    ],
};

/// `[reset]`.
pub(super) const RESET: Section = Section {
    name: "reset",
    written: "[reset]",
    what: "Outage of a reset.",
    keys: &[
        key("command", "what resets the device: a list of words, run without a shell", "required"),
        key("within", "how long the device may take", "\"2m\""),
    ],
};

/// `[worst-case]`.
pub(super) const WORST_CASE: Section = Section {
    name: "worst-case",
    written: "[worst-case]",
    what: "Frames at line rate: the receiver's rate is the result.",
    keys: &[
        key("duration", "how long each trial is", "quick \"5s\", rfc2544 \"60s\""),
        key("repetitions", "how many", "5"),
    ],
};

/// `[ab]`.
pub(super) const AB: Section = Section {
    name: "ab",
    written: "[ab]",
    what: "The same plan with two configurations of the device, interleaved A B B A.",
    keys: &[
        key("runs", "runs with each, 3 to 200", "5"),
        key("settle", "rest after a switch", "\"2s\""),
        key("a", "table: what is compared against", "required"),
        key("b", "table: what is compared", "required"),
    ],
};

/// `[ab.a]`.
pub(super) const AB_A: Section =
    Section { name: "ab.a", written: "[ab.a]", what: "What is compared against.", keys: CONFIGURATION };

/// `[ab.b]`.
pub(super) const AB_B: Section =
    Section { name: "ab.b", written: "[ab.b]", what: "What is compared.", keys: CONFIGURATION };

const CONFIGURATION: &[Key] = &[
    key("name", "how the report calls the configuration", "required"),
    key(
        "commands",
        "what switches the device to it from the other one: a list of commands, each a list of words, run without a shell",
        "none",
    ),
    key(
        "undo",
        "what takes the commands back, run when it is left and at the end however that comes: a list of commands",
        "none: the commands of the other one do it",
    ),
    key(
        "faults",
        "faults of the lab at the device: a list of \"id\" or \"id=value\", put in after the other's are out",
        "none",
    ),
];

/// All tables, in the order of the manual.
pub const SECTIONS: [&Section; 17] = [
    &ROOT,
    &GENERATOR,
    &RECEIVER,
    &TRAFFIC,
    &MODIFIER,
    &HOP,
    &SOURCE,
    &THROUGHPUT,
    &GOAL,
    &LATENCY,
    &LOSS,
    &BACK_TO_BACK,
    &RECOVERY,
    &RESET,
    &WORST_CASE,
    &AB,
    &AB_A,
];

/// The page of the manual: every table with its keys, as Markdown.
#[must_use]
pub fn reference() -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let mut page = String::new();
    for section in SECTIONS {
        let written = if section.name == AB_A.name { "[ab.a] and [ab.b]" } else { section.written };
        let head = if section.name.is_empty() { written.to_owned() } else { format!("`{written}`") };
        page.push_str(&format!(
            "### {head}\n\n{}\n\n| Key | What it is | Without it |\n| --- | --- | --- |\n",
            section.what
        ));
        for key in section.keys {
            page.push_str(&format!("| `{}` | {} | {} |\n", key.name, cell(key.what), cell(key.default)));
        }
        page.push('\n');
    }
    page
}
