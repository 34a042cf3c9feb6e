//! What the control connection carries: requests, events, refusals, tokens and keys.
#![no_main]

use libfuzzer_sys::fuzz_target;
use narrows_wire::{Token, api};

fuzz_target!(|bytes: &[u8]| {
    let _ = serde_json::from_slice::<api::Hello>(bytes);
    let _ = serde_json::from_slice::<api::InventoryRequest>(bytes);
    let _ = serde_json::from_slice::<api::ChangeRequest>(bytes);
    let _ = serde_json::from_slice::<api::Refusal>(bytes);
    if let Ok(request) = serde_json::from_slice::<api::TrialRequest>(bytes) {
        let _ = request.plan.check();
    }
    if let Ok(Some(event)) = api::Event::from_line(bytes) {
        assert!(event.to_line().is_ok());
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = (text.parse::<Token>(), api::key_from_hex(text));
    }
});
