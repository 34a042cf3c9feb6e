//! The controller's store as something that may be bad itself.

use super::alerts::Alerts;
use super::command::{Later, now_ms};
use narrows_fleet::incident::{Incident, Message};
use narrows_model::run::fleet::{FleetPaths, FleetStatus};

/// Whether the store works, as far as people know: no incident can be kept in it meanwhile.
#[derive(Default)]
pub(super) struct Archive {
    /// Whether this controller led before: others say nothing.
    led: bool,
    failing: Option<Incident>,
    /// What was open when it led last, …
    pub(super) open: Vec<Incident>,
    /// … and how the fleet was, where it leads no more since the store fails.
    pub(super) status: Option<FleetStatus>,
}

/// It is reported after so long.
const SILENT_STORE_MS: u64 = 60_000;

impl Archive {
    pub(super) fn works(&mut self, alerts: &mut Alerts) {
        (self.led, self.status) = (true, None);
        self.is_over(alerts);
    }

    /// Another controller leads, with the store.
    pub(super) fn is_led(&mut self, alerts: &mut Alerts) {
        self.is_over(alerts);
        (self.led, self.status) = (false, None);
    }

    /// How the fleet was when this controller led last; `None`: it is not known, or the store works.
    pub(super) fn looked(&self, trouble: Option<&str>) -> Option<Later> {
        let status = FleetStatus { trouble: Some(trouble?.to_owned()), ..self.status.clone()? };
        Some(Box::new(move || (status, FleetPaths::default())))
    }

    fn is_over(&mut self, alerts: &mut Alerts) {
        if let Some(incident) = self.failing.take().filter(|it| it.reported) {
            let after_ms = now_ms().saturating_sub(incident.since_ms);
            alerts.send(&Message::Over { incident, after_ms });
        }
    }

    pub(super) fn fails(&mut self, why: Option<&str>, alerts: &mut Alerts, watch: &mut dyn FnMut(&str)) {
        let incident = self.failing.get_or_insert_with(|| Incident {
            number: 0,
            element: "the controller's store".to_owned(),
            says: String::new(),
            since_ms: now_ms(),
            acknowledged: None,
            verdict: None,
            reported: false,
        });
        why.unwrap_or_default().clone_into(&mut incident.says);
        if self.led && !incident.reported && now_ms() >= incident.since_ms + SILENT_STORE_MS {
            incident.reported = true;
            alerts.send(&Message::Began(incident.clone()));
        }
        // An Alertmanager takes what does not come again for over.
        if self.led {
            let own = self.failing.iter().filter(|it| it.reported);
            alerts.look(&self.open.iter().chain(own).collect::<Vec<_>>(), watch);
        }
    }
}

/// What the store answered; its failure is said once.
pub(super) fn noted<T>(
    outcome: Result<T, narrows_store::Error>,
    trouble: &mut Option<String>,
    watch: &mut dyn FnMut(&str),
) -> Option<T> {
    match outcome {
        Ok(outcome) => {
            *trouble = None;
            Some(outcome)
        }
        Err(error) => {
            let why = error.to_string();
            if trouble.as_ref() != Some(&why) {
                watch(&format!("the store fails: {why}"));
            }
            *trouble = Some(why);
            None
        }
    }
}
