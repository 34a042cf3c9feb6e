//! Every table of a plan file and its keys: what each is, and what is taken without it. Tables of structs declare theirs with the
//! fields (`narrows_wire::data::settings`), the others are in `keys.txt`. The reader takes its known keys from here and the
//! manual its page, so that neither can know more than the other.

use super::section::Section;
use super::{ab, procedures};
use crate::data::plan::{TableCommands, TrialConditions};
use crate::data::settings::Settings as _;
use std::sync::LazyLock;

/// All tables, in the order of the manual.
pub static SECTIONS: LazyLock<Vec<Section>> = LazyLock::new(|| {
    let ends = [Section::of("generator"), Section::like("receiver", "generator")];
    let way = ["traffic", "traffic.modifiers", "hop", "hop.source"].map(Section::of);
    let tables = Section {
        name: "tables",
        written: "[tables]".to_owned(),
        what: TableCommands::DOC.trim().to_owned(),
        keys: procedures::declared(TableCommands::KEYS),
    };
    let pair = [Section::of("ab"), Section::of(ab::SIDES[0]), Section::like(ab::SIDES[1], ab::SIDES[0])];
    let all = std::iter::once(root()).chain(ends).chain(way).chain([tables]).chain(procedures::sections()).chain(pair);
    all.collect()
});

/// The top of the file.
fn root() -> Section {
    let mut root = Section { name: "", ..Section::of("top") };
    root.keys.extend(procedures::declared(TrialConditions::KEYS));
    root.keys.extend(Section::of("top.ports").keys);
    root.keys.extend(procedures::tables());
    root.keys.extend(Section::of("top.ab").keys);
    root
}

/// The page of the manual: every table with its keys, as Markdown.
pub fn reference() -> String {
    let cell = |text: &str| text.replace('|', "\\|");
    let mut page = String::new();
    // Both configurations have the same keys: they are one table of the page.
    for section in SECTIONS.iter().filter(|section| section.name != ab::SIDES[1]) {
        let written = if section.name == ab::SIDES[0] { "[ab.a] and [ab.b]" } else { &section.written };
        let head = if section.name.is_empty() { written.to_owned() } else { format!("`{written}`") };
        page.push_str(&format!("### {head}\n\n{}\n\n| Key | Meaning | Default |\n| --- | --- | --- |\n", section.what));
        for key in &section.keys {
            page.push_str(&format!("| `{}` | {} | {} |\n", key.name, cell(&key.what), cell(&key.default)));
        }
        page.push('\n');
    }
    page
}
