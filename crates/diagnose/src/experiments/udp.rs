//! The experiments of a diagnosis of UDP: what each trial is, by the id that it has in the run.

use crate::causes::udp::ip_fragmentation::UNFRAGMENTED;
use crate::causes::udp::small_datagrams::LARGER;
use crate::evidence::paced::{Part, plans};
use narrows_model::{DatagramSizes, UdpPlan};

/// The trial of an id for a load that carried `goodput_bps`; `None` for an id that there is not, or a load too small for it.
#[must_use]
pub fn plan_of_udp(id: &str, load: &UdpPlan, goodput_bps: f64) -> Option<UdpPlan> {
    match id {
        LARGER => Some(UdpPlan { sizes: DatagramSizes::Largest, ..load.clone() }),
        UNFRAGMENTED => Some(UdpPlan { sizes: DatagramSizes::Largest, allow_fragments: false, ..load.clone() }),
        _ => {
            let flow = *load.flows().first()?;
            plans(goodput_bps, flow).into_iter().find_map(|(part, plan)| (part.id() == id).then_some(plan))
        }
    }
}

/// What is done, in a sentence.
#[must_use]
pub fn what_of_udp(id: &str) -> Option<&'static str> {
    match id {
        LARGER => Some("the same load in the largest datagrams that travel whole"),
        UNFRAGMENTED => Some("the same load in datagrams that travel whole"),
        _ => Part::ALL.into_iter().find(|part| part.id() == id).map(|part| match part {
            Part::Tenth => "UDP at a tenth of the goodput, evenly paced",
            Part::Half => "UDP at half of the goodput, evenly paced",
            Part::HalfBursts => "UDP at half of the goodput, in bursts",
            Part::Plateau => "UDP a little above the goodput",
            Part::Above => "UDP at one and a half times the goodput",
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_paced_part_has_words_and_a_plan() {
        for part in Part::ALL {
            assert!(what_of_udp(part.id()).is_some_and(|words| words.starts_with("UDP")));
            let plan = plan_of_udp(part.id(), &UdpPlan::default(), 100e6).expect("a plan");
            assert_eq!(plan.check(), Ok(()));
        }
        assert_eq!(plan_of_udp("weather", &UdpPlan::default(), 100e6), None);
    }
}
