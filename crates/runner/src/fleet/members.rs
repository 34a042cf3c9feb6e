//! Hosts that join a fleet: what the names of their services say, and when a fleet begins anew with others.

use crate::{Stop, lock};
use narrows_fleet::control::Control;
use narrows_fleet::join::Members;
use narrows_fleet::truth::Truth;
use narrows_sys::{clock, names};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How often services are looked up.
const LOOKED_UP: Duration = Duration::from_secs(15);
/// How often a wait looks whether it was stopped.
const LOOKS: Duration = Duration::from_millis(250);

/// Whether hosts joined the fleet, or left it.
pub(super) fn is_other<T: Truth>(
    control: &Control<'_, T>,
    members: &Mutex<Members>,
    now_ms: u64,
    watch: &mut dyn FnMut(&str),
) -> bool {
    let silence = control.silence(now_ms);
    let mut members = lock(members);
    members.leave(&silence, now_ms);
    let news = members.news(now_ms);
    news.iter().for_each(|says| watch(says));
    !news.is_empty()
}

/// Looks up again and again what services name. It ends after the controller: a look-up may take long.
pub(super) fn look_up(members: Arc<Mutex<Members>>, stop: Stop) {
    std::thread::spawn(move || {
        while !stop.is_set() {
            let services = lock(&members).services();
            for (group, service) in services {
                let found = names::addresses(&service).ok();
                lock(&members).named(&group, found.map(|all| all.into_iter().collect()));
            }
            let until = clock::now() + LOOKED_UP;
            while !stop.is_set() && clock::now() < until {
                clock::sleep(LOOKS);
            }
        }
    });
}
