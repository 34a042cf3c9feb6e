//! Columns of numbers, of any column and delimiter.
use narrows_wire::columns::Columns;

pub(crate) fn run(bytes: &[u8]) {
    let Some((column, text)) = bytes.split_first() else { return };
    for delimiters in [" \t", ",", "\u{e9};"] {
        let columns = Columns { column: usize::from(*column), delimiters: delimiters.to_owned() };
        let _ = columns.read(&String::from_utf8_lossy(text));
    }
}
