//! Checks object files: for each, what the proof took, or what is refused.

use std::path::Path;
use std::process::ExitCode;

use millrace_check::{Options, check_with_statistics};

fn main() -> ExitCode {
    let mut all = true;
    for path in std::env::args().skip(1) {
        let program = match millrace_object::load_file(Path::new(&path)) {
            Ok(p) => p,
            Err(e) => {
                println!("{path}: not loaded: {e}");
                all = false;
                continue;
            }
        };
        let (result, s) = check_with_statistics(&program, &Options::default());
        println!(
            "{path}: {} rounds, {} visits, {} states, {:?}",
            s.rounds, s.visits, s.states, s.time
        );
        if let Err(refusals) = result {
            all = false;
            for r in refusals {
                let line = r
                    .line
                    .as_ref()
                    .map(|l| format!("{}:{}: {}", l.file, l.line, l.text))
                    .unwrap_or_default();
                println!(
                    "  {} [{}] {}\n    {line}\n    {}\n    {}\n    {}",
                    r.function, r.instruction, r.rule, r.text, r.reason, r.remedy
                );
            }
        }
    }
    if all {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
