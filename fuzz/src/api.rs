//! What the control connection carries, selected by the first byte: requests, events, refusals and keys.

use narrows_wire::{Token, api};

pub(crate) fn run(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 8 {
        0 => drop(serde_json::from_slice::<api::Hello>(bytes)),
        1 => drop(serde_json::from_slice::<api::InventoryRequest>(bytes)),
        2 => drop(serde_json::from_slice::<api::ChangeRequest>(bytes)),
        3 => drop(serde_json::from_slice::<api::Refusal>(bytes)),
        4 => drop(serde_json::from_slice::<api::BeginRequest>(bytes)),
        5 => {
            if let Ok(request) = serde_json::from_slice::<api::TrialRequest>(bytes)
                && request.plan.check().is_ok()
            {
                let streams = request.plan.streams();
                assert!((1..=1_024).contains(&streams.len()), "{} streams", streams.len());
            }
        }
        6 => {
            if let Ok(Some(event)) = api::Event::from_line(bytes) {
                assert!(event.to_line().is_ok());
            }
        }
        _ => {
            if let Ok(text) = std::str::from_utf8(bytes) {
                let _ = (text.parse::<Token>(), api::key_from_hex(text));
            }
        }
    }
}
