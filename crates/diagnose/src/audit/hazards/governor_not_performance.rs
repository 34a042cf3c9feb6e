//! The CPU's frequency governor saves power. Source: Documentation/admin-guide/pm/cpufreq.rst.

use crate::audit::rule::{Found, Look, Rule};
use narrows_model::{Key, Severity, Unit};

pub(super) const HAZARD: Rule = Rule {
    id: "governor-not-performance",
    severity: Severity::Info,
    key: "cpu.governor",
    needs: &[Key::new("cpu.governor", Unit::Text)],
    matters: "Cores slow down between bursts: latency rises, and a core can be full at half its frequency.",
    harmless: "For bulk transfers on most machines: under load the governor raises the frequency within milliseconds; \
               with intel_pstate the governor `powersave` means just that.",
    look: Look::Host(|host| {
        let governor = host.text("cpu.governor").filter(|word| !word.is_empty() && *word != "performance")?;
        Some(Found::new(format!("the frequency governor is {governor}")).mend("cpupower frequency-set -g performance"))
    }),
};

#[cfg(test)]
mod tests {
    use super::HAZARD;
    use crate::audit::rule::tests::found;
    use narrows_model::Unit;

    #[test]
    fn only_when_exposed() {
        assert!(found(&HAZARD, &[("cpu.governor", "powersave".into(), Unit::Text)]).is_some());
        assert!(found(&HAZARD, &[("cpu.governor", "performance".into(), Unit::Text)]).is_none());
        assert!(found(&HAZARD, &[]).is_none());
    }
}
