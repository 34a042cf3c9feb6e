//! Pictures: a small builder of SVG, and what the pictures share. Light background, Okabe and Ito's colours, no script, no
//! outside font; every line has a marker or a dash of its own, so that nothing is said by colour alone.

pub(crate) mod canvas;
pub(crate) mod legend;
pub(crate) mod palette;
pub(crate) mod panel;
pub(crate) mod scale;

pub(crate) use canvas::{Anchor, Canvas, Font, Stroke};
pub(crate) use legend::{Entry, legend};
pub(crate) use palette::{Look, Marker};
pub(crate) use panel::Panel;
pub(crate) use scale::Scale;
