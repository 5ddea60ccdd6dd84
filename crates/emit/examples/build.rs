//! Builds an NF and says what was made: `cargo run -p millrace-emit --example build -- nf.c [name=value…]`.

use std::path::Path;

use millrace_emit::cache::Cache;
use millrace_emit::{Options, build};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let input = arguments.next().ok_or("give an NF's source or object")?;
    let settings: Vec<(String, String)> = arguments
        .filter_map(|a| a.split_once('=').map(|(n, v)| (n.into(), v.into())))
        .collect();
    let mut options = Options::default();
    options.module.strict = true;
    let built = match build(
        &Cache::of_user()?,
        Path::new(&input),
        &settings,
        &options,
        &mut |_| {},
    ) {
        Ok(built) => built,
        Err(millrace_emit::Error::Refused { refusals, .. }) => {
            for r in refusals {
                let line = r
                    .line
                    .map(|l| format!("{}:{}", l.file, l.line))
                    .unwrap_or_default();
                println!(
                    "{line}: {} at {}: {}; {}",
                    r.rule, r.instruction, r.reason, r.remedy
                );
            }
            return Err("refused".into());
        }
        Err(error) => return Err(error.into()),
    };
    println!(
        "{}\n{}\n{:?}, from cache: {}",
        built.source.display(),
        built.module.display(),
        built.timings,
        built.from_cache
    );
    Ok(())
}
