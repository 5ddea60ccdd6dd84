//! Prints what is emitted for an object: `cargo run -p millrace-emit --example show -- nf.o`.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("give a BPF object")?;
    let program = millrace_object::load_file(Path::new(&path))?;
    let checked = millrace_check::check(&program, &millrace_check::Options::default())
        .map_err(|r| format!("{r:#?}"))?;
    print!(
        "{}",
        millrace_emit::alone::emit(&program, &checked, "module.c")?
    );
    Ok(())
}
