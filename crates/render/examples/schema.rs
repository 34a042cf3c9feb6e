//! Prints the JSON Schema of a report: `cargo run -p narrows-render --example schema > docs/report.schema.json`.

fn main() -> serde_json::Result<()> {
    print!("{}", narrows_render::json::report_schema()?);
    Ok(())
}
