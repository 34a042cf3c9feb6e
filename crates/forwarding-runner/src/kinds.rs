//! The kinds of records that a benchmark adds to the store.

use narrows_forwarding::data::ForwardingRecord;
use narrows_forwarding::data::ab::AbRecord;
use narrows_forwarding::views;
use narrows_model::run::history::StoredRun;
use narrows_render::AnyDocument;
use narrows_runner::stored::{Kind, Record, of, plan_hash};

pub static KINDS: [Kind; 2] = [of::<Wing, ForwardingRecord>(), of::<Wing, AbRecord>()];

/// Who knows these kinds: this crate.
pub enum Wing {}

impl Record<Wing> for ForwardingRecord {
    const KIND: &'static str = "forwarding";
    const COMMAND: &'static str = "rfc2544";

    fn listed(&self) -> StoredRun {
        StoredRun { plan: plan_hash(&self.plan), ..views::of_forwarding(self) }
    }

    fn report(self: Box<Self>) -> Option<Box<dyn AnyDocument>> {
        Some(Box::new(views::report(&self)))
    }
}

/// Of two configurations.
impl Record<Wing> for AbRecord {
    const KIND: &'static str = "forwarding-pair";
    const COMMAND: &'static str = "rfc2544";

    fn listed(&self) -> StoredRun {
        StoredRun { plan: plan_hash(&self.ab), ..views::of_pair(self) }
    }

    fn report(self: Box<Self>) -> Option<Box<dyn AnyDocument>> {
        Some(Box::new(views::report_pair(&self)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_runner::stored::foreign::As;
    use narrows_runner::stored::maintenance::{Imported, export, import};
    use narrows_runner::stored::{Filter, Kinds, OWN, Store};
    use narrows_views::history::empty;

    #[test]
    fn who_knows_a_kind_imports_it_and_who_does_not_names_it() {
        const KNOWN: Kinds = &[&KINDS];
        let directory = tempfile::tempdir().expect("a directory");
        let at = |name: &str| directory.path().join(name);
        let open = |name: &str| Store::open(&at(name)).expect("a store");
        let mut store = open("one.db");
        for word in [ForwardingRecord::KIND, AbRecord::KIND] {
            let entry = StoredRun { id: format!("20260101-000000-{word}"), ..empty("rfc2544", Vec::new()) };
            store.put(&entry, word, b"{}").expect("stored");
        }
        assert_eq!(export(&store, &Filter::default(), &at("all.jsonl")).expect("exported"), 2);
        let read = |name: &str, kinds| import(&mut open(name), Some(&at("all.jsonl")), &As::default(), kinds);
        assert_eq!(read("two.db", KNOWN).expect("read"), Imported { new: 2, ..Imported::default() });
        let failed = read("three.db", OWN).expect("read").failed.join("\n");
        assert!(failed.contains("unknown kind `forwarding`") && failed.contains("unknown kind `forwarding-pair`"));
    }
}
