//! A stored run as columns, which anybody writes who may write to a shared store.

pub(crate) fn run(bytes: &[u8]) {
    let _ = narrows_store::json_of_columns(bytes);
}
