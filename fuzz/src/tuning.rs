//! Entries of the journal of changes, and the file of named tokens.

use narrows_runner::tokens::Named;
use narrows_runner::tune::{Entry, check_for_client};

pub(crate) fn run(bytes: &[u8]) {
    if let Ok(entry) = serde_json::from_slice::<Entry>(bytes) {
        let text = serde_json::to_string(&entry).expect("an entry");
        assert_eq!(serde_json::from_str::<Entry>(&text).expect("its own form"), entry);
        let _ = (entry.namespace(), entry.change.set.to_string(), check_for_client(&entry.change.set));
    }
    if let Ok(tokens) = serde_json::from_slice::<Vec<Named>>(bytes) {
        assert!(tokens.iter().all(|token| token.rights().len() < 200));
    }
}
