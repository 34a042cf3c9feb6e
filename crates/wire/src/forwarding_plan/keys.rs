//! Every table of a plan file and its keys: what each is, and what is taken without it. Tables of structs declare theirs with the
//! fields (`narrows_model::forwarding::settings`), the others beside their reader. The reader takes its known keys from here and the
//! manual its page, so that neither can know more than the other.

use super::section::{Section, key};
use super::{ab, hops, modifiers, ports, procedures, traffic};
use narrows_model::forwarding::TrialConditions;
use narrows_model::forwarding::settings::Settings as _;
use std::sync::LazyLock;

/// All tables, in the order of the manual.
pub static SECTIONS: LazyLock<Vec<Section>> = LazyLock::new(|| {
    let ends = [ports::generator_keys(), ports::receiver_keys()];
    let way = [traffic::keys(), modifiers::keys(), hops::keys(), hops::source_keys()];
    let pair = [ab::keys()].into_iter().chain(ab::side_keys());
    let all = std::iter::once(root()).chain(ends).chain(way).chain(procedures::sections()).chain(pair);
    all.collect()
});

/// The top of the file.
fn root() -> Section {
    let mut keys = vec![
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
    ];
    keys.extend(procedures::declared(TrialConditions::KEYS));
    keys.extend([
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
    ]);
    keys.extend(procedures::tables());
    keys.push(key("ab", "table: two configurations of the device to compare", "none"));
    Section::of("", "the top of the file", "The device and the line, and what holds for every trial.", keys)
}

/// The page of the manual: every table with its keys, as Markdown.
#[must_use]
pub fn reference() -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let mut page = String::new();
    // Both configurations have the same keys: they are one table of the page.
    for section in SECTIONS.iter().filter(|section| section.name != ab::SIDES[1]) {
        let written = if section.name == ab::SIDES[0] { "[ab.a] and [ab.b]" } else { &section.written };
        let head = if section.name.is_empty() { written.to_owned() } else { format!("`{written}`") };
        page.push_str(&format!(
            "### {head}\n\n{}\n\n| Key | What it is | Without it |\n| --- | --- | --- |\n",
            section.what
        ));
        for key in &section.keys {
            page.push_str(&format!("| `{}` | {} | {} |\n", key.name, cell(&key.what), cell(&key.default)));
        }
        page.push('\n');
    }
    page
}
