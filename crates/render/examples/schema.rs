//! Writes a published schema: `cargo run -p narrows-render --example schema -- sweep > docs/sweep.schema.json`. Without a
//! name: that of a diagnosis, `report`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "report".to_owned());
    let names = narrows_render::json::schema_names().collect::<Vec<_>>().join(", ");
    let schema =
        narrows_render::json::schema(&name)?.ok_or(format!("no schema is called `{name}`; there are {names}"))?;
    print!("{schema}");
    Ok(())
}
