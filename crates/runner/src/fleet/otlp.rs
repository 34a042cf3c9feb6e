//! Figures of a fleet for a collector of OpenTelemetry (OTLP over HTTP, in JSON), each minute.

use super::alerts::{Carrier, Failed, connector};
use super::requests::Door;
use crate::lock;
use crate::server::request::blocking;
use narrows_fleet::alert::Target;
use narrows_render::fleet_metrics;
use narrows_sys::clock;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::task::AbortHandle;
use tokio::time::{MissedTickBehavior, interval};

const EACH: Duration = Duration::from_secs(60);

/// What sends them; it ends when dropped.
pub(super) struct Exporter {
    task: AbortHandle,
    target: String,
    trouble: Arc<Mutex<Option<String>>>,
    known: Option<String>,
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Exporter {
    /// Begins to send. `target`: where to, if anywhere.
    /// Errors: this host has no authorities to check certificates by.
    pub(super) fn start(runtime: &Runtime, target: Option<Target>, door: &Arc<Door>) -> Result<Option<Self>, String> {
        let Some(target) = target else { return Ok(None) };
        let tls = target.place().tls.then(connector).transpose()?;
        let carrier = Carrier::of(&target, tls.as_ref())?;
        let trouble = Arc::<Mutex<Option<String>>>::default();
        let (door, said, since_ms) = (door.clone(), trouble.clone(), clock::unix_us() / 1_000);
        let task = runtime.spawn(async move {
            let mut times = interval(EACH);
            times.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                times.tick().await;
                // Another controller leads, or this one is busy: the next time is soon.
                let Ok((status, _)) = door.looked(false).await else { continue };
                let body = blocking(move || serde_json::to_vec(&fleet_metrics::otlp(&status, since_ms))).await;
                let Ok(Ok(body)) = body else { continue };
                *lock(&said) = carrier.carry(&body).await.err().map(|Failed { why, .. }| why);
            }
        });
        Ok(Some(Self { task: task.abort_handle(), target: target.words(), trouble, known: None }))
    }

    /// What a user should know that is new.
    pub(super) fn look(&mut self, watch: &mut dyn FnMut(&str)) {
        let trouble = lock(&self.trouble).clone();
        if trouble != self.known {
            let why = trouble.as_ref().map(|why| format!("figures do not arrive: {}: {why}", self.target));
            watch(why.as_deref().unwrap_or("figures arrive again"));
            self.known = trouble;
        }
    }
}
