//! Any bytes and any words: the parsers of the model neither panic nor invent. The targets of `fuzz/` go deeper.

use narrows_model::{TcpInfo, words::units};
use proptest::prelude::*;

proptest! {
    #[test]
    fn a_longer_answer_keeps_what_a_shorter_one_said(bytes in prop::collection::vec(any::<u8>(), 0..320), cut in 0usize..320) {
        let (whole, part) = (TcpInfo::from_bytes(&bytes), TcpInfo::from_bytes(&bytes[..cut.min(bytes.len())]));
        prop_assert!(part.rtt_us.is_none() || part.rtt_us == whole.rtt_us);
        prop_assert!(part.snd_wnd_bytes.is_none() || part.snd_wnd_bytes == whole.snd_wnd_bytes);
        prop_assert!(part.received_ce.is_none() || part.received_ce == whole.received_ce);
        let _ = whole.max_pacing_bps();
    }

    #[test]
    fn any_word_is_a_value_or_an_error_that_names_it(word in "\\PC{0,40}") {
        for error in [units::parse_rate(&word).err(), units::parse_size(&word).err(), units::parse_duration(&word).err()] {
            let names_it = error.is_none_or(|error| error.to_string().contains(&format!("`{word}`")));
            prop_assert!(names_it);
        }
    }

    #[test]
    fn a_written_number_reads_back(number in 1u32..1_000_000) {
        prop_assert_eq!(units::parse_bps(&format!("{number}k")), Ok(u64::from(number) * 1000));
        prop_assert_eq!(units::parse_size(&format!("{number}KiB")), Ok(u64::from(number) * 1024));
    }
}
