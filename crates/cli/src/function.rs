//! Functions as command lines name them: their settings read, and what the library does shown while it does it.

use millrace::place::{self, Foreseen, Traffic};
use millrace::{Arrangement, Asked, Function, Make, Source, Written};
use millrace_emit::Stage;
use millrace_place::Strategy;

use crate::failure::Failure;
use crate::progress::Stages;
use crate::{budget, screen, steer};

/// How a function is made, from `--set`, `--capacity` and `--program`.
///
/// # Errors
/// A word is neither a setting nor a capacity.
pub fn make(
    set: &[String],
    capacity: &[String],
    program: Option<&String>,
) -> Result<Make, Failure> {
    Ok(Make {
        settings: settings(set)?,
        capacities: capacities(capacity)?,
        program: program.cloned(),
        budgets: budget::given(),
        ..Make::default()
    })
}

/// Loads a function, and shows what building is at and clang's warnings.
///
/// # Errors
/// As [`millrace::Found::load`].
pub fn load(word: &str, make: &Make) -> Result<Function, Failure> {
    let found = millrace::find(word)?;
    let function = shown(|progress| found.load(make, progress))?;
    warn(&function.warnings);
    if !function.from_cache {
        millrace_dataplane::memory::give_back();
    }
    Ok(function)
}

/// Shows what building is at.
///
/// # Errors
/// Those of the work.
pub fn shown<T>(
    work: impl FnOnce(&mut dyn FnMut(Stage)) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let mut stages = Stages::new();
    let done = work(&mut |stage| stages.show(stage));
    stages.end();
    done
}

/// Reads a program, and shows clang's warnings.
///
/// # Errors
/// As [`millrace::Found::read`].
pub fn read(word: &str, make: &Make) -> Result<Written, Failure> {
    let written = millrace::find(word)?.read(make)?;
    warn(&written.warnings);
    Ok(written)
}

/// Finds out how a function is to run on several workers, by `--steer` or as its plan says, under the first of these
/// strategies that is possible; `traffic`: what it is going to receive, where that is known.
///
/// # Errors
/// It runs on one, or not as was asked.
pub fn arrange(
    word: &str,
    make: &Make,
    steer: &[String],
    asked: &Asked<'_>,
    (strategies, traffic): (&[Option<Strategy>], Option<&Traffic>),
) -> Result<Arrangement, Failure> {
    let found = millrace::find(word)?;
    if let Source::Module(path) = &found.source {
        let name = path.file_stem().unwrap_or_default().to_string_lossy();
        let why = "a module alone does not tell what it writes";
        return Err(place::on_one(&name, asked.cores, why));
    }
    let written = found.read(make)?;
    warn(&written.warnings);
    let budget = make.begin();
    let proved = written.check(budget)?;
    let told = |line: &str| screen::err(line);
    let foreseen = traffic.map(|traffic| Foreseen {
        found: &found,
        make,
        traffic,
        told: &told,
    });
    let mut asked = Asked {
        foreseen: foreseen.as_ref(),
        steering: steer::steering(steer, &written.program.ports, asked.cores)?,
        budget: Some(budget),
        ..*asked
    };
    let within = (budget::seconds(millrace_model::SECONDS, word), budget);
    let mut model = proved.model_for(asked.purpose(), within, &mut || {
        planning(&written.program.name);
    });
    let mut refused = None;
    for strategy in strategies {
        asked.strategy = *strategy;
        let answer = proved.arrange(&mut model, &asked);
        match answer.and_then(|answer| answer.several(asked.cores)) {
            Ok(found) => return Ok(found),
            Err(error) => refused = Some(error),
        }
    }
    Err(refused.unwrap_or_else(|| Failure::wrong("no strategy is left to try")))
}

/// Says that a model and a plan are made, which takes a while.
pub fn planning(name: &str) {
    screen::err(&format!("{name}: making the model and the plan"));
}

/// Shows warnings of clang, if there are any.
pub fn warn(warnings: &str) {
    if !warnings.is_empty() {
        screen::err(warnings.trim_end());
    }
}

/// `NAME=N` of `--capacity`.
pub fn capacities(given: &[String]) -> Result<Vec<(String, u64)>, Failure> {
    let capacity = |text: &String| {
        let pair = text
            .split_once('=')
            .and_then(|(n, c)| Some((n.to_owned(), c.parse().ok()?)));
        pair.filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
            Failure::wrong(format!("--capacity {text}: not a capacity"))
                .help("write --capacity OBJECT=ENTRIES, as in flows=1000000")
        })
    };
    given.iter().map(capacity).collect()
}

/// `NAME=VALUE` of `--set`.
pub fn settings(set: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let setting = |text: &String| {
        let pair = text
            .split_once('=')
            .filter(|(name, value)| !name.is_empty() && !value.is_empty());
        pair.map(|(n, v)| (n.to_owned(), v.to_owned()))
            .ok_or_else(|| {
                Failure::wrong(format!("--set {text}: not a setting"))
                    .help("write --set NAME=VALUE")
            })
    };
    set.iter().map(setting).collect()
}
