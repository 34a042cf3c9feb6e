//! Prints the table of asked against measured. Needs root.

fn main() -> narrows_lab::Result<()> {
    narrows_lab::accuracy(|row| {
        let kept = if row.kept { "kept" } else { "BROKEN" };
        println!(
            "{:<52} {:>10.3} {:>10.3} {:<8} {:<18} {kept}",
            row.what, row.asked, row.measured, row.unit, row.promise
        );
        true
    })?;
    Ok(())
}
