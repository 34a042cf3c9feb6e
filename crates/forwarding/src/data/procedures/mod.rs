//! The procedures of the benchmark: a file and a line in the table for each. A file has the procedure's settings (the keys of its
//! table in a plan file, with documentation and defaults) and its results.

pub mod about;
pub mod back_to_back;
pub mod frmol;
pub mod latency;
pub mod loss;
pub mod recovery;
pub mod reset;
pub mod throughput;

pub use about::{About, Made, Procedure};
pub use back_to_back::BackToBackTest;
pub use frmol::FrmolTest;
pub use latency::LatencyTest;
pub use loss::LossTest;
pub use recovery::RecoveryTest;
pub use reset::ResetTest;
pub use throughput::ThroughputTest;

use super::settings::{Key, Preset, Settings};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

macro_rules! procedures {
    ($( $(#[$meta:meta])* $test:ident $field:ident: $settings:ty => $results:ty, )*) => {
        /// What is measured, size by size; what is `None` is left out.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
        pub struct Tests {
            $( #[doc = concat!("Settings of [`Test::", stringify!($test), "`].")] $(#[$meta])* pub $field: Option<$settings>, )*
        }

        /// Which test a trial belongs to.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Test {
            /// The tester alone, or the first frames through the device that nobody counts.
            Qualification,
            /// A repetition at the throughput.
            Confirmation,
            $( #[doc = concat!("[`Tests::", stringify!($field), "`].")] $(#[$meta])* $test, )*
        }

        /// The results of all procedures for one frame size.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema, Default)]
        pub struct Results {
            $( #[doc = concat!("Results of [`Test::", stringify!($test), "`].")] #[serde(flatten)] pub $field: $results, )*
        }

        impl Test {
            /// The procedures, in the order of the manual.
            pub const PROCEDURES: &'static [Self] = &[$( Self::$test, )*];

            /// What is known of a procedure; of a qualification and a confirmation nothing.
            pub const fn about(self) -> Option<&'static About> {
                match self {
                    Self::Qualification | Self::Confirmation => None,
                    $( Self::$test => Some(&<$settings as Procedure>::ABOUT), )*
                }
            }

            /// What a procedure's table is about, and its keys.
            pub const fn keys(self) -> (&'static str, &'static [Key]) {
                match self {
                    Self::Qualification | Self::Confirmation => ("", &[]),
                    $( Self::$test => (<$settings as Settings>::DOC, <$settings as Settings>::KEYS), )*
                }
            }
        }

        impl Tests {
            /// Whether a procedure is to be made.
            pub const fn has(&self, test: Test) -> bool {
                match test {
                    Test::Qualification | Test::Confirmation => false,
                    $( Test::$test => self.$field.is_some(), )*
                }
            }

            /// Takes the settings of a procedure, by field.
            /// Errors: they are not those of the procedure.
            pub fn set(&mut self, test: Test, settings: Json) -> serde_json::Result<()> {
                match test {
                    Test::Qualification | Test::Confirmation => {}
                    $( Test::$test => self.$field = Some(serde_json::from_value(settings)?), )*
                }
                Ok(())
            }

            /// What the values of a procedure cannot be together: key and sentence.
            pub fn problems(&self, test: Test) -> Vec<(&'static str, String)> {
                match test {
                    Test::Qualification | Test::Confirmation => Vec::new(),
                    $( Test::$test => self.$field.as_ref().map(Procedure::problems).unwrap_or_default(), )*
                }
            }

            /// Takes what follows from the rest of the plan: the highest frame rate of its smallest frames.
            pub fn complete(&mut self, fastest_pps: f64) {
                $( if let Some(settings) = &mut self.$field {
                    settings.complete(fastest_pps);
                } )*
            }
        }
    };
}

procedures! {
    Throughput throughput: throughput::ThroughputTest => throughput::ThroughputResults,
    Latency latency: latency::LatencyTest => latency::LatencyResults,
    Loss loss: loss::LossTest => loss::LossResults,
    BackToBack back_to_back: back_to_back::BackToBackTest => back_to_back::BackToBackResults,
    Recovery recovery: recovery::RecoveryTest => recovery::RecoveryResults,
    Reset reset: reset::ResetTest => reset::ResetResults,
    #[serde(rename = "worst_case")]
    Frmol frmol: frmol::FrmolTest => frmol::FrmolResults,
}

impl Test {
    /// Its name in reports.
    pub fn title(self) -> &'static str {
        match self {
            Self::Qualification => "qualification",
            Self::Confirmation => "confirmation",
            _ => self.about().map_or("", |about| about.title),
        }
    }

    /// Its name while it runs.
    pub fn word(self) -> &'static str {
        match self {
            Self::Qualification => "calibration",
            Self::Confirmation => "confirmation",
            _ => self.about().map_or("", |about| about.word),
        }
    }
}

impl Tests {
    /// Takes the settings of a procedure that a preset has; those without a default are left out.
    pub fn set_default(&mut self, test: Test, preset: Preset) {
        let settings = test.keys().1.iter().map(|key| Some((key.field.to_owned(), key.default.json(preset)?)));
        if let Some(settings) = settings.collect::<Option<serde_json::Map<_, _>>>() {
            // A test sees that the defaults of every procedure are settings.
            let _ = self.set(test, settings.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_of_every_procedure_are_settings() {
        for preset in [Preset::Quick, Preset::Rfc2544] {
            for test in Test::PROCEDURES {
                let mut tests = Tests::default();
                tests.set_default(*test, preset);
                let required = test.keys().1.iter().any(|key| key.default.json(preset).is_none());
                assert_eq!(tests.has(*test), !required, "{test:?}");
                assert_eq!(tests.problems(*test), [], "{test:?}");
            }
        }
    }

    #[test]
    fn stored_names_stay() {
        let names = serde_json::to_string(Test::PROCEDURES).expect("JSON");
        assert_eq!(names, r#"["throughput","latency","loss","back_to_back","recovery","reset","worst_case"]"#);
        let none = serde_json::to_value(Tests::default()).expect("JSON");
        assert!(none.get("worst_case").is_some_and(Json::is_null), "{none}");
    }
}
