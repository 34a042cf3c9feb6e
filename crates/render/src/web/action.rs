//! What readers can ask for, and the forms by which they do.

use super::address::address;
use maud::{Markup, html};

/// What a reader can ask for, as forms name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Acknowledge,
    Mute,
    /// What is muted is reported again.
    Unmute,
    Pause,
    Resume,
    /// A path.
    Test,
    /// The test under way.
    Stop,
    /// A change of a setting.
    Undo,
}

impl Action {
    pub const ALL: [Self; 8] =
        [Self::Acknowledge, Self::Mute, Self::Unmute, Self::Pause, Self::Resume, Self::Test, Self::Stop, Self::Undo];

    pub const fn word(self) -> &'static str {
        match self {
            Self::Acknowledge => "acknowledge",
            Self::Mute => "mute",
            Self::Unmute => "unmute",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Test => "test",
            Self::Stop => "stop",
            Self::Undo => "undo",
        }
    }
}

/// A form with these fields.
pub(super) fn form(key: &str, action: Action, fields: &Markup) -> Markup {
    html! {
        form method="post" action=(address("do", &[])) {
            input type="hidden" name="key" value=(key);
            input type="hidden" name="what" value=(action.word());
            (fields)
        }
    }
}
