//! Orders for raw frames, and what their answers hold, selected by the first byte.

use narrows_wire::api::frames;

pub(crate) fn run(bytes: &[u8]) {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    match kind % 6 {
        0 => match serde_json::from_slice::<frames::FramesOrder>(bytes) {
            Ok(frames::FramesOrder::Generate { plans }) => plans.iter().for_each(|plan| drop(plan.check())),
            Ok(frames::FramesOrder::Receive { plan, .. }) => drop(plan.check()),
            Err(_) => {}
        },
        1 => drop(serde_json::from_slice::<frames::LinksRequest>(bytes)),
        2 => drop(serde_json::from_slice::<frames::QualifyRequest>(bytes)),
        3 => drop(serde_json::from_slice::<frames::PortRequest>(bytes)),
        4 => drop(serde_json::from_slice::<frames::FramesWait>(bytes)),
        _ => {
            let _ = serde_json::from_slice::<frames::FramesRecord>(bytes);
            let _ = serde_json::from_slice::<frames::LinksAnswer>(bytes);
        }
    }
}
