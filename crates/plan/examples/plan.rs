//! Plans object files behind every model of a NIC, so many times each: the processor time of the plan without the model,
//! of the fastest run behind each NIC, and the time of the keys. The first argument is how many times; NICs may follow,
//! else it is all of them.
//!
//! The model may take as long as it likes: under an instrument that slows the program down, such as callgrind, it must
//! not end without all paths, as the plan would then be another one.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use millrace_check::{Budget, Options};
use millrace_model::{Limits, Model, model};
use millrace_object::program::Program;
use millrace_plan::{PlanError, Wanted, plan};
use millrace_steer::nic::names;

/// Longer than any model takes, under whatever instrument.
const LONG: Duration = Duration::from_secs(24 * 3600);

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).peekable();
    let Some(turns) = words.next().and_then(|w| w.parse::<u32>().ok()) else {
        eprintln!("plan TIMES [NIC...] OBJECT...");
        return ExitCode::from(2);
    };
    let mut nics: Vec<&str> = Vec::new();
    while let Some(nic) = words
        .peek()
        .and_then(|w| names().into_iter().find(|n| n == w))
    {
        nics.push(nic);
        words.next();
    }
    if nics.is_empty() {
        nics = names();
    }
    for path in words {
        match measured(&path, turns, &nics) {
            Ok(text) => println!("{path}: {text}"),
            Err(e) => {
                eprintln!("{path}: {e}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// The times of one object, in words.
fn measured(path: &str, turns: u32, nics: &[&str]) -> Result<String, String> {
    let program = millrace_object::load_file(Path::new(path)).map_err(|e| e.to_string())?;
    let checked = millrace_check::check(&program, &Options::default());
    let checked = checked.map_err(|_| "refused".to_owned())?;
    let limits = Limits {
        time: LONG,
        question: LONG,
        budget: Some(budget()),
        ..Limits::default()
    };
    let modelled = model(&program, &checked, &limits);
    if !modelled.covers() {
        return Err("not all paths are known".to_owned());
    }
    let mut all = Vec::new();
    let mut slowest_keys = 0.0_f64;
    for nic in nics {
        let fastest = fastest(&program, &modelled, turns, nic).map_err(|e| e.to_string())?;
        all.push((fastest.0, *nic));
        slowest_keys = slowest_keys.max(fastest.1);
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let each: Vec<String> = all
        .iter()
        .map(|(ms, nic)| format!("{nic} {ms:.1}"))
        .collect();
    Ok(format!(
        "{} ms; keys at most {slowest_keys:.2} ms",
        each.join(", ")
    ))
}

/// The milliseconds of the fastest of so many plans behind a NIC, and of the fastest keys.
fn fastest(
    program: &Program,
    modelled: &Model,
    turns: u32,
    nic: &str,
) -> Result<(f64, f64), PlanError> {
    let wanted = Wanted {
        cores: 16,
        nic: nic.to_owned(),
        budget: Some(budget()),
        ..Wanted::default()
    };
    let mut fastest = (f64::INFINITY, f64::INFINITY);
    for _ in 0..turns {
        // What one plan adds to the model's expressions the next would find.
        let mut modelled = modelled.clone();
        let began = Clock::now();
        let plan = plan(&mut modelled, program, &wanted)?;
        fastest.0 = fastest.0.min(began.ms());
        fastest.1 = fastest.1.min(plan.keys_ms);
    }
    Ok(fastest)
}

fn budget() -> Budget {
    Budget::begin(LONG, u64::MAX)
}

/// The time that the thread has been on a processor, where the kernel tells that, else the time on the wall: other
/// processes may share the machine.
enum Clock {
    Processor(Duration),
    Wall(Instant),
}

impl Clock {
    fn now() -> Self {
        Self::processor().map_or_else(|| Self::Wall(Instant::now()), Self::Processor)
    }

    fn processor() -> Option<Duration> {
        // The count is brought up to date when the thread leaves the processor, else only at the ticks of the kernel's
        // clock, which can be 4 ms apart.
        std::thread::sleep(Duration::from_nanos(1));
        // Nanoseconds on a processor come first (Documentation/scheduler/sched-stats.rst).
        let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
        let on_cpu = text.split_whitespace().next()?.parse().ok()?;
        Some(Duration::from_nanos(on_cpu))
    }

    fn ms(&self) -> f64 {
        let took = match self {
            Self::Processor(began) => Self::processor().and_then(|now| now.checked_sub(*began)),
            Self::Wall(began) => Some(began.elapsed()),
        };
        took.unwrap_or_default().as_secs_f64() * 1e3
    }
}
