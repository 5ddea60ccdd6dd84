//! Models object files: for each, how many paths, and what it took.

use std::path::Path;
use std::process::ExitCode;

use millrace_model::{Limits, model};

fn main() -> ExitCode {
    for path in std::env::args().skip(1) {
        let program = match millrace_object::load_file(Path::new(&path)) {
            Ok(p) => p,
            Err(e) => {
                println!("{path}: not loaded: {e}");
                continue;
            }
        };
        let Ok(checked) = millrace_check::check(&program, &millrace_check::Options::default())
        else {
            println!("{path}: refused");
            continue;
        };
        let m = model(
            &program,
            &checked,
            &Limits {
                dump: std::env::var_os("DUMP").map(Into::into),
                ..Limits::default()
            },
        );
        for e in &m.entries {
            println!(
                "{path}: {}: {} paths, {:?}, {:?}",
                e.function,
                e.paths.len(),
                e.outcome,
                e.took
            );
        }
    }
    ExitCode::SUCCESS
}
