//! Pictures: a small builder of SVG and the parts that the pictures share. Light background, Okabe and Ito's colours, no script, no
//! external font; every line has its own marker or dash, so that colour never carries information on its own.

pub mod canvas;
pub mod legend;
pub mod palette;
pub mod panel;
pub mod rows;
pub mod scale;

pub use canvas::{Anchor, Canvas, Font, Stroke};
pub use legend::{Entry, legend};
pub use palette::{Look, Marker};
pub use panel::{Panel, spread_out};
pub use scale::Scale;
