//! Plans object files behind every model of a NIC, so many times each: the time of the plan without the model, of the
//! fastest run behind the slowest NIC, and of the keys. The first argument is how many times.

use std::path::Path;
use std::process::ExitCode;

use millrace_check::Options;
use millrace_model::{Limits, model};
use millrace_plan::{Wanted, plan};
use millrace_steer::nic::names;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let Some(turns) = words.next().and_then(|w| w.parse::<u32>().ok()) else {
        eprintln!("plan TURNS OBJECT...");
        return ExitCode::from(2);
    };
    for path in words {
        let program = match millrace_object::load_file(Path::new(&path)) {
            Ok(program) => program,
            Err(e) => {
                eprintln!("{path}: not loaded: {e}");
                return ExitCode::FAILURE;
            }
        };
        let Ok(checked) = millrace_check::check(&program, &Options::default()) else {
            eprintln!("{path}: refused");
            return ExitCode::FAILURE;
        };
        let modelled = model(&program, &checked, &Limits::default());
        let mut slowest = (0.0_f64, 0.0_f64);
        for nic in names() {
            let wanted = Wanted {
                cores: 16,
                nic: nic.to_owned(),
                ..Wanted::default()
            };
            let mut fastest = (f64::INFINITY, f64::INFINITY);
            for _ in 0..turns {
                // What one plan adds to the model's expressions the next would find.
                let mut modelled = modelled.clone();
                match plan(&mut modelled, &program, &wanted) {
                    Ok(plan) => {
                        fastest.0 = fastest.0.min(plan.took_ms);
                        fastest.1 = fastest.1.min(plan.keys_ms);
                    }
                    Err(e) => {
                        eprintln!("{path}: {e}");
                        return ExitCode::FAILURE;
                    }
                }
            }
            slowest = (slowest.0.max(fastest.0), slowest.1.max(fastest.1));
        }
        println!("{path}: {:.1} ms, keys {:.2} ms", slowest.0, slowest.1);
    }
    ExitCode::SUCCESS
}
