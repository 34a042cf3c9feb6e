//! Whether this program is accurate on this machine, where the lab makes the truth: the emulator, the packet ledger, the search for
//! the highest load.

mod ledger;
mod noise;
mod search;

pub use ledger::verify as ledger;
pub use narrows_lab::{Row, Watch, accuracy as emulator};
pub use noise::verify as noise;
pub use search::verify as search;
